#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally script against perf script, line by line, and against itself in its other form."""
import collections
import re
import struct

from recordings import *

STACK_LINE = re.compile(r'^\t *([0-9a-f]+) (.*?)(\+0x[0-9a-f]+)? \((.*)\)$')
HIT = re.compile(r'^(.* [ 0-9a-f]{16}) (\S.*?)(\+0x[0-9a-f]+)? \(([^()]*(?:\(deleted\))?)\)$')


def comparable(line):
    """
    Where files have several names for an address, everybody names it differently, and executables that are not relocatable have two addresses: there, only what must
    agree is kept. Functions of the program under test have to be the same to the letter.
    """
    for pattern in STACK_LINE, HIT:
        match = pattern.match(line)
        if match:
            start, _, _, dso = match.groups()
            if dso != CALLS:
                return (start if dso.endswith('.so.6') or dso.startswith('[k') else '', dso)
    return line


def same_lines(path, *options, tally_options=()):
    ours = tally('script', '-i', path, *options, *tally_options)
    theirs = perf('script', '-i', path, *options)
    equal(ours.returncode, 0, ours.stderr)
    equal(theirs.returncode, 0, theirs.stderr)
    left, right = ours.stdout.split('\n'), theirs.stdout.split('\n')
    equal(len(left), len(right), 'lines')
    check(len(left) > 2, 'nothing was recorded')
    for number, (a, b) in enumerate(zip(left, right), 1):
        if comparable(a) != comparable(b):
            raise AssertionError('line %d:\n%s\n%s' % (number, a, b))
    return left


def case_hits_as_perf_shows_them():
    same_lines(plain())


def case_frame_pointer_chains_as_perf_shows_them():
    lines = same_lines(frame_pointers(), '--no-inline')
    check(any('main+0x' in line for line in lines))


def case_dwarf_chains_as_perf_shows_them():
    lines = same_lines(dwarf(), '--no-inline')
    check(any('main+0x' in line for line in lines))


def case_several_events_as_perf_shows_them():
    lines = same_lines(two_events())
    check(any('page-faults' in line for line in lines))


def case_group_values_as_perf_shows_them():
    lines = same_lines(group())
    check(any('page-faults' in line for line in lines))


def case_tracepoints_as_perf_shows_them():
    lines = same_lines(tracepoints())
    check(any('child_comm=' in line for line in lines))


def case_tracepoints_with_chains_as_perf_shows_them():
    same_lines(tracepoint_chains(), '--no-inline')


def case_system_wide_as_perf_shows_it():
    path = system_wide()
    ours = tally('script', '-i', path, '--no-inline').stdout
    theirs = perf('script', '-i', path, '--no-inline').stdout
    head = re.compile(r'^\S.* \d+ \[\d+\] +[\d.]+: .*$', re.M)
    equal(head.findall(ours), head.findall(theirs), 'first lines of the samples')
    ours, theirs = ours.split('\n\n'), theirs.split('\n\n')
    for a, b in zip(ours, theirs):
        # perf drops the whole chain when one word of it cannot be an address.
        if '\n' in b:
            equal(a.count('\n'), b.count('\n'), 'frames of ' + a)


def case_compressed_as_perf_shows_it():
    same_lines(compressed(), '--no-inline')


def case_processes_that_exec_as_perf_shows_them():
    lines = same_lines(forks(), '-F', 'comm,pid,tid,time,event')
    equal(len(set(line.split()[1] for line in lines if line)), 2, 'processes')


def case_fields_as_perf_shows_them():
    for fields in 'comm,pid,tid,time,event', 'ip,sym,dso', 'tid,period,ip', 'comm,event,ip,sym,symoff':
        same_lines(plain(), '-F', fields)


def case_nanoseconds_as_perf_shows_them():
    same_lines(plain(), '--ns', '-F', 'tid,time')


def case_other_records_as_perf_shows_them():
    lines = same_lines(forks(), '--show-task-events', '--show-mmap-events', '-F', 'comm,tid,time')
    for name in 'COMM exec', 'FORK', 'EXIT', 'MMAP2':
        check(any('PERF_RECORD_' + name in line for line in lines), name)


def case_fields_can_be_added_and_left_out():
    whole = tally('script', '-i', plain()).stdout.split('\n')[0].split()
    equal(whole[0], 'calls')
    less = tally('script', '-i', plain(), '-F', '-comm,-period').stdout.split('\n')[0].split()
    equal(less, whole[1:3] + whole[4:])
    more = tally('script', '-i', plain(), '-F', '+pid').stdout.split('\n')[0]
    check(re.search(r' (\d+)/\1 ', more), more)


def case_json_says_the_same():
    text = tally('script', '-i', frame_pointers(), '--ns').stdout
    lines = [json.loads(line) for line in
             tally('script', '-i', frame_pointers(), '--json').stdout.split('\n') if line]
    samples = text.strip('\n').split('\n\n')
    equal(len(lines), len(samples))
    for sample, line in zip(samples, lines):
        head, *stack = sample.split('\n')
        equal(line['type'], 'SAMPLE')
        seconds, rest = divmod(line['time_ns'], 10 ** 9)
        equal(head.split()[:2], [line['comm'], str(line['tid'])])
        contains(head, '%d.%09d: ' % (seconds, rest))
        contains(head, ' %d %s: ' % (line['period'], line['event']))
        equal(len(line['stack']), len(stack))
        for frame, shown in zip(line['stack'], stack):
            contains(shown, frame['sym'] or '[unknown]')
            if not frame.get('inlined'):
                contains(shown, '(%s)' % (frame['dso'] or '[unknown]'))


def case_json_has_the_fields_of_tracepoints():
    lines = [json.loads(line) for line in
             tally('script', '-i', tracepoints(), '-j').stdout.split('\n') if line]
    forked = [line for line in lines if line['event'].endswith('fork')]
    check(forked)
    equal(forked[0]['fields']['parent_comm'], 'calls')
    contains(forked[0]['trace'], 'child_pid=%d' % forked[0]['fields']['child_pid'])
    check(forked[0]['fields']['child_pid'] > 0)


def case_json_of_other_records():
    lines = [json.loads(line) for line in
             tally('script', '-i', forks(), '-j', '--records').stdout.split('\n') if line]
    kinds = collections.Counter(line['type'] for line in lines)
    check(kinds['FORK'] >= 1 and kinds['EXIT'] >= 2 and kinds['MMAP2'] >= 2, kinds)
    check(any(line['type'] == 'COMM' and line['name'] == 'calls' and line['exec']
              for line in lines))
    times = [line['time_ns'] for line in lines if line['time_ns']]
    equal(times, sorted(times), 'order of time')


def fold(text):
    """What the usual stack-collapse scripts do, by their patterns."""
    stacks, comm, frames = collections.Counter(), None, []
    for line in text.split('\n'):
        if not line:
            if comm:
                stacks[';'.join([comm] + frames[::-1])] += 1
            comm, frames = None, []
            continue
        head = re.match(r'^(\S.+?)\s+(\d+)\/*(\d+)*\s+', line)
        frame = re.match(r'^\s*(\w+)\s*(.+) \((.*)\)$', line)
        if head and not line.startswith('\t'):
            comm = head.group(1)
        elif frame:
            name = re.sub(r'\+0x[0-9a-f]+$', '', frame.group(2))
            if name == '[unknown]':
                name = '[%s]' % frame.group(3).split('/')[-1].strip('[]')
            # The folded form of the report keeps one of several words that are no addresses.
            if name != '[unknown]' or frames[-1:] != [name]:
                frames.append(name)
        else:
            raise AssertionError('not understood: %r' % line)
    return stacks


def case_stack_collapse_scripts_read_it():
    path = frame_pointers()
    folded = collections.Counter()
    for line in tally('report', '-i', path, '--folded', '-n').stdout.split('\n'):
        if line:
            stack, count = line.rsplit(' ', 1)
            folded[stack.replace('[kernel.kallsyms]', '[kernel]')] += int(count)
    ours = fold(tally('script', '-i', path).stdout)
    theirs = fold(perf('script', '-i', path, '--no-inline').stdout)
    equal(sum(ours.values()), sum(theirs.values()))
    equal(ours, folded)


def case_filters():
    samples = [json.loads(line) for line in
               tally('script', '-i', forks(), '-j').stdout.split('\n') if line]
    child = samples[-1]['pid'] if samples[-1]['pid'] != samples[0]['pid'] else samples[0]['pid']
    middle = samples[len(samples) // 2]['time_ns']
    rows = [
        (['--pid', str(child)], lambda s: s['pid'] == child),
        (['--tid', str(child)], lambda s: s['tid'] == child),
        (['--comm', 'calls'], lambda s: s['comm'] == 'calls'),
        (['--comm', 'none'], lambda s: False),
        (['--sym', 'work'], lambda s: [f['sym'] for f in s['stack'] if not f.get('inlined')][0] == 'work'),
        (['--dso', 'calls'], lambda s: (s['stack'][0]['dso'] or '').endswith('/calls')),
        (['--time', '%d.%09d,' % divmod(middle, 10 ** 9)], lambda s: s['time_ns'] >= middle),
        (['--time', ',%d.%09d' % divmod(middle, 10 ** 9)], lambda s: s['time_ns'] <= middle),
    ]
    for options, wanted in rows:
        found = [json.loads(line) for line in
                 tally('script', '-i', forks(), '-j', *options).stdout.split('\n') if line]
        equal(found, [s for s in samples if wanted(s)], ' '.join(options))


def case_pipe_says_the_same_as_the_file():
    with open(frame_pointers(), 'rb') as f:
        data = f.read()
    whole = tally('script', '-i', frame_pointers()).stdout
    for options in (), ('script',):
        done = subprocess.run([TALLY, 'script', '-i', '-'], input=data, stdout=subprocess.PIPE)
        equal(done.returncode, 0)
        equal(done.stdout.decode(), whole)
    with alone():
        shell = run('sh', '-c', 'perf record -q -F 2000 -e cpu-clock -g "$2" -o - -- "$0" 100 '
                    '2>/dev/null | "$1" script -i -', CALLS, TALLY, NO_BPF)
    equal(shell.returncode, 0, shell.stderr)
    contains(shell.stdout, 'main+0x')


def data_section(path):
    with open(path, 'rb') as f:
        return struct.unpack_from('<QQ', f.read(64), 40)


def case_cut_off_shows_what_came_before():
    path = one_processor()
    start, size = data_section(path)
    whole = tally('script', '-i', path).stdout
    cut = copy_of(path, size=start + size // 2 + 3)
    done = tally('script', '-i', cut)
    equal(done.returncode, 1)
    shown = done.stdout.split('\n\n')
    check(len(shown) > whole.count('\n\n') // 4, 'too few samples')
    equal(shown[:-1], whole.split('\n\n')[:len(shown) - 1], 'samples')
    equal(shown[-1], '')
    first = done.stderr.split('\n')[0]
    check(re.match(r'^tally: .*\d+', first), done.stderr)
    check(len(done.stderr.strip().split('\n')) <= 2, done.stderr)


def case_damage_shows_what_came_before():
    path = one_processor()
    start, size = data_section(path)
    with open(path, 'rb') as f:
        data = f.read()
    at, records = start, []
    while at < start + size:
        records.append(at)
        at += struct.unpack_from('<H', data, at + 6)[0]
    victim = records[len(records) // 2]
    done = tally('script', '-i', copy_of(path, patch={victim + 6: b'\x03\x00'}))
    equal(done.returncode, 1)
    check(len(done.stdout) > 1000)
    contains(done.stderr, str(victim))


def case_foreign_files_are_refused():
    for name, content in ('empty', b''), ('text', b'hello world\n' * 100), ('elf', b'\x7fELF' * 99):
        path = os.path.join(FOLDER, name)
        with open(path, 'wb') as f:
            f.write(content)
        done = tally('script', '-i', path)
        equal(done.returncode, 1, name)
        equal(done.stdout, '')
        check(done.stderr.startswith('tally: '), done.stderr)
    done = tally('script', '-i', os.path.join(FOLDER, 'missing'))
    equal(done.returncode, 1)
    contains(done.stderr, 'missing')


def case_wrong_options_are_explained():
    for options, part in ((['-F', 'comm,nonsense'], 'nonsense'), (['--time', 'x'], '--time'),
                          (['--pid', 'x'], 'list of numbers'), (['stray'], '-i'),
                          (['--max-stack', '0'], '--max-stack')):
        done = tally('script', *options, '-i', plain()) if options != ['stray'] else \
            tally('script', '-i', plain(), 'stray')
        check(done.returncode in (1, 129), done.returncode)
        contains(done.stderr, part)
        equal(done.stdout, '')


def case_full_disk_is_no_success():
    if not os.path.exists('/dev/full'):
        skip('no /dev/full')
    with open('/dev/full', 'w') as full:
        done = subprocess.run([TALLY, 'script', '-i', plain()], stdout=full,
                              stderr=subprocess.PIPE, text=True)
    equal(done.returncode, 1)
    contains(done.stderr, 'No space left')


if __name__ == '__main__':
    main()
