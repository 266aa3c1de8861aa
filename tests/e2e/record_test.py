#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally record: what it writes, read by our own reader and by perf; and how it ends."""
import collections
import contextlib
import glob
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from tap import *

TARGET = os.environ.get('RECORD_TARGET', 'record-target')
DUMP = os.environ.get('PERFDATA_DUMP', 'perfdata-dump')
NOBODY = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups')
EXIT, FORK, SWITCH, SWITCH_CPU_WIDE = 4, 7, 14, 15

Sample = collections.namedtuple('Sample', 'event pid tid cpu time period ip chain')


@contextlib.contextmanager
def folder():
    """A fresh directory to record in, and nobody else who records."""
    before = os.getcwd()
    with alone(), tempfile.TemporaryDirectory() as path:
        os.chdir(path)
        try:
            yield path
        finally:
            os.chdir(before)


def record(*args, status=0, **more):
    """Records with cpu-clock at a rate that every machine allows; returns what was said."""
    done = tally('record', '-e', 'cpu-clock', '-F', '2000', *args, **more)
    equal(done.returncode, status, 'status of record %s\n%s' % (' '.join(args), done.stderr))
    return done.stderr


def summary(said):
    """Samples and losses of the closing line."""
    found = re.search(r'^\[ tally record: ([\d,]+) samples, .* in .*, ([\d,]+) lost \]$', said, re.M)
    check(found, 'no closing line in:\n' + said)
    return tuple(int(n.replace(',', '')) for n in found.groups())


def dump(path='perf.data', status=0):
    """Samples and other records, as our reader finds them."""
    done = run(DUMP, path)
    equal(done.returncode, status, done.stderr)
    samples, others = [], []
    for line in done.stdout.splitlines():
        if line[0] == ' ':
            samples[-1].chain.append(int(line, 16))
        elif line[0] == 'S':
            event, task, cpu, when, period, ip = line[2:].rsplit(' ', 7)[:6]
            pid, tid = task.split('/')
            samples.append(Sample(event, int(pid), int(tid), int(cpu), int(when), int(period),
                                  int(ip, 16), []))
        else:
            others.append(int(line.split()[1]))
    return samples, others


def need_perf():
    if not shutil.which('perf'):
        skip('needs perf')


def perf(*args, **more):
    need_perf()
    done = run('perf', *args, **more)
    equal(done.returncode, 0, done.stderr)
    return done.stdout


def perf_symbols(path='perf.data'):
    return collections.Counter(
        line.split()[1] for line in perf('script', '-i', path, '-F', 'ip,sym').splitlines())


def tally_symbols(path='perf.data'):
    done = tally('script', '-i', path, '-F', 'sym')
    equal(done.returncode, 0, done.stderr)
    return collections.Counter(line.strip() for line in done.stdout.splitlines())


@contextlib.contextmanager
def recorder(*args, **more):
    """A recorder in the background; its end is the caller's affair."""
    child = subprocess.Popen([TALLY, 'record', '-e', 'cpu-clock', '-F', '2000', *args],
                             stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                             env=dict(os.environ, LC_ALL='C'), **more)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        child.stderr.close()


@contextlib.contextmanager
def held_target():
    """A target that burns until it is let go."""
    child = subprocess.Popen([TARGET, 'hold'], stdin=subprocess.PIPE)
    try:
        yield child
    finally:
        child.stdin.close()
        child.wait()


def child_of(pid):
    """The process that @pid started, once there is one."""
    found = []

    def look():
        for stat in glob.glob('/proc/[0-9]*/stat'):
            with contextlib.suppress(OSError), open(stat) as file:
                fields = file.read().rsplit(')', 1)[1].split()
                if fields[1] == str(pid):
                    found.append(int(stat.split('/')[2]))
        return found

    wait_until(look, 'a child of %d' % pid)
    return found[0]


def size_of(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


# ---- what is written ----


def case_perf_reads_the_same_samples():
    with folder():
        samples, lost = summary(record('--', TARGET, 'spin', '300'))
        ours, _ = dump()
        equal(len(ours), samples)
        equal(lost, 0)
        check(samples > 20, samples)
        theirs = []
        for line in perf('script', '--ns', '-F', 'tid,time,period,ip').splitlines():
            tid, when, period, ip = re.match(r'\s*(\d+)\s+([\d.]+):\s+(\d+)\s+(\w+)', line).groups()
            theirs.append((int(tid), int(when.replace('.', '')), int(period), int(ip, 16)))
        equal(sorted((s.tid, s.time, s.period, s.ip) for s in ours), sorted(theirs))


def case_perf_finds_the_same_symbols():
    with folder():
        record('--', TARGET, 'spin', '300')
        ours, theirs = tally_symbols(), perf_symbols()
        for name in 'spin_alpha', 'spin_beta', 'burn':
            equal(ours[name], theirs[name], name)
        check(theirs['spin_alpha'] > theirs['spin_beta'] > 0, theirs)
        check(theirs['[unknown]'] * 20 < sum(theirs.values()), theirs)


def case_kernel_addresses_have_names():
    if open('/proc/kallsyms').readline().startswith('0' * 16):
        skip('this user may not see kernel addresses')
    with folder():
        record('-e', 'cpu-clock', '--', 'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=1M', 'count=3000')
        kernel = [s for s in dump()[0] if s.ip >> 63]
        if not kernel:
            skip('no sample fell into the kernel')
        named = perf('script', '-F', 'ip,sym,dso').splitlines()
        check(sum('[kernel' in line and '[unknown]' not in line for line in named) * 10 >=
              len(kernel) * 9, named[:20])


def case_call_chains():
    with folder():
        record('--call-graph', 'fp', '--', TARGET, 'spin', '200')
        samples, _ = dump()
        check(all(s.chain for s in samples), 'a sample without a chain')
        record('--call-graph', 'dwarf,4096', '-o', 'dwarf', '--', TARGET, 'spin', '200')
        chains = perf('script', '-i', 'dwarf', '-F', 'ip,sym').split('\n\n')
        whole = [c for c in chains if 'spin_alpha' in c]
        check(whole, 'no chain through spin_alpha')
        # Of some 20,000 perf's unwinder gives up on one, behind burn().
        lost = [c for c in whole if 'main' not in c]
        check(len(lost) * 100 <= len(whole), ''.join(lost))


def case_one_side_of_call_chains():
    with folder():
        need_privileged()
        record('-g', '--user-callchains', '--', 'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=1M',
               'count=1000')
        # Callers of code without frame pointers may be any number that is on the stack.
        check(not any(s.chain and s.chain[0] >> 63 for s in dump()[0]), 'a kernel address')
        record('-g', '--kernel-callchains', '--', TARGET, 'spin', '100')
        check(all(ip >> 63 for s in dump()[0] for ip in s.chain), 'a user address')


def case_several_events_are_told_apart():
    with folder():
        record('-e', 'task-clock', '-e', 'page-faults:u', '--', TARGET, 'spin', '200')
        seen = collections.Counter(s.event for s in dump()[0])
        equal(set(seen), {'cpu-clock', 'task-clock', 'page-faults:u'})
        need_perf()
        named = collections.Counter(
            line.strip().rstrip(':') for line in perf('script', '-F', 'event').splitlines())
        equal(named, seen)


def case_groups_sample_by_their_leader():
    with folder():
        done = tally('record', '-e', '{cpu-clock,page-faults}:S', '--', TARGET, 'spin', '100')
        equal(done.returncode, 0, done.stderr)
        samples, _ = dump()
        equal({s.event for s in samples}, {'cpu-clock'})
        check('page-faults' in perf('script', '-F', 'event'), 'perf does not read the group')


def case_threads():
    with folder():
        record('--', TARGET, 'threads', '4', '60')
        samples, _ = dump()
        equal(len({s.tid for s in samples if s.tid != s.pid}), 4)
        names = set(perf('script', '-F', 'comm').split())
        check({'worker-%d' % i for i in range(4)} <= names, names)


def case_many_forks():
    with folder():
        _, lost = summary(record('--', TARGET, 'forks', '500'))
        equal(lost, 0)
        _, others = dump()
        check(others.count(FORK) >= 500, others.count(FORK))
        check(others.count(EXIT) >= 500, others.count(EXIT))


def case_children_are_inherited_or_not():
    with folder():
        record('--', TARGET, 'child', '100')
        with_child = {s.pid for s in dump()[0]}
        equal(len(with_child), 2)
        record('--no-inherit', '--', TARGET, 'child', '100')
        equal(len({s.pid for s in dump()[0]} - with_child), 1)


def case_compressed():
    with folder():
        options = ['--call-graph', 'dwarf'] if os.uname().machine == 'x86_64' else ['-g']
        samples, _ = summary(record('-z', *options, '--', TARGET, 'spin', '300'))
        equal(len(dump()[0]), samples)
        equal(len(perf('script', '-F', 'tid').split()), samples)
        record(*options, '-o', 'plain', '--', TARGET, 'spin', '300')
        check(size_of('perf.data') * 2 < size_of('plain'),
              '%d against %d' % (size_of('perf.data'), size_of('plain')))


def case_pipe():
    with folder():
        command = "'%s' record -e cpu-clock -F 2000 -o - -- sh -c 'echo noise; exec %s spin 200'" % (
            TALLY, TARGET)
        done = run('sh', '-c', command + ' | cat >piped')
        equal(done.returncode, 0)
        contains(done.stderr, 'noise')
        samples, _ = summary(done.stderr)
        done = run('sh', '-c', "'%s' script -i - -F sym <piped" % TALLY)
        equal(done.stdout.count('\n'), samples, done.stderr)
        contains(done.stdout, 'spin_alpha')
        need_perf()
        report = run('sh', '-c', 'perf report -i - --stdio <piped')
        equal(report.returncode, 0, report.stderr)
        contains(report.stdout, 'spin_alpha')


def case_tracepoints_with_a_filter():
    need_privileged()
    if not os.path.exists('/sys/kernel/tracing/events/sched'):
        skip('needs tracefs')
    with folder():
        done = tally('record', '-e', 'sched:sched_switch', '--filter', 'prev_state == 0x2000',
                     '-e', 'sched:sched_process_exec', '--', 'true')
        equal(done.returncode, 0, done.stderr)
        text = perf('script')
        contains(text, 'sched:sched_process_exec')
        contains(text, 'filename=')
        check('sched:sched_switch' not in text, text)


def case_times_are_of_the_clock_asked_for():
    with folder():
        before = time.monotonic_ns()
        record('-k', 'monotonic', '-D', '200', '--', TARGET, 'spin', '400')
        after = time.monotonic_ns()
        times = [s.time for s in dump()[0]]
        check(times, 'no samples')
        check(before + 200_000_000 <= min(times) and max(times) <= after,
              (before, min(times), max(times), after))


def case_switches():
    with folder():
        record('--switch-events', '--', TARGET, 'sleeps', '20', '1')
        _, others = dump()
        check(others.count(SWITCH) + others.count(SWITCH_CPU_WIDE) >= 40, others)
        contains(perf('script', '--show-switch-events'), 'PERF_RECORD_SWITCH')


def case_times_of_samples_are_in_the_header():
    need_perf()
    rows = [(), ('-e', 'page-faults', '-g'), ('-z',), ('--overwrite',)]
    if privileged():
        rows.append(('-a',))
    for options in rows:
        with folder():
            record(*options, '--', TARGET, 'spin', '100')
            header = perf('report', '--header-only', '-i', 'perf.data')
            times = [int(s.time) for s in dump()[0]]
            for word, time in ('first', min(times)), ('last', max(times)):
                found = re.search(r'time of %s sample : (\d+)\.(\d+)' % word, header)
                check(found, header)
                equal(int(found[1]) * 10 ** 6 + int(found[2]), time // 1000, word)


def script(*options):
    done = tally('script', '-j', *options)
    equal(done.returncode, 0, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def case_what_was_asked_for_is_sampled():
    rows = [
        (['-d', '--data-page-size', '-e', 'page-faults'],
         lambda s: int(s['addr'], 16) and s['data_src']['op'] == 'N/A' and 'data_page_size' in s),
        (['-I', '--user-regs'], lambda s: s['iregs']['IP'] and s['uregs']['SP']),
        (['-W', '--code-page-size'], lambda s: {'weight', 'ins_lat', 'code_page_size'} <= set(s)),
        (['--sample-cpu'], lambda s: s['cpu'] >= 0),
        (['--transaction'], lambda s: s['transaction'] == '0x0'),
    ]
    for options, good in rows:
        with folder():
            record(*options, '--', TARGET, 'spin', '50')
            event = 'page-faults' if 'page-faults' in options else 'cpu-clock'
            samples = [s for s in script() if s['event'].startswith(event)]
            check(samples and all(map(good, samples)), '%s: %s' % (options, samples[-1:]))
            perf('script', '-i', 'perf.data')


def case_physical_addresses():
    need_privileged()
    with folder():
        record('--phys-data', '-d', '-e', 'page-faults', '--', TARGET, 'spin', '50')
        check(all('phys_addr' in s for s in script() if s['event'].startswith('page-faults')))


def case_cgroups_have_names():
    need_root()
    with open('/proc/self/mounts') as mounts:
        kinds = [line.split()[2:4] for line in mounts]
    if not any(kind == 'cgroup2' or 'perf_event' in options.split(',') for kind, options in kinds):
        skip('no cgroups that the kernel could name')
    with folder():
        record('--all-cgroups', '--', TARGET, 'spin', '50')
        paths = {s['cgroup'] for s in script()}
        check(paths and all(path.startswith('/') for path in paths), paths)


def case_branches_need_a_processor_that_records_them():
    with folder():
        done = tally('record', '-b', '-e', 'cpu-clock:u', '--', 'true')
        equal(done.returncode, 1)
        contains(done.stderr, 'BRANCH_STACK')
    done = tally('record', '-j', 'any,nonsense', '--', 'true')
    equal(done.returncode, 129)
    contains(done.stderr, "'nonsense' is no kind of branch")


def case_off_cpu():
    need_privileged()
    with folder():
        done = tally('record', '--off-cpu', '-g', '--', TARGET, 'sleeps', '10', '20')
        equal(done.returncode, 0, done.stderr)
        samples, lost = summary(done.stderr)
        ours, _ = dump()
        equal(len(ours), samples)
        # Who is preempted on the way to sleep is off the processor twice, and no less in sum.
        check(len(ours) >= 10 and sum(s.period for s in ours) >= 195_000_000, ours)
        equal({s.event for s in ours}, {'offcpu-time'})
        check(all(s.pid for s in ours), 'the idle task waits for nobody')
        done = tally('script', '-F', 'sym')
        contains(done.stdout, 'nanosleep')
        contains(perf('report', '--stdio', '--no-children'), 'offcpu-time')


# ---- what is recorded ----


def case_whole_system():
    need_privileged()
    with folder(), held_target() as target:
        record('-a', '--', TARGET, 'beside', str(target.pid), '100')
        check(target.pid in {s.pid for s in dump()[0]}, 'a running program was not seen')
        check(perf_symbols()['spin_alpha'] > 0, 'its symbols were not found')


def case_one_processor():
    need_privileged()
    with folder(), held_target():
        record('-C', '0', '--switch-events', '--', 'sleep', '0.2')
        samples, _ = dump()
        check(samples, 'no samples')
        equal({s.cpu for s in samples}, {0})


def case_programs_mapped_on_another_processor():
    need_privileged()
    if not shutil.which('taskset') or 1 not in os.sched_getaffinity(0):
        skip('needs taskset and two processors')
    with folder():
        for more in [], ['--overwrite'], ['-z']:
            record('-C', '0', *more, '--', 'taskset', '-c', '1', TARGET, 'moved', '200')
            samples, others = dump()
            equal({s.cpu for s in samples}, {0})
            check(perf_symbols()['spin_alpha'] > 10, more)
            check(tally_symbols()['spin_alpha'] > 10, more)


def case_a_cgroup():
    need_privileged()
    mounts = [line.split() for line in open('/proc/mounts')]
    bases = ([m[1] for m in mounts if m[2] == 'cgroup' and 'perf_event' in m[3]] +
             [m[1] for m in mounts if m[2] == 'cgroup2'])
    if not bases:
        skip('no cgroups are mounted')
    path = '%s/tally-test-%d' % (bases[0], os.getpid())
    try:
        os.mkdir(path)
    except OSError as error:
        skip('cannot make a cgroup: %s' % error)
    try:
        with folder(), held_target() as inside, held_target():
            with open(path + '/cgroup.procs', 'w') as procs:
                procs.write(str(inside.pid))
            record('-G', os.path.basename(path), '--', TARGET, 'beside', str(inside.pid), '100')
            equal({s.pid for s in dump()[0]}, {inside.pid})
    finally:
        os.rmdir(path)


def case_attached_until_the_target_ends():
    with folder(), held_target() as target:
        with recorder('-p', str(target.pid)) as child:
            wait_until(lambda: size_of('perf.data') > 20000, 'samples in the file')
            target.stdin.close()
            said = child.communicate(timeout=LIMIT)[1]
            equal(child.returncode, 0, said)
        samples, _ = summary(said)
        equal(len(dump()[0]), samples)
        # Its maps were there before: these symbols come from what /proc said.
        check(perf_symbols()['spin_alpha'] > samples // 4, perf_symbols())


def case_attached_to_a_thread():
    with folder(), held_target() as target:
        record('-t', str(target.pid), '--', TARGET, 'beside', str(target.pid), '100')
        samples, _ = dump()
        check(samples, 'no samples')
        equal({s.tid for s in samples}, {target.pid})
        check(perf_symbols()['spin_alpha'] > 0, 'its symbols were not found')


def case_ordinary_users_record_their_own():
    need_root()
    if not shutil.which('setpriv'):
        skip('needs setpriv')
    with folder() as path:
        os.chmod(path, 0o777)
        tool = copy_tool(path)
        target = shutil.copy(TARGET, path)
        done = run(*NOBODY, tool, 'record', '-e', 'cpu-clock', '--', target, 'spin', '100')
        if done.returncode and 'paranoid is' in done.stderr:
            skip('this machine lets users record nothing')
        equal(done.returncode, 0, done.stderr)
        samples, _ = dump()
        check(samples, done.stderr)
        if any(s.ip >> 63 for s in samples):
            check('user space only' not in done.stderr, done.stderr)
        elif int(open('/proc/sys/kernel/perf_event_paranoid').read()) > 1:
            contains(done.stderr, 'sampling user space only')


# ---- how it ends ----


def case_exit_status_is_passed_on():
    with folder():
        for command, status in (('exit 0', 0), ('exit 7', 7), ('kill -9 $$', 137)):
            summary(record('--', 'sh', '-c', command, status=status))


def case_commands_that_cannot_start():
    with folder():
        record('--', 'true')
        before = open('perf.data', 'rb').read()
        contains(record('--', './nowhere', status=127), 'nowhere')
        open('plain', 'w').close()
        record('--', './plain', status=126)
        # The recording that was there is there again.
        equal(open('perf.data', 'rb').read(), before)


def case_earlier_recordings_are_kept():
    with folder():
        record('--', 'true')
        first = open('perf.data', 'rb').read()
        record('--', 'true')
        equal(open('perf.data.old', 'rb').read(), first)


def case_interrupts_keep_the_results():
    with folder(), held_target() as target:
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with recorder('-p', str(target.pid), '-m', '2', '-o', 'data') as child:
                wait_until(lambda: size_of('data') > 10000, 'samples in the file')
                child.send_signal(number)
                said = child.communicate(timeout=LIMIT)[1]
                equal(child.returncode, 0, said)
            equal(len(dump('data')[0]), summary(said)[0])
            os.unlink('data')


def case_signals_are_passed_to_the_command():
    with folder():
        script = 'trap "exit 5" TERM; while :; do :; done'
        with recorder('-m', '2', '--', 'sh', '-c', script) as child:
            wait_until(lambda: size_of('perf.data') > 10000, 'samples in the file')
            child.send_signal(signal.SIGTERM)
            said = child.communicate(timeout=LIMIT)[1]
            equal(child.returncode, 5, said)
        equal(len(dump()[0]), summary(said)[0])
        # A command that does not listen: the second request ends the recording.
        script = 'trap "" INT; while :; do :; done'
        with recorder('-m', '2', '-o', 'data', '--', 'sh', '-c', script) as child:
            wait_until(lambda: size_of('data') > 10000, 'samples in the file')
            child.send_signal(signal.SIGINT)
            time.sleep(0.5) # at once it would be the same request
            check(child.poll() is None, 'ended by the first')
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=LIMIT)[1]
            equal(child.returncode, 128 + signal.SIGINT, said)
        equal(len(dump('data')[0]), summary(said)[0])


def case_killed_recordings_can_be_read():
    with folder(), held_target() as target:
        with recorder('-p', str(target.pid), '-m', '2') as child:
            wait_until(lambda: size_of('perf.data') > 20000, 'samples in the file')
            child.kill()
        samples, _ = dump()
        check(len(samples) > 100, len(samples))
        check(perf_symbols()['spin_alpha'] > 0, 'perf finds no symbols')


def case_full_disk():
    need_root()
    with folder() as path:
        os.mkdir('small')
        if run('mount', '-t', 'tmpfs', '-o', 'size=512k', 'none', 'small').returncode:
            skip('may not mount')
        try:
            said = record('--call-graph', 'dwarf', '-o', 'small/data', '--', TARGET, 'spin', '500',
                          status=1)
            contains(said, 'No space left on device')
            contains(said, ': the first of ')
            samples, _ = dump('small/data')
            check(samples, 'nothing was kept')
            equal(len(perf('script', '-i', 'small/data', '-F', 'tid', '-G').split()), len(samples))
        finally:
            run('umount', os.path.join(path, 'small'))


def case_closed_pipe():
    with folder():
        done = run('bash', '-c', 'set -o pipefail; "%s" record -e cpu-clock -F 2000 --call-graph '
                   'dwarf -o - -- "%s" spin 300 | head -c 1000 >/dev/null' % (TALLY, TARGET))
        equal(done.returncode, 1, done.stderr)
        contains(done.stderr, 'pipe')


def case_snapshots():
    with folder():
        with recorder('--overwrite', '-m', '4', '--', TARGET, 'spin', '30000') as child:
            target = child_of(child.pid)
            for nr in 1, 2:
                let_run(target, 0.1)
                child.send_signal(signal.SIGUSR2)
                wait_until(lambda: len(os.listdir('.')) == nr, 'snapshot %d' % nr)
                check(select.select([child.stderr], [], [], 20)[0], 'snapshot %d said' % nr)
                said = child.stderr.readline()
                if 'sampling user space only' in said:  # told to ordinary users, once
                    said = child.stderr.readline()
                contains(said, 'perf.data.2')
            let_run(target, 0.1)
            child.send_signal(signal.SIGTERM)
            said = child.communicate(timeout=LIMIT)[1]
            equal(child.returncode, 128 + signal.SIGTERM, said)
        files = sorted(os.listdir('.'), key=lambda name: name[len('perf.data.'):] or '~')
        equal(len(files), 3)
        last = 0
        for name in files:
            times = [s.time for s in dump(name)[0]]
            check(times, name)
            check(min(times) > last, '%s goes back in time' % name)
            last = max(times)
            check(tally_symbols(name)['spin_alpha'] > 0, name)
            check(perf_symbols(name)['spin_alpha'] > 0, name)


# ---- what is said ----


def case_the_default_event_is_named():
    with folder():
        done = tally('record', '--', TARGET, 'spin', '50')
        equal(done.returncode, 0, done.stderr)
        event = {s.event.split(':')[0] for s in dump()[0]}
        if event == {'cpu-clock'}:
            contains(done.stderr, 'sampling cpu-clock')
        else:
            equal(event, {'cycles'})
            check('cpu-clock' not in done.stderr, done.stderr)


def case_rates_above_the_limit_are_said():
    limit = int(open('/proc/sys/kernel/perf_event_max_sample_rate').read())
    with folder():
        done = tally('record', '-e', 'cpu-clock', '-F', str(limit + 1), '--', 'true')
        equal(done.returncode, 0, done.stderr)
        contains(done.stderr, 'recording %d' % limit)
        done = tally('record', '-e', 'cpu-clock', '-F', 'max', '-v', '--', 'true')
        contains(done.stderr, 'sample_freq=%d' % limit)


def case_quiet():
    with folder():
        equal(record('-q', '--', 'true'), '')


def case_command_line_mistakes():
    with folder():
        for args, part in (([], 'what to record?'),
                           (['-F', 'fast', 'true'], "'-F fast'"),
                           (['-m', '3x', 'true'], "'-m 3x'"),
                           (['-p', 'abc'], "'-p abc'"),
                           (['-a', '-p', '1'], 'choose one of'),
                           (['--call-graph', 'magic', 'true'], "'--call-graph magic'"),
                           (['--call-graph', 'dwarf,70000', 'true'], 'can be copied'),
                           (['-k', 'sundial', 'true'], "'-k sundial'"),
                           (['-z99', 'true'], "'-z 99'"),
                           (['--overwrite', '-o', '-', 'true'], 'cannot write to a pipe'),
                           (['--nonsense'], 'unknown option')):
            done = tally('record', *args)
            equal(done.returncode, 129, args)
            contains(done.stderr, part)
        done = tally('record', '-e', 'cpu-clok', '--', 'true')
        equal(done.returncode, 1)
        contains(done.stderr, 'cpu-clock')
        done = tally('record', '-e', 'cpu-clock', '-p', '4194304')
        equal(done.returncode, 1)
        contains(done.stderr, '4194304')
        done = tally('record', '-e', 'cpu-clock', '-o', '/nowhere/data', '--', 'true')
        equal(done.returncode, 1)
        contains(done.stderr, '/nowhere/data')
        done = tally('record', '-e', 'cpu-clock', '--overwrite', '-o', '/nowhere/data', '--', 'true')
        equal(done.returncode, 1)
        contains(done.stderr, '/nowhere/data')
        equal(os.listdir('.'), [])


def case_user_mode_takes_each_sample_of_a_period():
    loop = 'i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done'
    count = int(tally('stat', '--pmu=user', '-x,', '-e', 'instructions:u', '--', 'sh', '-c',
                      loop).stderr.split(',')[0])
    for how in ('-e', 'instructions:u', '-c', '500'), ('-e', 'instructions/period=500/u'):
        with folder():
            done = tally('record', '--pmu=user', *how, '--', 'sh', '-c', loop)
            samples = summary(done.stderr)[0]
        check(0.99 * count < 500 * samples < 1.01 * count, (count, samples))


# Says of each of its tasks what numbers it has: where its /proc is from, and in its own name space.
IN_A_NAME_SPACE = """
import os, threading
def numbers():
    with open('/proc/thread-self/status') as status:
        print(*next(line for line in status if line.startswith('NSpid')).split()[1:],
              flush=True)
    for i in range(100000):
        pass
for _ in range(2):
    if not os.fork():
        numbers()
        thread = threading.Thread(target=numbers)
        thread.start()
        thread.join()
        os._exit(0)
    os.wait()
numbers()
"""


def case_user_mode_has_the_numbers_of_who_records():
    apart = ('unshare', '-Urpf', '--', sys.executable, '-c', IN_A_NAME_SPACE)
    if run(*apart[:3], 'true').returncode:
        skip('no PID name spaces for this user')
    with folder():
        done = tally('record', '--pmu=user', '-e', 'instructions:u', '-c', '100000', '--', *apart)
        equal(done.returncode, 0, done.stderr)
        numbers = dict(line.split() for line in done.stdout.splitlines())
        samples, _ = dump()
        tasks = run('perf', 'script', '-i', 'perf.data', '--show-task-events', '--show-mmap-events').stdout
    equal(len(numbers), 5, done.stdout)
    check(set(numbers) <= {str(sample.tid) for sample in samples}, (numbers, done.stdout))
    check(not {sample.pid for sample in samples} & {int(own) for own in numbers.values()})
    told = set(re.findall(r'PERF_RECORD_(?:FORK|EXIT)\((\d+):(\d+)\)', tasks))
    check(set(numbers) <= {tid for _, tid in told}, tasks)
    for kind in r'(?:FORK|EXIT)\(', 'COMM[^\n]*:', 'MMAP2? ':
        found = set(re.findall(r'PERF_RECORD_%s(\d+)[:/]\d+' % kind, tasks))
        check(found and not found & set(numbers.values()), (kind, found))


def case_user_mode_is_not_said_to_lack_the_kernel():
    need_root()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        done = run(*NOBODY, copy_tool(folder), 'record', '--pmu=user', '-e', 'instructions', '-o',
                   folder + '/data', '--', 'true')
        equal(done.returncode, 0, done.stderr)
        check('user space only' not in done.stderr, done.stderr)


if __name__ == '__main__':
    main()
