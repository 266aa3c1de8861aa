# SPDX-License-Identifier: MIT
"""Runs each case of the programs given natively and under `tally run`: same output, same end.

Usage: run_test.py PROGRAM...
       run_test.py --told PROGRAM...		tally says in one line that the program runs natively
       run_test.py --native TIMES PROGRAM...	do the cases say the same each time?
"""
import difflib
import os
import signal
import subprocess
import sys
import tempfile

TALLY = os.environ.get('TALLY', 'tally')
# Of `tally run`, for what the kernel and tally do in two ways.
OPTIONS = os.environ.get('RUN_OPTIONS', '').split()
# In KiB: the limit on address space that tally finds, and may not raise.
SPACE = os.environ.get('SPACE')
# Far above what any case takes: a case that hangs has failed.
LIMIT = int(os.environ.get('LIMIT', '120'))
# What `tally run` itself is to run under, as a filter of seccomp(2).
UNDER = os.environ.get('RUN_UNDER', '').split()


def end_of(status):
    return 'signal %d' % -status if status < 0 else 'status %d' % status


def tally_run():
    limit = ['sh', '-c', 'ulimit -v %s; exec "$@"' % SPACE, 'sh'] if SPACE else []
    if SPACE and os.geteuid() == 0:
        limit += ['setpriv', '--bounding-set=-sys_resource', '--inh-caps=-sys_resource']
    return [*limit, *UNDER, TALLY, 'run', *OPTIONS, '--']


def observe(argv):
    """What a person would see of the command: its output, its errors, its end."""
    with tempfile.TemporaryDirectory() as directory:
        env = dict(os.environ, LC_ALL='C', CASE_DIR=directory)
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors='replace', env=env,
                                   cwd=directory, start_new_session=True)
        try:
            out, err = process.communicate(timeout=LIMIT)
            end = end_of(process.returncode)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            end = 'no end within %d s' % LIMIT
        return {'stdout': out, 'stderr': err, 'end': end}


def differences(expected, found):
    for what in ('end', 'stdout', 'stderr'):
        if expected[what] != found[what]:
            yield from difflib.unified_diff(expected[what].splitlines(), found[what].splitlines(),
                                            what + ', native', what + ', found', lineterm='', n=2)


def skipped(seen):
    """A case that cannot run here says `skip: reason` and ends well."""
    return seen['end'] == 'status 0' and seen['stdout'].startswith('skip: ')


def take_line(found):
    """Takes the one line off that tally says of a program that it cannot translate."""
    lines = found['stderr'].splitlines(keepends=True)
    told = [line for line in lines if line.startswith('tally: ') and 'natively' in line]
    if len(told) != 1:
        return ['expected one line of tally, found %d: %s' % (len(told), found['stderr'])]
    lines.remove(told[0])
    found['stderr'] = ''.join(lines)
    return []


def outcome(program, case, times, told):
    """None if all is well, a skip's reason, or the lines that tell what is wrong."""
    native = observe([program, case])
    if skipped(native):
        return native['stdout'].splitlines()[0][len('skip: '):], []
    if native['end'].startswith('no end') or native['end'] == 'status 99':
        return None, ['the case itself fails: ' + native['end']] + native['stderr'].splitlines()
    for _ in range(times or 1):
        found = observe([program, case] if times else [*tally_run(), program, case])
        wrong = take_line(found) if told else []
        wrong += differences(native, found)
        if wrong:
            return None, wrong
    return None, []


def main(arguments):
    times = 0
    told = arguments[0] == '--told'
    if told:
        arguments = arguments[1:]
    if arguments[0] == '--native':
        times = int(arguments[1])
        arguments = arguments[2:]
    todo = []
    for program in map(os.path.abspath, arguments):
        listed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
        todo += [(program, case) for case in listed.split()]
    failed = 0
    print('1..%d' % len(todo))
    for number, (program, case) in enumerate(todo, 1):
        title = '%s: %s' % (os.path.basename(program), case.replace('_', ' '))
        reason, wrong = outcome(program, case, times, told)
        if reason:
            print('ok %d - %s # SKIP %s' % (number, title, reason))
            continue
        for line in wrong:
            print('# ' + line)
        print('%s %d - %s' % ('not ok' if wrong else 'ok', number, title))
        failed += bool(wrong)
        sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main(sys.argv[1:])
