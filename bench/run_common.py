# SPDX-License-Identifier: MIT
"""A program natively and under `tally run` and its like, in turn.

Each alternative is a prefix to the command. Those that are not installed are left out.
"""
import os
import shlex
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'tests', 'corpus'))

TALLY = os.environ.get('TALLY', 'tally')
ENVIRONMENT = {'PATH': '/usr/bin:/bin', 'LC_ALL': 'C', 'HOME': '/nonexistent'}


def helper(name):
    """A program of bench/meson.build."""
    return os.path.abspath(os.path.join(os.environ.get('BUILD', 'build'), 'bench', name))


def alternatives():
    """[(name, prefix of the command)], tally first."""
    known = (('tally run', [TALLY, 'run', '--']),
             ('valgrind none', ['valgrind', '-q', '--tool=none', '--smc-check=none']),
             ('qemu-x86_64', ['qemu-x86_64']))
    return [(name, prefix) for name, prefix in known if shutil.which(prefix[0])]


def program(argv):
    """argv with the program's path in full: qemu does not search PATH."""
    return [shutil.which(argv[0], path=ENVIRONMENT['PATH']) or argv[0]] + argv[1:]


class Failed(Exception):
    pass


def run(argv, directory):
    """Wall and CPU seconds, peak resident KiB of a command and its children; and what it said."""
    # As a shell would have it: usage writes to 3, and the command's output goes nowhere.
    shell = ['/bin/sh', '-c', 'exec 3>&1 "$@" >/dev/null', 'sh', helper('usage')]
    done = subprocess.run(shell + argv, cwd=directory, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wall, cpu, rss, status = done.stdout.split()
    if int(status):
        raise Failed('%s: ended with %d: %s' % (
            shlex.join(argv), os.waitstatus_to_exitcode(int(status)),
            done.stderr[-200:].decode(errors='replace')))
    return {'wall': float(wall), 'cpu': float(cpu), 'rss': int(rss), 'said': done.stderr.decode()}


def in_turn(argv, directory, rounds, others):
    """
    {name: [measurement]} with 'native' among the names. A machine is never equally fast for long:
    all sides are run once before any is run again, and only runs of one round are compared.
    """
    argv = program(argv)
    seen = {name: [] for name, _ in [('native', [])] + others}
    for _ in range(rounds):
        for name, prefix in [('native', [])] + others:
            if seen[name] is None:
                continue
            try:
                seen[name].append(run(prefix + argv, directory))
            except Failed as failure:
                if name == 'native':
                    raise
                print('# %s: %s' % (name, failure), file=sys.stderr)
                seen[name] = None
    return seen


def ratio(seen, name, figure, base='native'):
    """Median over the rounds of one side's figure by another's; None where either failed."""
    if seen[name] is None or seen[base] is None:
        return None
    return statistics.median(other[figure] / max(first[figure], 1e-9)
                             for other, first in zip(seen[name], seen[base]))


def added(seen, name, figure):
    """Median over the rounds of what one side adds to the native figure; None where it failed."""
    if seen[name] is None:
        return None
    return statistics.median(other[figure] - native[figure]
                             for other, native in zip(seen[name], seen['native']))


def middle(seen, name, figure):
    return statistics.median(one[figure] for one in seen[name])


def cell(value, form):
    return '%14s' % ('failed' if value is None else form % value)
