#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally script against perf script, line by line, and against itself in its other form."""
import collections
import re
import struct

import compose
from compose import words
from recordings import *

STACK_LINE = re.compile(r'^\t *([0-9a-f]+) (.*?)(\+0x[0-9a-f]+)? \((.*)\)$')
NO_FILE = re.compile(r'^(.*: +[0-9a-f]+) (\S+?)(\+0x[0-9a-f]+)$')
FUNCTIONS = 'main', 'outer', 'left', 'right', 'work', 'mix', 'fill_pages'
HIT = re.compile(r'^(.* [ 0-9a-f]{16}) (\S.*?)(\+0x[0-9a-f]+)? \(([^()]*(?:\(deleted\))?)\)$')


def comparable(line):
    """
    Where files have several names for an address, everybody names it differently, and executables
    that are not relocatable have two addresses: there, only what must agree is kept. Functions of
    the program under test have to be the same to the letter; its linkage table is not among them:
    perf 6.1 counts that to _init.
    """
    for pattern in STACK_LINE, HIT:
        match = pattern.match(line)
        if match:
            start, name, _, dso = match.groups()
            if dso != CALLS or name not in FUNCTIONS:
                return (start if dso == CALLS or dso.endswith('.so.6') or dso.startswith('[k') else '', dso)
    match = NO_FILE.match(line)
    return match.group(1) if match and match.group(2) not in FUNCTIONS else line


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


def lines_of(addresses):
    """What addr2line says: for each address its source lines, innermost call first."""
    done = run('addr2line', '-i', '-a', '-e', CALLS, *map(hex, addresses))
    if done.returncode:
        skip('no addr2line to compare with')
    lines = {}
    for line in done.stdout.split('\n'):
        if line.startswith('0x'):
            lines[int(line, 16)] = found = []
        elif line:
            name = re.sub(r' \(discriminator.*', '', line.split('/')[-1])
            found.append(None if name.startswith('?') else name)
    return lines


def case_callers_have_the_line_of_their_call():
    # A return address may already belong to the next line; unwound ones are given inside the call.
    for path, before in (frame_pointers(), 1), (dwarf(), 0):
        wanted = {}
        for sample in json_lines(path, '-F', 'ip,sym,dso,srcline'):
            stack = sample['stack']
            if not stack or stack[0]['dso'] != CALLS:
                continue
            for ip in {frame['ip'] for frame in stack}:
                frames = [frame for frame in stack if frame['ip'] == ip]
                if frames[0]['dso'] == CALLS:
                    address = int(frames[0]['address'], 16)
                    back = before if ip != stack[0]['ip'] else 0
                    wanted[address - back] = [frame.get('srcline') for frame in frames]
        check(len(wanted) > 4, wanted)
        equal(wanted, lines_of(wanted), path)


# ---- what only hardware records: composed ----

BASE, PID = 0x555500000000, 4711
HEAD = compose.IP | compose.TID | compose.TIME
# A load that hit the L1 cache, its snoop and TLB known, not locked.
LOAD = 1 << 1 | (1 << 1 | 1 << 3) << 5 | 1 << 20 | (1 << 1 | 1 << 3 | 1 << 4) << 26


def function(name):
    """Where a function of the program under test is in its file."""
    done = run('nm', CALLS)
    if done.returncode:
        skip('no nm to look functions up with')
    return next(int(line.split()[0], 16) for line in done.stdout.split('\n')
                if line.split()[2:] == [name])


def composed(name, sample_type, samples, kind=compose.TYPE_RAW, config=0x1cd, extra=(), **more):
    """A recording of one process that has the program mapped; @samples are what follows the head."""
    kinds = HEAD | sample_type
    records = [compose.comm(kinds, PID, 'calls'),
               compose.mmap2(kinds, PID, BASE, 0x10000, CALLS), *extra]
    for i, fields in enumerate(samples):
        head = words(BASE + function('work') + 4) + struct.pack('<II', PID, PID)
        records.append(compose.sample([head, words(1000000000 + 1000 * i), *fields]))
    return compose.write(os.path.join(FOLDER, name + '.data'),
                         [compose.attr(kind, config, kinds, **more)], records)


def json_lines(path, *options):
    return [json.loads(line) for line in
            tally('script', '-i', path, '-j', *options).stdout.split('\n') if line]


def same_composed(path, *fields):
    """As perf shows it; without its event's name and its padding, of which we have less."""
    for options in fields:
        ours = tally('script', '-i', path, '-F', options)
        theirs = perf('script', '-i', path, '-F', options)
        equal(ours.returncode, 0, ours.stderr)
        equal([line.rstrip() for line in ours.stdout.split('\n')],
              [line.rstrip() for line in theirs.stdout.split('\n')], options)
        check(ours.stdout.strip(), options)


def case_memory_accesses():
    kinds = (compose.ADDR | compose.WEIGHT_STRUCT | compose.DATA_SRC | compose.TRANSACTION |
             compose.PHYS_ADDR | compose.DATA_PAGE_SIZE | compose.CODE_PAGE_SIZE)
    store = 1 << 2 | 1 << 19 | 2 << 24 | 1 << 26 | 4 << 40
    remote = 1 << 1 | 1 << 37 | 3 << 33 | 1 << 43 | 2 << 5 | 1 << 38 | 1 << 24
    path = composed('memory', kinds, [
        (words(0x7ffc1234), words(7 | 9 << 32 | 11 << 48), words(LOAD), words(0x11),
         words(0x3b1234), words(4096), words(2 << 20)),
        (words(0x10), words(123456), words(store), words(0), words(0), words(64 << 10), words(0)),
        (words(0x18), words(1), words(remote), words(0), words(0), words(0), words(8192))])
    same_composed(path, 'addr,data_src,weight,ins_lat', 'tid,phys_addr', 'tid,data_page_size',
                  'tid,code_page_size', 'tid,ip,sym,symoff,dso,phys_addr,data_page_size')
    first = json_lines(path)[0]
    equal(first['addr'], '0x7ffc1234')
    equal([first[name] for name in ('weight', 'ins_lat', 'retire_lat')], [7, 9, 11])
    equal(first['data_src'], {'value': hex(LOAD), 'op': 'LOAD', 'level': 'L1 hit', 'snoop': 'None',
                              'tlb': 'L1 or L2 hit', 'locked': 'No', 'blocked': 'N/A'})
    equal([first[name] for name in ('transaction', 'phys_addr', 'data_page_size', 'code_page_size')],
          ['0x11', '0x3b1234', 4096, 2 << 20])
    equal(first['stack'][0]['sym'], 'work')
    # What such events are recorded for is shown unasked.
    contains(tally('script', '-i', path).stdout, '|OP LOAD|LVL L1 hit|SNP None|')


def case_whole_weights():
    path = composed('weight', compose.WEIGHT, [(words(1 << 33),), (words(5),)])
    same_composed(path, 'tid,weight')
    equal([line['weight'] for line in json_lines(path)], [1 << 33, 5])


def case_registers():
    mask = 0x1ff | 3 << 32
    values = [0x1000 + i for i in range(11)]
    path = composed('registers', compose.REGS_USER | compose.REGS_INTR,
                    [(words(2, *values), words(2, *values[::-1])), (words(0), words(2, *values))],
                    regs_user=mask, regs_intr=mask)
    same_composed(path, 'tid,iregs', 'tid,uregs', 'ip,iregs,uregs')
    first, second = json_lines(path)
    equal(first['uregs']['AX'], '0x1000')
    equal(first['iregs']['IP'], '0x1002')
    equal([first['uregs'][name] for name in ('XMM0', 'XMM0_high')], ['0x1009', '0x100a'])
    check('uregs' not in second, 'there are none')


def case_branch_stacks():
    work, main_ = BASE + function('work'), BASE + function('main')
    kernel = 0xffff900000000000
    flags = [1 | 17 << 4, 2 | 4 << 20, 1 << 2 | 1 << 3, 2 | 15 << 20 | 1 << 26 | 3 << 24]
    ends = [(main_ + 8, work), (work + 4, kernel), (0x10, 0x20), (work, main_)]
    path = composed('branches', compose.BRANCH_STACK,
                    [(words(4), *(compose.branch(*e, f) for e, f in zip(ends, flags))),
                     (words(0),)], branches=8)
    same_composed(path, 'tid,brstack', 'tid,brstacksym', 'ip,sym,brstack', 'dso,sym,ip,brstacksym')
    ours = tally('script', '-i', path, '-F', 'brstacksym').stdout.split('\n')[0].split()
    equal(ours[0], 'main+0x8/work+0x0/M/-/-/17/')
    branches = json_lines(path)[0]['branches']
    equal([(int(b['from']['ip'], 16), int(b['to']['ip'], 16)) for b in branches], ends)
    equal(branches[0]['from']['sym'], 'main')
    equal(branches[0]['predicted'], False)
    equal(branches[0]['cycles'], 17)
    equal(branches[1]['type'], 'CALL')
    check('predicted' not in branches[2] and branches[2]['in_tx'] and branches[2]['abort'])
    equal((branches[3]['type'], branches[3]['speculation']), ('FAULT_DATA', 'correct path'))
    equal(json_lines(path)[1]['branches'], [])


def case_cgroups():
    kinds = HEAD | compose.CGROUP
    path = composed('cgroups', compose.CGROUP, [(words(77),), (words(78),)],
                    extra=[compose.cgroup(kinds, 77, '/user.slice')])
    lines = tally('script', '-i', path, '-F', 'comm,cgroup').stdout.strip().split('\n')
    equal([line.split()[-1] for line in lines], ['/user.slice', '[unknown]'])
    equal([(line['cgroup_id'], line['cgroup']) for line in json_lines(path)],
          [(77, '/user.slice'), (78, '[unknown]')])


def case_raw_bytes():
    samples = [(compose.raw(b'hello, world\0'),), (compose.raw(bytes(range(20))),)]
    path = composed('bpf', compose.RAW, samples, kind=compose.TYPE_SOFTWARE,
                    config=compose.BPF_OUTPUT)
    ours = tally('script', '-i', path, '-F', 'tid,bpf-output').stdout.split('\n')
    equal(ours[0].strip(), str(PID))
    # perf makes a name of its own for the event, which we have no use for.
    theirs = perf('script', '-i', path).stdout.split('\n')
    equal([line for line in ours if line.startswith('      ')],
          [line for line in theirs if re.match(r' +(BPF|[0-9a-f]{4}:)', line)])
    check(any('"hello, world"' in line for line in ours), ours)
    equal(json_lines(path)[0]['raw'][:26], b'hello, world\0'.hex())


def case_addresses_of_faults():
    path = composed('faults', compose.ADDR, [(words(BASE + function('work') + 1),), (words(8),)],
                    kind=compose.TYPE_SOFTWARE, config=compose.PAGE_FAULTS)
    same_composed(path, 'tid,addr', 'tid,addr,ip,sym,symoff,dso')


def case_fields_that_were_not_recorded_are_named():
    for field, part in (('brstack', '-b'), ('data_src', '-d'), ('iregs', '-I'), ('cgroup', '--all-cgroups'),
                        ('tod', '-k'), ('bpf-output', 'bpf-output')):
        done = tally('script', '-i', plain(), '-F', 'comm,' + field)
        equal(done.returncode, 0)
        contains(done.stderr, part)


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


def case_pipe_is_followed_while_it_is_written():
    with alone():
        follow_a_pipe()


def follow_a_pipe():
    writer = subprocess.Popen([TALLY, 'record', '-q', '-g', '-e', 'cpu-clock', '-F', '500', '-o', '-',
                               '--', CALLS, '600000'], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    reader = subprocess.Popen([TALLY, 'script', '-i', '-'], stdin=writer.stdout,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    writer.stdout.close()
    try:
        # It goes on for ten minutes: these can only come before its end.
        shown = [reader.stdout.readline() for _ in range(100)]
        check(writer.poll() is None, 'the recording has ended')
        check(any('main+0x' in line for line in shown), shown)
        writer.terminate()
        rest = reader.communicate(timeout=LIMIT)[0]
        equal(reader.returncode, 0)
        check(rest.endswith('\n\n'), rest[-100:])
    finally:
        for process in writer, reader:
            process.kill()
            process.wait()


def case_followed_pipe_says_the_same_as_the_whole():
    for options in ('-e', 'cpu-clock', '-g'), ('-e', 'cpu-clock', '-z'), ('-e', 'cpu-clock,page-faults'):
        path = os.path.join(FOLDER, 'stream.data')
        with alone(), open(path, 'wb') as f:
            done = subprocess.run([TALLY, 'record', '-q', '-F', '2000', *options, '-o', '-', '--', CALLS,
                                   '200', 'exec'], stdout=f, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            skip(done.stderr)
        for more in (), ('-j',), ('--show-task-events', '--show-mmap-events'), ('--time', '50%-100%'):
            whole = tally('script', '-i', path, *more)
            equal(whole.returncode, 0, whole.stderr)
            check(whole.stdout, 'nothing was recorded')
            followed = run('sh', '-c', 'cat "$0" | "$@"', path, TALLY, 'script', '-i', '-', *more)
            equal(followed.stdout, whole.stdout, ' '.join(options + more))


def case_followed_pipe_that_ends_early_shows_what_came_before():
    path = os.path.join(FOLDER, 'stream.data')
    with alone(), open(path, 'wb') as f:
        done = subprocess.run([TALLY, 'record', '-q', '-F', '2000', '-e', 'cpu-clock', '-o', '-', '--',
                               CALLS, '200'], stdout=f, stderr=subprocess.PIPE, text=True,
                              preexec_fn=on_one_processor)
    if done.returncode:
        skip(done.stderr)
    whole = tally('script', '-i', path).stdout.split('\n')
    size = os.path.getsize(path)
    cut = run('sh', '-c', 'head -c %d "$0" | "$1" script -i -' % (size // 2 + 3), path, TALLY)
    equal(cut.returncode, 1)
    shown = cut.stdout.split('\n')
    rest = iter(whole)
    check(all(line in rest for line in shown), 'not the same samples')
    check(len(shown) > 10, shown)
    check(re.match(r'^tally: .*\d+', cut.stderr), cut.stderr)


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
