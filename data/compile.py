#!/usr/bin/env python3
"""Make the table of pfm/table.h from events/*.tsv.

    compile.py DIR OUTPUT.bin OUTPUT.S

DIR is this folder. OUTPUT.S includes OUTPUT.bin as the object tly_pfm_table.
"""

import pathlib
import struct
import sys

sys.dont_write_bytecode = True  # the sources may be read-only
import describe

ENCODERS = 'intel amd64 arm perf perf_raw x86_arch rapl amd64_l3 amd64_nb tally arm_arch'.split()
TYPES = {'unknown': 0, 'core': 1, 'uncore': 2, 'os': 3}
VENDORS = {'intel': 0, 'amd': 1, 'arm': 2}
MODS = 'k u e i c t ldlat intx intxcp fe_thres h g hv'.split()
FLAGS = ('precise spec nospec hw_smpl default nocombo excl_group_gt excl_group_but_0 groups_excl '
         'offcore frontend ldlat code').split()
MASK_64 = (1 << 64) - 1
WHERE_PMU, WHERE_MASKS = 0x20000, 0x10000
NOWHERE = 0xffff
LONGEST_NAME = 255
MOST_MASKS = 128  # of one event, as in pfm/event.h


class Mistake(Exception):
    pass


def bits(words, names):
    value = 0
    for word in words.split(',') if words != '-' else ():
        if word not in names:
            raise Mistake(f'{word} is none of {" ".join(names)}')
        value |= 1 << names.index(word)
    return value


def number(text, limit):
    value = int(text, 0) if text != '-' else 0
    if not 0 <= value <= limit:
        raise Mistake(f'{text} is not between 0 and {limit}')
    return value


def text(cell):
    return '' if cell == '-' else cell


def span(text, limit):
    first, _, last = text.partition('-')
    return number(first, limit), number(last or first, limit)


def read(path):
    """One PMU of one file"""
    pmu = None
    for at, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith('#'):
            continue
        kind, *cells = line.split('\t')
        cells += ['-'] * (10 - len(cells))
        try:
            if kind == 'pmu' and pmu is None:
                pmu = dict(name=cells[0], id=number(cells[1], 1023),
                           encoder=ENCODERS.index(cells[2]), type=TYPES[cells[3]],
                           counters=number(cells[4], 255), fixed=number(cells[5], 255),
                           codes=number(cells[6], 255), devices=text(cells[7]),
                           desc=text(cells[8]), edge=number(cells[9], 1), models=[], events=[])
            elif kind == 'model' and pmu:
                for part in cells[2].split(','):
                    pmu['models'].append((VENDORS[cells[0]], number(cells[1], 0xffff),
                                          *span(part, 0xffff), *span(text(cells[3]) or '0-255', 255)))
            elif kind == 'event' and pmu:
                pmu['events'].append(dict(
                    name=cells[0], code=number(cells[1], MASK_64), flags=bits(cells[2], FLAGS),
                    mods=bits(cells[3], MODS), equiv=text(cells[4]), aux=number(cells[5], 255),
                    groups=number(cells[6], 16), masks=[]))
            elif kind == 'mask' and pmu and pmu['events']:
                pmu['events'][-1]['masks'].append(dict(
                    name=cells[0], code=number(cells[1], MASK_64), flags=bits(cells[2], FLAGS),
                    group=number(cells[3], 15), mods=bits(cells[4], MODS), equiv=text(cells[5])))
            else:
                raise Mistake(f'a line of kind {kind} cannot stand here')
            if not 0 < len(cells[0]) <= LONGEST_NAME:
                raise Mistake('the name is empty or too long')
        except (Mistake, ValueError, KeyError) as error:
            sys.exit(f'{path}:{at}: {error}')
    if pmu is None:
        sys.exit(f'{path}: no line of kind pmu')
    for event in pmu['events']:
        if len(event['masks']) > MOST_MASKS:
            sys.exit(f"{path}: {event['name']} has more than {MOST_MASKS} masks")
    return pmu


class Strings:
    """Equal strings, and ends of longer ones, stand once; offset 0 is none."""

    def __init__(self):
        self.wanted = set()

    def want(self, *strings):
        self.wanted.update(s for s in strings if s)

    def lay_out(self):
        self.bytes, self.offsets, last = bytearray(b'\0'), {'': 0}, None
        for s in sorted(self.wanted, key=lambda s: s[::-1], reverse=True):
            if last is None or not last.endswith(s):
                last = s
                start = len(self.bytes)
                self.bytes += s.encode() + b'\0'
            self.offsets[s] = start + len(last.encode()) - len(s.encode())

    def __getitem__(self, s):
        return self.offsets[s]


def hash_of(where, name):
    h = 0xcbf29ce484222325 ^ where * 0x9e3779b97f4a7c15 & MASK_64
    data = name.upper().encode()
    for i in range(0, len(data), 8):
        h = (h ^ int.from_bytes(data[i:i + 8], 'little')) * 0x9e3779b97f4a7c15 & MASK_64
        h ^= h >> 32
    h = h * 0x9e3779b97f4a7c15 & MASK_64
    return h ^ h >> 29


def perfect_hash(keys):
    """(displacements of the buckets, slots) such that every key has a slot of its own: the fullest
    buckets are displaced first, each until all of its keys fall on free slots."""
    n_buckets, n_slots = len(keys) // 4 + 1, len(keys) * 20 // 19 + 1
    buckets = [[] for _ in range(n_buckets)]
    for (where, name), value in keys.items():
        h = hash_of(where, name)
        buckets[(h >> 32) * n_buckets >> 32].append((h & 0xffffffff, value))
    slots, displacements = [NOWHERE] * n_slots, [0] * n_buckets
    for at in sorted(range(n_buckets), key=lambda b: -len(buckets[b])):
        for displacement in range(0x10000):
            taken = {}
            by = displacement * 0x9e3779b1 & 0xffffffff
            for h, value in buckets[at]:
                x = h ^ by
                x = (x ^ x >> 15) * 0x85ebca6b & 0xffffffff
                slot = x * n_slots >> 32
                if slot in taken or slots[slot] != NOWHERE:
                    break
                taken[slot] = value
            if len(taken) == len(buckets[at]):
                break
        else:
            sys.exit('compile: no perfect hash; change the number of slots')
        displacements[at] = displacement
        for slot, value in taken.items():
            slots[slot] = value
    return displacements, slots


def add_key(keys, where, name, value):
    # Of two of one name, the first is the one found.
    keys.setdefault((where, name.upper()), value)


def compile_table(pmus, words):
    strings = Strings()
    for pmu in pmus:
        strings.want(pmu['name'], pmu['desc'], pmu['devices'])
        for event in pmu['events']:
            event['desc'] = words.event(event['name'])
            strings.want(event['name'], event['desc'], event['equiv'])
            for mask in event['masks']:
                mask['desc'] = words.mask(event['name'], mask['name'])
                strings.want(mask['name'], mask['desc'], mask['equiv'])
    strings.lay_out()

    keys, models, lists, events, masks = {}, [], [], {}, []
    mask_lists, pmu_rows = {}, []
    for at, pmu in enumerate(pmus):
        mods = 0
        first_event = len(lists)
        add_key(keys, WHERE_PMU, pmu['name'], at)
        for event in pmu['events']:
            mods |= event['mods']
            rows = tuple(struct.pack('<QIIII', m['code'], strings[m['name']], strings[m['desc']],
                                     strings[m['equiv']],
                                     m['flags'] | m['mods'] << 14 | m['group'] << 28)
                         for m in event['masks'])
            if rows not in mask_lists:
                mask_lists[rows] = len(masks)
                for i, mask in enumerate(event['masks']):
                    add_key(keys, WHERE_MASKS + len(masks), mask['name'], len(masks) + i)
                masks.extend(rows)
            row = struct.pack('<QIIIHHHHBBH', event['code'], strings[event['name']],
                              strings[event['desc']], strings[event['equiv']],
                              mask_lists[rows] if rows else 0, len(rows), event['mods'],
                              event['flags'], event['groups'] or (1 if rows else 0),
                              event['aux'], 0)
            add_key(keys, at, event['name'], len(lists))
            lists.append(events.setdefault(row, len(events)))
        pmu_rows.append(struct.pack(
            '<IIIHHHHHHBBBBBB2x', strings[pmu['name']], strings[pmu['desc']],
            strings[pmu['devices']], pmu['id'], first_event, len(pmu['events']), len(models),
            len(pmu['models']), mods, pmu['encoder'], pmu['type'], pmu['counters'], pmu['fixed'],
            pmu['codes'], pmu['edge']))
        models += [struct.pack('<HHHHBB', *m) for m in pmu['models']]
    if max(len(lists), len(events), len(masks)) >= NOWHERE:
        sys.exit('compile: too many events or masks for 16 bits')
    displacements, slots = perfect_hash(keys)

    def shorts(values):
        return struct.pack(f'<{len(values)}H', *values)

    arrays = [(len(pmu_rows), b''.join(pmu_rows)), (len(models), b''.join(models)),
              (len(lists), shorts(lists)), (len(events), b''.join(events)),
              (len(masks), b''.join(masks)), (len(strings.bytes), bytes(strings.bytes)),
              (len(displacements), shorts(displacements)), (len(slots), shorts(slots))]
    offset = 8 + 8 * len(arrays)
    header, body = b'', b''
    for count, data in arrays:
        header += struct.pack('<II', count, offset + len(body))
        body += data + bytes(-len(data) % 8)
    return b'tpfm' + struct.pack('<I', offset + len(body)) + header + body


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    here, binary, source = map(pathlib.Path, sys.argv[1:])
    pmus = sorted((read(p) for p in here.glob('events/*.tsv')), key=lambda p: p['id'])
    for a, b in zip(pmus, pmus[1:]):
        if a['id'] == b['id']:
            sys.exit(f"compile: {a['name']} and {b['name']} have one id")
    binary.write_bytes(compile_table(pmus, describe.Words(here)))
    path = str(binary.resolve()).replace('\\', '\\\\').replace('"', '\\"')
    source.write_text(f'''\t.section .rodata
\t.globl tly_pfm_table
\t.hidden tly_pfm_table
\t.type tly_pfm_table, %object
\t.balign 16
tly_pfm_table:
\t.incbin "{path}"
\t.size tly_pfm_table, . - tly_pfm_table
\t.section .note.GNU-stack, "", %progbits
''')


if __name__ == '__main__':
    main()
