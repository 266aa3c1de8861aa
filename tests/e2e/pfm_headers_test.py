# SPDX-License-Identifier: MIT
"""Our headers of libpfm4's interface and its own: the same names, values, sizes and offsets.

Usage: pfm_headers_test.py SOURCE_ROOT
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from tap import *

SOURCE = os.path.join(sys.argv[1], 'include')
THEIRS = '/usr/include'
STRUCTS = {
    'pfm_pmu_info_t': 'name desc size pmu type nevents first_event max_encoding num_cntrs '
                      'num_fixed_cntrs',
    'pfm_event_info_t': 'name desc equiv size code pmu dtype idx nattrs reserved',
    'pfm_event_attr_info_t': 'name desc equiv size code type idx ctrl dfl_val64 dfl_str dfl_bool '
                             'dfl_int',
    'pfm_pmu_encode_arg_t': 'codes fstr size count idx',
    'pfm_perf_encode_arg_t': 'attr fstr size idx cpu flags pad0',
}
BITS = {
    'pfm_pmu_info_t': 'is_present is_dfl reserved_bits',
    'pfm_event_info_t': 'is_precise is_speculative support_hw_smpl reserved_bits',
    'pfm_event_attr_info_t': 'is_dfl is_precise is_speculative support_hw_smpl reserved_bits',
}


def names():
    """What libpfm4's header gives a number."""
    text = open(os.path.join(THEIRS, 'perfmon/pfmlib.h')).read()
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    found = set(re.findall(r'^\s+(PFM_\w+)\s*(?:=[^,]*)?,?\s*$', text, flags=re.M))
    found |= set(re.findall(r'#define\s+((?:LIB)?PFM_\w+)\s', text))
    check(len(found) > 500, 'only %d names in %s' % (len(found), THEIRS))
    return sorted(found | {'PFM_PERF_ENCODE_ABI0'})


def program():
    lines = ['#include <perfmon/pfmlib_perf_event.h>', '#include <stddef.h>', '#include <string.h>',
             'int main(void) {']
    lines += ['printf("%s %%lld\\n", (long long)(%s));' % (n, n) for n in names()]
    for struct, fields in STRUCTS.items():
        lines.append('printf("%s %%zu\\n", sizeof(%s));' % (struct, struct))
        lines += ['printf("%s.%s %%zu\\n", offsetof(%s, %s));' % (struct, f, struct, f)
                  for f in fields.split()]
    for struct, bits in BITS.items():
        for bit in bits.split():
            lines.append('{ %s s; unsigned char *b = (unsigned char *)&s; memset(&s, 0, sizeof s); '
                         's.%s = -1; printf("%s.%s"); for (size_t i = 0; i < sizeof s; i++) '
                         'printf(" %%02x", b[i]); puts(""); }' % (struct, bit, struct, bit))
    return '\n'.join(lines + ['return 0; }', ''])


def answers(include):
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, 'a.c'), os.path.join(folder, 'a')
        with open(source, 'w') as f:
            f.write(program())
        subprocess.run(['cc', '-w', '-I' + include, source, '-o', binary], check=True)
        done = subprocess.run([binary], check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout.splitlines()


def case_names_values_and_layouts_are_the_same():
    if not os.path.exists(os.path.join(THEIRS, 'perfmon/pfmlib.h')):
        skip('libpfm4-dev is not installed')
    if not shutil.which('cc'):
        skip('no C compiler')
    ours, theirs = answers(SOURCE), answers(THEIRS)
    check(len(theirs) > 500, 'only %d answers' % len(theirs))
    for a, b in zip(ours, theirs):
        equal(a, b, 'ours and theirs')


if __name__ == '__main__':
    main()
