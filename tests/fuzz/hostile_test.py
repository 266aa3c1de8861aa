#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the hostile program under `tally run`, and looks for what it has broken or left behind.

Usage: hostile_test.py HOSTILE ARENA_USE [SECONDS]

Without SECONDS a few short runs, the first of them natively: from fixed seeds, and from one that is
another each time. With it, runs from random seeds for as long. TALLY names the tally to be run.
"""
import ctypes
import os
import random
import signal
import subprocess
import sys
import time

TALLY = os.environ.get('TALLY', 'tally')
SEEDS, RUN_SECONDS, LONG_RUN_SECONDS = (1, 2, 3), 4, 20
# hostile tells of a hang after a minute, and again at its end.
LIMIT = 300
# Until the monitor has seen that everybody is gone.
SETTLE_SECONDS = 20
PR_SET_CHILD_SUBREAPER = 36
MEMORY_KIB = 32 << 10
# Not more wait in the monitor for events to come: PIPES_ROOM of monitor/events.c.
PIPES = 20


def children():
    """Those of this process, which gets all that lose their parents."""
    me = str(os.getpid())
    for name in os.listdir('/proc'):
        try:
            with open('/proc/%s/stat' % name) as stat:
                if name.isdigit() and stat.read().rsplit(') ', 1)[1].split()[1] == me:
                    yield int(name)
        except (OSError, IndexError):
            pass


def end_all():
    """No run leaves anybody behind, whatever went wrong."""
    while True:
        left = list(children())
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass


def stat_of(pid):
    """Name, state, parent, and the processor time in ticks."""
    with open('/proc/%d/stat' % pid) as stat:
        name, rest = stat.read().split('(', 1)[1].rsplit(') ', 1)
    fields = rest.split()
    return name, fields[0], int(fields[1]), int(fields[11]) + int(fields[12])


def tree_of(root):
    """@root and all below it, as far as they can still be looked at."""
    parents = {}
    for name in os.listdir('/proc'):
        try:
            if name.isdigit():
                parents[int(name)] = stat_of(int(name))[2]
        except (OSError, IndexError):
            pass
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def what_they_do(root):
    """Who runs, and where the others wait: of a run that does not end."""
    for pid in tree_of(root):
        try:
            name, state, _, ticks = stat_of(pid)
            with open('/proc/%d/wchan' % pid) as wchan:
                yield '%d %s %s %s, %d ticks' % (pid, name, state, wchan.read(), ticks)
        except (OSError, IndexError):
            pass


def in_use(arena_use, pid):
    said = subprocess.run([arena_use, str(pid)], stdout=subprocess.PIPE, text=True)
    return {name: int(value) for name, value in map(str.split, said.stdout.splitlines())}


def leaks(before, after):
    """What is still there when all events are closed. The one process that is left may be watched."""
    if not before or not after:
        yield 'the monitor is gone'
        return
    for name, expected in ('events', 0), ('rings', 0), ('tasks', 0), (
            'descriptors', before['descriptors'] + 1 + PIPES):
        if after[name] > expected:
            yield '%d %s are left, not %d' % (after[name], name, expected)
    if after['memory'] > before['memory'] + MEMORY_KIB:
        yield 'the monitor takes %d KiB, after %d' % (after['memory'], before['memory'])


def look(arena_use, pid, before):
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        found = list(leaks(before, in_use(arena_use, pid)))
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


def talk(process, arena_use):
    """Follows what hostile says; what is wrong of it."""
    before, wrong = None, []
    for line in process.stdout:
        word = line.strip()
        if word == 'quiet' and arena_use:
            wrong += look(arena_use, process.pid, before)
        if word == 'ready' and arena_use:
            before = in_use(arena_use, process.pid)
        if word in ('ready', 'quiet'):
            process.stdin.write('\n')
            process.stdin.flush()
        else:
            print('# ' + word)
    return wrong


def run(prefix, hostile, arena_use, seed, seconds):
    """Lines that tell what went wrong in one run."""
    process = subprocess.Popen(prefix + [hostile, str(seed), str(seconds)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    hang = []

    def give_up(*_):
        hang.extend(what_they_do(process.pid))
        end_all()  # also those that would keep the pipe open

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT)
    wrong = talk(process, arena_use)
    status = process.wait()
    signal.alarm(0)
    end_all()
    if hang:
        wrong.append('it went on for %d s: %s' % (LIMIT, '; '.join(hang)))
    elif status:
        wrong.append('it ended with %d' % status)
    return wrong


def main(hostile, arena_use, seconds=None):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    user_mode = [TALLY, 'run', '--host=never', '--']
    if seconds:
        end = time.monotonic() + int(seconds)
        while time.monotonic() < end:
            seed = random.getrandbits(32)
            wrong = run(user_mode, hostile, arena_use, seed, LONG_RUN_SECONDS)
            for line in wrong:
                print('    seed %d: %s' % (seed, line))
            if wrong:
                return 1
        return 0
    seeds = SEEDS + (random.getrandbits(32),)
    print('1..%d' % (1 + len(seeds)))
    cases = [('natively', [], None, seeds[0], 1)]
    cases += [('from seed %d' % seed, user_mode, arena_use, seed, RUN_SECONDS) for seed in seeds]
    failed = False
    for number, (name, prefix, use, seed, length) in enumerate(cases, 1):
        wrong = run(prefix, hostile, use, seed, length)
        for line in wrong:
            print('# ' + line)
        print('%s %d - random calls %s' % ('not ok' if wrong else 'ok', number, name), flush=True)
        failed |= bool(wrong)
    return failed


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
