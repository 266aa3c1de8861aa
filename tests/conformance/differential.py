#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds user mode against the kernel: the transcript of the same random calls, made natively and
under `tally run`, has to be the same.

Usage: differential.py [--seeds FIRST-LAST,...] [--seconds N] [--steps N] PROGRAM COMMAND...
							COMMAND: `tally run ... -- `, which runs PROGRAM

Where no hierarchy of cgroups is mounted only the kernel knows the cgroup of a sample: there none asks.
Where the kernel's breakpoints are never hit there are none.

With --seconds it goes on from FIRST until they have passed. A difference counts when it is there
each time: what depends on how busy the machine is comes and goes.
"""
import argparse
import ctypes
import difflib
import errno
import itertools
import subprocess
import sys
import time

TRIES = 4


def transcript(command, seed, arguments):
    options = ['--seed', str(seed), '--steps', str(arguments.steps)]
    if not arguments.cgroups:
        options.append('--no-cgroups')
    if not arguments.watchpoints:
        options.append('--no-watchpoints')
    done = subprocess.run(command + options,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    lines = done.stdout.decode(errors='replace').splitlines()
    return lines + ['status %d' % done.returncode]


def difference(native, here):
    """The first one, with what led to it."""
    lines = difflib.unified_diff(native, here, 'kernel', 'user mode', lineterm='', n=4)
    return list(itertools.islice(lines, 24))


def compare(arguments, seed):
    """The lines in which they differ, each time; how often it was tried."""
    for tried in range(1, TRIES + 1):
        native = transcript([arguments.program], seed, arguments)
        here = transcript(arguments.command + [arguments.program], seed, arguments)
        differ = difference(native, here)
        if not differ:
            break
        time.sleep(tried)
    return differ, tried


def refused():
    """Why the kernel cannot be compared with, or None."""
    PERF_EVENT_OPEN = 298
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(PERF_EVENT_OPEN, None, 0, -1, -1, 0)
    error = ctypes.get_errno()
    return None if error == errno.EFAULT else errno.errorcode[error]  # for want of arguments


def has_cgroups():
    with open('/proc/self/mounts') as mounts:
        kinds = [line.split()[2:4] for line in mounts]
    return any(kind == 'cgroup2' or kind == 'cgroup' and 'perf_event' in options.split(',')
               for kind, options in kinds)


def seeds(arguments):
    if not arguments.seconds:
        for part in arguments.seeds.split(','):
            first, _, last = part.partition('-')
            yield from range(int(first), int(last or first) + 1)
        return
    end = time.monotonic() + arguments.seconds
    seed = int(arguments.seeds.partition('-')[0])
    while time.monotonic() < end:
        yield seed
        seed += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seeds', default='1-10')
    parser.add_argument('--seconds', type=float)
    parser.add_argument('--steps', type=int, default=1500)
    parser.add_argument('program')
    parser.add_argument('command', nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    why = refused()
    if why:
        print('1..0 # SKIP the kernel refuses perf_event_open: %s' % why)
        return 0
    arguments.cgroups = has_cgroups()
    arguments.watchpoints = subprocess.run([arguments.program, '--forgets']).returncode != 0
    if not arguments.watchpoints:
        print('# without watchpoints: of the kernel breakpoints are never hit')
    failed = number = 0
    for number, seed in enumerate(seeds(arguments), 1):
        differ, tried = compare(arguments, seed)
        failed += bool(differ)
        print('%s %d - the kernel\'s transcript of seed %d' % ('not ok' if differ else 'ok', number,
                                                             seed))
        for line in differ:
            print('# %s' % line)
        if tried > 1 and not differ:
            print('# the same at try %d' % tried)
        sys.stdout.flush()
    print('1..%d' % number)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
