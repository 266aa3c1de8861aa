#!/usr/bin/env python3
"""Programs that were built for libpfm4 and with its headers, run with it and with our library.

In TAP. LIBPFM_DIR holds our library as libpfm.so.4. What the two say has to be equal but for
descriptions. The programs are the examples of Debian's libpfm4-dev, and PAPI's tools.
"""

import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

LIBPFM_DIR = os.environ['LIBPFM_DIR']
EXAMPLES = '/usr/share/doc/libpfm4-dev/examples'
PMUS = ('skl', 'spr', 'amd64_fam19h_zen3', 'nhm')
STRINGS = {
    'skl': 'INST_RETIRED:u L2_RQSTS:MISS:c=2 skl::UOPS_ISSUED:ANY:e:c=1 NO_SUCH_EVENT L2_RQSTS '
           'OFFCORE_RESPONSE_0:DMND_DATA_RD:L3_HITM INST_RETIRED:PREC_DIST:k',
    'spr': 'MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=64 FRONTEND_RETIRED:LATENCY_GE_4 spr::INST_RETIRED',
    'amd64_fam19h_zen3': 'RETIRED_INSTRUCTIONS:u RETIRED_SSE_AVX_FLOPS:ANY:c=3 RETIRED_INSTRUCTIONS:q',
    'nhm': 'UNHALTED_CORE_CYCLES:t=1 MEM_LOAD_RETIRED:L2_HIT:MEM_LOAD_RETIRED',
}


class Skip(Exception):
    pass


def run(argv, ours, **env):
    env = dict(os.environ, LC_ALL='C', **env)
    env.pop('LD_LIBRARY_PATH', None)
    if ours:
        env['LD_LIBRARY_PATH'] = LIBPFM_DIR
    return subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', timeout=120, check=False)


def built(folder, name):
    """An example of libpfm4, compiled as its users do"""
    compiler, source = shutil.which('cc'), None
    for path in glob.glob(f'{EXAMPLES}/{name}.c*'):
        opened = gzip.open if path.endswith('.gz') else open
        with opened(path, 'rb') as file:
            source = file.read()
    if not compiler or not source:
        raise Skip('no compiler' if source else f'no {name}.c in {EXAMPLES}')
    # A header that libpfm4 has in its source and Debian does not install.
    os.makedirs(f'{folder}/perfmon', exist_ok=True)
    with open(f'{folder}/perfmon/err.h', 'w', encoding='utf-8') as file:
        file.write('#include <err.h>\n')
    with open(f'{folder}/{name}.c', 'wb') as file:
        file.write(source)
    program = f'{folder}/{name}'
    done = run([compiler, '-w', '-D_GNU_SOURCE', f'-I{folder}', '-o', program, program + '.c',
                '-lpfm'], False)
    if done.returncode:
        raise Skip('libpfm4-dev cannot be linked with here')
    return program


def equal(what, ours, theirs):
    if ours != theirs:
        raise AssertionError(f'{what}\nours:   {ours}\ntheirs: {theirs}')


def check_events(folder):
    """Statuses and codes of event strings, good and bad"""
    program = built(folder, 'check_events')
    for pmu, strings in STRINGS.items():
        for string in strings.split():
            both = []
            for ours in (True, False):
                done = run([program, string], ours, LIBPFM_FORCE_PMU=pmu)
                said = [line for line in done.stdout.splitlines()
                        if line.startswith(('Actual', 'Codes'))]
                both.append((done.returncode, said))
            equal(string, *both)


def listed(program, pmu, ours):
    """Events with their attributes, without descriptions and the numbers of events"""
    events = []
    for line in run([program], ours, LIBPFM_FORCE_PMU=pmu).stdout.splitlines():
        if line.startswith('Name '):
            events.append([line])
        elif events and line.startswith(('Equiv', 'Flags', 'Code', 'Umask', 'Modif')):
            label, *fields = (field.strip() for field in line.split(' : '))
            events[-1].append((label, tuple(f for f in fields if re.fullmatch(
                r'0x[0-9a-f]+|PMU|perf|\[[^\]]*\]|None|(\[[a-z_ ]+\] ?)+', f))))
    return events


def showevtinfo(folder):
    """Everything there is to know of an event"""
    program = built(folder, 'showevtinfo')
    for pmu in PMUS:
        ours, theirs = listed(program, pmu, True), listed(program, pmu, False)
        if len(theirs) < 30:
            raise AssertionError(f'{pmu}: only {len(theirs)} events')
        equal(pmu, len(ours), len(theirs))
        for a, b in zip(ours, theirs):
            equal(f'{pmu} {a[0]}', a, b)


def native_events(pmu, ours):
    done = run(['papi_native_avail'], ours, LIBPFM_FORCE_PMU=pmu)
    return set(re.findall(r'^\| {1,5}(:?\w+\S*)\s+\|$', done.stdout, re.M))


def papi_native_avail(_):
    """PAPI's list of native events"""
    if not shutil.which('papi_native_avail'):
        raise Skip('papi-tools is not installed')
    theirs = native_events('amd64_fam19h_zen3', False)
    if len(theirs) < 50:
        raise Skip('PAPI shows no native events of processors here')
    equal('native events', native_events('amd64_fam19h_zen3', True), theirs)


def main():
    cases = (check_events, showevtinfo, papi_native_avail)
    print(f'1..{len(cases)}')
    status = 0
    for number, case in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(folder)
                print(f'ok {number} - {case.__name__}')
            except Skip as reason:
                print(f'ok {number} - {case.__name__} # SKIP {reason}')
            except AssertionError as problem:
                print(f'not ok {number} - {case.__name__}')
                for line in str(problem).splitlines():
                    print('#', line)
                status = 1
    return status


if __name__ == '__main__':
    sys.exit(main())
