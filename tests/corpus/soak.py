#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The corpus in random order under `tally run`, while signals arrive from outside.

    tests/corpus/soak.py [options] [CASE or *GLOB*]...

Two ways in turn. Nudged: its processes are stopped and continued and get signals that do nothing
by default; what the case shows must be what it shows natively and undisturbed. Beaten: they get
signals that end most programs; whatever that makes of the case, nothing of it may hang or stay.

Before that, the parts of PROGRAM (endure.c) side by side, for a fifth of the time.

  --minutes N    how long (default: 5)
  --endure PROGRAM
  --seed N       the order and the signals of an earlier run
  --native       without tally: do the cases themselves stand it?
"""
import argparse
import ctypes
import fnmatch
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import corpus

HARMLESS = (signal.SIGWINCH, signal.SIGURG, signal.SIGCONT, signal.SIGSTOP, signal.SIGSTOP)
DEADLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM,
          signal.SIGPIPE, signal.SIGUSR1, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE,
          signal.SIGTRAP, signal.SIGKILL)
# Their own signals or states are what they show.
NOT_NUDGED = ('stop-and-continue', 'bash-jobs', 'cpu-limit', 'python-tests-*')
ENDURE = 'timer', 'signals', 'threads'
GRACE = 10  # seconds for a process to end after SIGTERM, machine busy or not


def send(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def nudge(rng, child):
    """Disturbs one process of the tree for a moment."""
    pid = rng.choice(sorted(corpus.descendants()) or [child.pid])
    number = rng.choice(HARMLESS)
    send(pid, number)
    if number == signal.SIGSTOP:
        time.sleep(rng.uniform(0, 0.02))
        send(pid, signal.SIGCONT)


def beat(rng, child):
    send(rng.choice(sorted(corpus.descendants()) or [child.pid]), rng.choice(DEADLY))


def defies(pid):
    """Alive, although SIGTERM was sent and has its default action there."""
    try:
        with open('/proc/%d/status' % pid) as file:
            fields = dict(line.split(':\t', 1) for line in file if ':\t' in line)
    except OSError:
        return False
    handled = int(fields['SigCgt'], 16) | int(fields['SigIgn'], 16)
    return fields['State'][0] not in 'ZXT' and not handled >> (signal.SIGTERM - 1) & 1


def command(pid):
    try:
        with open('/proc/%d/cmdline' % pid) as file:
            return '%d (%s)' % (pid, file.read().replace('\0', ' ')[:80])
    except OSError:
        return str(pid)


def terminate_rest():
    """SIGTERM to all that is left; returns those that it should have ended and did not."""
    began = time.monotonic()
    while pids := corpus.descendants():
        for pid in pids:
            send(pid, signal.SIGTERM)
            send(pid, signal.SIGCONT)
        time.sleep(0.05)
        corpus.reap()
        if time.monotonic() - began > GRACE:
            break
    hung = [command(pid) for pid in sorted(corpus.descendants()) if defies(pid)]
    corpus.end_all()
    return hung


class Soak:
    def __init__(self, options, root, rng):
        self.rng = rng
        self.work = os.path.join(root, 'work')
        self.inputs = os.path.join(root, 'data')
        self.tally = [] if options.native else corpus.TALLY
        self.expected = {}

    def native(self, case):
        if case.name not in self.expected:
            self.expected[case.name] = corpus.run(case, self.work, self.inputs, [])
        return self.expected[case.name]

    def nudged(self, case, prefix):
        """As corpus.run(), with signals from outside."""
        began = time.monotonic()
        child = corpus.start(case, self.work, self.inputs, prefix)
        while child.poll() is None and time.monotonic() - began < 4 * case.timeout:
            time.sleep(self.rng.uniform(0.001, 0.05))
            nudge(self.rng, child)
        return corpus.finished(child, 1, began, self.work)

    def nudge(self, case):
        native = self.native(case)
        lines = list(corpus.differences(self.nudged(case, self.tally), native))
        if lines and self.tally:
            # A program may mind being stopped; then it does so natively, sooner or later.
            for _ in range(5):
                if any(corpus.differences(self.nudged(case, []), native)):
                    return []
        return lines

    def beat(self, case):
        began = time.monotonic()
        quiet = self.rng.uniform(0, 1.5) * self.native(case).seconds
        child = corpus.start(case, self.work, self.inputs, self.tally)
        while child.poll() is None and time.monotonic() - began < quiet:
            time.sleep(0.005)
        for _ in range(self.rng.randint(1, 6)):
            beat(self.rng, child)
            time.sleep(self.rng.choice((0, 0.001, 0.05)))
        return ['still there after SIGTERM: ' + line for line in terminate_rest()]

    def one(self, case):
        """A line for the reader, and what went wrong."""
        nudged = self.rng.random() < 0.5 and not any(
            fnmatch.fnmatch(case.name, pattern) for pattern in NOT_NUDGED)
        return ('nudged' if nudged else 'beaten'), (self.nudge if nudged else self.beat)(case)


def endure(program, seconds, prefix):
    """What each part of it says in the end; natively it need not take as long."""
    def ends(prefix, seconds):
        parts = [subprocess.Popen(prefix + [program, str(seconds), part], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                 for part in ENDURE]
        return [(*part.communicate(), part.returncode) for part in parts]

    failed = 0
    for part, native, found in zip(ENDURE, ends([], 5), ends(prefix, seconds)):
        if native != found:
            failed += 1
            print('%s for %d s:\n    %s' % (part, seconds, found), flush=True)
    print('%d parts for %d s, %d failed' % (len(ENDURE), seconds, failed), flush=True)
    return failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    parser.add_argument('--minutes', type=float, default=5)
    parser.add_argument('--endure')
    parser.add_argument('--seed', type=int, default=random.randrange(10 ** 6))
    parser.add_argument('--native', action='store_true')
    parser.add_argument('cases', nargs='*')
    return parser.parse_args()


def main():
    options = arguments()
    options.short = False
    rng = random.Random(options.seed)
    ctypes.CDLL(None).prctl(corpus.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    counts, failed = {'nudged': 0, 'beaten': 0}, 0
    print('seed %d' % options.seed, flush=True)
    if options.endure:
        failed += endure(os.path.abspath(options.endure), 12 * options.minutes,
                         [] if options.native else corpus.TALLY)
    with tempfile.TemporaryDirectory(prefix='tally-soak.') as root:
        corpus.data.make(os.path.join(root, 'data'))
        soak = Soak(options, root, rng)
        cases = [case for case in corpus.selected(options)
                 if not corpus.missing(case, corpus.environment(root, root))]
        end = time.monotonic() + 60 * options.minutes
        while time.monotonic() < end:
            case = rng.choice(cases)
            how, lines = soak.one(case)
            counts[how] += 1
            if lines:
                failed += 1
                print('%s %s:\n    %s' % (how, case.name, '\n    '.join(lines)), flush=True)
    print('%d cases nudged, %d beaten, %d failed' % (counts['nudged'], counts['beaten'], failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
