#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that measure themselves inside `tally run`: by PAPI, by libpfm4, in Rust and Go by the bare
system call. The region that they measure has two instructions a turn, one of them a branch."""
import functools
import os
import shutil
import tempfile

from clients import *

FOLDER = tempfile.TemporaryDirectory()
SOURCE = os.path.dirname(os.path.abspath(__file__))
TURNS = 1000000


def program(name):
    """One that is built where its library is installed."""
    path = os.environ.get(name.upper(), '')
    if not path:
        skip('the library that it wants was not there when tally was built')
    return path


def numbers(text):
    """Of lines that are a name and a number."""
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


# ---- PAPI ----

@functools.cache
def papi_environment():
    """Of a processor that is newer than it is PAPI says that it has no counters; then it is told
    which one to take, whose codes are those of AMD's later ones."""
    if not shutil.which('papi_component_avail'):
        return {}
    if 'no default PMU found' not in inside('papi_component_avail').stdout:
        return {}
    with open('/proc/cpuinfo') as about:
        if 'AuthenticAMD' not in about.read():
            skip('this PAPI does not know the processor')
    return {'LIBPFM_FORCE_PMU': 'amd64_fam19h_zen3'}


def inside_papi(*argv):
    return inside(*argv, env=papi_environment())


def papi(*args):
    return numbers(inside_papi(program('papi'), *map(str, args)).stdout)


def case_papi_counts_exactly():
    seen = papi('count', TURNS)
    # Beside the region there is a second call of the function that has it.
    check(0 < seen['more-instructions'] - 2 * TURNS < 20, str(seen))
    equal(seen['more-branches'] - TURNS, 2)
    for name in ('instructions', 'read-instructions'):
        near(seen[name], 2 * TURNS, 0.01, name)
    near(seen['branches'], TURNS, 0.01, 'branches')
    check(seen['reset-instructions'] < TURNS / 100, 'after PAPI_reset(): %s' % seen)
    check(TURNS / 4 < seen['cycles'] < 4 * TURNS, 'cycles: %s' % seen)


def case_papi_overflow_comes_as_often_as_it_has_to_and_tells_where():
    seen = papi('overflow', TURNS, 10000)
    near(seen['overflows'], 2 * TURNS / 10000, 0.02, 'overflows')
    check(seen['within'] >= seen['overflows'] - 2, 'in the region: %s' % seen)


def case_papi_profil_fills_the_histogram():
    near(papi('profil', TURNS, 10000)['within'], 2 * TURNS / 10000, 0.02, 'hits')


def case_papi_multiplex():
    seen = papi('multiplex', 20 * TURNS)
    near(seen['instructions'], 40 * TURNS, 0.05, 'instructions')
    near(seen['branches'], 20 * TURNS, 0.05, 'branches')


def need_presets():
    """PAPI has them by processor, for those that it knows."""
    need('papi_avail', 'papi_component_avail')
    components = inside_papi('papi_component_avail').stdout
    if number(r'Preset: *(\d+)', components) == 0:
        skip('this PAPI has no presets for the processor')


def case_papi_avail_has_the_usual_presets():
    need_presets()
    done = inside_papi('papi_avail', '-c')
    for preset in ('PAPI_TOT_INS', 'PAPI_TOT_CYC', 'PAPI_BR_INS', 'PAPI_BR_MSP', 'PAPI_L1_DCM'):
        check(re.search(r'^%s ' % preset, done.stdout, re.M), preset + ' is not in:\n' + done.stdout)


def case_papi_native_avail_has_the_generic_events():
    need('papi_native_avail')
    done = inside_papi('papi_native_avail')
    # Who is told which processor to take has the names of that one and no others.
    for event in ('RETIRED_INSTRUCTIONS', 'RETIRED_BRANCH_INSTRUCTIONS') if papi_environment() else (
            'perf::INSTRUCTIONS', 'perf::CACHE-MISSES', 'perf::PAGE-FAULTS'):
        contains(done.stdout, event)


def case_papi_with_our_libpfm4_knows_the_processor():
    need('papi_component_avail')
    ours = {'LD_LIBRARY_PATH': os.environ['LIBPFM_DIR']}
    # Whatever this machine has: numbers that libpfm4 4.13 knows, later ones, and those that are ours.
    for unit in (None, 'skl', 'emr', 'amd64_fam1ah_zen5', 'srf', 'tally'):
        env = dict(ours, LIBPFM_FORCE_PMU=unit) if unit else ours
        contains(inside('papi_component_avail', env=env).stdout, 'PMUs supported: ' + (unit or ''))
    seen = numbers(inside(program('papi'), 'count', str(TURNS), env=ours).stdout)
    check(0 < seen['more-instructions'] - 2 * TURNS < 20, str(seen))
    equal(seen['more-branches'] - TURNS, 2)


def case_papi_command_line_counts():
    need('papi_command_line')
    events = ('RETIRED_INSTRUCTIONS', 'RETIRED_BRANCH_INSTRUCTIONS') if papi_environment() else (
        'perf::INSTRUCTIONS', 'perf::BRANCHES')
    done = inside_papi('papi_command_line', *events)
    instructions, branches = (number(event + r' : *\t(\d+)', done.stdout) for event in events)
    check(instructions > branches > 100000, done.stdout)


# ---- libpfm4 ----

def case_libpfm4_names_count_exactly():
    done = inside(program('pfm'), str(TURNS), 'perf::INSTRUCTIONS', 'perf::BRANCHES',
                  'perf::CYCLES', 'perf::L1-DCACHE-LOAD-MISSES')
    seen = numbers(done.stdout)
    equal(seen['perf::INSTRUCTIONS'], 2 * TURNS)
    equal(seen['perf::BRANCHES'], TURNS)
    check(TURNS / 4 < seen['perf::CYCLES'] < 4 * TURNS, done.stdout)


# ---- other languages ----

def case_rust():
    need('rustc')
    path = os.path.join(FOLDER.name, 'rust')
    built = run('rustc', '-O', '-o', path, os.path.join(SOURCE, 'client.rs'))
    equal(built.returncode, 0, built.stderr)
    equal(inside(path, str(TURNS)).stdout, '%d %d\n' % (2 * TURNS, TURNS))


def case_go():
    need('go')
    path = os.path.join(FOLDER.name, 'go')
    built = run('go', 'build', '-o', path, '.', cwd=os.path.join(SOURCE, 'go'),
                env={'GOFLAGS': '-buildvcs=false', 'GOPROXY': 'off'})
    equal(built.returncode, 0, built.stderr)
    # Go interrupts threads that run for long, by a signal whose handler would be counted.
    done = inside(path, str(TURNS), env={'GODEBUG': 'asyncpreemptoff=1', 'GOGC': 'off'})
    equal(done.stdout, '%d %d\n' % (2 * TURNS, TURNS))


# ---- many regions ----

def case_threads_start_and_stop_groups_a_million_times():
    threads, rounds = 4, 250000
    done = inside(os.environ['THREADS'], str(threads), str(rounds))
    seen = done.stdout.splitlines()
    equal(len(seen), threads)
    equal(len(set(seen)), 1, 'counts of threads')
    instructions, branches = map(int, seen[0].split())
    equal(instructions % rounds, 0, 'instructions beyond whole rounds')
    equal(branches % rounds, 0, 'branches beyond whole rounds')
    check(20 <= instructions // rounds < 60, 'instructions a round: %d' % (instructions // rounds))


if __name__ == '__main__':
    main()
