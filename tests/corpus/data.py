#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the files that the corpus and the benchmarks work on; the same bytes every time.

    tests/corpus/data.py DIRECTORY [SCALE]

Everything comes from one seeded generator, so that a result that differs is never the input's
doing. SCALE multiplies the sizes; the corpus uses 1, benchmarks more.
"""
import json
import os
import random
import subprocess
import sys

SEED = 20240229


def vocabulary(rng, size):
    """Words whose lengths and letters look like a language's, the frequent ones short."""
    syllables = [c + v for c in 'bcdfghklmnprstvw' for v in 'aeiou']
    words = set()
    while len(words) < size:
        words.add(''.join(rng.choice(syllables) for _ in range(1 + int(rng.expovariate(0.6)))))
    return sorted(words, key=lambda w: (len(w), w))


def prose(rng, words, lines):
    """Text in which the n-th word is about as frequent as Zipf says."""
    weights = [1.0 / (n + 2) for n in range(len(words))]
    flow = iter(rng.choices(words, weights, k=lines * 12))
    for _ in range(lines):
        line = ' '.join(next(flow) for _ in range(rng.randint(4, 12)))
        yield line.capitalize() + rng.choice(('.', '.', '?', ',', ';', '')) + '\n'


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as file:
        file.write(text if isinstance(text, str) else ''.join(text))


def log_line(rng, n):
    return '10.%d.%d.%d - - [%02d/Feb/2024:%02d:%02d:%02d +0000] "%s /%s/%d HTTP/1.1" %d %d\n' % (
        rng.randrange(4), rng.randrange(256), rng.randrange(256), 1 + n // 4000 % 28,
        n // 160 % 24, rng.randrange(60), rng.randrange(60), rng.choice(('GET', 'GET', 'POST')),
        rng.choice(('index', 'item', 'search', 'static')), rng.randrange(900),
        rng.choice((200, 200, 200, 304, 404, 500)), rng.randrange(100, 90000))


def records(rng, words, count):
    return [{'id': n, 'name': rng.choice(words), 'price': rng.randrange(1, 10 ** 6) / 100,
             'tags': rng.sample(words, rng.randrange(4)), 'stock': rng.choice((True, False, None))}
            for n in range(count)]


def c_function(rng, n):
    """A function that a compiler has to work for: a loop, a switch, calls to earlier ones."""
    calls = ''.join('\t\tcase %d: x += f%d(x ^ %d, n - 1); break;\n' %
                    (k, rng.randrange(n), rng.randrange(999)) for k in range(4)) if n else ''
    return ('static unsigned f%d(unsigned x, int n)\n{\n\tunsigned a[16];\n\n'
            '\tif (n <= 0)\n\t\treturn x;\n'
            '\tfor (int i = 0; i < 16; i++)\n\t\ta[i] = x * %du + (unsigned)i * %du;\n'
            '\tfor (int i = 1; i < 16; i++) {\n\t\tswitch ((a[i] >> %d) %% 6) {\n%s'
            '\t\tdefault: x = (x << %d | x >> %d) + a[i - 1];\n\t\t}\n\t}\n\treturn x ^ a[%d];\n}\n\n'
            % (n, rng.randrange(3, 9999, 2), rng.randrange(99), rng.randrange(1, 20), calls,
               *(lambda s: (s, 32 - s))(rng.randrange(1, 31)), rng.randrange(16)))


def c_file(rng, functions):
    yield '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n'
    for n in range(functions):
        yield c_function(rng, n)
    yield 'int main(void)\n{\n\tunsigned x = 1;\n\n'
    for n in range(max(0, functions - 40), functions):
        yield '\tx ^= f%d(x + %d, 2);\n' % (n, n)
    yield '\tprintf("%u\\n", x);\n\treturn 0;\n}\n'


def project(rng, root, files):
    """A C project of several files and a Makefile with a pattern rule and a generated header."""
    names = ['part%d' % n for n in range(files)]
    for n, name in enumerate(names):
        write('%s/%s.c' % (root, name),
              '#include "version.h"\n\nunsigned %s(unsigned x)\n{\n'
              '\tfor (unsigned i = 0; i < %d; i++)\n\t\tx = x * %du + (x >> %d) + VERSION;\n'
              '\treturn x;\n}\n' % (name, 50 + n, rng.randrange(3, 99999, 2), 1 + n % 20))
    write(root + '/main.c', '#include <stdio.h>\n\n%s\nint main(void)\n{\n\tunsigned x = 7;\n\n%s'
          '\tprintf("%%u\\n", x);\n\treturn 0;\n}\n' % (
              ''.join('unsigned %s(unsigned x);\n' % name for name in names),
              ''.join('\tx = %s(x);\n' % name for name in names)))
    write(root + '/Makefile', 'CFLAGS = -O2 -Wall\nOBJECTS = main.o %s\n\nprogram: $(OBJECTS)\n'
          '\t$(CC) $(LDFLAGS) -o $@ $^\n\n%%.o: %%.c version.h\n\t$(CC) $(CFLAGS) -c -o $@ $<\n\n'
          'version.h:\n\techo "#define VERSION `expr 40 + 2`" >$@\n\n'
          'clean:\n\trm -f program version.h $(OBJECTS)\n\n.PHONY: clean\n' % (
              ' '.join(name + '.o' for name in names)))


def repository(rng, words, path, commits):
    """A git repository with branches and merges; fixed dates make its hashes fixed."""
    stream = []
    files = {'dir%d/file%d.txt' % (n % 5, n): list(prose(rng, words, 40)) for n in range(30)}

    def blob(name):
        text = ''.join(files[name])
        return 'M 100644 inline %s\ndata %d\n%s\n' % (name, len(text), text)

    for n in range(1, commits + 1):
        touched = sorted(files) if n == 1 else rng.sample(sorted(files), 2)
        for name in touched if n > 1 else ():
            lines = files[name]
            lines[rng.randrange(len(lines))] = next(prose(rng, words, 1))
        message = next(prose(rng, words, 1))
        branch = 'topic' if n % 10 in (7, 8, 9) else 'main'
        stream.append('commit refs/heads/%s\nmark :%d\n'
                      'committer A U Thor <author@example.com> %d +0000\ndata %d\n%s'
                      % (branch, n, 1700000000 + n * 3600, len(message), message))
        if n > 1:
            stream.append('from :%d\n' % (n - 1))
        if n % 10 == 0:
            stream.append('merge :%d\n' % (n - 3))
        stream.extend(blob(name) for name in touched)
        stream.append('\n')
    env = dict(os.environ, GIT_CONFIG_GLOBAL='/dev/null', GIT_CONFIG_SYSTEM='/dev/null')
    subprocess.run(['git', 'init', '-q', '-b', 'main', path], check=True, env=env)
    subprocess.run(['git', '-C', path, 'fast-import', '--quiet'], check=True, env=env,
                   input=''.join(stream).encode())
    subprocess.run(['git', '-C', path, 'reset', '-q', '--hard', 'main'], check=True, env=env)


def make(root, scale=1):
    rng = random.Random(SEED)
    words = vocabulary(rng, 3000)
    write(root + '/words', ''.join(w + '\n' for w in words))
    write(root + '/text', prose(rng, words, int(20000 * scale)))
    write(root + '/numbers',
          ''.join('%d\n' % rng.randrange(-10 ** 9, 10 ** 9) for _ in range(int(50000 * scale))))
    write(root + '/log', (log_line(rng, n) for n in range(int(20000 * scale))))
    items = records(rng, words, int(4000 * scale))
    write(root + '/items.json', json.dumps(items))
    write(root + '/items.csv', ''.join('%d,%s,%.2f,%d\n' % (
        r['id'], r['name'], r['price'], len(r['tags'])) for r in items))
    with open(root + '/blob', 'wb') as file:
        for _ in range(int(24 * scale)):
            file.write(rng.randbytes(32768))
            file.write(rng.randbytes(64) * 512)
    write(root + '/big.c', c_file(rng, int(120 * scale)))
    project(rng, root + '/project', 12)
    try:
        repository(rng, words, root + '/repo', int(60 * scale))
    except FileNotFoundError:
        pass  # no git: the cases that need it are skipped for that


if __name__ == '__main__':
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__.strip())
    make(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1)
