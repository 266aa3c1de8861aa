#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tally list: what it shows, and that it encodes events as perf does."""
import re
import shutil
import tempfile

from tap import *

GENERIC = '''cycles cpu-cycles instructions cache-references cache-misses branches branch-instructions
branch-misses bus-cycles stalled-cycles-frontend idle-cycles-frontend stalled-cycles-backend
idle-cycles-backend ref-cycles cpu-clock task-clock page-faults faults minor-faults major-faults
context-switches cs cpu-migrations migrations alignment-faults emulation-faults dummy bpf-output
cgroup-switches'''.split()

CACHES = '''L1-dcache L1-dcache-loads L1-dcache-load-misses L1-dcache-store-misses L1-dcache-misses
L1-dcache-load-refs l1-d l1d-read L1-data-write-miss L1-icache-load-misses l1i-prefetch-miss LLC
LLC-loads LLC-stores LLC-load-misses LLC-prefetch-misses LLC-speculative-read L2-write-misses dTLB
dTLB-loads dTLB-store-misses d-tlb-read-access Data-TLB-prefetches iTLB iTLB-loads iTLB-load-misses
branch branch-loads branch-load-misses bpu-read-ops btb bpc-miss node node-loads node-stores
node-prefetches node-prefetch-misses'''.split()

NUMBERS = '''r1a2 r0 rFFFFFFFFFFFFFFFF rc0:u r1a2:k 1:2 0:0 4:0x1a2 3:65536 cycles/config=5/
cycles/config=0x10,config1=2,config2=3/ software/config=1/ page-faults/period=3/'''.split()

BREAKPOINTS = '''mem:0x1000 mem:0x1000:x mem:0x1000:r mem:0x1000:rw mem:0x1000:wr mem:0x1000/8
mem:4096/2:w mem:0x1000/1:rwx mem:0x1000/8:r:u mem:0x1000:u mem:0x1000:x:k'''.split()

MODIFIERS = ['cycles:' + m for m in '''u k h uk kh ukh G H GH uG kH I uI p pp ppp P upp S D e uD
W uDe'''.split()] + ['task-clock:u', 'cycles//u', 'cycles/period=1000,name=foo/u', 'cs:ku']

UNITS = 'msr/tsc/ msr/event=0/ msr/event=0x10000/ msr/config=1/ msr/r1/ msr/tsc,event=1/'.split()

TRACEPOINTS = '''sched:sched_switch sched:sched_switch:u sched:*wakeup* syscalls:sys_enter_wri*
raw_syscalls:sys_enter sched:sched_process_?xit'''.split()

GROUPS = ['{cs,faults}', '{cs,faults}:u', '{cs:k,faults}:u', '{cs:u,faults:k}:u', 'g{cs,faults}:D',
          '{cs:D,faults}', '{cs:e,faults,dummy}:uS', 'cs,{faults,dummy}:k,faults']

REFUSED = '''nosuch cycles:pppp cycles:uu cycles:x cycles:u:k r1FFFFFFFFFFFFFFFF r0x1a2 iTLB-stores
branch-stores mem:0x1000:rr mem: mem:0x1000:q cs, ,cs cs,,faults {} {cs,faults}:x {cs,faults}:uu
software/foo/ nosuch/event=1/ cycles/nosuch=1/ cycles/period=x/ L1-dcache-loads-misses-misses
sched:nosuch nosuch:nosuch sched:nosuch*'''.split()

FIELDS = ('type config config1 config2 exclude_user exclude_kernel exclude_hv exclude_host '
          'exclude_guest exclude_idle precise_ip pinned exclusive bp_type').split()


def perf_attrs(event):
    """What perf opens, as numbers by field; None when it refuses the name."""
    with tempfile.NamedTemporaryFile('r') as log:
        done = run('perf', 'stat', '-vv', '-o', log.name, '-e', event, 'true')
    text = done.stderr
    if 'event syntax error' in text or 'Run \'perf list\'' in text:
        return None
    attrs = []
    # What follows a refusal by the kernel are perf's tries with less.
    text = text.split('switching off')[0]
    for block in re.findall(r'^perf_event_attr:\n(.*?)\n---', text, re.M | re.S):
        attr = {}
        for line in block.splitlines():
            found = re.match(r'\s+(?:\{ (bp_\w+), \w+ \}|(\w+))\s+(\w+)$', line)
            if found and re.match(r'\d|0x', found.group(3)):
                attr[found.group(1) or found.group(2)] = int(found.group(3), 0)
        attr.setdefault('config1', attr.pop('bp_addr', 0))
        attr.setdefault('config2', attr.pop('bp_len', 0))
        attrs.append(attr)
    return attrs


def tally_attrs(event):
    attrs = []
    for entry in tally_json('list', '--attr', '--json', event):
        attr = {key: int(value, 0) for key, value in entry['attr'].items()
                if re.match(r'\d|0x', value)}
        attr.setdefault('config1', attr.pop('bp_addr', 0))
        attr.setdefault('config2', attr.pop('bp_len', 0))
        attrs.append(attr)
    return attrs


def fields_of(attr, event):
    """The fields to compare. exclude_guest is left out where perf means something else by it: it
    counts guests with modifiers that do not speak of them, and asks units that have no guests to
    leave them out."""
    names = FIELDS
    modifiers = re.search(r'[:/](\w*)$', event)
    silent = modifiers and modifiers.group(1) and not set(modifiers.group(1)) & set('upGH')
    if silent or '{' in event or event.startswith(('msr/', 'software/')):
        names = [name for name in names if name != 'exclude_guest']
    return tuple(attr.get(name, 0) for name in names)


def compare(events):
    if not shutil.which('perf'):
        skip('perf is not installed')
    need_kernel()  # perf makes another event of it when it may not
    for event in events:
        expected = perf_attrs(event)
        check(expected, 'perf refuses %s' % event)
        found = tally_attrs(event)
        equal({fields_of(a, event) for a in found},
              {fields_of(a, event) for a in expected}, event)


def need_tracepoints():
    if not tally_json('list', '--json', 'tracepoint'):
        skip('no tracepoints can be read here')


def case_generic_events_are_those_of_perf():
    compare(GENERIC)


def case_cache_events_are_those_of_perf():
    compare(CACHES)


def case_raw_and_numbered_events_are_those_of_perf():
    compare(NUMBERS)


def case_breakpoints_are_those_of_perf():
    compare(BREAKPOINTS)


def case_modifiers_mean_what_perf_means():
    compare(MODIFIERS)


def case_groups_mean_what_perf_means():
    compare(GROUPS)


def case_units_are_those_of_perf():
    if not tally_json('list', '--json', 'raw', 'msr/'):
        skip('no unit msr here')
    need_privileged()
    compare(UNITS)


def case_tracepoints_are_those_of_perf():
    need_tracepoints()
    need_privileged()
    compare(TRACEPOINTS)


def case_what_perf_refuses_is_refused():
    if not shutil.which('perf'):
        skip('perf is not installed')
    for event in REFUSED:
        equal(perf_attrs(event), None, event)
        done = tally('list', '--attr', event)
        equal(done.returncode, 1, event)
        equal(done.stdout, '', event)
        check(len(done.stderr.splitlines()) in (1, 2), done.stderr)


def case_every_listed_event_can_be_named():
    names = [e['name'] for e in tally_json('list', '--json', 'hw', 'sw', 'cache', 'pmu', 'vendor')]
    check(len(names) > 50, len(names))
    attrs = tally_json('list', '--attr', '--json', *names)
    check(len(attrs) >= len(names))


def case_vendors_events_are_listed_and_can_be_named():
    env = {'LIBPFM_FORCE_PMU': 'skx'}
    listed = tally_json('list', '--json', 'vendor', env=env)
    check(len(listed) > 300, len(listed))
    equal({e['pmu'] for e in listed}, {'skx'})
    for event in listed:
        check(event['description'], event['name'])
    names = [e['name'] for e in listed]
    attrs = tally_json('list', '--attr', '--json', *names, env=env)
    equal([a['name'] for a in attrs], names)
    by_raw = tally_json('list', '--attr', '--json', *(e['encoding'] for e in listed))
    for name, a, b in zip(names, attrs, by_raw):
        equal(a['attr'], b['attr'], name)


def case_events_of_all_processors_are_listed():
    env = {'LIBPFM_FORCE_PMU': 'skx'}
    listed = tally_json('list', '--json', '--all-pmus', 'MEM_LOAD_RETIRED:L3_MISS', env=env)
    units = {e['pmu']: e for e in listed}
    check(len(units) > 5, units)
    equal(units['skx']['name'], 'MEM_LOAD_RETIRED:L3_MISS')
    equal(units['icl']['name'], 'icl::MEM_LOAD_RETIRED:L3_MISS')
    equal(units['icl']['kind'], 'foreign')
    equal(units['icl']['available'], None)
    done = tally('list', '--attr', 'icl::MEM_LOAD_RETIRED:L3_MISS', env=env)
    equal(done.returncode, 1)
    contains(done.stderr, "icl is not this machine's")
    contains(done.stderr, 'this machine has skx')


def case_tracepoints_are_all_there():
    need_tracepoints()
    with open('/proc/mounts') as mounts:
        point = next(line.split()[1] for line in mounts if line.split()[2] == 'tracefs')
    folder = os.path.join(point, 'events')
    expected = {'%s:%s' % (s, e) for s in os.listdir(folder)
                if os.path.isdir(os.path.join(folder, s))
                for e in os.listdir(os.path.join(folder, s))
                if os.path.exists(os.path.join(folder, s, e, 'id'))}
    equal({e['name'] for e in tally_json('list', '--json', 'tracepoint')}, expected)


def case_fields_of_a_tracepoint():
    need_tracepoints()
    found = tally_json('list', '--json', 'sched:sched_switch')
    equal([e['name'] for e in found], ['sched:sched_switch'])
    names = [f['name'] for f in found[0]['fields']]
    equal(names[:2], ['prev_comm', 'prev_pid'])
    equal(found[0]['description'], ', '.join(names))
    contains(tally('list', '-v', 'sched:sched_switch').stdout, 'char[16]')


def case_availability_agrees_with_perf():
    if not shutil.which('perf'):
        skip('perf is not installed')
    for event in tally_json('list', '--json', 'hw', 'sw'):
        done = run('perf', 'stat', '-x,', '-e', event['name'] + ':u', 'true')
        check(event['available'] in (True, False), event)
        equal('<not supported>' not in done.stderr, event['available'], event['name'])
        equal(event['reason'] is None, event['available'], event['name'])


def case_another_user_is_told_what_to_type():
    need_root()
    need_tracepoints()
    if os.stat('/sys/kernel/tracing').st_mode & 0o005:
        skip('tracefs is open to everybody here')
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = copy_tool(folder)
        nobody = ('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', copy, 'list')
        done = run(*nobody, '--attr', 'sched:sched_switch')
        equal(done.returncode, 1)
        contains(done.stderr, 'sudo mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing')
        for args in ('tracepoint',), ('sched:*',), ():
            done = run(*nobody, *args)
            equal(done.returncode, 0 if not args else 1)
            contains(done.stderr, 'remount')
        software = json.loads(run(*nobody, '--json', 'sw').stdout)
        check(all(event['available'] for event in software), software)


def case_searching():
    for args, expected in ((('page',), 'page-faults'), (('sw', 'clock'), 'task-clock'),
                           (('cpu-c*',), 'cpu-clock'), (('CONTEXT-*',), 'context-switches'),
                           (('sw', 'another task'), 'context-switches'), (('cs',), 'cs')):
        contains(tally('list', *args).stdout, expected)
    equal({e['kind'] for e in tally_json('list', '--json', 'software', 'mem')},
          {'software', 'breakpoint'})
    equal([e['name'] for e in tally_json('list', '--json', 'sw', 'faults', 'clock')],
          ['cpu-clock', 'task-clock', 'page-faults', 'minor-faults', 'major-faults',
           'alignment-faults', 'emulation-faults'])


def case_nothing_found():
    done = tally('list', 'page-fualts')
    equal(done.returncode, 1)
    contains(done.stderr, "no event matches 'page-fualts'")
    contains(done.stderr, "did you mean 'page-faults'")
    equal(tally('list', '--json', 'page-fualts').stdout.strip(), '[]')


def case_bad_usage():
    equal(tally('list', '--nosuch').returncode, 129)
    equal(tally('list', '--attr').returncode, 129)


def case_a_full_disk_is_not_a_success():
    if not os.path.exists('/dev/full'):
        skip('no /dev/full here')
    for args in ('sw',), ('--json', 'sw'), ('--attr', 'cs'):
        done = run('sh', '-c', '"$0" list "$@" > /dev/full', TALLY, *args)
        equal(done.returncode, 1, args)
        contains(done.stderr, 'cannot write')


def case_a_pipe_gets_one_line_each():
    entries = tally_json('list', '--json', 'sw')
    lines = tally('list', 'sw').stdout.splitlines()
    equal(len(lines), len(entries) + 1)
    check(not any('\033' in line for line in lines))


if __name__ == '__main__':
    main()
