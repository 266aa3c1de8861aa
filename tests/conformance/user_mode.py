# SPDX-License-Identifier: MIT
"""Runs the conformance suite under `tally run`, and judges it by what user mode is known to lack.

Usage: user_mode.py EXCUSES [--alone] COMMAND...	the command prints the suite's TAP
       user_mode.py --check-document EXCUSES DOCUMENT	the document has the excuses as a table
       user_mode.py --document EXCUSES			prints that table

EXCUSES (user_mode.tsv) lists the cases that fail there, each with the reason:

    where	any: on every host; alone: where the kernel is not asked, or refuses the call
    case	as the suite prints it: the ids of its rows, a colon, what it shows
    instead	what happens
    why

A case that skips as breakpoints are never hit fails: that is said of kernels.

A case that is listed and fails is skipped with the reason. A case that is listed and passes fails:
somebody has made it work, and the line is to go.
"""
import ctypes
import errno
import os
import re
import subprocess
import sys

CASE = re.compile(r'(not )?ok (\d+) - (.*?)(?: # SKIP (.*))?$')
BEGIN, END = '<!-- user_mode.tsv -->\n', '<!-- end -->\n'


class Excuse:
    def __init__(self, line):
        self.where, self.case, self.instead, self.why = line.rstrip('\n').split('\t')
        if self.where not in ('any', 'alone'):
            raise ValueError('neither any nor alone: %s' % self.where)

    def ids(self):
        return self.case.partition(': ')[0].split()


def read_excuses(path):
    with open(path) as file:
        return [Excuse(line) for line in file.readlines()[1:]]


def kernel_counts():
    """Whether the kernel has the call, and lets us make it."""
    PERF_EVENT_OPEN = 298
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(PERF_EVENT_OPEN, None, 0, -1, -1, 0)
    if ctypes.get_errno() == errno.EFAULT:  # for want of arguments
        return True
    print('# the kernel refuses the call: %s' % errno.errorcode[ctypes.get_errno()])
    return False


def judge(lines, excuses):
    """The suite's lines, with the excuses applied; returns the cases that failed."""
    failed = 0
    met = set()
    reason = None
    for line in lines:
        found = CASE.match(line)
        if not found:
            # What a failed case says of itself, which is now a skipped one.
            print('# %s' % line.lstrip('# ') if reason else line)
            reason = None
            continue
        wrong, number, case, skipped = found.groups()
        excuse = excuses.get(case)
        reason = excuse and wrong and excuse.why
        met.add(case)
        if reason:
            print('ok %s - %s # SKIP user mode cannot: %s' % (number, case, reason))
        elif excuse and not skipped:
            failed += 1
            print('not ok %s - %s\n# it passes, and yet is excused: %s' % (number, case,
                                                                           excuse.why))
        elif skipped and 'breakpoints are never hit' in skipped:
            failed += 1
            print('not ok %s - %s\n# %s' % (number, case, skipped))
        else:
            failed += bool(wrong)
            print(line)
        sys.stdout.flush()
    return failed, set(excuses) - met


def run(path, alone, command):
    alone = not kernel_counts() or alone
    excuses = {excuse.case: excuse for excuse in read_excuses(path)
               if alone or excuse.where == 'any'}
    suite = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    failed, unknown = judge((line.rstrip('\n') for line in suite.stdout), excuses)
    for case in sorted(unknown):
        print('# no case of the suite is excused by: %s' % case)
    # Of its own statuses 1 says that cases failed, which have been looked at.
    return 1 if failed or unknown or suite.wait() not in (0, 1) else 0


def table(excuses):
    """As Markdown: a row for each reason, with the ids of all cases that have it."""
    rows = {}
    for excuse in excuses:
        ids = rows.setdefault((excuse.where, excuse.instead, excuse.why), [])
        ids += [id for id in excuse.ids() if id not in ids]
    yield '| items | what happens | why |\n|---|---|---|\n'
    for (where, instead, why), ids in rows.items():
        names = ', '.join('`%s`' % id for id in ids)
        yield '| %s%s | %s | %s |\n' % ('alone: ' if where == 'alone' else '', names, instead, why)


def check_document(path, document):
    with open(document) as file:
        text = file.read()
    found = text.partition(BEGIN)[2].partition(END)[0]
    print('1..1')
    if found == ''.join(table(read_excuses(path))):
        print('ok 1 - %s has the table of excuses' % os.path.basename(document))
        return 0
    print('not ok 1 - %s has the table of excuses\n# put there what `%s --document %s` prints' %
          (os.path.basename(document), os.path.basename(__file__), os.path.basename(path)))
    return 1


def main(arguments):
    if arguments[0] == '--document':
        sys.stdout.writelines(table(read_excuses(arguments[1])))
        return 0
    if arguments[0] == '--check-document':
        return check_document(*arguments[1:])
    path, *command = arguments
    alone = command[0] == '--alone'
    return run(path, alone, command[alone:])


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
