#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally report against perf report: the same totals; and its forms against each other."""
import collections
import contextlib
import re
import struct

from recordings import *


def rows_of(path, *options):
    """The rows of the first event, as JSON."""
    return tally_json('report', '-i', path, '-j', *options)['events'][0]['rows']


def perf_rows(path, *options, fields):
    """What perf report says, as tuples of @fields."""
    done = perf('report', '--stdio', '-i', path, '-g', 'none', '-F', fields, '-t', '|', *options)
    equal(done.returncode, 0, done.stderr)
    return [tuple(part.strip() for part in line.split('|'))
            for line in done.stdout.split('\n') if line and not line.startswith('#')]


def summed(pairs):
    total = collections.Counter()
    for key, value in pairs:
        total[key] += value
    return total


def function_of(row):
    """Functions of the program under test by name; of others only their files' names agree."""
    dso = row['dso']
    return (dso, row['sym'] if dso == 'calls' else '')


def perf_function(dso, sym):
    dso = dso.replace('[kernel.kallsyms]', '[kernel]')
    return (dso, re.sub(r'^\[.\] ', '', sym) if dso == 'calls' else '')


def same_samples(path, *options):
    ours = summed((function_of(row), row['samples'])
                  for row in rows_of(path, '--no-children', *options) if row['samples'])
    theirs = summed((perf_function(dso, sym), int(samples)) for samples, dso, sym in
                    perf_rows(path, '--no-children', *options, fields='sample,dso,sym'))
    equal(ours, theirs)
    return ours


def case_samples_of_functions_as_perf_has_them():
    ours = same_samples(plain())
    # Of user mode: in some virtual machines faults take more time than the work does.
    check(ours['calls', 'work'] > sum(n for (dso, _), n in ours.items() if dso != '[kernel]') / 2, ours)


def case_samples_with_frame_pointers_as_perf_has_them():
    same_samples(frame_pointers())


def case_samples_with_copied_stacks_as_perf_has_them():
    same_samples(dwarf())


def case_samples_of_a_compressed_file_as_perf_has_them():
    same_samples(compressed())


def case_samples_of_the_whole_system_as_perf_has_them():
    # Other programs run meanwhile, and may have spaces in their names.
    ours = summed((row['comm'].strip(), row['samples']) for row in
                  rows_of(system_wide(), '--sort', 'comm'))
    # Not perf report, which cuts names at the width that their column had before it met them.
    shown = perf('script', '-i', system_wide(), '-F', 'comm', '-G')
    equal(shown.returncode, 0, shown.stderr)
    equal(ours, summed((line.strip(), 1) for line in shown.stdout.split('\n') if line))


def case_periods_are_the_weights():
    for path in plain(), group():
        events = tally_json('report', '-i', path, '-j')['events']
        ours = summed((row['dso'], row['period']) for event in events for row in event['rows'])
        theirs = summed((dso.replace('[kernel.kallsyms]', '[kernel]'), int(period)) for period, dso
                        in perf_rows(path, '--no-children', '--no-group', fields='period,dso'))
        equal(ours, theirs)


def case_every_event_has_its_table():
    events = tally_json('report', '-i', two_events(), '-j')['events']
    # An ordinary user's are of user mode only: perf adds :u.
    equal([event['event'].split(':')[0] for event in events], ['cpu-clock', 'page-faults'])
    equal(events[0]['unit'], 'ns')
    for event in events:
        equal(sum(row['samples'] for row in event['rows']), event['samples'])
        equal(sum(row['period'] for row in event['rows']), event['period'])
        check(event['source'])
    together = tally_json('report', '-i', two_events(), '-j', '--sort', 'event')['events']
    equal(len(together), 1)
    equal({row['event']: row['samples'] for row in together[0]['rows']},
          {event['event']: event['samples'] for event in events})


def case_events_of_user_mode_are_not_called_hardware():
    sources = {}
    for event in 'cycles', 'instructions', 'cpu-clock':
        path = os.path.join(FOLDER, event)
        typed = ['record', '--pmu=user', '-e', event, '-o', path, '--', CALLS, '20']
        equal(tally(*typed).returncode, 0)
        report = tally_json('report', '-i', path, '-j')
        found, = report['events']
        # It has become another process on the way.
        equal(report['recorded_by'], ' '.join(['tally', *typed]))
        sources[event] = found['source'].split(',')[0]
    equal(sources, {'cycles': 'computed by the model of user mode (tally run)',
                    'instructions': 'counted in user mode (tally run)',
                    'cpu-clock': 'a timer of user mode (tally run)'})


def case_children_as_perf_has_them():
    path = frame_pointers()
    ours = {row['sym']: row['children_percent'] for row in rows_of(path, '--no-inline')
            if row['dso'] == 'calls'}
    theirs = {perf_function(dso, sym)[1]: float(percent.rstrip('%')) for percent, dso, sym in
              perf_rows(path, '--children', '--no-inline', fields='overhead_children,dso,sym')
              if dso == 'calls'}
    for name in 'main', 'outer', 'left', 'right', 'work':
        check(abs(ours[name] - theirs[name]) < 0.011, (name, ours[name], theirs[name]))
    check(ours['main'] >= ours['outer'] > ours['left'] > ours['right'])


def case_children_without_call_chains_are_not_invented():
    check(all('children_period' not in row for row in rows_of(plain())))


def tree_total(nodes):
    return sum(node['period'] for node in nodes)


def walk(nodes, above):
    check(tree_total(nodes) <= above, 'the parts are more than the whole')
    for node in nodes:
        walk(node.get('tree', []), node['period'])


def case_trees_add_up():
    for options in ('-g',), ('-G',), ('-gcallee',), ('-g', '--no-children'), ('-G', '--no-children'):
        for row in rows_of(frame_pointers(), '--call-graph=0', *options):
            walk(row['tree'], row.get('children_period', row['period']))


def lines_from(nodes, least):
    """What of a whole tree is shown when lines below @least are not."""
    return [dict(node, tree=lines_from(node.get('tree', []), least))
            for node in nodes if node['period'] >= least]


def case_limited_trees_are_the_tops_of_whole_ones():
    event = tally_json('report', '-i', frame_pointers(), '-j')['events'][0]
    least = event['period'] * 2 / 100
    for how in ('-gcaller',), ('-gcallee',), ('-gcaller', '--no-children'):
        whole = rows_of(frame_pointers(), '--call-graph=0', *how)
        limited = rows_of(frame_pointers(), '--call-graph=2', *how)
        equal(len(whole), len(limited))
        for a, b in zip(whole, limited):
            equal(lines_from(a['tree'], least), lines_from(b['tree'], least), how)
            check(b['tree'] == [] or min(node['period'] for node in b['tree']) >= least)


def find(nodes, sym):
    return next((node for node in nodes if node['sym'] == sym), None)


def case_callees_are_below_their_caller():
    outer = find(rows_of(frame_pointers(), '-gcaller', '--no-inline'), 'outer')
    equal(find(outer['tree'], 'left')['tree'][0]['sym'], 'work')
    check(find(outer['tree'], 'left')['period'] > find(outer['tree'], 'right')['period'])


def case_callers_are_below_what_was_hit():
    work = find(rows_of(frame_pointers(), '-gcallee', '--no-children', '--no-inline'), 'work')
    for name in 'left', 'right':
        node = find(work['tree'], name)
        equal(node['tree'][0]['sym'], 'outer')
        equal(node['tree'][0]['tree'][0]['sym'], 'main')


def case_inlined_calls_are_shown_and_hidden():
    inlined = [row for row in rows_of(frame_pointers()) if row.get('inlined')]
    check(find(inlined, 'mix'), 'mix() is inlined in work()')
    check(not any(row.get('inlined') for row in rows_of(frame_pointers(), '--no-inline')))


def case_every_key_sorts():
    total = sum(row['samples'] for row in rows_of(frame_pointers(), '--no-children'))
    for keys in 'comm', 'pid', 'tid', 'dso', 'sym', 'srcline', 'pid,tid,comm', 'sym,srcline':
        rows = rows_of(frame_pointers(), '--no-children', '--sort', keys)
        equal(sum(row['samples'] for row in rows), total, keys)
        values = [tuple(row[key] for key in keys.split(',')) for row in rows]
        check(keys.startswith('sym') or len(set(values)) == len(values), values)
        periods = [row['period'] for row in rows]
        equal(periods, sorted(periods, reverse=True))
    lines = {row['srcline'] for row in rows_of(plain(), '--sort', 'srcline')}
    check(any(line.startswith('calls.c:') for line in lines), lines)


def case_processors_sort():
    cpus = rows_of(system_wide(), '--sort', 'cpu')
    check(all(isinstance(row['cpu'], int) for row in cpus))


def case_filters_choose_samples():
    rows = rows_of(forks(), '--sort', 'pid', '--no-children')
    equal(len(rows), 2)
    for row in rows:
        equal(rows_of(forks(), '--sort', 'pid', '--pid', str(row['pid']))[0]['samples'],
              row['samples'])
    whole = sum(row['samples'] for row in rows)
    halves = [sum(row['samples'] for event in
                  tally_json('report', '-i', forks(), '-j', '--no-children', '--time', span)['events']
                  for row in event['rows']) for span in ('0%-50%', '50%-100%')]
    check(whole <= sum(halves) <= whole + 1 and min(halves) > 0, halves)
    equal(tally_json('report', '-i', forks(), '-j', '--comm', 'nobody')['events'], [])


def case_filters_choose_rows():
    rows = rows_of(frame_pointers(), '--sym', 'work,left', '--no-inline')
    equal({row['sym'] for row in rows}, {'work', 'left'})
    equal({row['dso'] for row in rows_of(frame_pointers(), '--dso', 'calls')}, {'calls'})
    by_comm = rows_of(plain(), '--sort', 'comm', '--sym', 'work')
    equal(sum(row['samples'] for row in by_comm),
          find(rows_of(plain()), 'work')['samples'])


def case_percent_limit():
    everything = rows_of(frame_pointers(), '--no-children')
    shown = rows_of(frame_pointers(), '--no-children', '--percent-limit', '5')
    equal(shown, [row for row in everything if row['percent'] >= 5])
    text = tally('report', '-i', frame_pointers(), '--no-children', '--percent-limit', '5').stdout
    contains(text, '# not shown: %d row' % (len(everything) - len(shown)))


def case_text_and_json_say_the_same():
    for options in (), ('--no-children',), ('--sort', 'pid,sym', '-n'):
        text = tally('report', '-i', frame_pointers(), '--percent-limit', '0', *options).stdout
        lines = [line for line in text.split('\n') if line and not line.startswith('#')]
        rows = rows_of(frame_pointers(), *options)
        equal(len(lines), len(rows))
        for line, row in zip(lines, rows):
            contains(line, '%.2f%%' % row['percent'])
            contains(line, '[%s] %s' % (row['level'], row['sym']))


def case_text_has_trees():
    text = tally('report', '-i', frame_pointers(), '-g', '--no-inline').stdout
    check(re.search(r'outer\n +\|- *[\d.]+% left\n', text), text[:2000])
    check(re.search(r'`- *[\d.]+% right\n', text), text[:2000])


def case_header_says_what_the_numbers_are():
    text = tally('report', '-i', frame_pointers()).stdout
    for part in ('# recorded by: ', 'perf record', '# time span:', '# lost: ', 'cpu-clock',
                 "the kernel's timer", ' ns\n'):
        contains(text, part)


def case_waiting_is_time():
    need_privileged()
    path = os.path.join(FOLDER, 'off.data')
    with alone():
        done = tally('record', '--off-cpu', '-o', path, '--', 'sleep', '0.05')
    equal(done.returncode, 0, done.stderr)
    text = tally('report', '-i', path).stdout
    contains(text, 'offcpu-time, time that tasks waited')
    check(re.search(r'# samples: +\d+, worth [\d,]+ ns\n', text), text)
    event = tally_json('report', '-i', path, '-j')['events'][0]
    equal(event['unit'], 'ns')
    check(event['period'] >= 50_000_000, event['period'])


def case_missing_names_are_explained():
    if run('which', 'strip').returncode:
        skip('no strip to make a program without names')
    program = os.path.join(FOLDER, 'nameless')
    equal(run('strip', '-o', program, CALLS).returncode, 0)
    path = os.path.join(FOLDER, 'nameless.data')
    with alone():
        done = tally('record', '-g', '-F', '2000', '-e', 'cpu-clock:u', '-o', path, '--', program, '200')
    if done.returncode:
        skip('tally record: ' + done.stderr)

    def told(why, remedy, **env):
        for command, *options in ('report',), ('report', '-j'), ('script',), ('script', '-j'):
            # perf keeps copies by build-id in the home directory.
            done = tally(command, '-i', path, *options, env=dict(env, HOME=FOLDER))
            equal(done.returncode, 0, done.stderr)
            lines = [line for line in done.stderr.split('\n') if program in line]
            equal(len(lines), 1, done.stderr)
            check(re.search(r'%s have no names in [\d.]+%% of the samples: ' % re.escape(program),
                            lines[0]), lines[0])
            contains(lines[0], why)
            contains(lines[0], remedy)

    told('it is stripped', 'or set DEBUGINFOD_URLS', DEBUGINFOD_URLS='')
    os.rename(program, program + '.old')
    told('cannot open the file', '--symfs')
    equal(run('cp', '/bin/true', program).returncode, 0)
    told('changed since the recording', 'record again')
    os.rename(program + '.old', program)
    done = tally('report', '-i', path, '--sort', 'comm')
    check(program not in done.stderr, 'no names were asked for')
    done = tally('report', '-i', frame_pointers())
    check(CALLS not in done.stderr, done.stderr)


def case_missing_lines_are_explained():
    if run('which', 'strip').returncode:
        skip('no strip to make a program without lines')
    program = os.path.join(FOLDER, 'lineless')
    path = os.path.join(FOLDER, 'lineless.data')
    equal(run('strip', '-g', '-o', program, CALLS).returncode, 0)
    with alone():
        done = tally('record', '-F', '2000', '-e', 'cpu-clock:u', '-o', path, '--', program, '200')
    if done.returncode:
        skip('tally record: ' + done.stderr)
    done = tally('report', '-i', path, '--sort', 'srcline', env={'DEBUGINFOD_URLS': ''})
    equal(done.returncode, 0, done.stderr)
    check(re.search(r'source lines of %s are not known in [\d.]+%% of the samples: .*-g' %
                    re.escape(program), done.stderr), done.stderr)
    done = tally('report', '-i', path, env={'DEBUGINFOD_URLS': ''})
    check(program not in done.stderr, done.stderr)
    done = tally('report', '-i', frame_pointers(), '--sort', 'srcline')
    check(CALLS not in done.stderr, done.stderr)


def case_folded_stacks_add_up():
    lines = tally('report', '-i', frame_pointers(), '--folded').stdout.strip().split('\n')
    event = tally_json('report', '-i', frame_pointers(), '-j')['events'][0]
    equal(sum(int(line.rsplit(' ', 1)[1]) for line in lines), event['period'])
    check(any(';main;outer;left;work' in line for line in lines), lines[:5])
    counted = tally('report', '-i', frame_pointers(), '--folded', '-n').stdout.strip().split('\n')
    equal(sum(int(line.rsplit(' ', 1)[1]) for line in counted), event['samples'])


def case_pipe_says_the_same_as_the_file():
    with open(frame_pointers(), 'rb') as f:
        data = f.read()
    done = subprocess.run([TALLY, 'report', '-i', '-'], input=data, stdout=subprocess.PIPE)
    equal(done.stdout.decode(), tally('report', '-i', frame_pointers()).stdout)


def case_same_file_same_report():
    equal(tally('report', '-i', system_wide(), '-g').stdout,
          tally('report', '-i', system_wide(), '-g').stdout)


def on_terminal(*args, env):
    """What the tool writes on a terminal."""
    ours, its = open_terminal()
    with subprocess.Popen([TALLY, *args], stdin=its, stdout=its, stderr=its,
                          env=dict(os.environ, LC_ALL='C', TERM='xterm', **env)):
        os.close(its)
        shown = b''
        with contextlib.suppress(OSError):  # EIO once nobody has the other end open
            while part := os.read(ours, 65536):
                shown += part
        os.close(ours)
    return shown.decode()


def case_no_colour_but_on_terminals():
    check('\033' not in tally('report', '-i', plain()).stdout)
    show = 'report', '-i', plain()
    contains(on_terminal(*show, env={'PAGER': '', 'NO_COLOR': ''}), '\033[31m')
    check('\033[' not in on_terminal(*show, env={'PAGER': '', 'NO_COLOR': '1'}))
    contains(on_terminal(*show, env={'PAGER': 'sed s/^/paged:/', 'NO_COLOR': ''}), 'paged:')


def case_damage_shows_what_came_before():
    path = one_processor()
    with open(path, 'rb') as f:
        start, size = struct.unpack_from('<QQ', f.read(64), 40)
    cut = copy_of(path, size=start + size * 3 // 4 + 5)
    done = tally('report', '-i', cut, '-n')
    equal(done.returncode, 1)
    contains(done.stdout, 'work')
    check(re.match(r'^tally: .*\d+', done.stderr), done.stderr)
    found = tally_json('report', '-i', cut, '-j', status=1)
    check(found['damage'])
    whole = tally_json('report', '-i', path, '-j')
    check(0 < found['events'][0]['samples'] < whole['events'][0]['samples'])


def case_cuts_anywhere_are_survived():
    path = frame_pointers()
    size = os.path.getsize(path)
    for part in range(0, 20):
        done = tally('report', '-i', copy_of(path, size=size * part // 20), '-g')
        check(done.returncode in (0, 1), 'status %d at %d/20' % (done.returncode, part))
        check(done.returncode == 0 or done.stderr.startswith('tally: '), done.stderr)


def case_changed_bytes_are_survived():
    import random
    seed = random.randrange(2 ** 32)
    print('# seed %d' % seed)
    draw = random.Random(seed)
    path = frame_pointers()
    size = os.path.getsize(path)
    for _ in range(15):  # the fuzzers do this all day
        patch = {draw.randrange(size - 8): bytes([draw.randrange(256)]) for _ in range(8)}
        for command in 'report', 'script':
            done = subprocess.run([TALLY, command, '-i', copy_of(path, patch=patch)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT)
            check(done.returncode in (0, 1), 'status %d of %s' % (done.returncode, patch))


def case_nothing_recorded_is_said():
    path = record('nothing', '-e', 'cpu-clock', program=('0',))
    empty = tally('report', '-i', path, '--comm', 'nobody')
    equal(empty.returncode, 0)
    contains(empty.stdout, '# no samples')


def case_wrong_options_are_explained():
    for options, part in ((['--sort', 'comm,nonsense'], 'nonsense'), (['-gnonsense'], 'fractal'),
                          (['--percent-limit', '101'], '--percent-limit'),
                          (['--cpu', 'x'], 'list of numbers'), (['stray'], '-i')):
        done = tally('report', '-i', plain(), *options)
        equal(done.returncode, 129, ' '.join(options))
        contains(done.stderr, part)
        equal(done.stdout, '')


def case_missing_file_is_explained():
    done = tally('report', '-i', os.path.join(FOLDER, 'missing'))
    equal(done.returncode, 1)
    contains(done.stderr, 'missing')


if __name__ == '__main__':
    main()
