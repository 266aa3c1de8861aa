#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two commands run in turn, and the ratio of what they cost.

    bench/pair.py [-n ROUNDS] 'COMMAND A' 'COMMAND B'

Machines are shared and noisy, so a pair is measured back to back and the ratios are taken pair by
pair: a slow moment hits both sides. As a module, pairs() gives the figures to other scripts.
Commands are run by the shell; what they print is thrown away.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

FIGURES = ('wall', 'cpu', 'rss')


def run(command):
    """Wall seconds, CPU seconds and peak resident KiB of one command and its children."""
    start = time.monotonic()
    child = subprocess.Popen(['/bin/sh', '-c', 'exec ' + command], stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    return {'wall': wall, 'cpu': usage.ru_utime + usage.ru_stime, 'rss': usage.ru_maxrss,
            'status': child.returncode}


def pairs(a, b, rounds=7, warmup=1):
    """Runs a and b in turn; returns {figure: (median a, median b, median of the ratios a/b)}."""
    seen = []
    for i in range(rounds + warmup):
        # Who goes first alternates, so that neither always finds the caches warm.
        if i % 2:
            second, first = run(b), run(a)
        else:
            first, second = run(a), run(b)
        for side, command in ((first, a), (second, b)):
            if side['status'] != 0:
                raise RuntimeError('exit status %d: %s' % (side['status'], command))
        if i >= warmup:
            seen.append((first, second))
    result = {}
    for figure in FIGURES:
        result[figure] = (statistics.median(x[figure] for x, _ in seen),
                          statistics.median(y[figure] for _, y in seen),
                          statistics.median(x[figure] / max(y[figure], 1e-9) for x, y in seen))
    return result


def row(name, figure, measured, bar):
    """One line of the table that `make bench` prints."""
    a, b, ratio = measured[figure]
    return '%-44s %10.4g %10.4g %8.3f   %s' % (name + ', ' + figure, a, b, ratio, bar)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('-n', type=int, default=7, help='pairs that count')
    parser.add_argument('a')
    parser.add_argument('b')
    args = parser.parse_args()
    measured = pairs(args.a, args.b, args.n)
    for figure in FIGURES:
        print(row('', figure, measured, '')[2:])
    return 0


if __name__ == '__main__':
    sys.exit(main())
