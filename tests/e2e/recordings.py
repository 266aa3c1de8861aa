# SPDX-License-Identifier: MIT
"""Recordings of a known program, made by Debian's perf: an oracle that is not ours."""
import atexit
import os
import shutil
import tempfile

from tap import *

CALLS = os.environ.get('CALLS', '')
# perf's thread that waits for BPF programs is a second late to end.
NO_BPF = '--no-bpf-event'
FOLDER = tempfile.mkdtemp(prefix='tally-')
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
made = {}


def perf(*args, **more):
    if not shutil.which('perf'):
        skip('no perf to compare with')
    # The configuration of a user could change what is compared.
    return run('perf', *args, env={'PERF_CONFIG': '/dev/null', 'DEBUGINFOD_URLS': ''}, **more)


def record(name, *options, program=('200',), **more):
    """Path of the recording called @name, made on first use; its file outlives the case."""
    if name not in made:
        path = os.path.join(FOLDER, name + '.data')
        with alone():
            done = perf('record', '-q', NO_BPF, '-o', path, *options, '--', CALLS, *program, **more)
        if done.returncode and privileged():
            raise AssertionError('perf record %s: %s' % (' '.join(options), done.stderr))
        if done.returncode:
            skip('perf record %s: %s' % (' '.join(options), done.stderr.strip().split('\n')[0]))
        made[name] = path
    return made[name]


def plain():
    return record('plain', '-F', '2000', '-e', 'cpu-clock')


def frame_pointers():
    return record('fp', '-F', '2000', '-e', 'cpu-clock', '-g')


def on_one_processor():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def one_processor():
    """
    What was recorded first stands first. Of several processors, perf writes down one after the
    other: a file's beginning may have all samples of a program and not where its code was mapped.
    """
    return record('one', '-F', '2000', '-e', 'cpu-clock', '-g', preexec_fn=on_one_processor)


def dwarf():
    return record('dwarf', '-F', '1000', '-e', 'cpu-clock:u', '--call-graph', 'dwarf')


def two_events():
    return record('two', '-e', 'cpu-clock', '-e', 'page-faults', '-F', '1000', '-e', 'dummy')


def group():
    return record('group', '-e', '{cpu-clock,page-faults}:S')


def tracepoints():
    need_privileged()
    return record('tracepoints', '-e', 'sched:sched_process_fork', '-e', 'sched:sched_process_exit',
                  '-e', 'sched:sched_switch', program=('50', 'fork'))


def tracepoint_chains():
    need_privileged()
    return record('chains', '-g', '-e', 'sched:sched_process_exec', program=('50', 'exec'))


def system_wide():
    need_privileged()
    return record('system', '-a', '-g', '-F', '1000', '-e', 'cpu-clock')


def compressed():
    return record('compressed', '-z', '-F', '2000', '-e', 'cpu-clock', '-g')


def forks():
    return record('forks', '-F', '2000', '-e', 'cpu-clock', '-g', program=('100', 'exec'))


def copy_of(path, size=None, name='copy.data', patch=None):
    """A copy, cut off at @size, with bytes changed as {offset: bytes}."""
    copy = os.path.join(FOLDER, name)
    with open(path, 'rb') as f:
        data = bytearray(f.read(size))
    for offset, changed in (patch or {}).items():
        data[offset:offset + len(changed)] = changed
    with open(copy, 'wb') as f:
        f.write(data)
    return copy
