#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs real programs natively and under `tally run`, and compares all that can be seen of them.

    tests/corpus/corpus.py [options] [CASE or *GLOB*]...

A case is a shell script in cases/*.sh. It runs in an empty directory, with $DATA naming the
directory of inputs that data.py made. What it writes to standard output and error, its exit status
or signal, every file that it leaves and every process that it leaves must be the same both times.

  --short        only the cases marked so, which together take seconds
  --native       natively twice instead: are the cases themselves deterministic?
  --under CMD    put both sides under CMD, for instance 'confine docker'
  --repeat N     run each case N times
  --jobs N       how many cases at a time (default: 1)
  --keep DIR     leave what both sides printed and wrote there, for a look
  --list         show the names and stop

Prints TAP. TALLY in the environment names the tool.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import fnmatch
import glob
import hashlib
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import data  # noqa: E402

# Cases run in folders of their own: a path has to be whole.
TALLY = [os.path.abspath(word) if '/' in word else word
         for word in shlex.split(os.environ.get('TALLY', 'tally'))] + ['run', '--']
PR_SET_CHILD_SUBREAPER = 36

Case = collections.namedtuple('Case', 'name file line short needs timeout script')
Result = collections.namedtuple('Result', 'status out err files left seconds')


# --- cases -------------------------------------------------------------------------------------

def load(path):
    """A file of cases. Each starts with a line `#: NAME [short] [needs PROGRAM...] [timeout N]`."""
    found = []
    for number, line in enumerate(open(path), 1):
        if line.startswith('#:'):
            head = re.fullmatch(r'#: (\S+)( short)?(?: timeout (\d+))?(?: needs (.+))?\n', line)
            if not head:
                sys.exit('%s:%d: not the head of a case: %s' % (path, number, line.strip()))
            found.append((head, number, []))
        elif found:
            found[-1][2].append(line)
    return [Case(head[1], os.path.basename(path), number, bool(head[2]),
                 (head[4] or '').split(), int(head[3] or 60), ''.join(lines))
            for head, number, lines in found]


def all_cases():
    cases = [case for path in sorted(glob.glob(os.path.join(HERE, 'cases', '*.sh')))
             for case in load(path)]
    twice = [name for name, times in collections.Counter(c.name for c in cases).items()
             if times > 1]
    if twice:
        sys.exit('cases with the same name: ' + ' '.join(twice))
    return cases


def missing(case, env):
    """What the machine lacks for this case; '' when nothing."""
    for need in case.needs:
        if not (os.path.exists(need) if '/' in need else shutil.which(need, path=env['PATH'])):
            return need
    return ''


# --- running one -------------------------------------------------------------------------------

def environment(work, inputs):
    """The same for everybody: nothing of the user's settings gets in."""
    home = os.path.expanduser('~')
    env = {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin', 'LC_ALL': 'C', 'TZ': 'UTC',
           'HOME': work, 'TMPDIR': work, 'DATA': inputs, 'TERM': 'dumb', 'USER': 'tally',
           'GIT_CONFIG_SYSTEM': '/dev/null', 'PYTHONDONTWRITEBYTECODE': '1'}
    if os.path.exists(home + '/.cargo/bin'):
        env['PATH'] += ':' + home + '/.cargo/bin'
        env['RUSTUP_HOME'] = os.environ.get('RUSTUP_HOME', home + '/.rustup')
    return env


def descendants():
    """Processes below this one; a subreaper sees those that daemonized, too."""
    parent = {}
    for entry in os.listdir('/proc'):
        if entry.isdigit():
            try:
                with open('/proc/%s/stat' % entry) as file:
                    fields = file.read().rpartition(')')[2].split()
            except OSError:
                continue
            if fields[0] != 'Z':
                parent[int(entry)] = int(fields[1])
    mine = {os.getpid()}
    while True:
        more = {pid for pid, above in parent.items() if above in mine} - mine
        if not more:
            return mine - {os.getpid()}
        mine |= more


def reap():
    """Buries what is dead of the processes that were left to us."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return


def end_all():
    """Ends every process below this one; returns the command lines of those that were alive."""
    left = []
    for _ in range(100):
        reap()
        pids = descendants()
        if not pids:
            break
        for pid in pids:
            try:
                with open('/proc/%d/cmdline' % pid) as file:
                    left.append(file.read().replace('\0', ' ').strip())
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.02)
    return sorted(set(left))


def manifest(root):
    """Every path below root with what can be told of it, times aside."""
    seen = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            info = os.lstat(path)
            kind = stat.filemode(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                kind += ' -> ' + os.readlink(path)
            elif stat.S_ISREG(info.st_mode):
                with open(path, 'rb') as file:
                    kind += ' %d bytes, %s' % (info.st_size,
                                               hashlib.sha256(file.read()).hexdigest()[:16])
            seen[os.path.relpath(path, root)] = kind
    return seen


def prepare(work, case):
    """An empty directory with the case's script beside it."""
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    script = work + '.sh'
    with open(script, 'w') as file:
        file.write(case.script)
    return script


def start(case, work, inputs, prefix):
    """The case in a session of its own, output going to files beside its directory."""
    script = prepare(work, case)
    with open(work + '.out', 'wb') as out, open(work + '.err', 'wb') as err:
        return subprocess.Popen(prefix + ['/bin/sh', script], cwd=work, stdin=subprocess.DEVNULL,
                                stdout=out, stderr=err, env=environment(work, inputs),
                                start_new_session=True)


def finish(child, timeout):
    """Exit status, negative for a signal; or the words 'no end' when it had to be ended."""
    try:
        return child.wait(timeout)
    except subprocess.TimeoutExpired:
        return 'no end after %d s' % timeout


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def finished(child, timeout, began, work):
    """All that a case has shown, once it is over; ends what it left."""
    status = finish(child, timeout)
    seconds = time.monotonic() - began
    # What is on its way out when its parent ends is no leftover; what is alive a moment later is.
    for _ in range(50):
        reap()
        if not isinstance(status, int) or not descendants():
            break
        time.sleep(0.02)
    left = end_all()
    child.poll()
    return Result(status, read(work + '.out'), read(work + '.err'), manifest(work), left, seconds)


def run(case, work, inputs, prefix):
    began = time.monotonic()
    return finished(start(case, work, inputs, prefix), case.timeout, began, work)


# --- comparing ---------------------------------------------------------------------------------

def first_difference(a, b):
    """The first line that differs, as each side has it."""
    ours, theirs = a.splitlines(), b.splitlines()
    for n in range(max(len(ours), len(theirs))):
        x = ours[n] if n < len(ours) else b'(end)'
        y = theirs[n] if n < len(theirs) else b'(end)'
        if x != y:
            return 'line %d is %r, natively %r' % (n + 1, x[:200].decode(errors='replace'),
                                                   y[:200].decode(errors='replace'))
    return 'line ends differ'


def differences(found, native):
    if found.status != native.status:
        yield 'ended with %s, natively with %s' % (found.status, native.status)
    for name in ('out', 'err'):
        a, b = getattr(found, name), getattr(native, name)
        if a != b:
            yield 'std%s: %s' % (name, first_difference(a, b))
    for path in sorted(set(found.files) | set(native.files)):
        a, b = found.files.get(path, 'missing'), native.files.get(path, 'missing')
        if a != b:
            yield 'file %s: %s; natively %s' % (path, a, b)
    if found.left != native.left:
        yield 'processes left behind: %s; natively %s' % (found.left or 'none',
                                                          native.left or 'none')


def keep(work, target):
    os.makedirs(target, exist_ok=True)
    for path in (work, work + '.sh', work + '.out', work + '.err'):
        if os.path.exists(path):
            os.rename(path, os.path.join(target, 'work' + os.path.splitext(path)[1]))


class Pair:
    """Both sides of a case, one after the other, in the same place."""

    def __init__(self, options, root):
        self.options = options
        self.root = root
        under = shlex.split(options.under)
        self.native = under + ['env', '--']
        self.other = self.native if options.native else under + TALLY

    def compare(self, case):
        """(lines that tell the differences, seconds natively, seconds of the other side)"""
        work = os.path.join(self.root, 'work')
        results = []
        for side, prefix in (('native', self.native), ('tally', self.other)):
            results.append(run(case, work, os.path.join(self.root, 'data'), prefix))
            if self.options.keep:
                target = os.path.join(self.options.keep, case.name, side)
                shutil.rmtree(target, ignore_errors=True)
                keep(work, target)
        native, other = results
        lines = list(differences(other, native))
        if not isinstance(native.status, int):
            lines.insert(0, 'natively there was ' + native.status)
        return lines, native.seconds, other.seconds


# --- the front ---------------------------------------------------------------------------------

def judge(case, options, root):
    """The TAP lines of one case, numbered later."""
    lack = missing(case, environment(root, root))
    if lack:
        return 'ok', '%s # SKIP %s is not installed' % (case.name, lack), []
    notes = []
    for attempt in range(options.repeat):
        lines, native, other = Pair(options, root).compare(case)
        if lines:
            if options.repeat > 1:
                lines.insert(0, 'run %d of %d' % (attempt + 1, options.repeat))
            return 'not ok', '%s (cases/%s:%d)' % (case.name, case.file, case.line), lines
        notes = ['%.2f s, natively %.2f s' % (other, native)]
    return 'ok', case.name, notes


def worker(arguments):
    """One case in a process of its own, whose descendants are then this case's alone."""
    case, options, root = arguments
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    mine = os.path.join(root, str(os.getpid()))
    os.makedirs(mine, exist_ok=True)
    if not os.path.lexists(mine + '/data'):
        os.symlink(os.path.join(root, 'data'), mine + '/data')
    return judge(case, options, mine)


def selected(options):
    cases = all_cases()
    for pattern in options.cases:
        if not any(fnmatch.fnmatch(case.name, pattern) for case in cases):
            sys.exit('no case is called %s; --list shows them' % pattern)
    return [case for case in cases if (case.short or not options.short) and
            (not options.cases or any(fnmatch.fnmatch(case.name, p) for p in options.cases))]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    for flag in ('--short', '--native', '--list'):
        parser.add_argument(flag, action='store_true')
    parser.add_argument('--under', default='')
    parser.add_argument('--repeat', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--keep')
    parser.add_argument('cases', nargs='*')
    return parser.parse_args()


def main():
    options = arguments()
    cases = selected(options)
    if options.list:
        print('\n'.join(case.name for case in cases))
        return 0
    with tempfile.TemporaryDirectory(prefix='tally-corpus.') as root:
        data.make(os.path.join(root, 'data'))
        print('1..%d' % len(cases), flush=True)
        failed = 0
        with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
            jobs = [(case, options, root) for case in cases]
            for number, (verdict, title, notes) in enumerate(pool.map(worker, jobs), 1):
                failed += verdict != 'ok'
                print('\n'.join(['%s %d - %s' % (verdict, number, title)] +
                                ['# ' + line.replace('\n', '\n# ') for line in notes]), flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
