# SPDX-License-Identifier: MIT
"""What the scripts of this folder share: programs written for the kernel's perf_event_open(2), by
people who have never heard of us, inside `tally run`. HOST says on what kind of host: one that
lets perf_event_open be, or one whose filter refuses it."""
import contextlib
import fcntl
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'e2e'))

# pylint: disable=unused-wildcard-import,wildcard-import,wrong-import-position
from tap import *

HOST = {
    'open': [],
    'refusing': [os.environ.get('REFUSE_PERF', 'refuse_perf'), '1'],
}[os.environ.get('HOST', 'open')]


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip('%s is not installed' % program)


@contextlib.contextmanager
def tracing_alone():
    """Meanwhile no other of these scripts places probes in the tracing directory, of which there is one,
    or counts what is there."""
    try:
        file = open('/sys/kernel/tracing/README')
    except OSError:
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def inside(*argv, status=0, **more):
    """
    The finished program, run by `tally run`; its status has to be @status. It may measure what it
    likes in there, whoever we are.
    """
    done = run(*HOST, TALLY, 'run', '--paranoid=-1', '--', *argv, **more)
    if status is not None:
        equal(done.returncode, status, 'status of %s\n%s%s' % (
            ' '.join(argv), done.stdout, done.stderr))
    return done


def number(pattern, text):
    """What @pattern finds in @text, an integer in its first group."""
    found = re.search(pattern, text)
    check(found, 'no %s in:\n%s' % (pattern, text))
    return int(found.group(1).replace(',', ''))


def near(found, expected, share, what):
    check(abs(found - expected) <= expected * share,
          '%s: found %s, expected about %s' % (what, found, expected))
