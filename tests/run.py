#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the test suites of the given build directories and closes with one line:

    N passed, N failed, N skipped

Each case of a program that speaks TAP counts; what failed or was skipped is listed with its reason.
"""
import os
import subprocess
import sys
import xml.etree.ElementTree as ET


def cases(build):
    tree = ET.parse(os.path.join(build, 'meson-logs', 'testlog.junit.xml'))
    for suite in tree.getroot().iter('testsuite'):
        for case in suite.iter('testcase'):
            name = '%s %s' % (suite.get('name'), case.get('name'))
            for verdict in ('failure', 'error', 'skipped'):
                found = case.find(verdict)
                if found is not None:
                    reason = found.get('message') or (found.text or '').strip()
                    yield name, 'failed' if verdict != 'skipped' else 'skipped', reason
                    break
            else:
                yield name, 'passed', ''


def main():
    count = {'passed': 0, 'failed': 0, 'skipped': 0}
    broken = False
    for build in sys.argv[1:]:
        done = subprocess.run(['meson', 'test', '-C', build, '--no-rebuild', '--print-errorlogs'])
        seen = 0
        for name, verdict, reason in cases(build):
            seen += 1
            count[verdict] += 1
            if verdict != 'passed':
                print('%s: %s%s' % (verdict, name, ': ' + reason if reason else ''))
        broken |= done.returncode != 0 or not seen
    print('%(passed)d passed, %(failed)d failed, %(skipped)d skipped' % count)
    return 1 if broken or count['failed'] or not count['passed'] else 0


if __name__ == '__main__':
    sys.exit(main())
