#!/usr/bin/env python3
"""Ask libtally-pfm and libpfm4 the same, and compare what they say.

    compare_test.py [--pmus NAMES] [--verbose]

In TAP: one case a PMU for what is listed (PMU, events, attributes of the three layers), one for what
is encoded: every event, with every mask, every modifier, and pairs of masks, for the PMU and for
perf. ASK is tests/pfm/ask, OURS our library, THEIRS a libpfm4 (libpfm.so.4), ASK_THEIRS another command
to ask it with, where that needs an emulator.
"""

import argparse
import itertools
import os
import re
import shlex
import subprocess
import sys

ASK = os.environ['ASK']
OURS = [ASK, os.environ['OURS']]
THEIRS = shlex.split(os.environ.get('ASK_THEIRS', f"{ASK} {os.environ.get('THEIRS', 'libpfm.so.4')}"))
ENV = dict(os.environ, LIBPFM_ENCODE_INACTIVE='1')
# Where the build has our library under libpfm4's name, too: it would be compared with itself.
ENV.pop('LD_LIBRARY_PATH', None)
# What libpfm4 has on Intel's processors only, unless it is told to.
FORCED = ('ix86arch',)
HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = (0, 1, 2)
UMASK = '1'
# Of the PMUs that the host has, present or default is asked only where both libraries look at the host.
EMULATED = 'ASK_THEIRS' in os.environ
PAIRS_AT_MOST = 300  # of one event

VALUES = {'c': (1, 2, 255, 256), 'ldlat': (1, 3, 100, 65535, 65536), 'fe_thres': (0, 3, 7, 8),
          'period': (100000,), 'freq': (99,), 'precise': (0, 1, 2, 3, 4), 'cpu': (0, 1)}
ONE_VALUE = {'c': 2, 'ldlat': 100, 'fe_thres': 7}


def env_of(pmu):
    return dict(ENV, LIBPFM_FORCE_PMU=pmu) if pmu in FORCED else ENV


def run(command, args=(), stdin='', env=None):
    done = subprocess.run(command + list(args), input=stdin, env=env or ENV, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors='replace', check=False)
    if done.returncode:
        raise RuntimeError(f'{shlex.join(command)}: {done.stderr.strip() or done.returncode}')
    return done.stdout.splitlines()


def listing(command, layer):
    """PMU -> the lines about it, without descriptions"""
    pmus = listing_in(ENV, command, layer)
    for pmu in FORCED:
        pmus[pmu] = listing_in(env_of(pmu), command, layer).get(pmu, [])
    return pmus


def listing_in(env, command, layer):
    pmus, lines = {}, None
    for line in run(command, [str(layer)], env=env):
        cells = line.split('\t')[:-1]
        if cells[0] == 'pmu':
            lines = pmus.setdefault(cells[1], [])
            if EMULATED:
                cells = cells[:-2]
        elif cells[0] == 'attr':
            # The default value, which libpfm4 leaves 0; we say what pfm_get_event_attr_info(3) does.
            cells.pop()
        lines.append(cells)
    return pmus


def tracepoint_systems():
    names = set()
    for root in ('/sys/kernel/tracing/events', '/sys/kernel/debug/tracing/events'):
        if os.access(root, os.R_OK | os.X_OK):
            names.update(os.listdir(root))
    return names


def without(lines, names):
    """Not the events of these names: which tracepoints perf has is the host's, in which order they are, and
    what one is that has not been named, the library's way of finding them."""
    kept, keep = [], True
    for cells in lines:
        if cells[0] == 'event':
            keep = cells[1] not in names
        if keep:
            kept.append(cells)
    return kept


def questions(pmu, lines):
    """Event strings, with the layer they are for, from what a library lists in layer 2"""
    events = []
    for cells in lines:
        if cells[0] == 'event':
            events.append((cells[1], [], []))
        elif cells[0] == 'attr':
            events[-1][1 if cells[2] == UMASK else 2].append(cells[1])
    asked = []
    for event, masks, mods in events:
        full = f'{pmu}::{event}'
        for layer in LAYERS[:2]:
            asked.append((layer, 9, full))
            asked.extend((layer, 9, f'{full}:{mask}') for mask in masks)
        first = f'{full}:{masks[0]}' if masks else full
        for mod in mods:
            for value in VALUES.get(mod, (0, 1)):
                asked.extend((layer, 8, f'{first}:{mod}={value}') for layer in LAYERS)
            # Some masks set a modifier themselves; order does not matter, and a default gives way.
            one = f'{mod}={ONE_VALUE.get(mod, 1)}'
            asked.append((0, 9, f'{full}:{one}'))
            asked.extend((0, 9, f'{full}:{mask}:{one}') for mask in masks[1:])
            asked.extend((0, 9, f'{full}:{one}:{mask}') for mask in masks[:2])
        asked.append((0, 0, f'{first}:u'))
        asked.append((0, 9, f'{first}:NO_SUCH_MASK'))
        asked.append((0, 9, f'{first}:c=1:c=2'))
        asked.append((0, 9, f'{first}:0x1'))
        pairs = list(itertools.combinations(masks, 2))
        step = len(pairs) // PAIRS_AT_MOST + 1
        asked.extend((0, 9, f'{full}:{a}:{b}') for a, b in pairs[::step])
    return asked


def compare(asked, env):
    """[(question, ours, theirs)] where they differ"""
    stdin = ''.join(f'{layer}\t{plm}\t{event}\n' for layer, plm, event in asked)
    ours, theirs = run(OURS, stdin=stdin, env=env), run(THEIRS, stdin=stdin, env=env)
    if len(ours) != len(asked) or len(theirs) != len(asked):
        raise RuntimeError(f'{len(asked)} questions, {len(ours)} and {len(theirs)} answers')
    return [(q, o, t) for q, o, t in zip(asked, ours, theirs) if o != t]


def known_differences():
    """[(layers, what, pattern)]"""
    known = []
    with open(os.path.join(HERE, 'differences.tsv'), encoding='utf-8') as file:
        for line in file:
            if line.strip() and not line.startswith('#'):
                layers, what, pattern = line.rstrip('\n').split('\t')
                known.append((layers, what, re.compile(pattern)))
    return known


def difference(ours, theirs):
    """What of two answers differs, in the words of differences.tsv"""
    a, b = ours.split('\t'), theirs.split('\t')
    if a[0] != b[0]:
        return f'{a[0]}/{b[0]}'
    return 'name' if a[2:] == b[2:] else 'codes'


def is_known(known, layer, what, string):
    return any(str(layer) in layers and what == which and pattern.fullmatch(string)
               for layers, which, pattern in known)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--pmus', help='only these, by commas')
    parser.add_argument('--verbose', action='store_true', help='show every difference')
    options = parser.parse_args()
    try:
        theirs = {layer: listing(THEIRS, layer) for layer in LAYERS}
    except (RuntimeError, OSError) as error:
        print(f'1..1\nok 1 - libpfm4 to compare with # SKIP {error}')
        return
    ours = {layer: listing(OURS, layer) for layer in LAYERS}
    known = known_differences()
    tracepoints = tracepoint_systems()
    pmus = [p for p in ours[0] if p in theirs[0]]
    if options.pmus:
        pmus = [p for p in pmus if p in options.pmus.split(',')]
    print(f'1..{2 * len(pmus)}')
    number = totals = different = allowed = 0
    shown = 10 ** 9 if options.verbose else 8

    def case(name, problems):
        nonlocal number
        number += 1
        print(f"{'not ok' if problems else 'ok'} {number} - {name}")
        for line in problems[:shown]:
            print('#', line)
        if len(problems) > shown:
            print(f'# and {len(problems) - shown} more')

    for pmu in pmus:
        problems, lines = [], 0
        for layer in LAYERS:
            a, b = ours[layer][pmu], theirs[layer].get(pmu, [])
            if pmu == 'perf':
                a, b = without(a, tracepoints), without(b, tracepoints)
            lines += len(b)
            if len(a) != len(b):
                problems.append(f'layer {layer}: {len(a)} lines, libpfm4 {len(b)}')
            event = ''
            for x, y in zip(a, b):
                if y[0] == 'event':
                    event = y[1]
                if x != y and not is_known(known, layer, 'listed', f'{pmu}::{event}'):
                    problems.append(f'layer {layer}, {event}: ' + ' '.join(x) +
                                    ', libpfm4 ' + ' '.join(y))
        case(f'{pmu}: {lines} lines listed', problems)

        lines = theirs[2][pmu]
        if pmu == 'perf':
            lines = without(lines, tracepoints)
        asked = questions(pmu, lines)
        found = compare(asked, env_of(pmu))
        unknown = [(q, o, t) for q, o, t in found
                   if not is_known(known, q[0], difference(o, t), q[2])]
        totals += len(asked)
        different += len(unknown)
        allowed += len(found) - len(unknown)
        case(f'{pmu}: {len(asked)} strings encoded',
             [f'{q[2]} (layer {q[0]}, levels {q[1]}): {o}, libpfm4 {t}' for q, o, t in unknown])
    print(f'# {totals} strings: {totals - different - allowed} equal, {allowed} differ as listed in '
          f'differences.tsv, {different} differ')


if __name__ == '__main__':
    try:
        main()
    except RuntimeError as error:
        print(f'Bail out! {error}')
        sys.exit(1)
