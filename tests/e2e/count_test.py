#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts of `tally run` that are exact, against who counts in another way: the processor that traps
after each instruction, and callgrind. And against themselves, which no two runs may change.

A string instruction with a repeat count is one instruction to a processor's counters and here;
callgrind counts each repetition. So what is compared with callgrind executes none: the C library is
told that the processor is not good at them, and lacks all else that Valgrind's processor does not
have, so that it takes the same functions in both.
"""
import json
import os
import platform
import re
import shutil
import tempfile

from tap import *

TARGET = os.environ['COUNT_TARGET']
STEPPER = os.environ['STEPPER']
BRANCHES = os.environ['BRANCHES']

# What callgrind may differ by, of what the program executes beyond /bin/true: Valgrind has a library
# of its own linked into each.
CLOSE = 1e-4
PLAIN = {'GLIBC_TUNABLES': 'glibc.cpu.hwcaps=' + ','.join('-' + feature for feature in (
    'AVX2', 'AVX2_Usable', 'AVX', 'AVX512F', 'AVX512VL', 'AVX512BW', 'ERMS', 'FSRM', 'RTM', 'BMI1',
    'BMI2', 'LZCNT', 'MOVBE', 'POPCNT', 'SSE4_1', 'SSE4_2', 'SSSE3', 'XSAVE', 'XSAVEC',
    'Fast_Unaligned_Copy', 'AVX_Fast_Unaligned_Load', 'Prefer_No_VZEROUPPER'))}

# Where the dynamic linker finds its data decides how many steps it takes, natively too.
STILL = ('setarch', platform.machine(), '-R')


def counted(events, *command, before=(), **more):
    """{event: count} of a command under `tally run`."""
    with tempfile.NamedTemporaryFile('r') as file:
        done = run(*before, TALLY, 'run', '--', TALLY, 'stat', '-x,', '-o', file.name,
                   '-e', events, '--', *command, **more)
        equal(done.returncode, 0, done.stderr)
        rows = [line.split(',') for line in file if line.strip() and line[0] != '#']
    return {row[2].split(':')[0]: int(row[0]) for row in rows}


def case_every_instruction_that_the_processor_steps_through():
    done = run(STEPPER, TARGET)
    if done.returncode == 77:
        skip('ptrace(2) is not permitted')
    equal(done.returncode, 0, done.stderr)
    instructions, branches = map(int, done.stdout.split())
    check(instructions > 10000, 'only %d instructions' % instructions)
    equal(counted('instructions,branches', TARGET),
          {'instructions': instructions, 'branches': branches})


def branches(*around):
    done = run(*around, TARGET)
    if done.returncode == 77:
        skip('ptrace(2) is not permitted')
    equal(done.returncode, 0, done.stderr)
    return done.stdout.splitlines()


def compare_branches(*around):
    """The unit that traces, in whichever code cache, with who steps."""
    stepped, traced = branches(STEPPER, '-b'), branches(TALLY, 'run', '--', *around, BRANCHES)
    check(len(stepped) > 5000, 'only %d branches' % len(stepped))
    for n, (one, other) in enumerate(zip(stepped, traced)):
        equal(other, one, 'branch %d of %d' % (n, len(stepped)))
    equal(len(traced), len(stepped), 'branches')
    return len(traced)


def case_every_branch_that_the_processor_steps_through():
    event = 'cpu/branches_taken/'
    equal(counted(event, TARGET), {event: compare_branches()})


def case_every_branch_beside_what_else_is_counted():
    for events in ('instructions:u', 'cycles:u', 'branches:u,L1-dcache-load-misses:u'):
        compare_branches(TALLY, 'stat', '-o', '/dev/null', '-e', events, '--')


def case_perf_reads_the_branches_that_are_recorded():
    """But for the last one of a piece, which perf leaves out."""
    if not shutil.which('perf'):
        skip('perf is not installed')
    stepped = branches(STEPPER, '-b')
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'data')
        done = run(TALLY, 'run', '--', TALLY, 'record', '-o', path, '-e', 'intel_bts//u', TARGET)
        equal(done.returncode, 0, done.stderr)
        done = run('perf', 'script', '--itrace=b', '-i', path)
        equal(run(TALLY, 'script', '-i', path).returncode, 0)
        contains(run(TALLY, 'report', '-i', path).stdout, '--itrace=b')
    found = re.findall(r'([0-9a-f]+) \S+ \(\S+\) => +([0-9a-f]+) ', done.stdout)
    read = [' '.join(pair) for pair in found]
    at = 0
    for n, branch in enumerate(read):
        at += branch != stepped[at]
        equal(branch, stepped[at], 'branch %d' % n)
        at += 1
    check(len(read) > len(stepped) - 20, '%d branches of %d' % (len(read), len(stepped)))


def case_the_same_in_each_run():
    events = 'instructions,branches,cpu/mem-loads/,cpu/mem-stores/,cpu/calls/,cpu/returns/'
    first = counted(events, TARGET)
    equal(len(first), 6)
    for _ in range(2):
        equal(counted(events, TARGET), first)


def case_the_same_with_other_events_beside_them():
    """Whichever code cache the program runs in."""
    alone = counted('instructions', TARGET)
    for beside in ('branches', 'cpu/calls/', 'cycles', 'L1-dcache-load-misses,branch-misses'):
        equal(counted('instructions,' + beside, TARGET)['instructions'], alone['instructions'],
              'beside ' + beside)


def case_the_same_of_who_reads_its_memory_map():
    """Whatever is mapped for the runtime: translations that are taken over, from the third time on, and more
    code caches. A shell would not do: it writes down its parent's number, of as many digits as that has."""
    if run(*STILL, 'true').returncode:
        skip('personality(2) is not permitted')
    events = ('instructions', 'instructions', 'instructions', 'instructions', 'instructions,cycles',
              'instructions,branches', 'instructions,L1-dcache-load-misses')
    with tempfile.TemporaryDirectory() as folder:
        each = '; '.join('%s stat -x, -o %s/%d -e %s -- sed -n /x/p /proc/self/maps' % (
            TALLY, folder, number, names) for number, names in enumerate(events))
        done = run(*STILL, TALLY, 'run', '--', 'sh', '-c', each)
        equal(done.returncode, 0, done.stderr)
        found = []
        for number in range(len(events)):
            with open('%s/%d' % (folder, number)) as file:
                found += [int(line.split(',')[0]) for line in file if ',instructions' in line]
    equal(found, found[:1] * len(events))


def callgrind(*command):
    done = run('valgrind', '--tool=callgrind', '--callgrind-out-file=/dev/null', *command,
               env=PLAIN)
    equal(done.returncode, 0, done.stderr[-500:])
    line = next(line for line in done.stderr.splitlines() if 'refs:' in line)
    return int(line.split()[-1].replace(',', ''))


def ours(*command, **more):
    return counted('instructions', *command, env=PLAIN, **more)['instructions']


def need_callgrind():
    if not shutil.which('valgrind'):
        skip('valgrind is not installed')


def text(folder, lines):
    path = os.path.join(folder, 'text')
    with open(path, 'w') as file:
        file.writelines('%d %x of %d\n' % (n, n * n * 2654435761, n % 97) for n in range(lines))
    return path


def compare(lines, makes, *command):
    """With callgrind, beyond what /bin/true takes; and with another run."""
    need_callgrind()
    if run(*STILL, 'true').returncode:
        skip('personality(2) is not permitted')
    with tempfile.TemporaryDirectory() as folder:
        path = text(folder, lines)

        def anew(count, **more):
            if os.path.exists(path + makes):
                os.unlink(path + makes)
            return count(*command, path, **more)

        first = anew(ours, before=STILL)
        equal(anew(ours, before=STILL), first, 'two runs')
        mine = first - ours('/bin/true', before=STILL)
        theirs = anew(callgrind) - callgrind('/bin/true')
    check(abs(mine - theirs) <= CLOSE * theirs,
          '%s: %d, callgrind %d' % (' '.join(command), mine, theirs))


def case_bzip2_as_callgrind_counts_it():
    if not shutil.which('bzip2'):
        skip('bzip2 is not installed')
    compare(8000, '.bz2', 'bzip2', '-k')


def case_what_code_alone_tells_is_the_same_with_and_without_operands():
    code = 'branch-misses,L1-icache-load-misses,iTLB-load-misses,branches'
    if run(*STILL, 'true').returncode:
        skip('personality(2) is not permitted')
    with tempfile.TemporaryDirectory() as folder:
        command = ('sort', text(folder, 2000))
        alone = counted(code, *command, before=STILL)
        beside = counted(code + ',cycles', *command, before=STILL)
    check(alone['branch-misses'] > 1000, str(alone))
    equal(alone, {event: beside[event] for event in alone})


def case_gzip_as_callgrind_counts_it():
    compare(9000, '.gz', 'gzip', '-nk9')


# Of the memory of the runtime: what its boot touches before it can ask for it, scattered variables, and
# where something else is counted what begins another code cache.
FEW_FAULTS = 40


def page_faults(events, *command, under=()):
    """(what the first of the events has counted, by whom)"""
    done = run(*under, TALLY, 'stat', '--json', '-e', events, *command)
    equal(done.returncode, 0, done.stderr)
    count = json.loads(done.stderr)['counts'][0]
    return count['value'], count['source']


def case_page_faults_are_the_programs():
    if tuple(map(int, re.findall(r'\d+', platform.release())[:2])) < (5, 14):
        skip('madvise(2) can populate memory from Linux 5.14 on')
    for images, command in (1, ['sh', '-c', ':']), (1, ['sort', '/dev/null']), (2, ['sh', '-c', 'exec sh -c :']):
        native, source = page_faults('page-faults', *command)
        if source != 'kernel':
            skip('the kernel counts no page faults here')
        for events in 'page-faults', 'page-faults,instructions:u', 'page-faults,cycles:u':
            for host in 'auto', 'never':
                ours, _ = page_faults(events, *command, under=(TALLY, 'run', '--host=' + host, '--'))
                check(abs(ours - native) < images * FEW_FAULTS,
                      '%s, --host=%s: %d page faults, natively %d' % (events, host, ours, native))


if __name__ == '__main__':
    main()
