#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally stat on a program that does a known number of things, and beside perf stat."""
import contextlib
import glob
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from tap import *

TARGET = os.environ.get('STAT_TARGET', 'stat-target')
WRITES = 'syscalls:sys_enter_write'
NOBODY_WITH_BOUNDS = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                      '--inh-caps=-all')
NOBODY = NOBODY_WITH_BOUNDS + ('--bounding-set=-all',)


def stat(*args, status=0, **more):
    """The JSON of tally stat -j: of the last line, when there are several."""
    done = tally('stat', '-j', *args, **more)
    equal(done.returncode, status, 'status\n' + done.stderr)
    return json.loads(done.stderr)


def counts(found):
    """{event: value} of a JSON object, for one place."""
    return {c['event']: c['value'] for c in found['counts']}


def need_tracepoints():
    done = tally('stat', '-j', '-e', WRITES, '--', 'true')
    if done.returncode or WRITES not in counts(json.loads(done.stderr)):  # the kernel's side is refused
        skip('tracepoints cannot be counted by this user here')


def perf_count(event, *command):
    if not shutil.which('perf'):
        skip('perf is not installed')
    done = run('perf', 'stat', '-x,', '-e', event, '--', *command)
    value = [line for line in done.stderr.splitlines() if event in line][0].split(',')[0]
    if not value.isdigit():
        skip('perf says %s' % value)
    return int(value)


def wait_until_counted(watch, target):
    """Until tally counts what is there already, and there was some of it."""
    def waits():
        with open('/proc/%d/stat' % watch.pid) as file:
            state = file.read().rsplit(')', 1)[1].split()[0]
        with contextlib.suppress(OSError):  # what it closes meanwhile
            files = glob.glob('/proc/%d/fd/*' % watch.pid)
            return state == 'S' and any('perf_event' in os.readlink(file) for file in files)
        return False

    wait_until(waits, 'that tally counts')
    let_run(target.pid, 0.05)


def case_page_faults_are_those_that_were_made():
    few = counts(stat('-e', 'page-faults:u', '--', TARGET, 'pages', '100'))['page-faults:u']
    many = counts(stat('-e', 'page-faults:u', '--', TARGET, 'pages', '2100'))['page-faults:u']
    # What starting costs differs by a few pages from run to run; 2,000 do not.
    check(abs(many - few - 2000) <= 20, (few, many))


def case_page_faults_agree_with_perf():
    ours = counts(stat('-e', 'page-faults:u', '--', TARGET, 'pages', '3000'))['page-faults:u']
    perf = perf_count('page-faults:u', TARGET, 'pages', '3000')
    check(abs(ours - perf) <= 30, (ours, perf))


def case_tracepoint_counts_are_exact():
    need_tracepoints()
    equal(counts(stat('-e', WRITES, '--', TARGET, 'writes', '1234'))[WRITES], 1234)


def case_filter_applies():
    need_tracepoints()
    found = stat('-e', WRITES, '--filter', 'count > 1', '--', TARGET, 'writes', '50')
    equal(counts(found)[WRITES], 0)
    found = stat('-e', WRITES, '--filter', 'count == 1', '--', TARGET, 'writes', '50')
    equal(counts(found)[WRITES], 50)


def case_filter_that_makes_no_sense_stops_everything():
    need_tracepoints()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'ran')
        done = tally('stat', '-e', 'cs,' + WRITES, '--filter', 'nosuch > 1', '--', 'touch', path)
        equal(done.returncode, 1)
        contains(done.stderr, "filter 'nosuch > 1'")
        check(not os.path.exists(path))


def case_sleeps_are_context_switches():
    c = stat('-e', 'context-switches,dummy:u', '--', TARGET, 'sleeps', '40')['counts'][0]
    # User mode has none: 0 would be no answer.
    equal(c['event'], 'context-switches')
    if c['state'] == 'not permitted':
        skip(c['reason'])
    check(40 <= c['value'], c)


def case_threads_are_inherited_unless_told_otherwise():
    need_tracepoints()
    equal(counts(stat('-e', WRITES, '--', TARGET, 'threads', '5'))[WRITES], 50)
    equal(counts(stat('-i', '-e', WRITES, '--', TARGET, 'threads', '5'))[WRITES], 0)


def case_groups_are_counted_together():
    found = stat('-e', '{task-clock,page-faults,cpu-clock}', '--', TARGET, 'pages', '10')
    equal([c['state'] for c in found['counts']], ['counted'] * 3)
    equal(len({c['time_enabled'] for c in found['counts']}), 1)


def case_every_number_has_a_source():
    found = stat('--', 'true')
    for c in found['counts']:
        if c['state'] == 'counted':
            check(c['source'] in ('kernel', 'scaled', 'user-mode', 'model'), c)
            check(c['time_running'] <= c['time_enabled'], c)
        else:
            equal((c['source'], c['value']), ('none', None))
            check(c['reason'], c)


def case_unsupported_is_never_replaced():
    found = stat('--pmu=kernel', '-e', 'cycles', '--', 'true')
    if found['counts'][0]['state'] == 'counted':
        skip('this machine has a PMU')
    equal(found['counts'][0]['state'], 'not supported')
    text = tally('stat', '--pmu=kernel', '-e', 'cycles,instructions', '--', 'true').stderr
    equal(text.count('<not supported>'), 2)
    equal(text.count('no hardware PMU'), 1, 'the reason stands once')
    elsewhere = "or start it by 'tally run -- COMMAND'"
    equal(elsewhere in text, False, 'who asks for the kernel is not sent elsewhere')
    contains(tally('stat', '-e', 'cycles', '-p', str(os.getpid()), '--', 'true').stderr, elsewhere)


def case_events_of_user_mode_alone_are_counted_there():
    found = stat('-e', 'tally::calls:u', '-e', 'task-clock:u', '--', 'true')
    equal([(c['event'], c['state']) for c in found['counts']],
          [('tally::calls:u', 'counted'), ('task-clock:u', 'counted')])
    equal(found['counts'][0]['source'], 'user-mode')
    contains(tally('stat', '-e', 'tally::calls', '--', 'true').stderr,
             'tally: tally:: is the PMU of user mode: user mode counts (tally run)')
    done = tally('stat', '--pmu=kernel', '-e', 'tally::calls', '--', 'true')
    equal(done.returncode, 1)
    contains(done.stderr, "run the command under 'tally run'")


def case_user_mode_says_that_it_sees_no_kernel():
    """Nothing is started anew for that, and no 0 takes the place of an answer."""
    text = tally('stat', '--pmu=user', '-e', 'cycles:k,instructions:u,task-clock', '--', 'true').stderr
    check(re.search(r'<not supported> +cycles:k', text), text)
    check(re.search(r'[\d,]{5,} +instructions:u +\(counted in user mode\)', text), text)
    contains(text, 'user mode (tally run) sees user code alone')
    equal('/sec' in text, False, 'no rate: it would be of the time that user mode takes')
    done = tally('record', '--pmu=user', '-o', '/dev/null', '-e', 'cycles:k', '--', 'true')
    check(done.returncode, 'nothing is recorded')
    contains(done.stderr, 'cannot open cycles:k: user mode (tally run) sees user code alone')
    equal('user mode counts' in tally('stat', '-e', 'cycles:k', '--', 'true').stderr, False)


def case_probes_of_who_may_not_ask_the_kernel():
    need_root()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy, target = copy_tool(folder), shutil.copy(TARGET, folder)
        probes = 'uprobe:%s:main,uretprobe:%s:main' % (target, target)
        done = run(*NOBODY, copy, 'stat', '-j', '-e', probes, '--', target, 'pages', '1')
    equal(done.returncode, 0, done.stderr)
    found = json.loads(done.stderr)
    equal([(c['value'], c['source']) for c in found['counts']], [(1, 'user-mode'), (1, 'user-mode')])


def case_events_of_the_processor_are_counted_in_user_mode_by_its_vendors_names():
    listed = {e['name'] for e in json.loads(tally('list', '--json', 'vendor').stdout)}
    event = listed & {'INST_RETIRED:ANY_P', 'RETIRED_INSTRUCTIONS'}
    if not event:
        skip('no events of a processor of Intel or AMD are known here')
    event = event.pop()
    found = counts(stat('--pmu=user', '-e', event + ':u,instructions:u', '--', 'true'))
    equal(found[event + ':u'], found['instructions:u'])
    inside = run(TALLY, 'run', '--', TALLY, 'list', '--json', 'vendor')
    inside = {e['name']: e['available'] for e in json.loads(inside.stdout)}
    unit = [name for name in inside if name.endswith('::' + event)]
    equal([inside[name] for name in unit], [True])
    check(inside['tally::calls'], "the run's own unit is there beside it")
    check(False in inside.values(), 'it says which the run has not')


def case_a_run_without_room_for_events_is_one_run():
    """It has no memory for them: then it says so, and does not start another one."""
    if run('bash', '-c', 'ulimit -v 1000000; exec "$@"', '-', TALLY, '--version').returncode:
        skip('the tool itself, as it is built here, needs more than 1 GB')
    # Who may raise the limit has the room.
    powerless = ('setpriv', '--bounding-set=-sys_resource', '--inh-caps=-sys_resource') if os.geteuid() == 0 else ()
    for limit in ('-v 1000000', '-f 0'):
        for options in ((), ('--pmu=user',)):
            script = 'ulimit %s; exec "$@" 2>&1 | cat' % limit
            done = subprocess.run(['bash', '-c', script, '-', *powerless, TALLY, 'stat', *options,
                                   '-e', 'tally::calls', 'true'],
                                  stdout=subprocess.PIPE, text=True, timeout=LIMIT)
            contains(done.stdout, 'user mode has no room here for events: most likely a limit on memory (ulimit -v)')
            equal(done.stdout.count('no room'), 1)
    done = run('sh', '-c', 'ulimit -v 4000000; exec "$@"', 'sh', *powerless, TALLY, 'run', '--', 'sh', '-c',
               'ulimit -v 200000; exec "$@"', 'sh', TALLY, 'stat', '-e', 'tally::calls', 'true')
    contains(done.stderr, 'no room here for events')


def case_limits_on_memory_within_a_run_leave_room_for_events():
    limited = ('sh', '-c', 'ulimit -v 150000; exec "$@"', 'sh')
    if run(*limited, TALLY, '--version').returncode:
        skip('the tool itself, as it is built here, needs more than 150 MB')
    done = run(TALLY, 'run', '--', *limited, TALLY, 'stat', '-x,', '-e', 'tally::calls:u', 'true')
    equal(done.returncode, 0, done.stderr)
    check(int(done.stderr.split(',')[0]) > 0, done.stderr)
    done = run(TALLY, 'stat', '--pmu=user', '-o', os.devnull, '-e', 'tally::calls:u', *limited,
               'sh', '-c', 'ulimit -v; (echo there); exec /bin/echo again')
    equal((done.returncode, done.stdout, done.stderr), (0, '150000\nthere\nagain\n', ''))


def case_sums_of_what_the_model_computes_are_the_models():
    sources = {c['event']: c['source'] for c in stat(
        '--pmu=user', '-e', 'tally::calls:u,r0151:u,re860:u', '--', 'true')['counts']}
    equal(sources.pop('tally::calls:u'), 'user-mode')
    equal(sorted(sources.values()), ['model', 'none'], "L1D misses, Intel's or AMD's")


def case_it_says_what_will_be_slow():
    text = tally('stat', '-e', 'cycles,instructions,branch-misses', '--', 'true').stderr
    if 'user mode counts' not in text:
        skip('this machine has a PMU')
    contains(text, '(tally run), slowly for cycles and branch-misses; '
             '-e instructions,branches is quick\n')
    contains(tally('stat', '-e', 'cycles,branches,LLC-loads,branch-misses', '--', 'true').stderr,
             ', slowly for cycles, LLC-loads and branch-misses; -e')
    contains(tally('stat', '-e', 'cycles', '--', 'true').stderr, ', slowly for cycles; -e')
    contains(tally('stat', '-e', 'instructions,L1-dcache-loads', '--', 'true').stderr,
             'user mode counts (tally run)\n')


def case_status_of_the_command_is_passed_on():
    equal(tally('stat', '--', 'sh', '-c', 'exit 42').returncode, 42)
    equal(tally('stat', '--', 'sh', '-c', 'kill -TERM $$').returncode, 128 + signal.SIGTERM)
    equal(tally('stat', '--', '/nonexistent/program').returncode, 127)
    equal(tally('stat', '--', '/dev/null').returncode, 126)
    equal(stat('-e', 'task-clock', '--', 'sh', '-c', 'exit 3', status=3)['exit_status'], 3)


def case_command_lines_that_contradict_themselves_are_refused():
    for line in (('-p', '1', '-a'), ('-r', '3', '-a'), ('-I', '0', '--', 'true'), ('-x', ''),
                 ('--per-thread', '--', 'true'), ('--append', '--', 'true'), ('--nosuch',),
                 ('-n', '-e', 'cycles', '--', 'true'), ('-p', 'one'),
                 ('-x', ',', '-j', '--', 'true')):
        done = tally('stat', *line)
        equal(done.returncode, 129, line)
        contains(done.stderr, 'tally stat: ')


def case_nothing_to_count_is_not_waited_for():
    done = tally('stat', '-p', str(os.getpid()), '-e', 'r7f7f7f7f')
    if '<not' not in done.stderr:
        skip('this machine counts r7f7f7f7f')
    equal(done.returncode, 1)
    contains(done.stderr, ' [1] ')
    done = tally('stat', '-p', str(os.getpid()), '-I', '10000', '-e', 'r7f7f7f7f')
    equal(done.returncode, 1)
    contains(done.stderr, ' [1] ')


def case_processor_that_is_not_there_is_refused():
    done = tally('stat', '-C', '0,4095', '--', 'true')
    equal(done.returncode, 1)
    contains(done.stderr, 'no processor 4095 online')


def case_death_of_the_command_is_told():
    done = tally('stat', '-e', 'page-faults', '--', 'sh', '-c', 'kill -9 $$')
    equal(done.returncode, 128 + signal.SIGKILL)
    contains(done.stderr, 'signal 9 (Killed)')


def case_no_line_ends_in_spaces():
    done = tally('stat', '-e', 'page-faults,page-faults:u,task-clock', '--', 'true')
    check(not [line for line in done.stderr.splitlines() if line.endswith(' ')], done.stderr)


def case_unknown_event_is_one_message():
    done = tally('stat', '-e', 'page-fualts', '--', 'true')
    equal(done.returncode, 1)
    contains(done.stderr, 'page-faults')


def case_repeats_give_mean_and_deviation():
    found = stat('-r', '5', '-e', 'page-faults,task-clock', '--', TARGET, 'pages', '50')
    equal(found['runs'], 5)
    for c in found['counts'] + [found['elapsed']]:
        value = c.get('value', c.get('seconds'))
        check(c['min'] <= value <= c['max'], c)
        check(c['stddev'] >= 0, c)
    contains(tally('stat', '-r', '2', '-e', 'page-faults', '--', 'true').stderr, '+-')


def case_run_that_counted_nothing_leaves_the_others():
    with tempfile.TemporaryDirectory() as folder:
        flag = os.path.join(folder, 'flag')
        script = 'test -e %s || { touch %s; sleep 1.5; }' % (flag, flag)
        options = ('-r', '2', '-D', '1000', '-e', 'task-clock')
        c = stat('-j', *options, '--', 'sh', '-c', script)['counts'][0]
        equal((c['state'], c['runs']), ('counted', 1), c)
        check(c['value'] > 0 and c['min'] == c['max'] == c['value'], c)
        os.unlink(flag)
        contains(tally('stat', *options, '--', 'sh', '-c', script).stderr,
                 '(counted in 1 of 2 runs)')


def case_interrupted_run_leaves_the_whole_ones():
    with tempfile.TemporaryDirectory() as folder:
        flag = os.path.join(folder, 'flag')
        script = 'test -e %s && exec sleep 60; %s pages 10; touch %s' % (flag, TARGET, flag)
        watch = subprocess.Popen([TALLY, 'stat', '-j', '-r', '0', '-e', 'page-faults:u', '--', 'sh',
                                  '-c', script], stderr=subprocess.PIPE, text=True)
        while not os.path.exists(flag):
            time.sleep(0.01)
        time.sleep(0.3)
        watch.send_signal(signal.SIGINT)
        found = json.loads(watch.communicate(timeout=LIMIT)[1])
        c = found['counts'][0]
        equal((found['interrupted'], found['runs'], c['state']), (True, 1, 'counted'))
        equal(c['raw'], c['value'])


def case_intervals_add_up_to_the_whole():
    need_tracepoints()
    done = tally('stat', '-j', '-I', '20', '-e', WRITES, '--', 'sh', '-c',
                 'for i in 1 2 3 4 5; do %s writes 100; sleep 0.03; done' % TARGET)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    check(len(lines) > 3, len(lines))
    times = [line['time'] for line in lines[:-1]]
    equal(times, sorted(times))
    parts = sum(c['value'] or 0 for line in lines[:-1] for c in line['counts'])
    equal(parts, 500)
    equal(lines[-1]['exit_status'], 0)


def case_footnotes_are_numbered_alike_in_all_intervals():
    done = tally('stat', '-I', '100', '-e', 'task-clock,cycles:G', '--', 'sleep', '0.35')
    equal(done.returncode, 0)
    numbers = {}
    for line in done.stderr.splitlines():
        found = re.search(r'(<.*>) .*# \[(\d+)\]$', line)
        if found:
            numbers.setdefault(found[1], set()).add(found[2])
    check('<not counted>' in numbers, done.stderr)
    check(all(len(n) == 1 for n in numbers.values()), numbers)
    equal(len(set.union(*numbers.values())), len(numbers))
    for number in set.union(*numbers.values()):
        contains(done.stderr, '\n [%s] ' % number)


def case_processor_that_the_target_left_alone_says_so():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        skip('one processor')
    found = stat('-A', '-e', 'page-faults', '--', 'taskset', '-c', str(cpus[0]), TARGET, 'pages',
                 '10', preexec_fn=lambda: os.sched_setaffinity(0, {cpus[0]}))
    cells = {c['cpu']: c for c in found['counts']}
    check(cells[cpus[0]]['value'] >= 10, found)
    equal((cells[cpus[1]]['state'], cells[cpus[1]]['reason']),
          ('not counted', 'nothing of the target ran on this processor'))


def case_interval_count_ends_it():
    need_privileged()
    done = tally('stat', '-j', '-a', '-e', 'cpu-clock', '-I', '10', '--interval-count', '3')
    equal(done.returncode, 0)
    equal(len([l for l in done.stderr.splitlines() if '"interval"' in l]), 3)


def case_interval_count_leaves_the_command_alone():
    done = tally('stat', '-I', '20', '--interval-count', '2', '-e', 'task-clock', '--', 'sh', '-c',
                 'sleep 0.4; exit 7')
    equal(done.returncode, 7)
    equal(len(re.findall('(?m)^ +[0-9]+[.].*task-clock', done.stderr)), 2, done.stderr)


def case_signal_ends_a_command_that_is_no_longer_counted():
    watch = subprocess.Popen([TALLY, 'stat', '-I', '20', '--interval-count', '1', '-e', 'task-clock',
                              '--', TARGET, 'spin'], stderr=subprocess.PIPE, text=True)
    contains(watch.stderr.readline() + watch.stderr.readline(), 'task-clock')
    time.sleep(0.2)
    equal(watch.poll(), None)
    watch.send_signal(signal.SIGTERM)
    watch.communicate(timeout=LIMIT)
    equal(watch.returncode, 128 + signal.SIGTERM)


def case_timeout_ends_a_command():
    found = stat('--timeout', '50', '-e', 'task-clock', '--', TARGET, 'spin',
                 status=128 + signal.SIGTERM)
    equal(found['signal'], signal.SIGTERM)
    check(found['counts'][0]['value'] > 0, found)


def case_timeout_ends_each_of_several_runs():
    found = stat('-r', '3', '--timeout', '50', '-e', 'task-clock', '--', TARGET, 'spin',
                 status=128 + signal.SIGTERM)
    equal((found['runs'], found['interrupted']), (3, False))


def case_interrupt_kills_a_command_that_outlives_the_timeout():
    watch = subprocess.Popen([TALLY, 'stat', '-j', '-e', 'task-clock', '--timeout', '1500', '--',
                              'sh', '-c', 'trap "" TERM INT; exec %s spin' % TARGET],
                             stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    equal(watch.poll(), None)
    watch.send_signal(signal.SIGINT)
    found = json.loads(watch.communicate(timeout=LIMIT)[1])
    equal((found['interrupted'], found['signal']), (True, signal.SIGKILL))
    check(found['counts'][0]['value'] > 0, found)


def case_delay_leaves_out_the_start():
    need_tracepoints()
    found = stat('-D', '300', '-e', WRITES, '--', 'sh', '-c',
                 '%s writes 500; sleep 1; %s writes 7' % (TARGET, TARGET))
    equal(counts(found)[WRITES], 7)


def case_times_begin_after_the_delay():
    start = time.monotonic()
    found = stat('-D', '300', '-e', 'task-clock', '--', 'sleep', '0.4')
    whole = time.monotonic() - start
    equal(found['delay'], 0.3)
    check(0 < found['elapsed']['seconds'] <= whole - 0.3, (found, whole))


def case_delay_that_outlasts_the_command_is_the_reason():
    found = stat('-D', '60000', '-e', 'page-faults', '--', 'true')['counts'][0]
    equal((found['state'], found['reason']), ('not counted', 'the delay was not over'))


def case_running_process_is_counted_until_it_ends():
    target = subprocess.Popen([TARGET, 'spin'])
    watch = subprocess.Popen([TALLY, 'stat', '-j', '-e', 'task-clock', '-p', str(target.pid)],
                             stderr=subprocess.PIPE, text=True)
    wait_until_counted(watch, target)
    target.kill()
    target.wait()
    found = json.loads(watch.communicate(timeout=LIMIT)[1])
    equal(watch.returncode, 0)
    equal((found['target'], found['ids']), ('processes', [target.pid]))
    check(found['counts'][0]['value'] > 0, found)


def case_interrupt_keeps_the_results():
    target = subprocess.Popen([TARGET, 'spin'])
    watch = subprocess.Popen([TALLY, 'stat', '-j', '-e', 'task-clock', '-t', str(target.pid)],
                             stderr=subprocess.PIPE, text=True)
    wait_until_counted(watch, target)
    watch.send_signal(signal.SIGINT)
    found = json.loads(watch.communicate(timeout=LIMIT)[1])
    target.kill()
    target.wait()
    check(found['interrupted'])
    check(found['counts'][0]['value'] > 0, found)


def case_process_on_one_processor():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        skip('one processor')
    target = subprocess.Popen(['taskset', '-c', str(cpus[0]), TARGET, 'spin'],
                              preexec_fn=lambda: os.sched_setaffinity(0, {cpus[0]}))
    states = []
    for cpu in cpus[:2]:
        for _ in range(50): # others may keep it from its processor for that long
            found = stat('-p', str(target.pid), '-C', str(cpu), '-e', 'task-clock',
                         '--timeout', '100')
            equal((found['target'], found['ids'], found['cpus']),
                  ('processes', [target.pid], [cpu]))
            state = found['counts'][0]['state']
            if state == 'counted' or cpu != cpus[0]:
                break
        states.append(state)
    target.kill()
    target.wait()
    equal(states, ['counted', 'not counted'])


def case_process_that_is_not_there():
    done = tally('stat', '-p', '4194303')
    equal(done.returncode, 1)
    contains(done.stderr, '4194303')


def case_processors_add_up():
    need_privileged()
    found = stat('-a', '-A', '-e', 'cpu-clock', '--', 'sleep', '0.1')
    cpus = {c['cpu'] for c in found['counts']}
    equal((len(cpus), len(found['counts'])), (os.sysconf('SC_NPROCESSORS_ONLN'),) * 2)
    check(all(c['value'] for c in found['counts']), found)


def case_threads_apart():
    target = subprocess.Popen([TARGET, 'spin'])
    done = stat('--per-thread', '-e', 'task-clock', '-p', str(target.pid), '--timeout', '100')
    target.kill()
    target.wait()
    equal([c['tid'] for c in done['counts']], [target.pid])
    equal(done['counts'][0]['comm'], os.path.basename(TARGET)[:15])


def case_cgroups_apart():
    need_privileged()
    found = tally('stat', '-j', '-G', '/', '-e', 'cpu-clock', '--', 'sleep', '0.05')
    if found.returncode:
        skip(found.stderr.strip().splitlines()[0])
    found = json.loads(found.stderr)
    equal([(c['cgroup'], c['state']) for c in found['counts']], [('/', 'counted')])


def sleeping(pid):
    """How many threads of a process sleep."""
    states = []
    for tid in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/stat' % (pid, tid)) as file:
            states.append(file.read().rsplit(')', 1)[1].split()[0])
    return states.count('S')


def case_threads_that_do_nothing_are_left_out():
    target = subprocess.Popen([TARGET, 'idle', '3'])
    while sleeping(target.pid) < 3:
        time.sleep(0.01)
    args = ('--per-thread', '-e', 'task-clock,r7f7f7f7f', '-p', str(target.pid), '--timeout', '100')
    text, found = tally('stat', *args).stderr, stat(*args)
    target.kill()
    target.wait()
    rows = [line for line in text.splitlines() if 'msec task-clock' in line]
    equal(len(rows), 1, text)
    contains(rows[0], '%s-%d ' % (os.path.basename(TARGET)[:15], target.pid))
    contains(text, ' 3 threads that counted nothing are left out')
    # What did not open is told once, and JSON has it all.
    equal(text.count('r7f7f7f7f '), 1, text)
    equal(len(found['counts']), 8)


def cgroups(*args):
    """[(event, cgroup)] of a run."""
    if tally('stat', '-e', 'dummy', '-G', '/', '--', 'true').returncode:
        skip('cgroups cannot be counted by this user here')
    return [(c['event'], c.get('cgroup')) for c in stat(*args, '--', 'true')['counts']]


def case_cgroups_go_to_the_events_before_them_one_by_one():
    need_privileged()
    equal(cgroups('-e', 'cs,faults', '-G', '/,/'), [('cs', '/'), ('faults', '/')])
    equal(cgroups('-e', 'cs,faults', '-G', ',/'), [('cs', None), ('faults', '/')])
    equal(cgroups('-e', 'cs,faults,dummy', '-G', '/,'),
          [('cs', '/'), ('faults', None), ('dummy', None)])
    equal(cgroups('-e', 'cs,faults', '-G', '/', '-a', '-e', 'dummy'),
          [('cs', '/'), ('faults', '/'), ('dummy', None)])
    equal(cgroups('-e', 'cs', '-G', '/', '-e', 'faults', '-G', '/'),
          [('cs', '/'), ('faults', '/')])
    equal(cgroups('-e', '{cs,faults},dummy', '-G', '/'),
          [('cs', '/'), ('faults', '/'), ('dummy', '/')])
    equal({cgroup for _, cgroup in cgroups('-G', '/')}, {'/'})


def case_every_event_is_counted_in_each_cgroup():
    need_privileged()
    equal(cgroups('-e', 'cs,faults', '--for-each-cgroup', '/,,/'), [('cs', '/'), ('faults', '/')])


def case_cgroups_without_their_events_are_refused():
    for line in (('-G', '/,/'), ('-e', 'cs', '-G', '/,/'), ('-e', 'cs', '-G', '/', '-G', '/'),
                 ('-G', '/', '-G', '/'), ('-e', '{cs,faults}', '-G', '/,'),
                 ('-G', '/', '--for-each-cgroup', '/'), ('--for-each-cgroup', '/', '-G', '/'),
                 ('-e', 'cs', '-G', '/', '-d')):
        done = tally('stat', *line, '--', 'true')
        equal(done.returncode, 129, line)
        contains(done.stderr, 'group')


def case_cgroup_that_is_not_there():
    need_root()
    done = tally('stat', '-e', 'cs', '-G', 'no/such/cgroup', '--', 'true')
    equal(done.returncode, 1)
    contains(done.stderr, "no/such/cgroup")


def case_times_of_cgroups_can_be():
    need_privileged()
    cgroups('-e', 'cs', '-G', '/')
    for options in ((), ('-A',)):
        start = time.monotonic()
        found = stat('-e', 'cpu-clock', *options, '-G', '/', '--', 'true')
        most = (time.monotonic() - start) * 1e9 * (1 if options else os.cpu_count())
        for c in found['counts']:
            check((c['time_enabled'] or 0) <= most, (c, most))


def case_csv_has_a_column_for_cgroups():
    need_privileged()
    cgroups('-e', 'cs', '-G', '/')
    done = tally('stat', '-x', ';', '-e', 'cs,faults', '-G', '/,', '--', 'true')
    equal([line.split(';')[2:4] for line in done.stderr.splitlines()],
          [['cs', '/'], ['faults', '']])


def case_csv_has_the_columns_of_perf():
    done = tally('stat', '-x', ';', '-e', 'page-faults', '--', 'true')
    fields = done.stderr.strip().split(';')
    equal(len(fields), 8, done.stderr)
    check(fields[0].isdigit() and fields[3].isdigit())
    equal((fields[2].split(':')[0], fields[4], fields[7]), ('page-faults', '100.00', 'kernel'))


def case_csv_lines_of_intervals_have_the_same_columns():
    done = tally('stat', '-x', ';', '-I', '20', '--summary', '-e', 'page-faults,cs', '--', 'sleep',
                 '0.05')
    lines = [line.split(';') for line in done.stderr.splitlines()]
    equal({len(line) for line in lines}, {9}, done.stderr)
    equal([line[0] for line in lines[-2:]], ['summary'] * 2)
    check(all(float(line[0]) > 0 for line in lines[:-2]))


def case_csv_may_be_separated_by_tabs():
    done = tally('stat', '-x', '\\t', '-e', 'page-faults:u', '--', 'true')
    fields = done.stderr.rstrip('\n').split('\t')
    equal((len(fields), fields[2], fields[-1]), (8, 'page-faults:u', 'kernel'))


def case_output_goes_to_a_file():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'out')
        for extra in ((), ('--append',)):
            done = tally('stat', '-o', path, *extra, '-e', 'page-faults', '--', 'true')
            equal((done.returncode, done.stderr), (0, ''))
        with open(path) as file:
            equal(file.read().count('Counted for'), 2)
    done = tally('stat', '-o', '/nonexistent/x', '--', 'true')
    equal(done.returncode, 1)


def case_output_goes_to_a_descriptor():
    with tempfile.TemporaryFile('w+') as file:
        fd = file.fileno()
        done = tally('stat', '-x,', '--log-fd', str(fd), '-e', 'page-faults:u', '--', 'true',
                     pass_fds=(fd,))
        equal((done.returncode, done.stderr), (0, ''))
        file.seek(0)
        contains(file.read(), ',page-faults:u,')
    done = tally('stat', '--log-fd', '77', '--', 'true')
    equal(done.returncode, 1)
    contains(done.stderr, 'descriptor 77: Bad file descriptor')
    equal(tally('stat', '--log-fd', '2', '-o', '/dev/null', '--', 'true').returncode, 129)


def on_terminal(*args):
    """What a terminal gets to see while tally stat runs."""
    master, slave = open_terminal()
    child = subprocess.Popen([TALLY, 'stat', *args], stdout=slave, stderr=slave, stdin=slave,
                             env=dict(os.environ, NO_COLOR='1'))
    os.close(slave)
    seen = b''
    try:
        while True:
            part = os.read(master, 4096)
            if not part:
                break
            seen += part
    except OSError:  # Linux: EIO once the other side is closed
        pass
    os.close(master)
    equal(child.wait(timeout=LIMIT), 0)
    return seen.decode()


def case_terminal_says_what_goes_on():
    back = '\r\x1b[K'
    seen = on_terminal('-r', '2', '-e', 'page-faults', '--', 'true')
    check(seen.startswith('run 1 of 2 ' + back + 'run 2 of 2 ' + back), seen)
    seen = on_terminal('-e', 'page-faults', '-p', str(os.getpid()), '--timeout', '50')
    check(seen.startswith('counting (Ctrl-C ends) ' + back), seen)
    equal(on_terminal('-e', 'page-faults', '--', 'true').count(back), 0)


def case_full_disk_is_a_failure():
    if not os.path.exists('/dev/full'):
        skip('no /dev/full')
    done = tally('stat', '-o', '/dev/full', '-e', 'page-faults', '--', 'true')
    equal(done.returncode, 1)
    contains(done.stderr, 'No space left')


GENTLY = 'trap "sleep 0.5; echo gently; exit 3" TERM; echo ready; while :; do sleep 0.05; done'


def case_a_request_to_end_may_come_twice():
    """timeout(1) sends it to the tool and to its process group; a user who insists takes longer."""
    with subprocess.Popen([TALLY, 'stat', '-o', '/dev/null', '-e', 'page-faults:u', '--', 'sh', '-c', GENTLY],
                          stdout=subprocess.PIPE, text=True) as command:
        equal(command.stdout.readline(), 'ready\n')
        for _ in range(3):
            command.send_signal(signal.SIGTERM)
            time.sleep(0.02)
        equal(command.stdout.read(), 'gently\n')
    equal(command.returncode, 3)


def limited(soft, hard):
    return {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))}


def case_soft_limit_of_descriptors_is_no_limit():
    done = tally('stat', '-j', '-r', '2', '-e', ','.join(['page-faults'] * 60), '--', 'sh', '-c',
                 'ulimit -n', **limited(30, 200))
    equal(done.stdout, '30\n30\n')
    equal({c['state'] for c in json.loads(done.stderr)['counts']}, {'counted'})


def case_hard_limit_of_descriptors_is_named():
    done = tally('stat', '-e', ','.join(['page-faults'] * 60), '--', 'true', **limited(30, 40))
    contains(done.stderr, 'all 40 descriptors')
    contains(done.stderr, 'fewer')


def case_without_rights_user_code_is_counted_and_marked():
    need_root()
    with open('/proc/sys/kernel/perf_event_paranoid') as file:
        if int(file.read()) < 2:
            skip('perf_event_paranoid allows the kernel')
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = copy_tool(folder)
        done = run(*NOBODY, copy, 'stat', '-j', '-e', 'page-faults', '--', 'true')
        equal(done.returncode, 0, done.stderr)
        found = json.loads(done.stderr)['counts'][0]
        equal((found['event'], found['user_only']), ('page-faults:u', True))
        done = run(*NOBODY, copy, 'stat', '-j', '-e', 'page-faults:P,mem:0x1000:rw', '--', 'true')
        equal([c['event'] for c in json.loads(done.stderr)['counts']],
              ['page-faults:Pu', 'mem:0x1000:rw:u'])
        done = run(*NOBODY, copy, 'stat', '-a', '--', 'true')
        contains(done.stderr, '<not permitted>')
        contains(done.stderr, 'perf_event_paranoid')


@contextlib.contextmanager
def nobodys_tool():
    """A copy of the tool that nobody may execute."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield copy_tool(folder)


def case_a_run_is_as_strict_as_the_kernel():
    need_root()
    if run('unshare', '-m', 'true').returncode:
        skip('may not unshare')
    setting = '/proc/sys/kernel/perf_event_paranoid'
    command = NOBODY_WITH_BOUNDS + (
        '"$1"', 'stat', '--pmu=user', '-j', '-e', 'instructions', '--', 'cat', setting)
    for level, name, shown in ('0', 'instructions', '0'), ('3', 'instructions:u', '2'):
        with nobodys_tool() as tool:
            file = os.path.join(os.path.dirname(tool), 'level')
            with open(file, 'w') as written:
                written.write(level + '\n')
            done = run('unshare', '-m', 'sh', '-ec', 'mount --bind "$0" %s\n%s' % (
                setting, ' '.join(command)), file, tool)
        equal((done.returncode, done.stdout), (0, shown + '\n'), done.stderr)
        equal([c['event'] for c in json.loads(done.stderr)['counts']], [name])


def case_a_capability_of_the_tool_is_no_obstacle_to_user_mode():
    need_root()
    with nobodys_tool() as tool:
        # cap_perfmon+ep, as we advise.
        os.setxattr(tool, 'security.capability',
                    struct.pack('<IIIII', 0x02000001, 0, 0, 1 << (CAP_PERFMON - 32), 0))
        done = run(*NOBODY_WITH_BOUNDS, tool, 'stat', '--pmu=user', '-j', '-e',
                   'instructions:u,context-switches', '--', 'true')
        equal(done.returncode, 0, done.stderr)
        user, kernels = json.loads(done.stderr)['counts']
        equal(user['source'], 'user-mode')
        # Nor does a run have it: the advice is no other time what has been done.
        if kernels['state'] != 'counted':
            check('setcap' not in kernels['remedy'], kernels['remedy'])


def case_a_breakpoint_is_counted_by_whom_it_is_hit():
    abilities = json.loads(tally('doctor', '--json').stdout)['abilities']
    kernels, = [a['verdict'] == 'can' for a in abilities if a['name'] == 'breakpoint']
    found, = stat('-e', 'mem:0x1000:w', '--', 'true')['counts']
    equal((found['state'], found['source']), ('counted', 'kernel' if kernels else 'user-mode'))


def case_who_is_told_of_user_mode_reads_the_names_that_he_typed():
    need_root()
    with nobodys_tool() as tool:
        target = shutil.copy(TARGET, os.path.dirname(tool))
        event = 'uprobe:%s:main' % target
        done = run(*NOBODY, tool, 'stat', '-e', event, '--', target)
        check('cannot open' not in done.stderr or 'cannot open ' + event in done.stderr, done.stderr)
        # What user mode does not have is not looked for there.
        done = run(*NOBODY, tool, 'stat', '-e', 'cs:k', '--', 'true')
        check('user mode counts' not in done.stderr, done.stderr)


if __name__ == '__main__':
    main()
