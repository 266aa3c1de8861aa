#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally doctor on this machine, and on the same one crippled in the ways people meet."""
import os
import re
import shutil
import tempfile

from tap import *

REFUSE_PERF = os.environ.get('REFUSE_PERF', '')
NOBODY = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups')


def ability(found, name):
    return next(a for a in found['abilities'] if a['name'] == name)


def crippled(*prefix):
    """JSON of the tool run under a wrapper; a copy, since others may not reach the build folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = copy_tool(folder)
        done = run(*prefix, copy, 'doctor', '--json')
        text = run(*prefix, copy, 'doctor')
    equal(text.returncode, done.returncode)
    return json.loads(done.stdout), done.returncode, text.stdout


def need_root_capabilities():
    need_root()
    if not run('unshare', '-m', 'true').returncode == 0:
        skip('may not unshare')


def case_json_is_complete():
    done = tally('doctor', '--json')
    found = json.loads(done.stdout)
    equal(done.returncode, 0 if found['stat'] and found['record'] else 1)
    for key in 'machine', 'settings', 'process', 'abilities':
        check(found[key], key)
    for a in found['abilities']:
        check(a['verdict'] in ('can', 'cannot', 'may-not'), a)
        equal(a['errno'] == 0, a['verdict'] == 'can', a['name'])
        equal(a['reason'] is None, a['verdict'] == 'can', a['name'])
        check(a['verdict'] != 'may-not' or a['remedy'], a)


def case_settings_are_those_of_proc():
    found = tally_json('doctor', '--json', status=tally('doctor').returncode)['settings']
    for name in ('perf_event_paranoid', 'perf_event_mlock_kb', 'perf_event_max_sample_rate'):
        with open('/proc/sys/kernel/' + name) as file:
            equal(found[name], int(file.read()), name)


def case_hardware_agrees_with_perf():
    if not shutil.which('perf'):
        skip('perf is not installed')
    found = tally('doctor', '--json')
    verdict = ability(json.loads(found.stdout), 'hardware')['verdict']
    perf = run('perf', 'stat', '-x,', '-e', 'instructions:u', 'true').stderr
    equal(verdict == 'can', re.match(r'[1-9]\d*,', perf) is not None, perf)


def case_text_fits_80_columns_without_escapes():
    done = tally('doctor')
    equal(done.stderr, '')
    check('\033' not in done.stdout)
    done.stdout.encode('ascii')
    for line in done.stdout.splitlines():
        check(len(line) <= 80 and line == line.rstrip(), repr(line))


def case_every_reason_is_told_once():
    found = json.loads(tally('doctor', '--json').stdout)
    text = tally('doctor').stdout
    reasons = {(a['reason'], a['remedy']) for a in found['abilities'] if a['reason']}
    equal(len(re.findall(r'^\[\d+\] ', text, re.M)), len(reasons))


def case_seccomp_eperm():
    found, status, text = crippled(REFUSE_PERF, '1')
    equal(status, 1)
    equal((found['stat'], found['record']), (False, False))
    equal(found['process']['perf_event_open'], False)
    for a in found['abilities']:
        equal(a['verdict'], 'may-not')
        contains(a['reason'], 'seccomp filter')
    contains(text, 'The kernel lets nothing be measured here: a seccomp filter')


def case_seccomp_enosys():
    found, status, _ = crippled(REFUSE_PERF, '38')
    equal(status, 1)
    equal(ability(found, 'software')['errno'], 38)
    contains(ability(found, 'software')['reason'], 'seccomp filter')


def case_seccomp_kills():
    """As in a service of systemd with SystemCallFilter=@system-service."""
    found, status, text = crippled(REFUSE_PERF, 'kill')
    equal(status, 1)
    equal(found['process']['perf_event_open'], False)
    for a in found['abilities']:
        equal(a['reason'], 'a seccomp filter ends who calls perf_event_open')
    contains(text, 'The kernel lets nothing be measured here: a seccomp filter ends')


def case_seccomp_kills_but_user_mode_counts():
    inner = run(REFUSE_PERF, 'kill', TALLY, 'stat', '-x,', '-e', 'instructions,page-faults', '--',
                TALLY, 'run', '--', 'true')
    equal(inner.returncode, 0)
    check(re.search(r'^[1-9]\d*,,instructions', inner.stderr, re.M), inner.stderr)
    for host in 'auto', 'never':
        done = run(REFUSE_PERF, 'kill', TALLY, 'run', '--host=' + host, '--',
                   TALLY, 'stat', '-x,', '-e', 'instructions:u,page-faults:u', '--', 'true')
        equal(done.returncode, 0)
        equal(len(re.findall(r'^[1-9]\d*,', done.stderr, re.M)), 2, done.stderr)


def case_sandbox_with_enodev():
    """As gVisor has it."""
    found, status, _ = crippled(REFUSE_PERF, '19')
    equal(status, 1)
    contains(ability(found, 'software')['reason'], 'seccomp filter')


def case_ordinary_user():
    need_root()
    with open('/proc/sys/kernel/perf_event_paranoid') as file:
        paranoid = int(file.read())
    found, status, text = crippled(*NOBODY)
    equal(found['process']['capabilities'], [])
    equal(ability(found, 'uprobe')['verdict'], 'may-not')
    if paranoid == 2:
        equal(status, 0)
        equal(ability(found, 'software')['verdict'], 'can')
        equal(ability(found, 'kernel')['verdict'], 'may-not')
        equal(ability(found, 'system-wide')['verdict'], 'may-not')
        contains(ability(found, 'system-wide')['remedy'], 'kernel.perf_event_paranoid=0')
        contains(text, 'Only user code is seen')
    else:
        skip('perf_event_paranoid is not 2 but %d: the rest was not compared' % paranoid)


def case_stat_and_record_say_the_same():
    found, _, _ = crippled(REFUSE_PERF, '1')
    software = ability(found, 'software')
    for command in ('stat',), ('record', '-o', '/dev/null'):
        done = run(REFUSE_PERF, '1', TALLY, *command, '--pmu=kernel', '-e', 'page-faults', '--', 'true')
        contains(done.stderr, software['reason'])
        contains(done.stderr, software['remedy'])


def case_uprobe_takes_more_than_perfmon():
    need_root()
    need_privileged()  # who has it not cannot hand it on
    if not os.path.exists('/sys/bus/event_source/devices/uprobe'):
        skip('this kernel has no uprobe unit')
    perfmon = (*NOBODY, '--inh-caps=-all,+perfmon', '--ambient-caps=-all,+perfmon')
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = copy_tool(folder)
        found = json.loads(run(*perfmon, copy, 'doctor', '--json').stdout)
        done = run(*perfmon, copy, 'stat', '-j', '--pmu=kernel', '-e',
                   'page-faults,uprobe:%s:0x1000' % copy, '--', 'true')
    equal(found['process']['capabilities'], ['CAP_PERFMON'])
    uprobe = ability(found, 'uprobe')
    contains(uprobe['reason'], 'CAP_SYS_ADMIN')
    check('setcap' not in uprobe['remedy'], uprobe)
    count = json.loads(done.stderr)['counts'][1]
    equal((count['reason'], count['remedy']), (uprobe['reason'], uprobe['remedy']))


def case_user_namespace():
    if run('unshare', '-Ur', 'true').returncode:
        skip('user namespaces are off')
    found, _, _ = crippled('unshare', '-Ur')
    equal(found['process']['user_namespace'], True)
    equal(ability(found, 'uprobe')['verdict'], 'may-not')
    contains(ability(found, 'uprobe')['reason'], 'inside its user namespace')


def case_no_tracefs():
    need_root_capabilities()
    script = 'for p in $(awk \'$3 == "tracefs" {print $2}\' /proc/mounts); do umount $p; done\n' \
             'exec "$@"'
    found, _, _ = crippled('unshare', '-m', 'sh', '-c', script, 'sh')
    equal(found['settings']['tracefs'], None)
    equal(ability(found, 'tracepoint')['verdict'], 'may-not')
    contains(ability(found, 'tracepoint')['remedy'], 'mount -t tracefs')


def case_usage_errors():
    equal(tally('doctor', '--nonsense').returncode, 129)
    done = tally('doctor', 'operand')
    equal(done.returncode, 129)
    contains(done.stderr, "unexpected argument 'operand'")


def case_full_disk():
    with open('/dev/full', 'w') as full:
        done = subprocess.run([TALLY, 'doctor'], stdout=full, stderr=subprocess.PIPE, text=True)
    equal(done.returncode, 1)
    contains(done.stderr, 'cannot write')


if __name__ == '__main__':
    main()
