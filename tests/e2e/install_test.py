#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a user of the installed library meets: headers, pkg-config, symbols, man pages.

usage: install_test.py SOURCE BUILD
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = sys.argv[1:3]
PROGRAM = r'''
#include <stdio.h>
#include <tally/tally.h>

int main(void)
{
	struct tally_events *events = tally_events_new();
	struct tally_error err;
	int n = tally_events_parse(events, "task-clock:u,{page-faults,context-switches}", 0, &err);

	printf("%d %zu\n", n, tally_events_count(events));
	tally_events_free(events);
	return 0;
}
'''
count = 0


def case(name, problem):
    """One TAP line; problem is None, or what is wrong."""
    global count
    count += 1
    print('%sok %d - %s' % ('not ' if problem else '', count, name))
    if problem:
        print('# ' + str(problem).strip().replace('\n', '\n# '))


def sh(*argv, **kw):
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)
    return done.returncode, done.stdout


def declared():
    """Names of the functions that the public headers declare."""
    names = set()
    for header in sorted(os.listdir(os.path.join(SOURCE, 'include/tally'))):
        text = open(os.path.join(SOURCE, 'include/tally', header)).read()
        text = re.sub(r'/\*.*?\*/|//[^\n]*', '', text, flags=re.S)
        for statement in re.split(r'[;{}]', text):
            found = re.search(r'\b(tally_\w+)\s*\(', statement)
            if found and 'static inline' not in statement:
                names.add(found.group(1))
    return names


def main():
    root = tempfile.mkdtemp()
    try:
        code, out = sh('meson', 'install', '-C', BUILD, '--no-rebuild', '--destdir', root)
        case('meson install', None if code == 0 else out)

        pc = next((os.path.join(d, 'tally.pc') for d, _, fs in os.walk(root) if 'tally.pc' in fs),
                  None)
        libdir = os.path.dirname(os.path.dirname(pc)) if pc else ''
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc or ''),
                   PKG_CONFIG_SYSROOT_DIR=root, LD_LIBRARY_PATH=libdir)
        source = os.path.join(root, 'sample.c')
        with open(source, 'w') as f:
            f.write(PROGRAM)
        for language, compiler, how in (('c', 'cc', 'shared'), ('c', 'cc', 'static'),
                                        ('c++', 'c++', 'shared')):
            name = 'a %s program links the %s library' % (language.upper(), how)
            if not shutil.which(compiler):
                global count
                count += 1
                print('ok %d - %s # SKIP no %s here' % (count, name, compiler))
                continue
            flags = sh('pkg-config', '--cflags', '--libs', *(['--static'] * (how == 'static')),
                       'tally', env=env)[1].split()
            if how == 'static':
                flags = [os.path.join(libdir, 'libtally.a') if f == '-ltally' else f for f in flags]
            binary = os.path.join(root, 'sample')
            code, out = sh(compiler, '-Wall', '-Werror', '-x', language, source, '-x', 'none',
                           '-o', binary, *flags, env=env)
            if code == 0:
                code, out = sh(binary, env=env)
            case(name, None if (code, out) == (0, '0 3\n') else out)

        # Users' warnings are stricter than ours, and their language may be another.
        headers = os.path.join(root + sh('pkg-config', '--variable=includedir', 'tally', env=dict(
            os.environ, PKG_CONFIG_PATH=os.path.dirname(pc or '')))[1].strip(), 'tally')
        for compiler, language, standard in ('cc', 'c', 'c11'), ('c++', 'c++', 'c++11'):
            wrong = '' if os.path.isdir(headers) else 'no ' + headers
            for header in sorted(os.listdir(headers)) if not wrong else ():
                wrong += sh(compiler, '-x', language, '-std=' + standard, '-pedantic', '-Wall',
                            '-Wextra', '-Werror', '-fsyntax-only',
                            '-I' + os.path.dirname(headers), os.path.join(headers, header))[1]
            case('each header stands alone in strict %s' % standard, wrong)

        shared = os.path.join(libdir, 'libtally.so')
        exported = {line.split()[-1] for line in
                    sh('nm', '-D', '--defined-only', shared)[1].splitlines()
                    if line.split()[1] in 'TDBRW'}
        unversioned = {name for name in exported if '@' not in name}
        names = {name.split('@')[0] for name in exported if not name.startswith('TALLY_')}
        case('every declared function is exported', ' '.join(sorted(declared() - names)))
        case('every exported symbol is declared', ' '.join(sorted(names - declared())))
        case('every symbol has a version', ' '.join(sorted(unversioned)))

        defined = {line.split()[-1] for line in
                   sh('nm', '--defined-only', os.path.join(libdir, 'libtally.a'))[1].splitlines()
                   if len(line.split()) == 3 and line.split()[1] in 'TDBRVW'}
        case('the archive defines only tally_ and tly_ names',
             ' '.join(sorted(n for n in defined if not n.startswith(('tally_', 'tly_')))))

        # Constants with addresses in them are written by the loader alone (.data.rel.ro).
        symbols = sh('objdump', '-t', os.path.join(libdir, 'libtally.a'))[1]
        data = re.findall(r' O \.(?:data|bss|tdata|tbss)(?:\.(?!rel\.ro)\S*)?\t\w+ (?:\.hidden )?(\S+)',
                          symbols)
        case('the library has no mutable global state', ' '.join(sorted(data)) if symbols else 'no symbols')

        pages = [os.path.join(d, f) for d, _, fs in os.walk(root) for f in fs
                 if '/man/' in d and re.search(r'\.[1-8]$', f)]
        wrong = ''
        for page in pages:
            wrong += subprocess.run(['man', '-l', '--warnings=w', page], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True).stderr
        case('man pages are well formed', wrong if pages else 'no man page was installed')
        tool = next((os.path.join(d, 'tally') for d, _, fs in os.walk(root)
                     if 'tally' in fs and d.endswith('/bin')), 'tally')
        help_text = sh(tool, 'help')[1]
        commands = re.findall(r'^  (\w+) ', help_text, flags=re.M)
        missing = [c for c in commands if c != 'help' and
                   not any(p.endswith('/tally-%s.1' % c) for p in pages)]
        case('each subcommand has a man page', ' '.join(missing) if commands else help_text)
        undocumented = []
        for c in commands:
            text = ''.join(open(p).read() for p in pages if p.endswith('/tally-%s.1' % c))
            text = text.replace('\\-', '-')
            for option in re.findall(r'--[a-z][a-z-]+', sh(tool, 'help', c)[1]):
                if c != 'help' and option not in text:
                    undocumented.append('%s %s' % (c, option))
        case('each option is in its man page', ', '.join(undocumented))
        code, out = sh(tool, 'run', '--', 'echo', 'translated', env=env)
        case('the tool finds its runtime where both were moved to',
             None if (code, out) == (0, 'translated\n') else out)
    finally:
        shutil.rmtree(root)
    print('1..%d' % count)


main()
