# SPDX-License-Identifier: MIT
"""A TAP test script in few words: cases are functions named case_..., run in the order written.

    from tap import *

    def case_exit_status_is_passed_on():
        equal(tally('stat', '--', 'false').returncode, 1)

    if __name__ == '__main__':
        main()
"""
import contextlib
import fcntl
import inspect
import json
import os
import shutil
import subprocess
import sys
import time
import traceback

TALLY = os.environ.get('TALLY', 'tally')

# Seconds: ends what hangs, and not what a busy machine takes long for.
LIMIT = 240

CAP_SYS_ADMIN = 21
CAP_PERFMON = 38


class Skip(Exception):
    """The case needs what this machine or user lacks; the text says what."""


def skip(reason):
    raise Skip(reason)


def need_root():
    if os.geteuid() != 0:
        skip('needs root')


def privileged():
    """Whether perf_event_paranoid means nothing to us. Root in a container has neither of these."""
    with open('/proc/self/status') as file:
        effective = int(file.read().split('CapEff:')[1].split()[0], 16)
    return bool(effective & (1 << CAP_SYS_ADMIN | 1 << CAP_PERFMON))


def need_privileged():
    if not privileged():
        skip('needs CAP_PERFMON')


def sees_kernel():
    """Whether this user may measure the kernel; others' events are of user mode only."""
    with open('/proc/sys/kernel/perf_event_paranoid') as file:
        return privileged() or int(file.read()) < 2


def need_kernel():
    if not sees_kernel():
        skip('needs CAP_PERFMON or kernel.perf_event_paranoid below 2')


def open_terminal():
    """Two descriptors: of who looks at the terminal, and of the program on it."""
    try:
        return os.openpty()
    except OSError as error:
        skip('cannot make a terminal: %s' % error.strerror)


def check(condition, message='condition is false'):
    if not condition:
        raise AssertionError(message)


def equal(found, expected, what=''):
    if found != expected:
        raise AssertionError('%s: found %r, expected %r' % (what or 'values', found, expected))


def contains(text, part):
    if part not in text:
        raise AssertionError('no %r in:\n%s' % (part, text))


def run(*argv, timeout=LIMIT, **more):
    """The finished process, with text in stdout and stderr."""
    env = dict(os.environ, LC_ALL='C', **more.pop('env', {}))
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout, env=env, **more)


def copy_tool(folder):
    """The tool with what belongs to it, where others may reach it; returns its path."""
    for part in 'tally-tools.so', 'tally-rt':
        shutil.copy(os.path.join(os.path.dirname(TALLY), part), folder)
    return shutil.copy(TALLY, folder)


def tally(*args, **more):
    return run(TALLY, *args, **more)


def tally_json(*args, status=0, **more):
    """What the tool wrote on standard output, read as JSON."""
    done = tally(*args, **more)
    equal(done.returncode, status, 'status of tally %s\n%s' % (' '.join(args), done.stderr))
    return json.loads(done.stdout)


def wait_until(condition, what, seconds=LIMIT):
    """For what another process brings about: fails only when it never does."""
    end = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < end, 'never seen: ' + what)
        time.sleep(0.02)


def let_run(pid, seconds):
    """Waits until the process has had so much more processor time, however long that takes."""
    clock = ~pid << 3 | 2  # clock_getcpuclockid(3)
    start = time.clock_gettime(clock)
    wait_until(lambda: time.clock_gettime(clock) - start >= seconds, 'that %d runs' % pid)


@contextlib.contextmanager
def alone():
    """
    One recorder at a time on the whole machine, whoever tests and wherever.

    The kernel leaves the mark of a build-id, which tally record asks for, in the records that other
    recorders get of the same mapping; perf overruns its stack on those, now or when it reads them.
    The lock is on a file of the kernel's, since the kernel is what they share.
    """
    with contextlib.ExitStack() as stack:
        if os.path.exists('/sys/bus/event_source'):
            lock = os.open('/sys/bus/event_source', os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, lock)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main():
    script = sys.modules['__main__']
    cases = [(name, case) for name, case in vars(script).items()
             if name.startswith('case_') and inspect.isfunction(case)]
    failed = 0
    print('1..%d' % len(cases))
    for number, (name, case) in enumerate(cases, 1):
        title = name[len('case_'):].replace('_', ' ')
        try:
            case()
            print('ok %d - %s' % (number, title))
        except Skip as reason:
            print('ok %d - %s # SKIP %s' % (number, title, reason))
        except Exception:  # a crash of the case is a failure like any other
            failed += 1
            for line in traceback.format_exc().splitlines():
                print('# ' + line)
            print('not ok %d - %s' % (number, title))
        sys.stdout.flush()
    sys.exit(1 if failed else 0)
