#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completion: what the tool offers, and that bash and zsh show it."""
import pty
import select
import shutil
import tempfile
import time

from tap import *

COMPLETION = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../completion')


def offered(*words):
    done = tally('__complete', '--', *words)
    equal(done.returncode, 0)
    equal(done.stderr, '')
    return [line.split('\t')[0] for line in done.stdout.splitlines()]


def case_commands():
    commands = offered('')
    for command in 'list', 'help', 'doctor':
        check(command in commands, commands)
        contains(tally('help').stdout, command)
    check('__complete' not in commands, commands)
    equal(offered('lis'), ['list'])
    equal(offered('help', 'lis'), ['list'])


def case_options_are_those_of_the_help():
    for command in offered(''):
        text = tally('help', command).stdout
        for option in offered(command, '-'):
            check(option == '--help' or option in text, '%s %s' % (command, option))
    equal(offered('list', '--js'), ['--json'])


def case_help_fits_a_terminal():
    for command in offered(''):
        for line in tally('help', command).stdout.splitlines():
            check(len(line) < 80 or line.startswith('usage:'), line)


def case_events():
    equal(offered('record', '-e', 'context-sw'), [':nospace', 'context-switches'])
    equal(offered('record', '-e', '{cycles:u,context-sw'),
          [':nospace', '{cycles:u,context-switches'])
    equal(offered('record', '--event=context-sw'), [':nospace', '--event=context-switches'])
    equal(offered('record', '--event', 'cpu/event=1,umask=2/,context-sw'),
          [':nospace', 'cpu/event=1,umask=2/,context-switches'])
    equal(offered('record', '-ge', 'context-sw'), [':nospace', 'context-switches'])
    equal(offered('record', '-e', 'uprob'), [':nospace', 'uprobe:'])


def case_tracepoints_by_system_first():
    if not tally_json('list', '--json', 'sched:sched_switch'):
        skip('no tracepoints can be read here')
    equal(offered('record', '-e', 'cs,sche'), [':nospace', 'cs,sched:'])
    equal(offered('record', '-e', 'cs,sched:sched_swit'), [':nospace', 'cs,sched:sched_switch'])


def case_tasks_files_and_commands():
    pid = str(os.getpid())
    check(pid in offered('record', '-p', pid[:1]))
    check('1,' + pid in offered('record', '-p', '1,' + pid))
    check('0-0' in offered('record', '-C', '0-'))
    equal(offered('record', '-o', ''), [':files'])
    equal(offered('record', '-o', 'x', 'l'), [':command 3'])
    equal(offered('record', '--', 'ls', '-'), [':command 2'])
    equal(offered('nosuch', ''), [])
    equal(tally('__complete').returncode, 129)


def case_bash():
    if not shutil.which('bash'):
        skip('bash is not installed')
    script = '''
        source "$1/tally.bash"
        COMP_LINE=$2 COMP_POINT=${#2}
        _tally
        printf '%s\\n' "${COMPREPLY[@]}"
    '''
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, 'a recording'), 'w').close()
        for line, expected in (
                ('lis', ['list']),
                ('record -e context-sw', ['context-switches']),
                # readline replaces what stands behind the last ':' or '='
                ('record -e context-switches:u,context-sw', ['u,context-switches']),
                ('record --event=context-sw', ['context-switches']),
                ('report -i ', ['a recording']),
                ('report --input=a', ['a recording'])):
            done = run('bash', '--norc', '-c', script, 'bash', COMPLETION,
                       '%s %s' % (TALLY, line), cwd=folder)
            equal(done.stdout.splitlines(), expected, line)
        done = run('bash', '--norc', '-c', script, 'bash', COMPLETION,
                   '%s record -- bas' % TALLY, cwd=folder)
        check('bash' in done.stdout.splitlines(), done.stdout)


def case_zsh():
    if not shutil.which('zsh'):
        skip('zsh is not installed')
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(TALLY, os.path.join(folder, 'tally'))
        child, fd = pty.fork()
        if child == 0:
            os.environ.update(PATH=folder + ':' + os.environ['PATH'], TERM='dumb', HOME=folder)
            os.execlp('zsh', 'zsh', '-f')
        seen = ''

        def expect(text):
            nonlocal seen
            deadline = time.monotonic() + 30
            while text not in seen:
                check(time.monotonic() < deadline, 'no %r in %r' % (text, seen))
                if select.select([fd], [], [], 1)[0]:
                    seen += os.read(fd, 4096).decode(errors='replace')
            seen = seen.split(text, 1)[1]

        try:
            os.write(fd, ('fpath=(%s $fpath); autoload -Uz compinit; compinit -u -d %s/dump; '
                          'print rea""dy\n' % (COMPLETION, folder)).encode())
            expect('ready')
            os.write(fd, b'tally lis\t')
            expect('tally list')
            os.write(fd, b'\x15tally record -e context-sw\t')
            expect('context-switches')
        finally:
            os.close(fd)
            os.waitpid(child, 0)


if __name__ == '__main__':
    main()
