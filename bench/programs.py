# SPDX-License-Identifier: MIT
"""Programs of half a second and more, and what they work on."""
import os
import random
import subprocess
import sys

import run_common  # also for where data is
import data

PYTHON = '''
words = {}
for line in open('text'):
    for word in line.split():
        words[word.lower()] = words.get(word.lower(), 0) + 1
primes = [n for n in range(2, 12000) if all(n % p for p in range(2, int(n ** 0.5) + 1))]
class Point:
    def __init__(self, x, y): self.x, self.y = x, y
    def plus(self, other): return Point(self.x + other.x, self.y + other.y)
p = Point(0, 0)
for n in range(300000): p = p.plus(Point(n, 0.5))
print(sorted(words.items(), key=lambda i: i[::-1])[-5:], len(primes), p.x)
'''

PERL = '''
open F, "<", "text"; while (<F>) { $n{lc $1}++ while /(\\w+)/g } 
my @p; N: for my $n (2 .. 30000) { for (@p) { last if $_ * $_ > $n; next N unless $n % $_ } push @p, $n }
sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) } print fib(23), " ", scalar(@p), "\\n";
my @s = sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n; print "@s[0..5]\\n";
'''

NODE = '''
const text = require('fs').readFileSync('text', 'utf8'), n = new Map();
for (let k = 0; k < 3; k++) for (const w of text.split(/\\W+/)) n.set(w, (n.get(w) || 0) + 1);
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
const a = Array.from({ length: 300000 }, (_, i) => ({ key: i * 7919 % 300007 }));
a.sort((x, y) => x.key - y.key); let s = 0; for (let i = 0; i < 1e7; i++) s = (s + i * i) % 1000003;
console.log(n.size, fib(30), a[5].key, s, JSON.parse(JSON.stringify(a)).length);
'''

SQL = '''
create table t (id integer primary key, name text, price real, n int);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 400000)
insert into t select x, 'n' || (x % 977), x * 0.37, x % 13 from c;
create index i on t (name, n);
select name, count(*), round(sum(price), 2) from t where n > 6 group by name order by 2 desc, 1 limit 5;
select count(*) from t a join t b on a.name = b.name and a.id < b.id where a.n = 3 and b.n = 4;
update t set price = price * 2 where id % 3 = 0;
select sum(length(name) * price) from t where name like 'n1%7';
'''


def programs():
    """[(name, command)]; every input is a file of the data directory."""
    compiler, system = (subprocess.run(['gcc', option], stdout=subprocess.PIPE, text=True)
                        .stdout.strip() for option in ('-print-prog-name=cc1', '-print-multiarch'))
    return (
        ('xz', ['xz', '-k', '-c', '-2', 'text']),
        ('bzip2', ['bzip2', '-k', '-c', 'log']),
        ('gzip', ['gzip', '-k', '-c', '-9', 'text']),
        # Itself, not a script that looks for it (pyenv).
        ('python3', [os.path.realpath(sys.executable), 'bench.py']),
        ('perl', ['perl', 'bench.pl']),
        ('sqlite3', ['sqlite3', ':memory:', '-init', 'bench.sql', '.quit']),
        ('cc1', [compiler, '-quiet', '-imultiarch', system, '-O2', 'compiled.c', '-o', '/dev/null']),
        ('sort', ['sort', '--parallel=1'] + 4 * ['log', 'text', 'numbers']),
        ('node', ['node', 'bench.js']),
        ('openssl', ['openssl', 'enc', '-aes-256-ctr', '-pbkdf2', '-iter', '1500000', '-k', 'x',
                     '-S', '0011223344556677', '-in', 'words']),
    )


def prepare(directory):
    data.make(directory, 5)
    data.write(directory + '/compiled.c', data.c_file(random.Random(data.SEED), 60))
    for name, text in (('bench.py', PYTHON), ('bench.pl', PERL), ('bench.js', NODE),
                       ('bench.sql', SQL)):
        data.write(directory + '/' + name, text)
