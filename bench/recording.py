# SPDX-License-Identifier: MIT
"""A long recording for the benchmarks, made once and kept in the build directory."""
import os
import subprocess


def recording(samples):
    """Path of a perf.data of at least that many samples with call chains."""
    build = os.path.join(os.environ['BUILD'], 'bench')
    small = os.path.join(build, 'deep.data')
    large = os.path.join(build, 'deep-%d.data' % samples)
    if not os.path.exists(small):
        subprocess.run(['perf', 'record', '-q', '-F', '20000', '-g', '-e', 'cpu-clock', '-o', small,
                        os.path.join(build, 'deep'), '3'], check=True, stdout=subprocess.DEVNULL)
    if not os.path.exists(large):
        replicate = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'replicate')
        subprocess.run([replicate, small, large, str(samples)], check=True)
    return large
