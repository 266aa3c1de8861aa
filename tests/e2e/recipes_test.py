#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""docs/recipes.md: its commands are executed in turn, and print what stands there but for numbers.

A block of C is the file that the text before it names last. Of the kernel's side nothing is said: where
it can count itself, the command that goes to user mode because it cannot is left out.
"""
import os
import re
import shutil
import subprocess
import tempfile

from tap import *

SOURCE = os.environ['TALLY_SOURCE']
EXAMPLES = os.environ['EXAMPLES']

BY_ITSELF = 'user mode counts (tally run)'


def blocks(text):
    """(language, lines, what stands before) of each block."""
    parts = re.split(r'^```(.*)\n', text, flags=re.M)
    return [(language, body.splitlines(), before)
            for before, language, body in zip(parts[::4], parts[1::4], parts[2::4])]


def commands(lines):
    """[(command, [line that it prints])]"""
    found = []
    for line in lines:
        if line.startswith('$ '):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def shape(lines):
    """What they have in common with those of another run. What a machine lacks, and is, differs."""
    text = '\n'.join(' '.join(line.split()) for line in lines).strip()
    text = re.sub(r'cannot open .*: user mode', 'cannot open: user mode', text)
    text = re.sub(r"\n*:u was added.*\n.*", '', text).replace(':u', '')
    text = re.sub(r'(# recorded on: ).*', r'\1', text)
    return re.sub(r'[0-9][0-9,.]*', '#', text).split('\n')


def is_like(printed, expected):
    """"..." stands for any lines."""
    if '...' not in expected:
        return printed == expected
    at = expected.index('...')
    return printed[:at] == expected[:at]


def prepare(directory):
    os.mkdir(directory + '/bin')
    os.symlink(os.path.abspath(TALLY), directory + '/bin/tally')
    os.symlink(EXAMPLES + '/example-region', directory + '/region')
    return dict(os.environ, PATH=directory + '/bin:' + os.environ['PATH'], LC_ALL='C')


def execute(command, expected, directory, environment):
    """Why that could not be compared, or None."""
    for tool in ('cc', 'perf', 'setarch'):
        if re.search(r'\b%s ' % tool, command) and not shutil.which(tool):
            return 'needs ' + tool
    done = subprocess.run(command, shell=True, cwd=directory, env=environment, timeout=LIMIT, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    equal(done.returncode, 0, done.stdout)
    if any(BY_ITSELF in line for line in expected) and BY_ITSELF not in done.stdout:
        return 'the kernel counts here'
    printed, wanted = shape(done.stdout.splitlines()), shape(expected)
    check(is_like(printed, wanted), '%s\nprinted %s\nand not %s' % (command, printed, wanted))
    return None


def case_commands_print_what_the_page_says():
    missing = set()
    with open(SOURCE + '/docs/recipes.md') as page, tempfile.TemporaryDirectory() as directory:
        environment = prepare(directory)
        for language, lines, before in blocks(page.read()):
            if language == 'c':
                name = re.findall(r'`(\w+\.c)`', before)[-1]
                with open(os.path.join(directory, name), 'w') as file:
                    file.write('\n'.join(lines) + '\n')
            elif language == 'console':
                for command, expected in commands(lines):
                    missing.add(execute(command, expected, directory, environment))
    missing.discard(None)
    if missing:
        skip('in part: ' + ', '.join(sorted(missing)))


if __name__ == '__main__':
    main()
