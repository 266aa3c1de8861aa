# SPDX-License-Identifier: MIT
"""Includes run one way and stand in order: CONTRIBUTING.md, "The house" and "Style", says which.

Usage: arrows_test.py SOURCE_ROOT
"""
import os
import re
import sys

from tap import *

ROOT = sys.argv[1]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<(tally/[^>]+)>)', re.M)

# Where each public header's implementation stands: to include the header is to use that folder.
PUBLIC = {
    'tally/error.h': 'lib',
    'tally/attr.h': 'lib/probe',
    'tally/counter.h': 'lib/counter',
    'tally/workload.h': 'lib/counter',
    'tally/event.h': 'lib/event',
    'tally/sampler.h': 'lib/sampler',
    'tally/perfdata.h': 'lib/perfdata',
    'tally/symbol.h': 'lib/symbol',
    'tally/probe.h': 'lib/probe',
    'tally/record.h': 'abi',
}

# A folder -> the folders it may use besides itself. 'lib' is what stands in lib/ outside of them.
ARROWS = {
    'abi': set(),
    'core': {'abi'},
    'runtime': {'abi', 'core'},
    'monitor': {'abi', 'core'},
    'lib': set(),
    'lib/event': {'lib', 'abi'},
    'lib/probe': {'lib', 'abi', 'lib/event'},
    'lib/counter': {'lib', 'abi', 'lib/event', 'lib/probe'},
    'lib/sampler': {'lib', 'abi', 'lib/event', 'lib/counter', 'lib/probe'},
    'lib/perfdata': {'lib', 'abi', 'lib/event'},
    'lib/symbol': {'lib', 'abi', 'lib/event'},
}


def folder_of(path):
    parts = path.split('/')
    if parts[0] == 'lib' and len(parts) > 2:
        return 'lib/' + parts[1]
    return parts[0]


def sources(top):
    for directory, _, names in sorted(os.walk(os.path.join(ROOT, top))):
        for name in sorted(names):
            if name.endswith(('.c', '.h')):
                yield os.path.relpath(os.path.join(directory, name), ROOT)


def includes(top):
    """(file, what it includes) for each include of ours below a folder."""
    found = 0
    for path in sources(top):
        with open(os.path.join(ROOT, path)) as source:
            for match in INCLUDE.finditer(source.read()):
                found += 1
                yield path, match.group(1) or match.group(2)
    check(found, 'no include found in %s/: does the test still read the tree?' % top)


def hold(top, allowed):
    """Fails with every include below @top that @allowed(file, include) does not name as fine. Unit
    tests may use what tests share."""
    wrong = ['%s includes "%s"' % (path, name) for path, name in includes(top)
             if not allowed(path, name) and
             not (path.endswith('_test.c') and name.startswith('tests/'))]
    check(not wrong, '\n'.join(wrong))


def case_every_public_header_has_a_home():
    headers = {'tally/' + name for name in os.listdir(os.path.join(ROOT, 'include/tally'))}
    equal(headers - {'tally/tally.h'}, set(PUBLIC), 'headers in include/tally')


def case_every_folder_of_the_library_has_its_arrows():
    folders = {folder_of(path) for path in sources('lib')}
    equal(folders, {folder for folder in ARROWS if folder.startswith('lib')}, 'folders of lib')


def case_public_headers_include_public_headers_alone():
    hold('include', lambda path, name: name in PUBLIC)


def case_abi_uses_nothing_of_ours_but_public_headers():
    hold('abi', lambda path, name: name in PUBLIC or folder_of(name) == 'abi')


def case_core_uses_abi_alone():
    hold('core', lambda path, name: folder_of(PUBLIC.get(name, name)) in ('core', 'abi'))


def case_runtime_uses_abi_and_core_alone():
    hold('runtime', lambda path, name:
         folder_of(PUBLIC.get(name, name)) in ('runtime', 'abi', 'core'))


def case_the_monitor_uses_abi_and_core_alone():
    hold('monitor', lambda path, name: name == 'tally/error.h' or
         folder_of(PUBLIC.get(name, name)) in ('monitor', 'abi', 'core'))


def case_the_folders_of_the_library_use_each_other_one_way():
    def allowed(path, name):
        here = folder_of(path)
        there = PUBLIC.get(name) or folder_of(name)
        return there == here or there in ARROWS[here]

    hold('lib', allowed)


def case_the_tool_uses_the_library_by_its_public_headers():
    hold('tool', lambda path, name: name in PUBLIC or name == 'tally/tally.h' or
         folder_of(name) == 'tool' or (path == 'tool/run.c' and name == 'monitor/monitor.h'))


def case_the_events_of_libpfm4_use_nothing_else_of_ours():
    hold('pfm', lambda path, name: folder_of(name) == 'pfm')


def case_vendors_events_are_asked_for_in_one_place():
    users = set()
    for top in ('lib', 'tool', 'monitor', 'runtime', 'abi'):
        for path in sources(top):
            with open(os.path.join(ROOT, path)) as source:
                if re.search(r'^[ \t]*#[ \t]*include[ \t]*<perfmon/', source.read(), re.M):
                    users.add(path)
    equal(users, {'lib/event/vendor.h'})


def case_examples_use_what_is_installed():
    hold('examples', lambda path, name: name in PUBLIC or name == 'tally/tally.h')


def blocks_of_includes(path):
    """What adjacent lines include, with the quotes or brackets."""
    with open(os.path.join(ROOT, path)) as source:
        lines = [re.match(r'#include ([<"].*[>"])', line) for line in source]
    block = []
    for match in lines + [None]:
        if match:
            block.append(match.group(1))
        elif block:
            yield block
            block = []


def case_includes_stand_in_order():
    wrong = []
    for top in ('abi', 'bench', 'core', 'examples', 'lib', 'monitor', 'pfm', 'runtime', 'tests', 'tool'):
        for path in sources(top):
            blocks = list(blocks_of_includes(path))
            own = '"%s.h"' % path[:-2]
            if any(block != sorted(block) for block in blocks):
                wrong.append(path + ': not sorted')
            behind_own = blocks[1:] if blocks and len(blocks[0]) == 1 else blocks
            if '"<' in ''.join(block[0][0] for block in behind_own):
                wrong.append(path + ': headers of the system behind ours')
            # What core asks for is a header of core's that somebody else has the code of.
            if any(own in block for block in blocks[1:]) and blocks[0] != ['"core/host.h"']:
                wrong.append(path + ': its own header is not the first')
    check(not wrong, '\n'.join(wrong))


def case_the_arrows_make_no_circle():
    done = set()

    def follow(folder, way):
        check(folder not in way, 'circle: ' + ' -> '.join(way + [folder]))
        for user in () if folder in done else ARROWS[folder]:
            follow(user, way + [folder])
        done.add(folder)

    for folder in ARROWS:
        follow(folder, [])


if __name__ == '__main__':
    main()
