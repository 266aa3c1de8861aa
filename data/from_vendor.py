#!/usr/bin/env python3
"""Write events/NAME.tsv of the PMUs in vendor.tsv from the event lists that their vendors publish.

    from_vendor.py TREE [NAME...]

TREE holds the vendors' repositories as vendor.tsv names them: TREE/ARM-software/data/pmu/...,
TREE/intel/perfmon/SRF/... Names, codes and flags are taken from there; descriptions are not read. What
processors, devices and title a PMU has stands in pmus.tsv, as for the others.
"""

import collections
import json
import pathlib
import sys

from refresh import HERE, read_known, row

INTEL_MODS = 'k,u,e,i,c'
LATENCY_MSR, OFFCORE_MSRS = '0x3f6', '0x1a6,0x1a7'


def arm_events(data):
    """The counters of the architecture have three levels to choose from."""
    yield data.get('counters', 6), 0, 1
    events = {}
    for event in sorted(data['events'], key=lambda e: e['code']):
        events.setdefault(event['name'].replace(' ', '_'), event['code'])
    for name, code in events.items():
        yield ('event', name, f'{code:#x}', '-', 'k,u,hv')


def number(event, field):
    return int(event[field], 0)


def intel_flags(event, *more):
    flags = ['precise', 'hw_smpl'] if event['Precise'] != '0' else []
    if event['Speculative'] in ('0', '1'):
        flags.insert(1 if flags else 0, 'spec' if event['Speculative'] == '1' else 'nospec')
    return flags + list(more)


def mask_code(event):
    """As it stands in the register from bit 8 on: mask, edge, invert, counter mask"""
    return (number(event, 'UMask') | number(event, 'EdgeDetect') << 10 |
            number(event, 'Invert') << 15 | number(event, 'CounterMask') << 16)


def intel_masks(code, events):
    """Lines of the masks of an event; one that has a code of its own says so."""
    masks = {}
    for event in events:
        mask = event['EventName'].split('.', 1)[1].replace('.', '_')
        if event['MSRIndex'].lower() == LATENCY_MSR:
            masks.setdefault('LOAD_LATENCY', ('mask', 'LOAD_LATENCY', event['UMask'].lower(),
                                              intel_flags(event, 'nocombo', 'ldlat')))
            cycles = int(event['MSRValue'], 0)
            masks[mask] = ('mask', mask, f'{cycles:#x}', intel_flags(event), '-', '-',
                           f'LOAD_LATENCY:ldlat={cycles}')
            continue
        bits, flags, fixed = mask_code(event), intel_flags(event, 'nocombo'), []
        if number(event, 'EventCode') != code:
            bits = number(event, 'EventCode') | bits << 8
            flags.append('code')
        if number(event, 'CounterMask'):
            fixed = ['c']
        masks[mask] = ('mask', mask, f'{bits:#x}', flags, '-', fixed)
    if len(masks) == 1:
        (mask, line), = masks.items()
        masks[mask] = line[:3] + ([f for f in line[3] if f != 'nocombo'] + ['default'],) + line[4:]
    return list(masks.values())


def intel_offcore(name, events):
    """One event for each of the two registers."""
    umasks = events[0]['UMask'].split(',')
    for i, umask in enumerate(umasks):
        code = int(events[0]['EventCode'], 0) | int(umask, 0) << 8
        yield ('event', f'{name}{i}', f'{code:#x}', 'offcore', INTEL_MODS)
        for event in events:
            mask = event['EventName'].split('.', 1)[1].replace('.', '_')
            yield ('mask', mask, f"{int(event['MSRValue'], 0):#x}", 'nocombo')


def intel_events(data):
    yield 8, 3, 2
    groups = collections.OrderedDict()
    for event in data['Events']:
        if event['Deprecated'] != '1':
            groups.setdefault(event['EventName'].split('.', 1)[0], []).append(event)
    for name, events in sorted(groups.items()):
        if events[0]['MSRIndex'].lower() == OFFCORE_MSRS:
            yield from intel_offcore(name, events)
            continue
        codes = collections.Counter(number(e, 'EventCode') for e in events)
        codes.pop(0, None)  # the fixed counters'
        code = codes.most_common(1)[0][0]
        if all('.' not in e['EventName'] for e in events):
            yield ('event', name, f'{code | mask_code(events[0]) << 8:#x}', intel_flags(events[0]),
                   INTEL_MODS)
            continue
        masks = intel_masks(code, events)
        flags = [f for f in intel_flags(max(events, key=lambda e: e['Precise']))]
        if any('ldlat' in m[3] for m in masks):
            flags.append('ldlat')
        mods = INTEL_MODS + (',ldlat' if 'ldlat' in flags else '')
        yield ('event', name, f'{code:#x}', flags, mods)
        yield from masks


READERS = {'arm': arm_events, 'arm_arch': arm_events, 'intel': intel_events}


def write(name, number_of, encoder, data, edge, known):
    names, models = known[name]
    lines = READERS[encoder](data)
    counters, fixed, codes = next(lines)
    out = [row('pmu', name, number_of, encoder, 'core', counters, fixed, codes, names['devices'],
               names['title'], edge)]
    out += [row('model', *m) for m in models]
    out += [row(*line) for line in lines]
    (HERE / 'events' / (name + '.tsv')).write_text(''.join(out))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tree, wanted, known = pathlib.Path(sys.argv[1]), sys.argv[2:], read_known()
    for line in (HERE / 'vendor.tsv').read_text().splitlines():
        if not line or line.startswith('#'):
            continue
        name, number_of, encoder, path, *edge = line.split('\t')
        if not wanted or name in wanted:
            data = json.loads((tree / path).read_text())
            write(name, number_of, encoder, data, edge[0] if edge else '-', known)


if __name__ == '__main__':
    main()
