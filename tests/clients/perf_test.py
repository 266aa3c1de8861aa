#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The distribution's perf, unmodified, inside `tally run`. What it prints has to be true."""
import os
import re
import tempfile

from clients import *

WORK = os.environ['WORK']
WORK_STATIC = os.environ['WORK_STATIC']
TURNS = 2000000
FOLDER = tempfile.TemporaryDirectory()

# A turn of work.c is a multiplication, two additions, a comparison and a jump, with loads and stores
# between them; what the rest of the program executes is little beside it.
LEAST_INSTRUCTIONS = 5 * TURNS
MOST_INSTRUCTIONS = 15 * TURNS


with open('/proc/cpuinfo') as cpuinfo:
    AMDS = bool(re.search('^vendor_id.*(AuthenticAMD|HygonGenuine)', cpuinfo.read(), re.M))


def path_of(name):
    return os.path.join(FOLDER.name, name)


def perf(*args, **more):
    need('perf')
    return inside('perf', *args, **more)


# ---- perf stat ----

def stat(*args):
    """The counts by event, from perf stat -x."""
    done = perf('stat', '-x', ',', *args)
    counts = {}
    for line in done.stderr.splitlines():
        if line.startswith('WARNING: events were regrouped'):  # slots first, as newer ones want it
            continue
        fields = line.split(',')
        check(len(fields) > 2, 'not a count: ' + line)
        if fields[2]:  # else a figure that was made of others
            counts[fields[2]] = int(fields[0]) if fields[0].isdigit() else fields[0]
    return counts


def alike(found, expected):
    """The C library looks at strings on the stack before main(), in pieces that begin where these lie:
    a few instructions more or less."""
    equal(sorted(found), sorted(expected), 'events')
    for event, count in expected.items():
        check(abs(found[event] - count) <= 64, '%s: %d and %d' % (event, found[event], count))


def case_stat_tells_where_the_slots_went():
    parts = ['topdown-' + part for part in ('retiring', 'bad-spec', 'fe-bound', 'be-bound')]
    counts = stat('-e', '{slots,%s}' % ','.join(parts), '-e', 'instructions,cycles', WORK_STATIC,
                  str(TURNS))
    equal(sum(counts[part] for part in parts), counts['slots'], 'the parts')
    equal(counts['slots'], 4 * counts['cycles'], 'slots')
    near(counts['topdown-retiring'], counts['instructions'], 0.01, 'retiring')


def case_stat_counts_the_same_each_time_and_what_tally_stat_counts():
    events = 'instructions:u,branches:u'
    command = [WORK_STATIC, str(TURNS)]
    one = stat('-e', events, *command)
    alike(stat('-e', events, *command), one)
    check(LEAST_INSTRUCTIONS < one['instructions:u'] < MOST_INSTRUCTIONS, str(one))
    near(one['branches:u'], TURNS, 0.02, 'branches')

    # The two leave other environments, which the start of a program goes through; the rest is alike.
    ours = []
    for turns in (TURNS, 2 * TURNS):
        done = run(*HOST, TALLY, 'stat', '--json', '--pmu=user', '-e', events, '--', WORK_STATIC,
                   str(turns))
        equal(done.returncode, 0, done.stderr)
        ours.append({row['event']: row['value'] for row in json.loads(done.stderr)['counts']})
    two = stat('-e', events, WORK_STATIC, str(2 * TURNS))
    alike({event: ours[1][event] - ours[0][event] for event in one},
          {event: two[event] - one[event] for event in one})


def case_stat_without_events_has_all_of_its_own():
    done = perf('stat', WORK, str(TURNS))
    for event in ('task-clock', 'page-faults', 'cycles', 'instructions', 'branches',
                  'branch-misses'):
        check(number(r'([\d,]+)[\d.]*(?: msec)? +%s' % event, done.stderr) > 0, event)
    check('not supported' not in done.stderr, done.stderr)


def case_stat_of_what_processors_alone_have_leaves_the_rest():
    events = ['cpu/event=0xc0,cmask=1,inv=1,name=none/u', 'cpu/event=0xc0,edge=1,name=begun/u']
    if AMDS:
        events += ['cpu/event=0x1d0,name=fused/u', 'cpu/event=0x00,umask=0x4,name=pipe/u']
    else:
        events += ['cpu/event=0xc6,umask=0x1,frontend=0x7,name=decoded/u',
                   'cpu/event=0x2a,umask=0x1,offcore_rsp=0x10001,name=outside/u',
                   'cpu/event=0xc0,any=1,name=both/u', 'cpu/event=0xc0,in_tx=1,name=inner/u']
    counts = stat('-e', ','.join(['cpu/event=0xc0,cmask=0,name=all/u'] + events), WORK_STATIC,
                  str(TURNS))
    check(LEAST_INSTRUCTIONS < counts.pop('all') < MOST_INSTRUCTIONS, counts)
    equal(set(counts.values()), {'<not supported>'})
    equal(len(counts), len(events))


def case_stat_has_AMDs_events_by_the_names_that_perf_has():
    if not AMDS:
        skip('a processor of another vendor')
    if 'ex_ret_instr' not in perf('list', 'pmu').stdout:
        skip('this perf has no events of this processor')
    counts = stat('-e', '{ex_ret_instr:u,ex_ret_brn:u,ex_ret_cond:u,'
                  'ex_ret_msprd_brnch_instr_dir_msmtch:u,instructions:u,branches:u,'
                  'cpu/branches_conditional/u,cpu/branch_misses_conditional/u,'
                  'ic_tag_hit_miss.all_instruction_cache_accesses:u,cpu/l1i_loads/u,'
                  'ls_l1_d_tlb_miss.all:u,cpu/dtlb_load_misses/u,cpu/dtlb_store_misses/u,'
                  'ls_dmnd_fills_from_sys.lcl_l2:u,ls_dmnd_fills_from_sys.int_cache:u,'
                  'ls_dmnd_fills_from_sys.mem_io_local:u,cpu/l1d_load_misses/u,'
                  'cpu/l1d_store_misses/u}', WORK, str(TURNS))
    count = list(counts.values())
    check(all(isinstance(value, int) for value in count), counts)
    equal(count[0:4], count[4:8])
    equal(count[8], count[9])
    equal(count[10], count[11] + count[12])
    equal(sum(count[13:16]), count[16] + count[17])


def case_stat_ddd_has_caches_and_TLBs():
    done = perf('stat', '-d', '-d', '-d', WORK, str(TURNS))
    missing = re.findall(r'<not \w+> +(\S+)', done.stderr)
    equal(missing, ['L1-dcache-prefetch-misses'], 'what is not counted')
    count = lambda event: number(r'([\d,]+) +%s ' % event, done.stderr)
    for unit in ('L1-dcache', 'LLC', 'dTLB', 'iTLB'):
        check(count(unit + '-load-misses') <= count(unit + '-loads'), done.stderr)
    check(0 < count('branch-misses') < count('branches') / 100, done.stderr)


def case_stat_knows_each_event_of_the_PMU_by_its_bare_name():
    names = inside('ls', '/sys/bus/event_source/devices/cpu/events').stdout.split()
    check(len(names) > 20, str(names))
    counts = stat('-e', ','.join(name + ':u' for name in names), WORK_STATIC, str(TURNS))
    equal(sorted(counts), sorted(name + ':u' for name in names))
    for name, count in counts.items():
        check(isinstance(count, int), '%s: %s' % (name, count))


def case_own_tests_of_parsing_and_of_reading_without_a_system_call():
    # rdpmc, names of events, time from the time stamp counter
    parts = ['4.2', '4.3', '6.3', '6.4', '6.6', '6.7', '71.1', '71.2']
    with tracing_alone():
        said = ''.join(perf('test', test, status=None).stderr for test in ('4', '6', '71'))
    if any(os.path.isdir(path + '/tracing/events/syscalls')
           for path in ('/sys/kernel', '/sys/kernel/debug')):  # perf has mounted them where it may
        parts.append('6.1')
    for part in parts:
        check(re.search(r'^ *%s: .*: Ok' % re.escape(part), said, re.M), said)


def case_stat_r_repeats_without_a_difference():
    done = perf('stat', '-r', '3', '-e', 'instructions:u', WORK_STATIC, str(TURNS))
    contains(done.stderr, '(3 runs)')
    check(LEAST_INSTRUCTIONS < number(r'([\d,]+) +instructions:u', done.stderr) < MOST_INSTRUCTIONS)
    differs = re.search(r'instructions:u.*\+- +([\d.]+)%', done.stderr)
    check(not differs or float(differs.group(1)) == 0, done.stderr)


def case_stat_I_prints_parts_of_the_whole():
    # perf prints no part that ends with the program if that ends while it prints another one
    command = [WORK_STATIC, str(40 * TURNS), '1', '500']
    done = perf('stat', '-I', '20', '-x', ',', '-e', 'instructions:u', *command)
    # "<not counted>" is a part in which the program had not begun yet, or did nothing any more
    parts = [line.split(',')[1] for line in done.stderr.splitlines()]
    parts = [int(part) for part in parts if part != '<not counted>']
    check(len(parts) > 1, done.stderr)
    whole = stat('-e', 'instructions:u', *command)
    alike({'sum': sum(parts)}, {'sum': whole['instructions:u']})


def case_stat_counts_children_unless_told_not_to():
    shell = ['sh', '-c', '%s %d; true' % (WORK_STATIC, TURNS)]
    with_them = stat('-e', 'instructions:u', *shell)['instructions:u']
    without = stat('-i', '-e', 'instructions:u', *shell)['instructions:u']
    check(without < LEAST_INSTRUCTIONS / 2 < LEAST_INSTRUCTIONS < with_them,
          '%d without, %d with' % (without, with_them))


def case_stat_a_counts_the_tree():
    counts = stat('-a', '-e', 'instructions:u', WORK_STATIC, str(TURNS))
    check(LEAST_INSTRUCTIONS < counts['instructions:u'] < 2 * MOST_INSTRUCTIONS, str(counts))


def beside(command, *args):
    """
    What @command prints beside a process that works with @args. $p is its number, $works a command
    that lasts until it has had two tenths of a second of the processor, however long that takes.
    """
    with open(path_of('works'), 'w') as script:
        script.write('ticks() { cut -d" " -f14 /proc/$1/stat; }\n'
                     'end=$(($(ticks $1) + 20))\n'
                     'while [ $(ticks $1) -lt $end ]; do sleep 0.05; done\n')
    return inside('bash', '-c', '%s %s & p=$!; works="sh %s $p"; %s; kill $p' % (
        WORK, ' '.join(args), path_of('works'), command))


def case_stat_p_counts_a_process_that_runs():
    need('perf')
    done = beside('perf stat -x, -e instructions:u,branches:u -p $p $works', '0')
    instructions = number(r'(\d+),,instructions:u', done.stderr)
    branches = number(r'(\d+),,branches:u', done.stderr)
    check(branches > 1000, done.stderr)
    check(5 < instructions / branches < 15, done.stderr)


def case_stat_per_thread_tells_threads_apart():
    need('perf')
    done = beside('$works; perf stat --per-thread -e instructions:u -p $p $works', '0', '3')
    rows = re.findall(r'work-\d+ +([\d,]+) +instructions:u', done.stderr)
    equal(len(rows), 3, done.stderr)
    for row in rows:
        check(int(row.replace(',', '')) > 1000, done.stderr)


# ---- perf record, report, script, annotate ----

def record(*args, turns=TURNS, program=WORK):
    """The recording of the program, and what perf said."""
    path = path_of('perf.data')
    done = perf('record', '-o', path, *args, program, str(turns))
    check('lost' not in done.stderr, done.stderr)
    return path, done.stderr


def report(path, *args):
    """Shares in percent by symbol, without those who call it."""
    done = perf('report', '-i', path, '--stdio', '-q', '--no-children', '-g', 'none', '-F',
                'overhead,sym', *args)
    rows = re.findall(r'^ *([\d.]+)% +\[.\] (\S+)', done.stdout, re.M)
    check(rows, 'no rows in:\n%s%s' % (done.stdout, done.stderr))
    shares = {}
    for share, symbol in rows:
        shares[symbol] = shares.get(symbol, 0) + float(share)
    return shares


def check_profile(shares):
    near(shares.get('hot', 0), 90, 0.2, 'share of hot in %s' % shares)


def case_record_by_frequency():
    # Longer than elsewhere: what samples weigh follows the machine's speed, which others share.
    check_profile(report(record('-F', '2000', turns=4 * TURNS)[0]))


def case_record_of_cycles_as_precise_as_can_be():
    # By frequency it has the more samples of its start the longer that waits for the processor.
    path, _ = record('-e', 'cycles:ppp', turns=10 * TURNS)
    check_profile(report(path))
    done = perf('script', '-i', path, '-F', 'comm,event,ip,sym')
    lines = done.stdout.splitlines()
    hot = [line for line in lines if re.match(r' *work +cycles:ppp: +[0-9a-f]+ hot$', line)]
    check(len(hot) > len(lines) / 3, done.stdout)


def case_record_by_period_has_a_sample_for_each():
    path, _ = record('-e', 'instructions:u', '-c', '100003')
    check_profile(report(path))
    samples = perf('script', '-i', path, '-F', 'period').stdout.split()
    equal(set(samples), {'100003'})
    check(LEAST_INSTRUCTIONS < len(samples) * 100003 < MOST_INSTRUCTIONS, str(len(samples)))


def chains_of(path):
    """Functions from where a sample was taken on up, of each one."""
    done = perf('script', '-i', path, '-F', 'ip,sym')
    return [re.findall(r'^\s+[0-9a-f]+ (\S+)$', chain, re.M)
            for chain in done.stdout.split('\n\n') if chain.strip()]


def check_callers(path):
    """Most samples are of hot(), called by work(), called by main()."""
    chains = chains_of(path)
    called = [chain for chain in chains if chain[:3] == ['hot', 'work', 'main']]
    check(len(called) > len(chains) / 2, '%d of %d:\n%s' % (
        len(called), len(chains), chains[-10:]))


def case_record_g_knows_who_called():
    path, _ = record('-g', '-e', 'instructions:u', '-c', '100003')
    check_profile(report(path))
    check_callers(path)


def case_record_g_of_a_program_whose_linker_made_no_table_of_functions():
    path, _ = record('-g', '-e', 'instructions:u', '-c', '100003', program=WORK_STATIC)
    check_callers(path)
    # The C library above it has no frame pointers.
    for chain in chains_of(path):
        equal(chain[-1], '_start', str(chain))


def case_record_with_stacks_is_unwound():
    check_callers(record('--call-graph', 'dwarf,1024', '-e', 'instructions:u', '-c', '500009')[0])


def case_record_b_has_branches_from_where_they_are_to_where_they_lead():
    path, _ = record('-b', '-e', 'instructions:u', '-c', '500009')
    done = perf('script', '-i', path, '-F', 'brstacksym')
    branches = re.findall(r'(\S+)\+0x[0-9a-f]+/(\S+)\+0x[0-9a-f]+/', done.stdout)
    check(branches, done.stdout)
    within = [1 for source, target in branches if source == target == 'hot']
    check(len(within) > len(branches) / 2, '%d of %d' % (len(within), len(branches)))


def case_record_b_misses_no_branch():
    path = path_of('branches.data')
    perf('record', '-q', '-o', path, '-b', '-e', 'instructions:u', '-c', '1009', 'perl', '-e',
         'my %h; $h{"k" . $_ % 977} += $_ for 1 .. 20000')
    pairs = 0
    for line in perf('script', '-i', path, '-F', 'brstack').stdout.splitlines():
        branches = [[int(address, 16) for address in branch.split('/')[:2]]
                    for branch in line.split()]
        # newest first: what one came from is not far behind what the one before it led to
        for (source, _), (_, target) in zip(branches, branches[1:]):
            check(0 <= source - target < 4096, '%#x to %#x in %s' % (target, source, line))
            pairs += 1
    check(pairs > 10000, str(pairs))


def case_record_of_each_branch_tells_where_it_leads():
    path = path_of('each.data')
    perf('record', '-q', '-o', path, '-e', 'branches:u', '-c', '1', '-d', 'true')
    branches = [[int(address, 16) for address in line.split('=>')]
                for line in perf('script', '-i', path, '-F', 'ip,addr').stdout.splitlines()]
    check(len(branches) > 1000, str(branches))
    # But where perf was told to sample less for a while, and around system calls, each is what the
    # one before it led to, or not far behind.
    followed = [1 for (_, target), (source, _) in zip(branches, branches[1:])
                if 0 <= source - target < 4096]
    check(len(followed) > 0.9 * len(branches), '%d of %d' % (len(followed), len(branches)))


def case_record_a_sees_the_tree():
    shares = report(record('-a', '-e', 'instructions:u', turns=10 * TURNS)[0], '--comm', 'work')
    check(shares.get('hot', 0) > 60, str(shares))


def case_record_p_sees_a_process_that_runs():
    need('perf')
    path = path_of('attached.data')
    beside('perf record -q -o %s -F 1000 -p $p $works' % path, '0')
    check_profile(report(path))


def case_record_of_several_events_and_threads():
    path = path_of('threads.data')
    perf('record', '-q', '-o', path, '-e', 'instructions:u,branches:u', '-c', '100003', WORK,
         str(TURNS), '3')
    done = perf('script', '-i', path, '-F', 'tid,event,ip,sym')
    # The period may fit a round of the loop: then all samples of a thread are of one branch.
    events = re.findall(r'(\d+) +(\w+):u: +[0-9a-f]+ (?:hot|cold)$', done.stdout, re.M)
    equal({event for _, event in events}, {'instructions', 'branches'})
    equal(len({tid for tid, _ in events}), 3, 'threads')


def case_record_of_a_group_has_its_counts_in_each_sample():
    path, _ = record('-e', '{instructions:u,branches:u}:S', '-c', '1000003')
    done = perf('script', '-i', path, '-F', 'event,period')
    periods = {'instructions': [], 'branches': []}
    for period, event in re.findall(r'(\d+) +(\w+):', done.stdout):
        periods[event].append(int(period))
    equal(set(periods['instructions'][1:]), {1000003}, 'instructions between samples')
    equal(len(periods['branches']), len(periods['instructions']), 'values of branches')
    check(5 < 1000003 / periods['branches'][-1] < 15, str(periods))


def case_record_into_a_pipe():
    need('perf')
    done = inside('bash', '-c', 'perf record -q -e instructions:u -c 100003 -o - %s %d | '
                  'perf report -i - --stdio -q -F overhead,sym' % (WORK, TURNS))
    share = re.search(r'([\d.]+)% +\[.\] hot', done.stdout)
    check(share and 70 < float(share.group(1)) < 100, done.stdout + done.stderr)


def case_annotate_shows_the_loop():
    need('objdump')
    path, _ = record('-e', 'instructions:u', '-c', '10007')
    done = perf('annotate', '-i', path, '--stdio', '-s', 'hot')
    rows = re.findall(r'^ +([\d.]+) +: +[0-9a-f]+: +(\w+)', done.stdout, re.M)
    near(sum(float(share) for share, _ in rows), 100, 0.05, 'all of\n' + done.stdout)
    loop = [float(share) for share, _ in rows if float(share) > 3]
    check(5 <= len(loop) <= 15, 'instructions of the loop, of about the same share:\n' + done.stdout)


def case_record_of_loads_that_are_slow():
    path, _ = record('-e', 'cpu/mem-loads,ldlat=30/P', '-c', '1', '-d', '-W')
    samples = [line.split() for line in perf(
        'script', '-i', path, '-F', 'addr,weight').stdout.splitlines()]
    check(len(samples) > 20, 'the start of a program misses more than %d times' % len(samples))
    for address, weight in samples:
        check(int(address, 16) and int(weight) >= 50, '%s took %s' % (address, weight))


def case_mem_record_finds_its_events():
    path = path_of('mem.data')
    perf('mem', 'record', '-o', path, WORK, str(TURNS))
    events = perf('evlist', '-i', path).stdout.split()
    levels = perf('script', '-i', path, '-F', 'event,data_src').stdout
    if AMDS:
        equal(events, ['ibs_op//'])
        check(re.search(r'\|OP LOAD\|LVL (L1|L2|L3|Local RAM|RAM hit)', levels), levels[:2000])
        check(re.search(r'\|OP STORE\|', levels), levels[:2000])
        return
    equal(events, ['cpu/mem-loads,ldlat=30/P', 'cpu/mem-stores/P'])
    check(re.search(r'mem-loads.*\|OP LOAD\|LVL (L3|Local RAM|RAM hit)', levels), levels[:2000])
    check(re.search(r'mem-stores.*\|OP STORE\|', levels), levels[:2000])


def case_operations_are_sampled_as_by_AMDs():
    path, _ = record('-e', 'ibs_op//u', '-c', '5003', '-d', '-W', program=WORK_STATIC)
    samples = perf('script', '-i', path, '-F', 'addr,data_src').stdout.splitlines()
    counts = stat('-e', 'ibs_op//u,cycles:u', WORK_STATIC, str(TURNS))
    near(len(samples), counts['cycles:u'] / 5003, 0.02, 'samples')
    equal(counts['ibs_op//u'], '<not supported>')
    for kind in ('|OP LOAD|LVL', '|OP STORE|LVL', '|OP N/A|LVL N/A'):
        check(any(kind in sample for sample in samples), 'samples of ' + kind)
    for sample in samples:
        equal('|OP N/A|' in sample, sample.split()[0] == '0', 'where it accessed ' + sample)


# ---- events that the kernel counts ----

def need_trace_points():
    need('perf')
    if HOST:
        skip('the host refuses them')
    done = run('perf', 'record', '-q', '-o', path_of('native.data'), '-e',
               'sched:sched_process_exec', 'true')
    if done.returncode:
        skip('no trace points here: ' + done.stderr.strip().splitlines()[-1])


def check_life(*events):
    """Instructions are sampled between the exec and the exit that the kernel saw, by its clock."""
    path, said = record(*(word for event in events for word in ('-e', event)))
    check('out of order' not in said, said)
    done = perf('script', '-i', path, '-F', 'time,event')
    times = {}
    for time, event in re.findall(r'^ *([\d.]+): +(\S+?): *$', done.stdout, re.M):
        times.setdefault(event, []).append(float(time))
    begun, ended = (times.get('sched:sched_process_' + what, []) for what in ('exec', 'exit'))
    equal((len(begun), len(ended)), (1, 1), 'execs and exits in\n' + done.stdout[-3000:])
    samples = times.get('cpu/instructions,period=100003/u', [])
    check(LEAST_INSTRUCTIONS < len(samples) * 100003 < MOST_INSTRUCTIONS, str(times.keys()))
    check(begun[0] - 0.01 < min(samples) <= max(samples) < ended[0] + 0.01,
          '%s to %s in %s to %s' % (min(samples), max(samples), begun[0], ended[0]))


def case_record_of_trace_points_beside_the_virtual_PMU():
    need_trace_points()
    points = ['sched:sched_process_exec', 'sched:sched_process_exit']
    check_life('cpu/instructions,period=100003/u', *points)
    check_life(*points, 'cpu/instructions,period=100003/u')


def check_group(*events):
    """A call that nothing but the program makes, counted together with its instructions."""
    counts = stat('-e', '{%s}' % ','.join(events), WORK_STATIC, str(TURNS))
    equal(sorted(counts), sorted(events), 'events')
    equal(counts['sched:sched_process_exec'], 1, 'execs of ' + str(counts))
    check(LEAST_INSTRUCTIONS < counts['instructions:u'] < MOST_INSTRUCTIONS, str(counts))


def case_stat_of_a_group_with_trace_points():
    need_trace_points()
    check_group('instructions:u', 'sched:sched_process_exec')
    check_group('sched:sched_process_exec', 'instructions:u')
    check_group('task-clock', 'sched:sched_process_exec', 'instructions:u')


def case_record_of_a_group_with_trace_points():
    need_trace_points()
    # Of each processor there is a group otherwise: who moves before the first sample has executed in the other.
    for events, *how in ('{%s,%s}',), ('{%s,%s}:S', '--per-thread'):
        path, _ = record(*how, '-e', events % ('cpu/instructions,period=100003/u',
                                               'sched:sched_process_exec'))
        done = perf('script', '-i', path, '-F', 'event')
        lines = done.stdout.split()
        instructions = lines.count('cpu/instructions,period=100003/u:')
        check(LEAST_INSTRUCTIONS < instructions * 100003 < MOST_INSTRUCTIONS, done.stdout[-2000:])
        equal(len(lines) - instructions, 1, 'of the trace point in ' + done.stdout[:2000])


def case_record_of_a_group_that_a_trace_point_leads():
    need_trace_points()
    path, _ = record('-e', '{sched:sched_process_exit,instructions:u}')
    lines = perf('script', '-i', path, '-F', 'event').stdout.split()
    equal(lines.count('sched:sched_process_exit:'), 1, 'exits')
    check(lines.count('instructions:u:') > 10, str(lines))


def case_probe_places_what_stat_and_record_meet():
    need('perf')
    if os.geteuid() or not os.path.exists('/sys/kernel/tracing/uprobe_events'):
        skip('probes are made in the tracing directory, by root')
    group = 'tally%d' % os.getpid()
    with tracing_alone():
        inside('perf', 'probe', '-q', '-x', WORK, '%s:cold=cold' % group)
        try:
            done = inside('perf', 'stat', '-x', ',', '-e', group + ':cold', WORK, '100000')
            equal(number(r'(\d+),,%s:cold' % group, done.stderr), 100)
            path = path_of('probe.data')
            inside('perf', 'record', '-q', '-o', path, '-e', group + ':cold', WORK, '100000')
            equal(run('perf', 'script', '-i', path).stdout.count(group + ':cold: ('), 100)
        finally:
            inside('perf', 'probe', '-q', '-d', group + ':*', status=None)


def case_sched_record_sees_the_program_switched():
    need_trace_points()
    path = path_of('sched.data')
    perf('sched', 'record', '-o', path, 'sh', '-c',
         'sleep 0.01; %s %d' % (WORK, TURNS))
    done = perf('sched', 'latency', '-i', path)
    check(re.search(r'^ *(sleep|sh|work):', done.stdout, re.M), done.stdout + done.stderr)


# ---- perf, traced ----

def case_a_tracer_does_not_wait_for_whom_it_has_stopped():
    need('perf', 'strace')
    trace = path_of('trace')
    strace = ['strace', '-f', '-o', trace]
    done = inside(*strace, 'perf', 'stat', '-x', ',', '-a', '-e', 'instructions:u', WORK_STATIC,
                  str(TURNS))
    counted = number(r'(\d+),,instructions:u', done.stderr)
    check(LEAST_INSTRUCTIONS < counted < 2 * MOST_INSTRUCTIONS, done.stderr)
    # perf tries what it can record with an event of every task
    path = path_of('traced.data')
    inside(*strace, 'perf', 'record', '-q', '-o', path, '-e', 'instructions:u', '-c', '100003',
           WORK, str(TURNS))
    check_profile(report(path))
    with open(trace) as file:
        contains(file.read(), 'exited with 0')


# ---- perf top ----

def case_top_lists_what_runs():
    need('perf')
    path = path_of('top')
    # A keyboard that nobody touches: at the end of a file perf prints its help again and again, and
    # has the processor for that rather than the program.
    keyboard = path_of('keyboard')
    os.mkfifo(keyboard)
    beside('timeout -s INT 60 perf top --stdio -d 1 -e instructions:u <>%s >%s 2>&1 & '
           'for i in $(seq 250); do sleep 0.2; grep -qa "%%.* hot" %s && break; done; '
           'kill -INT $!; wait $!' % (keyboard, path, path), '0')
    with open(path, errors='replace') as file:
        shown = file.read()
    shares = re.findall(r'([\d.]+)% +work +\[.\] hot', shown)
    check(shares and float(shares[-1]) > 50, shown[-2000:])


if __name__ == '__main__':
    main()
