#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sample programs of libtally(3): what they count against perf stat, and that they build
against the installed library as a stranger would build them."""
import os
import re
import shutil
import subprocess
import tempfile

from tap import *

EXAMPLES = os.environ['EXAMPLES']
SOURCE = os.environ['TALLY_SOURCE']
BUILD = os.environ['TALLY_BUILD']
TARGET = os.environ['RECORD_TARGET']

WRITES = 'syscalls:sys_enter_write'


def example(name, *argv):
    return run(os.path.join(EXAMPLES, 'example-' + name), *argv)


def count(events, *command):
    """{event: number}, and the text of those that were not counted."""
    done = example('command', events, *command)
    found = {}
    for line in done.stderr.splitlines():
        number, rest = line.split(None, 1)
        if number == '-':
            name, why = rest.split(': ', 1)
            found[name] = why
        elif number.isdigit():
            found[rest.split()[0]] = int(number)
    return found


def perf_count(events, *command):
    if not shutil.which('perf'):
        skip('perf is not installed')
    done = run('perf', 'stat', '-x,', '-e', events, '--', *command)
    found = {}
    for line in done.stderr.splitlines():
        field = line.split(',')
        if len(field) > 2 and field[0].isdigit():
            found[field[2]] = int(field[0])
    return found


def need_tracepoints():
    if not os.access('/sys/kernel/tracing/events/syscalls', os.R_OK):
        skip('tracepoints may not be read')


def case_system_calls_as_perf_counts_them():
    need_tracepoints()
    events = ','.join('syscalls:sys_enter_' + name for name in
                      ('write', 'read', 'openat', 'close', 'mmap', 'execve', 'exit_group'))
    command = ('dd', 'if=/dev/zero', 'of=/dev/null', 'bs=1', 'count=1234', 'status=none')
    ours = count(events, *command)
    check(ours[WRITES] == 1234, ours)
    check(ours['syscalls:sys_enter_exit_group'] == 1, ours)
    equal(ours, perf_count(events, *command))


def case_children_are_counted_as_perf_counts_them():
    need_tracepoints()
    one = 'dd if=/dev/zero of=/dev/null bs=1 count=%d status=none'
    script = ' & '.join((one % 100, one % 200, '(' + one % 300 + '; ' + one % 400 + ')', 'wait'))
    ours = count(WRITES, '/bin/sh', '-c', script)
    equal(ours, {WRITES: 1000})
    equal(ours, perf_count(WRITES, '/bin/sh', '-c', script))


def case_page_faults_about_as_perf_counts_them():
    command = ('dd', 'if=/dev/zero', 'of=/dev/null', 'bs=4M', 'count=1', 'status=none')
    ours = count('page-faults:u', *command)['page-faults:u']
    theirs = perf_count('page-faults:u', *command)['page-faults:u']
    # The layout of the address space is random, and with it a page or two.
    check(abs(ours - theirs) <= 10, (ours, theirs))


def case_group_members_agree():
    found = count('{page-faults:u,minor-faults:u,major-faults:u}', 'true')
    equal(found['page-faults:u'], found['minor-faults:u'] + found['major-faults:u'])
    check(found['page-faults:u'] > 10, found)


def case_events_that_are_not_there_say_why():
    found = count('cycles:u,page-faults:u', 'true')
    check(isinstance(found['page-faults:u'], int), found)
    if isinstance(found['cycles:u'], int):
        skip('this machine has a PMU')
    contains(found['cycles:u'], 'no hardware PMU')


def case_exit_status_is_passed_on():
    equal(example('command', 'page-faults:u', 'sh', '-c', 'exit 9').returncode, 9)
    equal(example('command', 'page-faults:u', 'sh', '-c', 'kill -9 $$').returncode, 137)
    done = example('command', 'page-faults:u', '/nonexistent')
    equal(done.returncode, 1)
    contains(done.stderr, "cannot execute '/nonexistent'")


def case_region_counts_its_pages():
    done = example('region')
    found = re.search(r'(\d+)  page-faults:u', done.stdout)
    check(found and 1024 <= int(found.group(1)) < 2048, done.stdout)
    done = example('region', 'no-such-event')
    equal(done.returncode, 1)
    contains(done.stderr, 'no-such-event')


def case_recorded_reads_what_perf_wrote():
    if not shutil.which('perf'):
        skip('perf is not installed')
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, 'perf.data')
        with alone():
            done = run('perf', 'record', '-q', '-e', 'page-faults:u', '-c', '1', '-o', data, '--',
                       'dd', 'if=/dev/zero', 'of=/dev/null', 'bs=1M', 'count=1', 'status=none')
        if done.returncode:
            skip('perf record: ' + done.stderr)
        theirs = run('perf', 'script', '-i', data, '-F', 'comm,ip', '-G')
        ours = example('recorded', data)
        equal(ours.returncode, 0)
        check(len(ours.stdout.splitlines()) > 20, ours.stdout)
        equal(sorted(tuple(line.split()[i] for i in (0, 2)) for line in ours.stdout.splitlines()),
              sorted(tuple(line.split()[:2]) for line in theirs.stdout.splitlines()))


def case_sample_finds_the_hot_functions():
    done = example('sample', TARGET, 'spin', '500')
    equal(done.returncode, 0, done.stderr)
    share = {name: float(part) for part, name in re.findall(r'([\d.]+)%  (\S+)', done.stderr)}
    # One does twice the work of the other, and nothing else does any.
    check(share['spin_alpha'] > share['spin_beta'] > 10, done.stderr)
    check(share['spin_alpha'] + share['spin_beta'] > 70, done.stderr)


def case_manual_shows_the_program_that_is_built():
    with open(os.path.join(SOURCE, 'man', 'libtally.3')) as page:
        shown = page.read().split('\n.EX\n')[1].split('\n.EE\n')[0]
    with open(os.path.join(SOURCE, 'examples', 'region.c')) as program:
        built = program.read()
    shown = shown.replace('\\-', '-').replace('\\e', '\\')
    equal(shown.splitlines(), built[built.index('#include'):].splitlines())


def case_builds_against_the_installed_library():
    if os.environ['SANITIZE'] != 'none':
        skip('a sanitized library links only with sanitized programs')
    if not shutil.which('pkg-config') or not shutil.which('cc'):
        skip('needs cc and pkg-config')
    with tempfile.TemporaryDirectory() as root:
        done = run('meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', root)
        equal(done.returncode, 0, done.stdout + done.stderr)
        config = subprocess.run(['find', root, '-name', 'tally.pc'], capture_output=True,
                                text=True).stdout.strip()
        flags = run('pkg-config', '--cflags', '--libs', 'tally',
                    env={'PKG_CONFIG_PATH': os.path.dirname(config),
                         'PKG_CONFIG_SYSROOT_DIR': root})
        equal(flags.returncode, 0, flags.stderr)
        library = [f[2:] for f in flags.stdout.split() if f.startswith('-L')][0]
        program = os.path.join(root, 'region')
        done = run('cc', '-Wall', '-Werror', '-o', program,
                   os.path.join(SOURCE, 'examples', 'region.c'), *flags.stdout.split())
        equal(done.returncode, 0, done.stderr)
        done = run(program, 'page-faults:u', env={'LD_LIBRARY_PATH': library})
        equal(done.returncode, 0, done.stderr)
        contains(done.stdout, 'page-faults:u')


if __name__ == '__main__':
    main()
