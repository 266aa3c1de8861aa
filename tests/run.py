#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the test suites of the given build directories and closes with one line:

    N passed, N failed, N skipped

Each case of a program that speaks TAP counts, and so does a program that ends in failure without
a failed case. What failed or was skipped is listed with its reason, one line for a case whatever
the number of builds.

The cases come from the programs' own output, as Meson's JSON log keeps it: Meson's other logs drop
the reasons.
"""
import json
import os
import re
import subprocess
import sys

CASE = re.compile(r'(not )?ok\b *\d* *(?:- )?(.*)$')
DIRECTIVE = re.compile(r'(.*?) *(?<!\\)# *(skip|todo)\S* *(.*)$', re.I)


def cases(output):
    """Name, verdict and reason of each case in @output, which is TAP."""
    said = ''
    for line in output.splitlines():
        found = CASE.match(line)
        if not found:
            if line.startswith('# '):
                said = line[2:].strip()
            elif re.match(r'1\.\.0\b', line):  # a plan of nothing: the whole program is skipped
                yield '', 'skipped', line.partition('#')[2].strip()
            continue
        failed, name = found.groups()
        reason, directive = '', DIRECTIVE.match(name)
        if directive:
            name, kind, reason = directive.groups()
        if directive and kind.lower() == 'skip':
            yield name, 'skipped', re.sub(r'^[Ss][Kk][Ii][Pp]\S* *', '', reason)
        elif failed and not directive:
            yield name, 'failed', said
        else:
            yield name, 'passed', ''
        said = ''


def results(build):
    """As cases(), of all programs of a build, their names in front."""
    with open(os.path.join(build, 'meson-logs', 'testlog.json')) as log:
        for line in log:
            test = json.loads(line)
            program = test['name'].split(' / ')[-1]
            failed = seen = False
            for name, verdict, reason in cases(test.get('stdout') or ''):
                seen = True
                failed |= verdict == 'failed'
                yield ('%s: %s' % (program, name)).rstrip(': '), verdict, reason
            if test['result'] not in ('OK', 'SKIP') and not failed:
                yield program, 'failed', 'the program ended with %s, status %s' % (
                    test['result'], test['returncode'])
            elif not seen:
                yield program, 'skipped' if test['result'] == 'SKIP' else 'passed', 'no cases'


def main():
    count = {'passed': 0, 'failed': 0, 'skipped': 0}
    listed = []
    broken = False
    for build in sys.argv[1:]:
        # The limits end what hangs; a slow machine is no failure.
        done = subprocess.run(['meson', 'test', '-C', build, '--no-rebuild', '--print-errorlogs',
                               '--timeout-multiplier', '5'])
        seen = 0
        for name, verdict, reason in results(build):
            seen += 1
            count[verdict] += 1
            line = '%s: %s: %s' % (verdict, name, reason or 'no reason given')
            if verdict == 'failed':
                listed.append('%s (%s)' % (line, build))
            elif verdict == 'skipped' and line not in listed:
                listed.append(line)
        broken |= done.returncode != 0 or not seen
    # What failed last, where it is looked for.
    for line in sorted(listed, reverse=True):
        print(line)
    print('%(passed)d passed, %(failed)d failed, %(skipped)d skipped' % count)
    return 1 if broken or count['failed'] or not count['passed'] else 0


if __name__ == '__main__':
    sys.exit(main())
