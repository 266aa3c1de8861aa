#!/usr/bin/env python3
"""Write events/NAME.tsv from what a libpfm4 says through its interface.

    refresh.py --pmus skl,icl ASK [ARGS...]

ASK is tests/pfm/ask of a build with the library that it is to load, or a command that runs it so (an
emulator, for the tables of another architecture). Names, codes and flags come from the interface;
which unit masks exclude each other it does not say, so that comes from trying every pair. What was
concluded is tried against all answers; where it does not explain one, that is said on stderr.
Descriptions are not read.
"""

import argparse
import itertools
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ATTR_UMASK = 1
ERR_UMASK, ERR_ATTR, ERR_ATTR_SET = -6, -8, -10
SPEC = {0: None, 1: 'spec', 2: 'nospec'}
TYPES = {1: 'core', 2: 'uncore', 3: 'os'}


class Oracle:
    def __init__(self, command):
        self.command = command
        self.env = dict(os.environ, LIBPFM_ENCODE_INACTIVE='1')

    def run(self, args=(), stdin=''):
        done = subprocess.run(self.command + list(args), input=stdin, env=self.env, check=True,
                              stdout=subprocess.PIPE, text=True, errors='replace')
        return done.stdout.splitlines()

    def pmus(self):
        pmus = []
        for line in self.run(['0']):
            kind, *col = line.split('\t')
            if kind == 'pmu':
                pmus.append(dict(name=col[0], id=int(col[1]), type=int(col[2]), codes=int(col[4]),
                                 counters=int(col[5]), fixed=int(col[6]), events=[]))
            elif kind == 'event':
                pmus[-1]['events'].append(dict(
                    name=col[0], code=int(col[1], 0), equiv=col[2], flags=flags(*col[3:6]),
                    masks=[], mods=[]))
            else:
                event = pmus[-1]['events'][-1]
                if int(col[1]) == ATTR_UMASK:
                    event['masks'].append(dict(
                        name=col[0], code=int(col[2], 0), equiv=col[3], default=col[4] == '1',
                        flags=flags(*col[5:8]), group=0, mods=[]))
                else:
                    event['mods'].append(col[0])
        return pmus

    def encode(self, names):
        """(error, masks, codes) of each fully qualified name"""
        answers = self.run(stdin=''.join(f'0\t9\t{name}\n' for name in names))
        assert len(answers) == len(names)
        return [answer(line) for line in answers]


def answer(line):
    error, *rest = line.split('\t')
    if error != '0':
        return int(error), (), ()
    attrs = rest[0].split('::', 1)[1].split(':')[1:]
    return 0, tuple(a for a in attrs if '=' not in a), tuple(int(c, 0) for c in rest[2:])


def flags(precise, spec, hw_smpl):
    words = ['precise'] if precise == '1' else []
    if int(spec) in (1, 2):
        words.append(SPEC[int(spec)])
    return words + (['hw_smpl'] if hw_smpl == '1' else [])


def group_masks(event, alone, singles):
    """Masks of one group have the same defaults of the others added to them."""
    masks = [m for m in event['masks'] if m['equiv'] == '-']
    added = {m['name']: tuple(a for a in s[1] if a != m['name']) for m, s in zip(masks, singles)}
    order = {m['name']: i for i, m in enumerate(event['masks'])}
    hidden = sorted({a for names in added.values() for a in names}, key=order.get)
    # A default of a group: one that it itself, alone, does not have added.
    defaults = []
    for name in hidden:
        if not any(name in added and d in added and set(added[name]) == set(added[d]) and
                   d in alone and name in alone for d in defaults):
            defaults.append(name)
    several = {}
    for m in masks:
        missing = [i for i, d in enumerate(defaults) if d not in added[m['name']]]
        if m['name'] in defaults:
            m['group'] = defaults.index(m['name'])
        else:
            m['group'] = missing[0] if missing else len(defaults)
        several.setdefault(m['group'], []).append(m)
    for m in event['masks']:
        if m['name'] in defaults:
            m['group'] = defaults.index(m['name'])
            m['default'] = True  # of perf's cache events it is not said
    event['groups'] = max(len(defaults), 1) if event['masks'] else 0
    # One that keeps the defaults of later groups away, which another of its group has.
    for group, members in several.items():
        later = [d for i, d in enumerate(defaults) if i > group]
        for m in members:
            lost = [d for d in later if d not in added[m['name']]]
            if lost and any(d in added[o['name']] for d in lost for o in members):
                m['flags'].append('excl_group_gt')


def explains(event, a, b):
    """Whether two masks go together, by what was concluded"""
    if a['group'] == b['group']:
        return 'nocombo' not in a['flags'] and 'nocombo' not in b['flags']
    if 'groups_excl' in event['flags']:
        return False
    for x, y in ((a, b), (b, a)):
        if 'excl_group_gt' in x['flags'] and y['group'] > x['group']:
            return False
        if 'excl_group_but_0' in x['flags'] and y['group'] not in (0, x['group']):
            return False
    return True


def combine(event, pairs):
    """nocombo and the exclusive groups, from which pairs of masks go together"""
    masks = [m for m in event['masks'] if m['equiv'] == '-']
    together = {m['name']: set() for m in masks}
    for (a, b), (error, _, _) in pairs.items():
        if error == 0:
            together[a].add(b)
            together[b].add(a)

    def mark():
        for m in masks:
            mates = {o['name'] for o in masks if o['group'] == m['group'] and o is not m}
            if mates and not together[m['name']] & mates:
                m['flags'].append('nocombo')

    def clear(word):
        for m in masks:
            if word in m['flags']:
                m['flags'].remove(word)

    def wrong():
        by_name = {m['name']: m for m in masks}
        return sum(explains(event, by_name[a], by_name[b]) != (r[0] == 0)
                   for (a, b), r in pairs.items())

    mark()
    if not wrong() or event['groups'] > 1:
        return wrong()
    # Sets of masks that go together among themselves only.
    clear('nocombo')
    seen, groups = {}, 0
    for m in masks:
        if m['name'] in seen:
            continue
        work = [m['name']]
        while work:
            name = work.pop()
            if name not in seen:
                seen[name] = groups
                work.extend(together[name])
        groups += 1
    for m in masks:
        m['group'] = seen[m['name']]
    if groups > 1:
        event['flags'].append('groups_excl')
        event['groups'] = groups
    mark()
    return wrong()


def learn(oracle, pmu):
    base = pmu['name'] + '::'
    questions, of = [], []

    def ask(event, key, name):
        questions.append(base + name)
        of.append((event, key))

    for e in pmu['events']:
        plain = [m['name'] for m in e['masks'] if m['equiv'] == '-']
        ask(e, (), e['name'])
        for m in plain:
            ask(e, (m,), f"{e['name']}:{m}")
            for mod in e['mods']:
                if mod not in 'kuhgv':
                    value = '=2' if mod in ('c', 'fe_thres') else '=10' if mod == 'ldlat' else '=1'
                    ask(e, (m, mod), f"{e['name']}:{m}:{mod}{value}")
        for a, b in itertools.combinations(plain, 2):
            ask(e, ('pair', a, b), f"{e['name']}:{a}:{b}")
    answers = {}
    for (event, key), reply in zip(of, oracle.encode(questions)):
        answers.setdefault(id(event), {})[key] = reply

    edges = [base + e['name'] + ':e=1' for e in pmu['events'] if 'e' in e['mods']]
    if encoder(pmu['name']) == 'intel' and any(r[0] == ERR_ATTR for r in oracle.encode(edges)):
        pmu['edge'] = 1
    doubts = 0
    for e in pmu['events']:
        got = answers[id(e)]
        plain = [m for m in e['masks'] if m['equiv'] == '-']
        e['groups'] = 1
        if not e['masks']:
            # A table of libpfm4's may have lost the masks of an event that needs one.
            e['lost'] = got[()][0] == ERR_UMASK
            continue
        group_masks(e, got[()][1], [got[(m['name'],)] for m in plain])
        bad = combine(e, {k[1:]: r for k, r in got.items() if len(k) == 3})
        if bad:
            print(f"{base}{e['name']}: {bad} pairs of masks unexplained", file=sys.stderr)
            doubts += bad
        for m in e['masks']:
            if m['default']:
                m['flags'].append('default')
        for m in plain:
            for mod in e['mods']:
                if mod in ('ldlat', 'fe_thres'):
                    if got[(m['name'], mod)][0] == 0:
                        m['flags'].append('ldlat' if mod == 'ldlat' else 'frontend')
                    elif got[(m['name'], mod)][0] == ERR_ATTR_SET:
                        m['mods'].append(mod)
                elif got.get((m['name'], mod), (0,))[0] == ERR_ATTR_SET:
                    m['mods'].append(mod)
            first = got[(m['name'],)][2][0] & 0xffff
            if encoder(pmu['name']) == 'intel' and m['code'] and first == m['code'] & 0xffff != (
                    (e['code'] | m['code'] << 8) & 0xffff):
                m['flags'].append('code')
        firsts = {got[(m['name'],)][2] for m in plain}
        if 'fe_thres' in e['mods']:
            e['flags'].append('frontend')
        elif any(len(c) > 1 for c in firsts):
            e['flags'].append('ldlat' if 'ldlat' in e['mods'] else 'offcore')
    return doubts


def encoder(name):
    for prefix, kind in (('amd64_fam15h_nb', 'amd64_nb'), ('amd64_rapl', 'rapl'), ('rapl', 'rapl'),
                         ('amd64', 'amd64_l3' if name.endswith('_l3') else 'amd64'),
                         ('ix86arch', 'x86_arch'), ('arm', 'arm'), ('perf_raw', 'perf_raw'), ('perf', 'perf')):
        if name.startswith(prefix):
            return kind
    return 'intel'


def row(*columns):
    cells = [','.join(c) if isinstance(c, (list, tuple)) else str(c) for c in columns]
    cells = [c if c else '-' for c in cells]
    while cells[-1] == '-':
        cells.pop()
    return '\t'.join(cells) + '\n'


def write(pmu, known):
    names, models = known[pmu['name']]
    out = [row('pmu', pmu['name'], pmu['id'], encoder(pmu['name']), TYPES[pmu['type']],
               pmu['counters'], pmu['fixed'], pmu['codes'], names['devices'], names['title'],
               pmu.get('edge', '-'))]
    out += [row('model', *m) for m in models]
    for e in pmu['events']:
        out.append(row('event', e['name'], f"{e['code']:#x}", e['flags'], e['mods'], e['equiv'],
                       e.get('aux', '-'), e['groups'] if e['groups'] > 1 or e.get('lost') else '-'))
        for m in e['masks']:
            out.append(row('mask', m['name'], f"{m['code']:#x}", m['flags'],
                           m['group'] or '-', m['mods'], m['equiv']))
    (HERE / 'events' / (pmu['name'] + '.tsv')).write_text(''.join(out))


def read_known():
    """pmus.tsv: of each PMU its title, its devices, and the processors that have it"""
    known = {}
    for line in (HERE / 'pmus.tsv').read_text().splitlines():
        if not line or line.startswith('#'):
            continue
        name, devices, title, *models = line.split('\t')
        known[name] = ({'devices': devices, 'title': title}, [m.split('/') for m in models])
    return known


def perf_types(oracle, pmu):
    """The type of perf_event_attr, its first four bytes"""
    lines = oracle.run(stdin=''.join(f"1\t9\tperf::{e['name']}\n" for e in pmu['events']))
    for e, line in zip(pmu['events'], lines):
        attr = line.split('\t')[-1]
        e['aux'] = int.from_bytes(bytes.fromhex(attr[:8]), 'little')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--pmus', required=True, help='names by commas')
    parser.add_argument('ask', nargs=argparse.REMAINDER)
    args = parser.parse_args()
    oracle, known = Oracle(args.ask), read_known()
    wanted = args.pmus.split(',')
    pmus = {p['name']: p for p in oracle.pmus()}
    doubts = 0
    for name in wanted:
        if name not in pmus:
            sys.exit(f'refresh: {args.ask[-1]} has no PMU {name}')
        doubts += learn(oracle, pmus[name])
        if name == 'perf':
            perf_types(oracle, pmus[name])
        write(pmus[name], known)
    sys.exit(1 if doubts else 0)


if __name__ == '__main__':
    main()
