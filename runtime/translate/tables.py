#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the decoder's tables from x86.tab.

usage: tables.py x86.tab OUTPUT.h

Each opcode leads to an entry: the index of a shape (0: no instruction), or, with the top bit set, the place
of a split, which asks one question (which prefix, which modrm.reg, ...) and has an entry for each answer.
Rows that overlap are an error, so the order of the file means nothing.
"""
import re
import sys

SPACES = ['legacy 0', 'legacy 1', 'legacy 2', 'legacy 3', 'legacy 3dnow',
          'vex 1', 'vex 2', 'vex 3', 'xop 8', 'xop 9', 'xop a',
          'evex 1', 'evex 2', 'evex 3', 'evex 5', 'evex 6']
# The questions, in the order in which they are asked, and how many answers each has.
QUESTIONS = [('PREFIX', 4), ('MOD', 2), ('REG', 8), ('RM', 8), ('W', 2)]
PREFIXES = ['np', '66', 'f3', 'f2']
REGISTERS = ['ax', 'cx', 'dx', 'bx', 'sp', 'bp', 'si', 'di']
FLAGS = 'oszapcdi'
WORDS = {'plain': 'PLAIN', 'jcc': 'JCC', 'jmp': 'JMP', 'jmpi': 'JMP_INDIRECT', 'call': 'CALL',
         'calli': 'CALL_INDIRECT', 'ret': 'RET', 'far': 'FAR', 'loop': 'LOOP',
         'syscall': 'SYSCALL', 'int': 'INTERRUPT', 'iret': 'IRET', 'xbegin': 'XBEGIN'}
TRAITS = ['push', 'pop', 'leave', 'string', 'xlat', 'bitbase', 'xsave', 'gather', 'sibmem', 'maskmovq',
          'maskmovdqu', 'movdir64b', 'enqcmd', 'system', 'fsgs',
          'regonly', 'clzero', 'count']
SIZES = {'n': 'N', '': 'N', 'b': 'B', 'w': 'W', 'd': 'D', 'q': 'Q', 'dq': 'DQ', 'qq': 'QQ',
         't': 'T', 'v': 'V', 'z': 'Z', 'y': 'Y', 'x': 'X', 'h': 'H', 'f': 'F', 'e': 'E',
         'dup': 'DUP', 'p': 'P', 's': 'S', '8': 'Q', '10': 'M10', '64': 'M64', 'env': 'ENV',
         'fps': 'FPS', 'fx': 'FX', 'cfg': 'M64', 'gather': 'Y'}
ACCESS = {'': 'R', '!': 'W', '+': 'RW', '?': 'RW', '~': 'NONE'}


def fail(where, what):
    sys.exit('%s: %s' % (where, what))


def numbers(text, base):
    out = []
    for part in text.split(','):
        first, _, last = part.partition('-')
        out += range(int(first, base), int(last or first, base) + 1)
    return out


def mask(flags):
    return sum(1 << FLAGS.index(f) for f in flags)


class Shape:
    """What a row says to the right of the colon, as the members of struct insn_shape."""

    def __init__(self, where, text):
        self.fields = {'class': 'INSN_PLAIN', 'imm': 'IMM_NONE', 'modrm': 0}
        self.traits = set()
        self.reads = self.writes = self.partial = 0
        self.has_imm = []
        for word in text.split():
            self.word(where, word)
        imm = '_'.join(self.has_imm)
        known = {'': 'NONE', 'Ib': '8', 'Iw': '16', 'Iz': 'Z', 'Iv': 'V', 'Id': '32', 'Ib_Ib': '8_8',
                 'Iw_Ib': '16_8', 'Jb': 'REL8', 'Jz': 'REL32', 'O': 'MOFFS'}
        if imm not in known:
            fail(where, 'immediates ' + imm)
        self.fields['imm'] = 'IMM_' + known[imm]

    def word(self, where, word):
        if word in WORDS:
            self.fields['class'] = 'INSN_' + WORDS[word]
            return
        if word in TRAITS:
            self.traits.add(word)
            return
        if word[0] in '<>':
            if word[1] == '?':
                self.traits.add('count')
            self.fields['flags_read' if word[0] == '<' else 'flags_written'] = mask(
                word[1:].lstrip('?'))
            return
        if self.register(word):
            return
        if word[0] in 'IJ':
            self.has_imm.append(word)
            return
        found = re.fullmatch(r'([EGRBZMWQVHUNPSCDKTXYO])([a-z0-9]*)(?:@([a-z]))?([!+?~]?)', word)
        if not found:
            fail(where, 'operand ' + word)
        kind, size, granule, access = found.groups()
        access = 'ACCESS_' + ACCESS[access]
        element = ''
        if kind == 'W' and len(size) == 2 and size[0] in 'xhf' and size not in SIZES:
            size, element = size[0], size[1]
        if size not in SIZES:
            fail(where, 'size of ' + word)
        size = 'SIZE_' + SIZES[size]
        f = self.fields
        if kind in 'EGRMWQVUNPSCDKT':
            f['modrm'] = 1
        if kind in 'ER':
            f.update(rm='RM_GENERAL', rm_access=access, rm_size=size)
        elif kind in 'MWQ':
            f.update(rm='RM_VECTOR', rm_access=access, rm_size=size)
            if element:
                f['element'] = 'SIZE_' + SIZES[element]
            if granule:
                f['granule'] = 'SIZE_' + SIZES[granule]
        elif kind == 'G':
            f.update(reg_access=access, reg_size=size)
        elif kind == 'B':
            f.update(vvvv_access=access)
        elif kind == 'Z':
            f.update(opreg_access=access, opreg_size=size)
        elif kind == 'X':
            f.update(source_size=size)
            self.traits.add('source')
        elif kind == 'Y':
            f.update(destination_size=size, destination_access=access)
            self.traits.add('destination')
        elif kind == 'O':
            self.has_imm.append('O')
            f.update(rm='RM_ABSOLUTE', rm_access=access, rm_size=size)

    def register(self, word):
        found = re.fullmatch(r'(rAX|eAX|rDX|al|ah|cl|[er]?(?:ax|cx|dx|bx|sp|bp|si|di)|r11)([!+?~]?)', word)
        if not found:
            return False
        name, access = found.groups()
        if name == 'r11':
            bit = 1 << 11
        else:
            low = name.lower()
            bit = 1 << REGISTERS.index({'al': 'ax', 'ah': 'ax', 'cl': 'cx'}.get(low, low[-2:]))
        if access in ('', '+', '?'):
            self.reads |= bit
        if access in ('!', '+', '?'):
            self.writes |= bit
            # Writing a part of a register keeps the rest of it: that is a read of the old value.
            if name in ('al', 'ah', 'ax', 'dx'):
                self.reads |= bit
            if name in ('rAX', 'rDX', 'eAX'):
                self.partial |= bit
        return True

    def initializer(self):
        parts = ['.%s = %s' % (k if k != 'class' else 'class', v)
                 for k, v in sorted(self.fields.items()) if v not in (0, 'INSN_PLAIN', 'IMM_NONE')]
        for name, value in (('reads', self.reads), ('writes', self.writes),
                            ('partial', self.partial)):
            if value:
                parts.append('.%s = 0x%x' % (name, value))
        if self.traits:
            parts.append('.traits = ' + ' | '.join('TRAIT_' + t.upper() for t in sorted(self.traits)))
        return '{' + ', '.join(parts) + '}'


def parse(path):
    spaces = {name: {} for name in SPACES}
    space = None
    for number, line in enumerate(open(path), 1):
        where = '%s:%d' % (path, number)
        line = line.split('#')[0].strip()
        if not line:
            continue
        if line.startswith('['):
            space = spaces.get(line.strip('[]'))
            if space is None:
                fail(where, 'no such space')
            continue
        left, colon, right = line.partition(':')
        if not colon:
            fail(where, 'no colon')
        words = left.split()
        selectors = {}
        for word in words[1:]:
            if word in ('m', 'r'):
                selectors['MOD'] = {'m': [0], 'r': [1]}[word]
            elif word[0] == '/':
                selectors['REG'] = numbers(word[1:], 8)
            elif word[0] == '.':
                selectors['RM'] = numbers(word[1:], 8)
            elif word in ('w0', 'w1'):
                selectors['W'] = [int(word[1])]
            elif all(p in PREFIXES for p in word.split(',')):
                selectors['PREFIX'] = [PREFIXES.index(p) for p in word.split(',')]
            else:
                fail(where, 'selector ' + word)
        shape = Shape(where, right)
        if {'MOD', 'REG', 'RM'} & set(selectors):
            shape.fields['modrm'] = 1
        for opcode in numbers(words[0], 16):
            space.setdefault(opcode, []).append((where, selectors, shape.initializer()))
    return spaces


class Tables:
    def __init__(self):
        self.shapes = ['{0}']
        self.splits = []
        self.known = {}

    def entry(self, rows, asked=0):
        rows = list(rows)
        if not rows:
            return 0
        for place in range(asked, len(QUESTIONS)):
            name, answers = QUESTIONS[place]
            if not any(name in selectors for _, selectors, _ in rows):
                continue
            branch = [self.entry([r for r in rows if answer in r[1].get(name, [answer])], place + 1)
                      for answer in range(answers)]
            if len(set(branch)) == 1:
                return branch[0]
            key = (name, tuple(branch))
            if key not in self.known:
                self.known[key] = 0x8000 | len(self.splits)
                self.splits += ['ASK_' + name] + branch
            return self.known[key]
        if len({r[2] for r in rows}) > 1:
            fail(rows[1][0], 'overlaps ' + rows[0][0])
        if rows[0][2] not in self.shapes:
            self.shapes.append(rows[0][2])
        return self.shapes.index(rows[0][2])


def main():
    spaces = parse(sys.argv[1])
    tables = Tables()
    maps = [[tables.entry(spaces[name].get(opcode, [])) for opcode in range(256)]
            for name in SPACES]
    with open(sys.argv[2], 'w') as out:
        out.write('/* Made by tables.py from x86.tab. */\n')
        out.write('static const struct insn_shape shapes[] = {\n')
        out.writelines('\t%s,\n' % s for s in tables.shapes)
        out.write('};\n\nstatic const uint16_t splits[] = {\n')
        out.writelines('\t%s,\n' % s for s in tables.splits)
        out.write('};\n\nstatic const uint16_t maps[][256] = {\n')
        for name, entries in zip(SPACES, maps):
            out.write('\t/* %s */ {%s},\n' % (name, ', '.join(map(str, entries))))
        out.write('};\n')


main()
