#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""perf.data against Debian's perf, in both directions.

What perf records, our reader (DUMP prints it) reads with the samples that perf script shows; what
our writer writes (COPY copies record for record), perf script reads with the same samples and
symbols. Then files that are cut, damaged or none at all.
"""
import atexit
import collections
import contextlib
import fcntl
import functools
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from tap import *

DUMP = os.environ['DUMP']
COPY = os.environ['COPY']
FOLDER = tempfile.mkdtemp(prefix='tally-perfdata-')
atexit.register(shutil.rmtree, FOLDER, True)

# By processor time: so many samples on any machine.
WORK = (sys.executable, '-c',
        'import time\nwhile time.process_time() < 0.25: sum(i * i for i in range(1000))')

# What is recorded, by name: options of perf record, and whether through a pipe.
RECORDINGS = {
    'plain': (['-e', 'cpu-clock', '-F', '2000'], False),
    'period': (['-e', 'page-faults', '-c', '1', '-d'], False),
    'callchains': (['-e', 'cpu-clock', '-F', '2000', '-g'], False),
    'dwarf': (['-e', 'cpu-clock', '-F', '400', '--call-graph', 'dwarf,4096'], False),
    'compressed': (['-e', 'cpu-clock', '-F', '4000', '-g', '-z'], False),
    'pipe': (['-e', 'cpu-clock', '-F', '2000', '-g'], True),
    'compressed pipe': (['-e', 'cpu-clock', '-F', '2000', '-g', '-z'], True),
    'several events': (['-e', 'cpu-clock,task-clock,page-faults,dummy', '-F', '1000'], False),
    'switches': (['-e', 'cpu-clock', '--switch-events', '-F', '1000'], False),
    'group': (['-e', '{task-clock,page-faults}:S', '-F', '1000'], False),
    'tracepoint': (['-e', 'sched:sched_switch,cpu-clock', '-a'], False),
    'tracepoint pipe': (['-e', 'sched:sched_switch,cpu-clock', '-a'], True),
    'system': (['-e', 'cpu-clock', '-F', '1000', '-g', '-a', '--all-cgroups'], False),
    'registers': (['-e', 'cpu-clock', '-F', '400', '--user-regs=ip,sp', '--intr-regs=ip,ax'],
                  False),
}


def need_perf():
    if not shutil.which('perf'):
        skip('perf is not installed')


def path_of(name):
    return os.path.join(FOLDER, name.replace(' ', '-'))


def recording(name):
    """The path of the recording, made when first asked for."""
    need_perf()
    options, pipe = RECORDINGS[name]
    if 'tracepoint' in name or '-a' in options:
        need_privileged()
    path = path_of(name)
    if os.path.exists(path):
        return path
    command = ['perf', 'record', '-q', '--sample-cpu', '-N', *options, '-o', '-' if pipe else path]
    if name != 'system':
        command.append('--no-bpf-event')  # perf's thread for those is a second late to end
    with alone(), contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, 'wb')) if pipe else None
        done = subprocess.run([*command, '--', *WORK], stdout=file, stderr=subprocess.PIPE,
                              text=True, timeout=LIMIT)
    if done.returncode:
        if os.path.exists(path):
            os.unlink(path)
        check(done.returncode > 0, 'perf died: ' + done.stderr)
        reason = done.stderr.strip().splitlines()
        skip('perf cannot record this here: ' + (reason[0] if reason else 'no reason given'))
    return path


SAMPLE = re.compile(r'^\s*(-?\d+)/(-?\d+)\s+\[(\d+)\]\s+(\d+)\.(\d{9}):\s+(\d+)\s+(\S+):')


@functools.lru_cache(None)
def samples_of_perf(path):
    """(event, pid/tid, cpu, time, period) of each sample, as perf script prints it."""
    done = run('perf', 'script', '--ns', '-F', 'event,pid,tid,cpu,time,period', '-i', path)
    equal(done.returncode, 0, 'perf script: ' + done.stderr)
    samples = []
    for line in done.stdout.splitlines():
        match = SAMPLE.match(line)
        if not match: # of a call chain, which nobody asked for
            continue
        pid, tid, cpu, seconds, ns, period, event = match.groups()
        samples.append((event, '%s/%s' % (pid, tid), int(cpu), int(seconds + ns), int(period)))
    return samples


def chains_of_perf(path):
    """(pid/tid, ip, period, addr, chain) of each sample, from perf's dump of the bare records."""
    done = run('perf', 'script', '-D', '-i', path)
    equal(done.returncode, 0, 'perf script -D: ' + done.stderr)
    samples = []
    for line in done.stdout.splitlines():
        match = re.search(r'PERF_RECORD_SAMPLE\(IP, 0x[0-9a-f]+\): (-?\d+/-?\d+): 0x([0-9a-f]+) '
                          r'period: (\d+) addr: (?:0x)?([0-9a-f]+)', line)
        if match:
            thread, ip, period, addr = match.groups()
            samples.append((thread, ip, int(period), addr, []))
        else:
            match = re.match(r'\.\.\.\.\.\s+\d+: ([0-9a-f]{16})$', line)
            if match:
                samples[-1][4].append('%x' % int(match.group(1), 16))
    return samples


def samples_of_dump(path, *options):
    """Both of the above."""
    done = run(DUMP, '-ms', *options, path)
    equal(done.returncode, 0, done.stderr)
    samples, chains = [], []
    for line in done.stdout.splitlines():
        word = line.split()
        if word[0] == 'S':
            samples.append((word[1], word[2], int(word[3]), int(word[4]), int(word[5])))
            chains.append((word[2], word[6], int(word[5]), word[7], []))
        else:
            chains[-1][4].append(word[0])
    return samples, chains


def same_samples(name):
    path = recording(name)
    perf = samples_of_perf(path)
    ours, chains = samples_of_dump(path, '-o')
    check(len(perf) > 5, 'perf script shows only %d samples' % len(perf))
    equal(len(ours), len(perf), 'samples')
    times = [sample[3] for sample in ours]
    equal(times, sorted(times), 'times in order')
    for mine, theirs in zip(sorted(ours), sorted(perf)):
        equal(mine, theirs, 'sample')
    for mine, theirs in zip(sorted(chains), sorted(chains_of_perf(path))):
        equal(mine, theirs, 'call chain')
    equal(sorted(samples_of_dump(path)[0]), sorted(ours), 'samples in file order')


def case_plain():
    same_samples('plain')


def case_fixed_period():
    same_samples('period')


def case_callchains():
    same_samples('callchains')


def case_dwarf_callchains():
    same_samples('dwarf')


def case_compressed():
    same_samples('compressed')


def case_pipe():
    same_samples('pipe')


def case_compressed_pipe():
    same_samples('compressed pipe')


def case_several_events():
    same_samples('several events')


def case_switch_events():
    same_samples('switches')


def case_tracepoints():
    same_samples('tracepoint')


def case_tracepoints_through_a_pipe():
    same_samples('tracepoint pipe')


def case_whole_system():
    same_samples('system')


def case_registers():
    same_samples('registers')


def case_leader_sampling():
    """perf makes a sample of each member out of one record; times and threads are the record's."""
    path = recording('group')
    perf = {tuple(sample[1:4]) for sample in samples_of_perf(path)}
    ours = {tuple(sample[1:4]) for sample in samples_of_dump(path)[0]}
    check(perf)
    equal(ours, perf)


TYPES = {'MMAP': 1, 'LOST': 2, 'COMM': 3, 'EXIT': 4, 'FORK': 7, 'SAMPLE': 9, 'MMAP2': 10,
         'SWITCH': 14, 'NAMESPACES': 16, 'KSYMBOL': 17, 'BPF_EVENT': 18, 'CGROUP': 19,
         'ID_INDEX': 69, 'THREAD_MAP': 73, 'CPU_MAP': 74, 'FINISHED_INIT': 82}


def case_records_of_every_type_are_counted_alike():
    for name in ('plain', 'compressed', 'pipe', 'switches', 'system'):
        path = recording(name)
        stats = run('perf', 'report', '--stats', '-i', path)
        equal(stats.returncode, 0, stats.stderr)
        theirs = {}
        for kind, count in re.findall(r'^\s+(\w+) events:\s+(\d+)', stats.stdout, re.M):
            if kind in TYPES:
                theirs[TYPES[kind]] = int(count)
        ours = collections.Counter()
        for line in run(DUMP, path).stdout.splitlines():
            if line[0] == 'S':
                ours[9] += 1
            elif line[0] == 'R':
                ours[int(line.split()[1])] += 1
        for kind, count in theirs.items():
            equal(ours[kind], count, 'records of type %d in %s' % (kind, name))
        check(len(theirs) >= 5, stats.stdout)


# ---- what we write ----

def perf_script(path, symbols=True, **how):
    """Without symbols for recordings of all tasks: their files may be rebuilt while we look."""
    fields = 'comm,event,pid,tid,time,period,ip' + (',sym,dso' if symbols else '')
    done = run('perf', 'script', '--ns', '-F', fields, '-i', path, **how)
    equal(done.returncode, 0, 'perf script: ' + done.stderr)
    # Whether it has names for the vdso depends on what any perf has put into ~/.debug meanwhile.
    return re.sub(r'\S+ \(\[vdso\]\)', '([vdso])', done.stdout)


original_script = functools.lru_cache(None)(perf_script)


def has_own_files_only(name):
    return '-a' not in RECORDINGS[name][0]


def same_text(found, expected, what):
    """As equal(), but shows the first line that differs."""
    for mine, theirs in zip(found.splitlines(), expected.splitlines()):
        equal(mine, theirs, what)
    equal(len(found), len(expected), 'size of ' + what)


def copies_read_alike(name, *options):
    path = recording(name)
    copy = path + '.copy'
    done = run(COPY, *options, path, copy)
    equal(done.returncode, 3 if '-k' in options else 0, done.stderr)
    symbols = has_own_files_only(name)
    same_text(perf_script(copy, symbols), original_script(path, symbols), 'what perf script shows')
    same_text(run(DUMP, '-s', copy).stdout, run(DUMP, '-s', path).stdout, 'what we read')
    os.unlink(copy)


def case_perf_reads_our_files():
    for name in RECORDINGS:
        copies_read_alike(name)


def case_perf_reads_our_compressed_files():
    for name in ('plain', 'callchains', 'dwarf', 'compressed', 'several events'):
        copies_read_alike(name, '-z', '1')
        copies_read_alike(name, '-z', '3', '-w', '400')


def case_perf_reads_what_we_had_written_when_killed():
    for name in ('callchains', 'several events'):
        copies_read_alike(name, '-k')
        copies_read_alike(name, '-k', '-z', '1', '-w', '7')


def case_perf_reads_our_pipes():
    for name in ('plain', 'callchains', 'several events', 'group', 'tracepoint'):
        path = recording(name)
        for options in ([], ['-z', '2']):
            with open(path + '.pipe', 'wb') as file:
                subprocess.run([COPY, *options, path, '-'], stdout=file, check=True, timeout=LIMIT)
            with open(path + '.pipe', 'rb') as file:
                symbols = has_own_files_only(name)
                same_text(perf_script('-', symbols, stdin=file), original_script(path, symbols),
                          name)
            with open(path + '.pipe', 'rb') as file:
                same_text(run(DUMP, '-s', '-', stdin=file).stdout,
                          run(DUMP, '-s', path).stdout, name)
            os.unlink(path + '.pipe')


def case_tracepoint_fields_survive():
    path = recording('tracepoint')
    fields = ('-F', 'comm,tid,time,event,trace')
    expected = run('perf', 'script', *fields, '-i', path).stdout
    contains(expected, 'prev_comm=')
    run(COPY, path, path + '.copy')
    same_text(run('perf', 'script', *fields, '-i', path + '.copy').stdout, expected, 'a copy')
    with subprocess.Popen([COPY, '-z', '1', path, '-'], stdout=subprocess.PIPE) as copy:
        same_text(run('perf', 'script', *fields, '-i', '-', stdin=copy.stdout).stdout, expected,
                  'a pipe')


def case_perf_reads_our_header():
    path = recording('group')
    run(COPY, path, path + '.copy')
    header = run('perf', 'report', '--header-only', '-i', path + '.copy').stdout
    for line in ('hostname : ' + os.uname().nodename, 'os release : ' + os.uname().release,
                 'arch : ' + os.uname().machine, 'cmdline : ' + COPY,
                 'name = task-clock', 'pmu mappings: '):
        contains(header, line)
    check(re.search(r'group: {task-clock(:u)?,page-faults(:u)?}', header), header)


def case_short_writes():
    """A reader slower than the writer, of a pipe that holds one page."""
    path = recording('callchains')
    slow = 'import sys\nwhile True:\n d = sys.stdin.buffer.raw.read(3001)\n' \
           ' if not d: break\n sys.stdout.buffer.write(d)\n'
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, 1031, 4096) # F_SETPIPE_SZ
    with open(path + '.slow', 'wb') as file:
        reader = subprocess.Popen([sys.executable, '-c', slow], stdin=read_end, stdout=file)
        os.close(read_end)
        subprocess.run([COPY, '-w', '1000', path, '-'], stdout=write_end, check=True, timeout=LIMIT)
        os.close(write_end)
        equal(reader.wait(60), 0)
    same_text(run(DUMP, '-s', path + '.slow').stdout, run(DUMP, '-s', path).stdout, 'samples')


def case_reader_of_our_pipe_ends():
    path = recording('callchains')
    code = 'import signal, subprocess, sys\nsignal.signal(signal.SIGPIPE, signal.SIG_IGN)\n' \
           'sys.exit(subprocess.run(sys.argv[1:], restore_signals=False).returncode)'
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([sys.executable, '-c', code, COPY, path, '-'], stdout=write_end,
                          stderr=subprocess.PIPE, text=True, timeout=LIMIT)
    os.close(write_end)
    equal(done.returncode, 1)
    contains(done.stderr, 'writing standard output: Broken pipe')


def is_prefix(path, whole):
    """All that DUMP prints of @path is what it prints first of @whole."""
    done = run(DUMP, path)
    check(done.returncode in (0, 1), 'status %d' % done.returncode)
    check(whole.startswith(done.stdout), 'the records are not those at the start of the file')
    return done


def full_disk(path, whole, *options):
    """A disk with room for about two thirds."""
    run(COPY, *options, path, path + '.copy')
    size = os.path.getsize(path + '.copy') * 2 // 3
    mount = tempfile.mkdtemp(dir=FOLDER)
    if run('mount', '-t', 'tmpfs', '-o', 'size=%d' % size, 'tmpfs', mount).returncode:
        skip('may not mount')
    try:
        target = os.path.join(mount, 'perf.data')
        done = run(COPY, *options, path, target)
        equal(done.returncode, 1)
        contains(done.stderr, 'writing %s: No space left on device' % target)
        contains(done.stderr, 'make room')
        kept = is_prefix(target, whole)
        equal(kept.returncode, 0, kept.stderr)
        check(kept.stdout.count('\nS ') > 5, 'hardly anything is kept')
        perf_script(target)
    finally:
        run('umount', '-l', mount) # lazily: a daemon may look at every new mount


def case_full_disk():
    need_root()
    path = recording('dwarf')
    whole = run(DUMP, path).stdout
    full_disk(path, whole)
    full_disk(path, whole, '-w', '20')
    full_disk(path, whole, '-z', '1', '-w', '3')


def case_file_size_limit():
    path = recording('callchains')
    whole = run(DUMP, path).stdout

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = os.path.getsize(path) // 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    done = run(COPY, '-w', '30', path, path + '.limited', preexec_fn=limit)
    equal(done.returncode, 1)
    contains(done.stderr, 'File too large')
    kept = is_prefix(path + '.limited', whole)
    equal(kept.returncode, 0, kept.stderr)
    check(kept.stdout)


# ---- what is wrong with files ----

def case_recording_of_perf_that_was_killed():
    need_perf()
    path = path_of('killed')
    with alone():
        record_and_kill(path)
    done = run(DUMP, path)
    check(done.returncode in (0, 1), done.returncode)
    samples = re.findall(r'^S cpu-clock(?::u)? ', done.stdout, re.M)
    check(len(samples) > 100, 'samples of a killed recording')


def record_and_kill(path):
    perf = subprocess.Popen(['perf', 'record', '-q', '-N', '-e', 'cpu-clock', '-F', '2000', '-m',
                             '1', '-o', path, '--', sys.executable, '-c',
                             'while True: pass'], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(200):
            time.sleep(0.05)
            if os.path.exists(path) and os.path.getsize(path) > 60000:
                break
        else:
            skip('perf wrote nothing')
    finally:
        os.killpg(perf.pid, signal.SIGKILL)
        perf.wait()


def case_cut_at_any_point():
    for name in ('callchains', 'several events', 'compressed', 'pipe', 'compressed pipe'):
        path = recording(name)
        whole = run(DUMP, path).stdout
        with open(path, 'rb') as file:
            data = file.read()
        points = {0, 1, 7, 8, 15, 16, 17, 103, 104, 105, len(data) - 1}
        points |= set(random.Random(1).sample(range(len(data)), 16))
        for point in sorted(points):
            with open(path + '.cut', 'wb') as file:
                file.write(data[:point])
            done = is_prefix(path + '.cut', whole)
            if done.returncode:
                check(re.search(r'is damaged at byte \d+: |the file is empty', done.stderr),
                      'cut at %d: %s' % (point, done.stderr))
                offset = re.search(r'at byte (\d+)', done.stderr)
                check(not offset or int(offset.group(1)) <= point, done.stderr)
            else:
                check('pipe' in name, 'a file cut at %d is read as if whole' % point)


def case_random_damage():
    seed = random.randrange(1 << 32)
    print('# seed %d' % seed)
    dice = random.Random(seed)
    for name in ('callchains', 'several events', 'compressed', 'pipe', 'tracepoint pipe'):
        path = recording(name)
        with open(path, 'rb') as file:
            data = file.read()
        for _ in range(15):
            damaged = bytearray(data)
            for _ in range(dice.choice((1, 1, 3, 20))):
                span = dice.choice((200, len(data))) # headers are a small part of a file
                damaged[dice.randrange(min(span, len(data)))] = dice.randrange(256)
            with open(path + '.damaged', 'wb') as file:
                file.write(damaged)
            for options in ([], ['-o']):
                # Names are as damaged as the rest.
                done = run(DUMP, *options, path + '.damaged', errors='replace')
                check(done.returncode in (0, 1), 'status %d' % done.returncode)
                if done.returncode:
                    check(len(done.stderr.splitlines()) <= 2 and done.stderr, done.stderr)


def refused(content, *parts):
    path = path_of('refused')
    with open(path, 'wb') as file:
        file.write(content)
    done = run(DUMP, path)
    equal(done.returncode, 1)
    equal(done.stdout, '')
    for part in parts:
        contains(done.stderr, part)
    check('refused' in done.stderr, 'the name of the file is not in: ' + done.stderr)


def case_foreign_files():
    refused(b'', 'the file is empty')
    refused(b'PERF', 'damaged at byte 4', 'ends inside its header')
    refused(b'#!/bin/sh\necho hello\n', 'not a perf.data file')
    refused(b'PERFFILE' + bytes(200), 'version 1')
    refused(b'2ELIFREP' + bytes(200), 'other byte order')
    refused(b'PERFILE2' + struct.pack('<Q', 16), 'does not say what was recorded')
    refused(b'PERFILE2' + struct.pack('<Q', 50) + bytes(200), 'a header cannot take 50 bytes')
    attrs = struct.pack('<12Q', 104, 144, 104, 1 << 40, 0, 0, 0, 0, 0, 0, 0, 0)
    refused(b'PERFILE2' + attrs, '1099511627776 bytes of attributes')
    with tempfile.TemporaryDirectory() as folder:
        contains(run(DUMP, folder).stderr, ': Is a directory')
        open(folder + '/data', 'w').close()
        done = run(DUMP, folder)
        equal(done.returncode, 1)
        contains(done.stderr, 'perf record --threads')
    done = run(DUMP, path_of('nothing'))
    contains(done.stderr, 'No such file or directory')
    contains(done.stderr, 'tally record')


def case_file_through_a_pipe():
    path = recording('plain')
    with open(path, 'rb') as file, subprocess.Popen(['cat'], stdin=file,
                                                    stdout=subprocess.PIPE) as cat:
        done = run(DUMP, '-', stdin=cat.stdout)
    equal(done.returncode, 1)
    contains(done.stderr, 'cannot be read through a pipe')
    with open(path, 'rb') as file: # redirected, not piped: that can be sought in
        equal(run(DUMP, '-', stdin=file).stdout, run(DUMP, path).stdout)


def case_memory_does_not_grow_with_the_file():
    path = recording('callchains')
    with open(path, 'rb') as file:
        data = file.read()
    header = list(struct.unpack('<8s12Q', data[:104]))
    at, size = header[5], header[6]

    def peak(times):
        header[6] = size * times
        header[9:] = [0] * 4
        with open(path + '.big', 'wb') as file:
            file.write(struct.pack('<8s12Q', *header) + data[104:at])
            for _ in range(times):
                file.write(data[at:at + size])
        with open(os.devnull, 'wb') as null:
            child = subprocess.Popen([DUMP, path + '.big'], stdout=null)
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        equal(child.returncode, 0)
        return usage.ru_maxrss
    small, large = peak(1), peak(100)
    check(large < small + 2048, '%d KiB for a file, %d KiB for 100 times as much' % (small, large))
    os.unlink(path + '.big')


if __name__ == '__main__':
    main()
