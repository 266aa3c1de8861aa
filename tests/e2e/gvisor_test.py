#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally in gVisor, which has no perf_event_open(2), keeps the GS register for itself, and lets go of
record locks at exec. Where runsc is not installed, or may not start, there is nothing to see."""
import os
import shutil

from tap import *

TARGET = os.environ['COUNT_TARGET']
# Exact ones; the model's depend a little on where memory lies.
EVENTS = 'instructions,branches,L1-dcache-loads,L1-dcache-stores'


def gvisor(*command):
    """A command in a sandbox of its own, which sees the files that are there, and changes none."""
    runsc = shutil.which('runsc')
    if not runsc:
        skip('runsc is not installed')
    need_root()
    sandbox = (runsc, '--network=none', '--ignore-cgroups', '--platform=ptrace', 'do')
    first = run(*sandbox, 'true')
    if first.returncode:
        skip('runsc does not start: ' + (first.stdout + first.stderr).strip().split('\n')[0])
    return run(*sandbox, *command)


def counts(done):
    equal(done.returncode, 0, done.stderr)
    rows = [line.split(',') for line in done.stderr.splitlines() if line.count(',') > 3]
    check(len(rows) == EVENTS.count(',') + 1, done.stderr)
    return {row[2].split(':')[0]: row[0] for row in rows}


def case_programs_run():
    done = gvisor(TALLY, 'run', '--', 'sh', '-c', '(echo first); echo second | cat; exit 3')
    equal((done.returncode, done.stdout, done.stderr), (3, 'first\nsecond\n', ''))


def case_counts_are_the_same():
    command = (TALLY, 'stat', '--pmu=user', '-x,', '-e', EVENTS, '--', TARGET)
    equal(counts(gvisor(*command)), counts(run(*command)))


def case_the_tool_turns_to_user_mode():
    done = gvisor(TALLY, 'stat', '-e', 'instructions,cycles', '--', TARGET)
    equal(done.returncode, 0, done.stderr)
    contains(done.stderr, 'this sandbox has no perf_event_open: user mode counts')
    contains(done.stderr, '(counted in user mode)')
    contains(done.stderr, '(computed by the model)')


def case_samples_are_taken():
    record = '%s record -q -o - -e instructions -c 1000 -- %s' % (TALLY, TARGET)
    done = gvisor('sh', '-c', '%s 2>/dev/null | %s report -i -' % (record, TALLY))
    equal(done.returncode, 0, done.stderr)
    contains(done.stdout, 'instructions, counted in user mode')
    contains(done.stdout, '[.] fib')


if __name__ == '__main__':
    main()
