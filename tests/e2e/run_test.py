#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tally run` as whoever starts it sees it, and the edges of execve(2), descriptors and /proc.

RUN_TARGET is run_target.c, statically linked and fixed at its address; TALLY_RT is tally-rt.
"""
import ctypes
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from tap import *

TARGET = os.environ['RUN_TARGET']
RT = os.environ['TALLY_RT']


def need_room():
    """The tool itself is to start where much of the address space is taken."""
    if os.environ['SANITIZE'] != 'none':
        skip('a sanitized tool needs terabytes of address space for itself')


def under(*argv, **more):
    return tally('run', '--', *argv, **more)


def same(*argv, **more):
    """Runs it natively and under tally run: all must be equal. Returns what tally run did."""
    native = run(*argv, **more)
    ours = under(*argv, **more)
    equal((ours.returncode, ours.stdout, ours.stderr),
          (native.returncode, native.stdout, native.stderr), 'of ' + ' '.join(argv))
    return ours


def python(code, *args, **more):
    return same(sys.executable, '-E', '-S', '-c', code, *args, **more)


class Folder(tempfile.TemporaryDirectory):
    """A folder for files to execute; anybody may look into it."""

    def __enter__(self):
        self.path = super().__enter__()
        os.chmod(self.path, 0o755)
        return self

    def file(self, name, content, mode=0o755):
        path = os.path.join(self.path, name)
        with open(path, 'wb') as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        return path


# How it ends

def case_the_exit_status_is_the_commands():
    for status in (0, 1, 42, 255):
        equal(under('sh', '-c', 'exit %d' % status).returncode, status)


def case_a_signal_that_ends_the_command_ends_the_tool():
    for name in ('TERM', 'KILL', 'USR1', 'SEGV', 'ABRT'):
        done = under('sh', '-c', 'ulimit -c 0; kill -%s $$' % name)
        equal(done.returncode, -getattr(signal, 'SIG' + name), 'end by ' + name)
        equal(done.stderr, '')


def case_a_signal_to_the_group_comes_once():
    """The tool is in the group, too, and passes on what comes to it alone."""
    for send, times in ((os.killpg, 8), (os.kill, 2)):
        for _ in range(times):
            with subprocess.Popen([TALLY, 'run', '--', TARGET, 'handle'], stdout=subprocess.PIPE,
                                  text=True, start_new_session=True) as command:
                equal(command.stdout.readline(), 'ready\n')
                send(command.pid, signal.SIGTERM)
                equal(command.stdout.read(), '1\n', 'handled after ' + send.__name__)


def case_the_signal_need_not_have_been_free_to_come():
    def block():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    code = ('import os, signal; signal.signal(15, signal.SIG_DFL);'
            'signal.pthread_sigmask(signal.SIG_UNBLOCK, [15]); os.kill(os.getpid(), 15)')
    equal(python(code, preexec_fn=block).returncode, -signal.SIGTERM)


def case_a_command_that_is_not_there():
    done = under('no-such-command-anywhere', env={'PATH': '/usr/bin:/bin'})
    equal(done.returncode, 127)
    contains(done.stderr, "tally: cannot execute 'no-such-command-anywhere': No such file")
    contains(done.stderr, 'PATH')
    equal(under('/no/such/file').returncode, 127)


def case_a_command_that_cannot_be_executed():
    with Folder() as folder:
        plain = folder.file('plain', 'echo no', 0o644)
        done = under(plain)
        equal(done.returncode, 126)
        contains(done.stderr, 'chmod +x')
        equal(under(folder.path).returncode, 126)
        done = under(folder.file('lost', '#!/no/such/interpreter\n'))
        equal(done.returncode, 127)
        contains(done.stderr, 'its interpreter does not exist')


def case_parts_of_the_installation_are_missing():
    with Folder() as folder:
        alone = shutil.copy(TALLY, folder.path)
        for command, part in ('list', 'tally-tools.so'), ('run', 'tally-rt'):
            done = run(alone, command, 'true')
            if done.returncode == 0:
                skip('another tally is installed')
            equal((done.returncode, done.stderr),
                  (1, 'tally: cannot find %s, which belongs to tally: install tally anew\n' % part))
        folder.file('tally-tools.so', 'cut off')
        done = run(alone, 'list')
        equal(done.returncode, 1)
        contains(done.stderr, 'tally: cannot load %s/tally-tools.so: ' % folder.path)


def case_no_command_at_all():
    done = tally('run')
    equal(done.returncode, 129)
    contains(done.stderr, 'no command to run')


def case_the_model_is_of_the_processor_below_on_request():
    done = tally('run', '--cpu-model=host', '--', TARGET, 'brk')
    equal(done.returncode, 0)
    lines = done.stderr.splitlines()
    check(len(lines) <= 1, done.stderr)
    check(all('differs from this processor' in line for line in lines), done.stderr)
    equal(tally('run', '--cpu-model=reference', '--', TARGET, 'brk').stderr, '')
    done = tally('run', '--cpu-model=other', '--', TARGET, 'brk')
    equal(done.returncode, 129)
    contains(done.stderr, 'reference or host')


def case_a_file_without_a_format_is_a_shell_script():
    with Folder() as folder:
        done = under(folder.file('plain', 'echo "$0" "$1"; exit 3'), 'word')
        equal(done.returncode, 3)
        equal(done.stdout, folder.path + '/plain word\n')


def case_options_of_the_command_are_its_own():
    equal(tally('run', 'echo', '-n', '--help').stdout, '--help')


# Signals and job control

def start(*argv):
    return subprocess.Popen([TALLY, 'run', '--', *argv], stdout=subprocess.PIPE, text=True,
                            start_new_session=True)


def case_what_is_sent_to_the_tool_reaches_the_command():
    process = start('sh', '-c', 'trap "echo got it; exit 5" TERM; echo ready; '
                                'while :; do sleep 0.05; done')
    equal(process.stdout.readline(), 'ready\n')
    process.send_signal(signal.SIGTERM)
    equal(process.communicate(timeout=LIMIT)[0], 'got it\n')
    equal(process.returncode, 5)


def case_the_tool_stops_and_continues_with_the_command():
    process = start('sh', '-c', 'kill -STOP $$; echo again')
    pid, status = os.waitpid(process.pid, os.WUNTRACED)
    check(os.WIFSTOPPED(status), 'the tool did not stop')
    process.send_signal(signal.SIGCONT)
    equal(process.communicate(timeout=LIMIT)[0], 'again\n')
    equal(process.returncode, 0)


def case_a_caller_that_ignores_the_end_of_children():
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    done = same('grep', 'SigIgn', '/proc/self/status', preexec_fn=ignore)
    check(int(done.stdout.split()[1], 16) & 1 << signal.SIGCHLD - 1, 'SIGCHLD is not ignored')
    equal(under('sh', '-c', 'exit 6', preexec_fn=ignore).returncode, 6)


def case_ignored_and_blocked_signals_are_inherited():
    code = ('import signal; print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGPIPE),'
            'signal.getsignal(signal.SIGUSR1), signal.pthread_sigmask(signal.SIG_BLOCK, []))')

    def prepare():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH, signal.SIGSEGV])

    contains(python(code, preexec_fn=prepare).stdout, 'SIGWINCH')


# Who the program is

IDENTITY = r'''
import os
print(open('/proc/self/comm').read(), open('/proc/self/cmdline').read().split('\0')[:2])
for who in 'self', 'thread-self', str(os.getpid()), 'self/task/%d' % os.getpid():
    link = '/proc/%s/exe' % who
    print(os.readlink(link), os.stat(link).st_ino, os.access(link, os.X_OK),
          os.fstat(os.open(link, os.O_RDONLY)).st_ino)
os.chdir('/proc/self')
print(os.readlink('exe'), os.readlink('exe', dir_fd=os.open('.', os.O_RDONLY)))
print(b'TALLY' in open('/proc/self/environ', 'rb').read(), sorted(os.environ))
print(sorted(os.listdir('/proc/self/fd')), sorted(os.listdir('/proc/%d/fdinfo' % os.getpid())))
auxv = open('/proc/self/auxv', 'rb').read()
words = [int.from_bytes(auxv[i:i+8], 'little') for i in range(0, len(auxv), 8)]
print([t for t in words[::2]], words[-2:])
pid = os.fork()
if pid == 0:
    print(os.readlink('/proc/%d/exe' % os.getppid()), flush=True)
    os.execve('/proc/self/exe', ['again', '-E', '-S', '-c', 'import sys; print(sys.executable)'], {})
print(os.waitpid(pid, 0)[1])
'''


def case_proc_shows_the_program():
    python(IDENTITY)


def case_the_name_is_that_of_what_was_executed():
    with Folder() as folder:
        script = folder.file('a-script-with-a-long-name', '#!/bin/sh\ncat /proc/$$/comm\necho $0\n')
        same(script)
        same('sh', '-c', 'exec -a other cat /proc/self/comm', 'x')


def case_auxv_is_the_programs():
    same(TARGET, 'auxv')


# Descriptors

DESCRIPTORS = r'''
import errno, fcntl, os
def attempt(what, *args):
    try:
        return what(*args)
    except OSError as e:
        return errno.errorcode[e.errno]
for fd in 1000, 1001, 1002:
    print(attempt(os.close, fd), attempt(os.dup, fd), attempt(os.dup2, fd, 20),
          attempt(fcntl.fcntl, fd, fcntl.F_SETFD, 1))
os.closerange(3, 100000)
import subprocess
print(subprocess.run(['readlink', '/proc/self/exe'], close_fds=True, stdout=-1).stdout)
'''


def case_descriptors_of_the_runtime_are_not_there():
    python(DESCRIPTORS)


def case_close_range_leaves_what_exec_needs():
    same(TARGET, 'close-range', TARGET, 'hello')


def case_a_low_limit_on_descriptors():
    for limit in (9, 20, 64, *range(999, 1005)):
        same('sh', '-c', 'ulimit -n %d; readlink /proc/self/exe; ls /proc/self/fd | wc -l; '
                         'sh -c "echo again"' % limit)


EVENTS = r'''
import ctypes, os, struct
attr = struct.pack('=IIQQQQQ16x', 1, 64, 2, 0, 0, 0, 0x60)
told, tell = os.pipe()
gate, end = os.pipe()
for child in range(4):
    if not os.fork():
        os.close(end)
        for event in range(20):
            fd = ctypes.CDLL(None).syscall(298, attr, 0, -1, -1, 0)
            os.write(tell, b'y' if fd >= 0 else b'n')
        os.read(gate, 1)
        os._exit(0)
seen = b''
while len(seen) < 80:
    seen += os.read(told, 80)
print(seen.count(b'y'))
'''


def case_events_of_all_processes_are_more_than_the_limit():
    def limit():
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, hard))

    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 256:
        skip('the hard limit on open files is too low')
    done = tally('run', '--host=never', '--', sys.executable, '-E', '-S', '-c', EVENTS,
                 preexec_fn=limit)
    equal(done.stdout, '80\n')


def case_few_descriptors_are_enough_or_said_to_be_too_few():
    need_room()

    def limited(number):
        return {'preexec_fn': lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (number, number))}

    for number in range(5, 17):
        done = under('/bin/echo', 'hi', **limited(number))
        if done.returncode:
            equal((done.returncode, done.stdout), (126, ''))
            contains(done.stderr, 'Too many open files')
            contains(done.stderr, 'ulimit -n')
        else:
            equal((done.stdout, done.stderr), ('hi\n', ''))
    equal(under('/bin/echo', 'hi', **limited(16)).stdout, 'hi\n')
    done = tally('stat', '--pmu=user', '-e', 'instructions:u', '--', 'true', **limited(8))
    equal(done.returncode, 1)
    contains(done.stderr, 'ulimit -n')


def case_too_little_data_is_said():
    need_room()
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, 1 << 20))
    done = under('/bin/echo', 'hi', preexec_fn=limit)
    if done.returncode == 0:
        skip('may raise hard limits')
    equal(done.returncode, 127)
    contains(done.stderr, 'ulimit -d')


def case_a_small_stack_is_enough():
    need_room()

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10))

    same('sh', '-c', 'ulimit -s; (echo child); /bin/echo again; /bin/echo again', preexec_fn=limit)


# Where less is there than usual

ACCESS = 439 # faccessat2(2)


def case_a_filter_that_is_older_than_a_call():
    """As of Docker before 20.10: what it does not know is not permitted."""
    filtered = [os.environ['REFUSE_PERF'], '1,%d' % ACCESS]
    with Folder() as folder:
        script = folder.file('script', '#!/bin/sh\necho script\n')
        plain = folder.file('plain', '#!/bin/sh\n', 0o644)
        for command in ['sh', '-c', script], ['sh', '-c', plain], ['/bin/echo', 'hi']:
            native = run(*filtered, *command)
            ours = run(*filtered, TALLY, 'run', '--', *command)
            equal((ours.returncode, ours.stdout, ours.stderr),
                  (native.returncode, native.stdout, native.stderr), 'of ' + ' '.join(command))
        equal(run(*filtered, TALLY, 'run', '--', plain).returncode, 126)


def case_addresses_are_random_where_nobody_may_ask_for_them():
    """gVisor answers EINVAL when it is asked for the personality: that is not ADDR_NO_RANDOMIZE."""
    personality = 135
    begins = {'heap': set(), 'sed': set()}
    for _ in range(4):
        done = run(os.environ['REFUSE_PERF'], '22,%d' % personality, TALLY, 'run', '--', 'sed', '-n',
                   '/heap/p; /bin.sed/p', '/proc/self/maps')
        equal((done.returncode, done.stderr), (0, ''))
        for name, places in begins.items():
            places.add(next(line for line in done.stdout.splitlines() if name in line).split('-')[0])
    for name, places in begins.items():
        check(len(places) > 1, '%s always at %s' % (name, places))


def places_without_randomisation():
    """Of all in a program's memory, as it is seen from outside: the runtime's, too."""
    with subprocess.Popen(['setarch', '-R', TALLY, 'run', '--', 'cat'], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as run_:
        run_.stdin.write(b'is there\n')
        run_.stdin.flush()
        run_.stdout.readline()
        with open('/proc/%d/task/%d/children' % (run_.pid, run_.pid)) as file:
            child = file.read().split()[0]
        with open('/proc/%s/maps' % child) as file:
            return sorted(line.split()[0] for line in file if '/' in line)


def case_addresses_are_the_same_where_nothing_is_random():
    if run('setarch', '-R', 'true').returncode:
        skip('personality(2) is not permitted')
    equal(places_without_randomisation(), places_without_randomisation())


# As in a container where nobody may ask for ADDR_NO_RANDOMIZE.
FIXED = (os.environ['REFUSE_PERF'], '1,135:0x40000', TALLY, 'run', '--addresses=fixed', '--')


def random_places(*argv):
    """What two runs do not have in common of the memory that they see."""
    of_kernel = re.compile(r'\[(vvar.*|vdso|vsyscall)\]')
    seen = [{line for line in run(*argv).stdout.splitlines() if not of_kernel.search(line)}
            for _ in range(2)]
    check(seen[0] and seen[1], 'nothing is mapped')
    return seen[0] ^ seen[1]


def case_addresses_are_fixed_where_nobody_may_ask_for_that():
    equal(random_places(*FIXED, 'cat', '/proc/self/maps'), set())
    # Of a child as well, whatever comes between, and with threads.
    equal(random_places(*FIXED, 'sh', '-c', 'true; (exec cat /proc/self/maps)'), set())
    with open('/proc/sys/kernel/randomize_va_space') as file:
        check(file.read() == '0\n' or random_places(TALLY, 'run', '--', 'cat', '/proc/self/maps'),
              'nothing is random anyway')


def case_counts_are_the_same_where_addresses_are_fixed():
    counts = set()
    for _ in range(3):
        done = run(*FIXED, TALLY, 'stat', '-x', ',', '-e', 'instructions,branches', '--', 'sh', '-c',
                   'for i in 1 2 3 4; do (echo $i | sed s/./x/); done')
        equal(done.stdout, 'x\n' * 4)
        counts.add(tuple(line.split(',')[0] for line in done.stderr.splitlines()))
    equal(len(counts), 1, '%s: numbers of runs' % counts)


# Of its own arguments and environment, in all the ways there are; and how deep its stack goes.
TELLS = """
import ctypes, os, resource, sys, threading
print(sys.argv, dict(os.environ))
for name in 'cmdline', 'environ', 'comm':
    print(open('/proc/self/' + name, 'rb').read())
print(sum('[stack]' in line for line in open('/proc/self/maps')))
local, number = ctypes.c_int(), next(int(line.split()[0].split('-')[1], 16)
                                     for line in open('/proc/self/maps') if '[stack]' in line)
auxv = open('/proc/self/auxv', 'rb').read()
auxv = dict(zip(*[iter(memoryview(auxv).cast('Q'))] * 2))
print(ctypes.string_at(auxv[31]), ctypes.string_at(auxv[15]), number > auxv[31] > number - 65536)
print(len(set(ctypes.string_at(auxv[25], 16))) > 4)
print(resource.getrlimit(resource.RLIMIT_STACK))
"""


def case_a_stack_that_is_not_the_kernels():
    for argv in ((sys.executable, '-E', '-S', '-c', TELLS, 'one', '', 'two words'),
                 ('sh', '-c', 'ulimit -s 4096; exec "$@"', 'sh', sys.executable, '-E', '-S', '-c',
                  TELLS)):
        native = run(*argv)
        ours = run(TALLY, 'run', '--addresses=fixed', '--', *argv)
        equal((ours.returncode, ours.stderr, ours.stdout), (0, '', native.stdout))


def case_addresses_under_a_limit():
    need_room()
    done = run('sh', '-c', 'ulimit -v 8000000; exec "$@"', 'sh', TALLY, 'run', '--addresses=fixed',
               '--', 'sh', '-c', 'true; echo here')
    equal((done.returncode, done.stdout), (0, 'here\n'))
    equal(len(done.stderr.splitlines()), 1, done.stderr)
    contains(done.stderr, 'ulimit -v')


# Is told of an event, looks until there is nothing more, and waits.
POLLS = """
import ctypes, fcntl, mmap, select, struct
attr = struct.pack('IIQQQQQIIQ', 0, 64, 1, 100000, 0, 0, 0x60, 1, 0, 0)
fd = ctypes.CDLL(None).syscall(298, attr, 0, -1, -1, 0)
ring = mmap.mmap(fd, 2 * mmap.PAGESIZE)
for _ in range(100000):
    pass
waiting = select.poll()
waiting.register(fd)
waiting.poll()
fcntl.ioctl(fd, 0x2401, 0) # PERF_EVENT_IOC_DISABLE
while waiting.poll(0):
    pass
waiting.poll(1)
"""


def case_who_waits_for_events_sleeps_on_kernels_before_6_4():
    """There preadv2(2) knows of no pipe whether it would wait; what is left in one wakes again and again."""
    preadv2 = 327
    if not shutil.which('strace'):
        skip('no strace here')
    with Folder() as folder:
        out = os.path.join(folder.path, 'out')
        done = run('strace', '-f', '-o', out, '-e', 'trace=ppoll', os.environ['REFUSE_PERF'],
                   '95,%d' % preadv2, TALLY, 'run', '--', sys.executable, '-E', '-S', '-c', POLLS,
                   # Of a sanitized tool, which looks for leaks by ptrace(2).
                   env={'ASAN_OPTIONS': 'detect_leaks=0'})
        equal((done.returncode, done.stdout, done.stderr), (0, '', ''))
        with open(out) as file:
            calls = [line for line in file if 'ppoll' in line]
        check('= 0 (Timeout)' in calls[-1], ''.join(calls[-3:]))


# Waits for the end of a child that it measures and has killed, and has not waited for.
MEASURES = """
import ctypes, mmap, os, select, signal, struct
there, told = os.pipe()
child = os.fork()
if not child:
    os.write(told, b'x')
    signal.pause()
os.read(there, 1)
attr = struct.pack('IIQQQQQIIQ', 0, 64, 1, 0, 0, 0, 0x60, 0, 0, 0)
fd = ctypes.CDLL(None).syscall(298, attr, child, -1, -1, 0)
ring = mmap.mmap(fd, 2 * mmap.PAGESIZE)
waiting = select.poll()
waiting.register(fd)
print(waiting.poll(0))
os.kill(child, signal.SIGKILL)
print(waiting.poll()[0][1] & select.POLLHUP)
"""


def case_ends_of_processes_are_seen_on_kernels_before_5_3():
    """They have no pidfd_open(2), and filters of their time answer EPERM."""
    pidfd_send_signal, pidfd_open = 424, 434
    for error in 38, 1:
        done = run(os.environ['REFUSE_PERF'], '%d,%d,%d' % (error, pidfd_send_signal, pidfd_open),
                   TALLY, 'run', '--', sys.executable, '-E', '-S', '-c', MEASURES)
        equal((done.returncode, done.stdout, done.stderr), (0, '[]\n16\n', ''))


def case_the_first_process_of_a_container_leaves_no_zombies():
    need_root()
    prefix = ['unshare', '-p', '-f', '--mount-proc']
    if run(*prefix, 'true').returncode:
        skip('may not unshare')
    code = '(sleep 0.1 & sleep 0.1 & sleep 0.2 &); sleep 0.6; cat /proc/[0-9]*/stat'
    done = run(*prefix, TALLY, 'run', '--', 'sh', '-c', code)
    equal(re.findall(r'(?m)^.*\) Z .*$', done.stdout), [])
    equal((done.returncode, done.stderr), (0, ''))
    check('(sh)' in done.stdout, done.stdout)


def without_proc(*argv):
    need_root()
    need_room()
    prefix = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh']
    if run(*prefix, 'true').returncode:
        skip('may not mount')
    return run(*prefix, *argv)


def case_a_root_without_proc():
    done = without_proc(TALLY, 'run', '--', 'sh', '-c', '(echo child); exec /bin/echo hi')
    equal((done.returncode, done.stdout, done.stderr), (0, 'child\nhi\n', ''))
    done = without_proc(TALLY, 'stat', '--pmu=user', '-x', ',', '-e', 'instructions:u', '--',
                        'sh', '-c', '(:)')
    equal(done.returncode, 0, done.stderr)
    check(re.search(r'(?m)^\d{5,},,instructions:u,', done.stderr), done.stderr)
    done = without_proc(TALLY, 'stat', '-p', '1')
    equal(done.returncode, 1)
    contains(done.stderr, '/proc is not mounted')


def case_the_limit_is_lowered_on_the_way():
    same('sh', '-c', 'sh -c "ulimit -n 12; sh -c \'echo deep; readlink /proc/self/exe\'"')


# Executing

ERRORS = r'''
import errno, os, sys
os.chdir(sys.argv[1])
def attempt(path, argv=('x', 'y'), env={'A': 'B'}):
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        print(ascii(path)[:60], os.waitpid(pid, 0)[1])
        return
    try:
        os.execve(path, list(argv), env)
    except OSError as e:
        print(errno.errorcode[e.errno], end=' ', flush=True)
        os._exit(9)
for path in sorted(os.listdir('.')):
    attempt('./' + path)
for path in ('', 'nowhere', '/', '/etc', '/etc/passwd/x', 'x' * 300, 'y/' * 2500, 'script/'):
    attempt(path)
attempt('./script', ('a', 'a' * 200000))
attempt('./script', ['a'] * 10, {'A' * 100: 'b' * 140000})
for name in ('program', 'script', 'unreadable'):
    attempt(os.open(name, os.O_PATH))
    attempt(os.open(name, os.O_PATH | os.O_CLOEXEC))
'''


def elf(machine=62, cls=2, entries=None, interpreter=None, phentsize=56, kind=2):
    """An executable that ends with status 7 at once."""
    code = b'\xb8\x3c\x00\x00\x00\xbf\x07\x00\x00\x00\x0f\x05'
    base = 0x400000
    headers = [(1, 5, 0, base, 0x1000)] if entries is None else entries
    if interpreter:
        headers = [(3, 4, 0x300, base + 0x300, len(interpreter))] + headers
    image = struct.pack('<4sBBBB8xHHIQQQIHHHHHH', b'\x7fELF', cls, 1, 1, 0, kind, machine, 1,
                        base + 0x200, 64, 0, 0, 64, phentsize, len(headers), 0, 0, 0)
    for kind, flags, offset, address, size in headers:
        image += struct.pack('<IIQQQQQQ', kind, flags, offset, address, address, size, size, 0x1000)
    image = image.ljust(0x200, b'\0') + code
    return (image.ljust(0x300, b'\0') + (interpreter or b'')).ljust(0x1000, b'\0')


def case_exec_fails_as_the_kernel_has_it():
    with Folder() as folder:
        good = elf()
        for name, content in {
            'program': good, 'script': '#!/bin/sh\necho script $0 $*\n',
            'text': 'echo hi\n', 'nothing': '', 'hash': '#!', 'hash-line': '#!\n',
            'blank': '#!   \t \n', 'hash-blank': '#! ', 'lost': '#!/no/such\n',
            'long': '#!' + 'x' * 400 + '\n', 'long-argument': '#!/bin/echo ' + 'x' * 400 + '\n',
            'blanks-first': '#!' + ' ' * 300 + '/bin/sh\n', 'two-words': '#! /bin/echo  a  b  \n',
            'tabs': '#!\t/bin/echo\ta\t\n', 'no-line-end': '#!/bin/echo -n  x ',
            'zero': b'#!/bin/echo\0more words\n', 'folder-interpreter': '#!/etc\n',
            'loop': '#!./loop\n', 'self': '#!./self x\n', 'one': '#!./script 1\n',
            'two': '#!./one 2\n', 'three': '#!./two 3\n', 'four': '#!./three 4\n',
            'five': '#!./four 5\n', 'six': '#!./five 6\n', 'seven': '#!./six 7\n',
            'short-elf': good[:60], 'no-headers': elf(entries=[]), 'arm': elf(machine=183),
            'entry-size': elf(phentsize=55), 'relocatable': elf(kind=1), 'core': elf(kind=4),
            'no-interpreter': elf(interpreter=b'/no/such/ld.so\0'),
            'text-interpreter': elf(interpreter=b'/etc/passwd\0'),
            'folder-as-interpreter': elf(interpreter=b'/etc\0'),
            'script-as-interpreter': elf(interpreter=folder.path.encode() + b'/script\0'),
            'interpreter-without-end': elf(interpreter=b'/lib64/ld'),
            'cut-headers': good[:64 + 20],
        }.items():
            folder.file(name, content)
        folder.file('not-executable', good, 0o644)
        folder.file('unreadable', good, 0o711)
        os.mkdir(folder.path + '/folder')
        os.symlink('link', folder.path + '/link')
        os.symlink('program', folder.path + '/to-program')
        os.mkfifo(folder.path + '/pipe', 0o755)
        done = python(ERRORS, folder.path, stdin=subprocess.DEVNULL)
        for word in 'ENOENT', 'EACCES', 'ENOEXEC', 'ELOOP', 'ENOTDIR', 'ENAMETOOLONG', 'E2BIG':
            contains(done.stdout, word)


def kernel_checks_without_executing():
    none = (ctypes.c_char_p * 1)()
    return ctypes.CDLL(None).syscall(322, -100, b'/bin/true', none, none, 0x10000) == 0


def case_what_is_open_for_writing_is_not_executed():
    if not kernel_checks_without_executing():
        skip('this kernel does not say so without executing (AT_EXECVE_CHECK, Linux 6.14)')
    with Folder() as folder:
        program = folder.file('program', elf())
        done = python('''
import errno, os, sys
file = open(sys.argv[1], 'r+b')
try:
    os.execv(sys.argv[1], ['x'])
except OSError as e:
    print(errno.errorcode[e.errno])
''', program)
        equal(done.stdout, 'ETXTBSY\n')


def case_deleted_and_unnamed_programs():
    python(r'''
import os, shutil
fd = os.memfd_create('unnamed')
os.write(fd, open('/bin/readlink', 'rb').read())
for argv in (['readlink', '/proc/self/exe'], ['readlink', '-e', '/proc/self/fd/0']):
    if os.fork() == 0:
        os.execve(fd, argv, {})
    os.wait()
''')
    with Folder() as folder:
        path = shutil.copy('/bin/sh', folder.path + '/copy')
        same('sh', '-c', 'cp "$0" "$0.1"; exec "$0.1" -c \'rm "$0"; readlink /proc/$$/exe; '
                         'exec /proc/self/exe -c "echo again"\' "$0.1"', path)


def small_32_bit_program(folder):
    """Reads a byte and ends with status 42."""
    code = (b'\xb8\x03\x00\x00\x00\x31\xdb\x89\xe1\xba\x01\x00\x00\x00\xcd\x80'  # read(0, %esp, 1)
            b'\xb8\x01\x00\x00\x00\xbb\x2a\x00\x00\x00\xcd\x80')  # exit(42)
    base = 0x8048000
    image = struct.pack('<4sBBBB8xHHIIIIIHHHHHH', b'\x7fELF', 1, 1, 1, 0, 2, 3, 1, base + 84, 52, 0,
                        0, 52, 32, 1, 0, 0, 0)
    image += struct.pack('<IIIIIIII', 1, 0, base, base, 84 + len(code), 84 + len(code), 5, 0x1000)
    path = folder.file('small', image + code)
    try:
        if run(path, stdin=subprocess.DEVNULL).returncode != 42:
            skip('this kernel runs no 32-bit programs')
    except OSError:
        skip('this kernel runs no 32-bit programs')
    return path


def case_what_cannot_be_translated_runs_natively():
    with Folder() as folder:
        path = small_32_bit_program(folder)
        done = under('sh', '-c', '"$0"; echo $?; echo and on', path, stdin=subprocess.DEVNULL)
        equal(done.stdout, '42\nand on\n')
        equal(done.stderr, 'tally: %s is a 32-bit program: it runs natively\n' % path)


def case_the_tool_sleeps_while_all_runs_natively():
    def state(pid):
        with open('/proc/%d/stat' % pid) as stat:
            return stat.read().rpartition(') ')[2][0]

    with Folder() as folder:
        path = small_32_bit_program(folder)
        with subprocess.Popen([TALLY, 'run', '--', path], stdin=subprocess.PIPE,
                              stderr=subprocess.PIPE) as tool:
            tool.stderr.readline()  # now it is executed
            asleep = 0
            for _ in range(3000):
                asleep = asleep + 1 if state(tool.pid) == 'S' else 0
                if asleep == 50:
                    break
                time.sleep(0.002)
            tool.communicate(b'x')
        equal((asleep, tool.returncode), (50, 42))


def case_privileged_programs_keep_their_privileges():
    need_root()
    with Folder() as folder:
        path = shutil.copy('/usr/bin/id', folder.path + '/id')
        os.chmod(path, 0o4755)
        if os.statvfs(path).f_flag & os.ST_NOSUID:
            skip('no set-user-ID programs in ' + folder.path)
        # Its owner has nothing to gain from it: it is a program as any other.
        equal(under(path, '-u').stderr, '')
        # Where the tests were built, nobody may have no way to.
        tool = copy_tool(folder.path)
        as_nobody = lambda: os.setuid(65534)
        done = run(tool, 'run', '--', path, '-u', preexec_fn=as_nobody)
        equal((done.stdout, done.returncode), ('0\n', 0))
        equal(done.stderr, 'tally: %s is a set-user-ID program: it runs natively\n' % path)

        def without_new_privileges():
            os.setuid(65534)
            ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS

        done = run(tool, 'run', '--', path, '-u', preexec_fn=without_new_privileges)
        equal((done.stdout, done.stderr), ('65534\n', ''))


def case_a_run_within_the_run():
    need_room()
    done = under(TALLY, 'run', '--', 'sh', '-c', 'echo inside; readlink /proc/self/exe')
    equal((done.returncode, done.stderr), (0, ''))
    contains(done.stdout, 'inside\n')


def case_in_a_root_without_proc():
    need_root()
    with Folder() as folder:
        shutil.copy(TARGET, folder.path + '/target')
        done = under('chroot', folder.path, '/target', 'again', '3')
        equal((done.returncode, done.stdout, done.stderr), (0, '3\n2\n1\n0\n', ''))


# Memory

def case_the_heap_grows_and_shrinks():
    same(TARGET, 'brk')


def case_memory_of_the_runtime_stays():
    same(TARGET, 'replace')


def case_the_runtime_is_not_among_what_the_program_maps():
    # One below the other, from as far up as the kernel begins; which lays vdso somewhere there.
    python('import ctypes, mmap\n'
           'vdso = [int(l.split("-")[0], 16) for l in open("/proc/self/maps") if "[vdso]" in l][0]\n'
           'flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS\n'
           'maps = [mmap.mmap(-1, 1 << 20, flags=flags) for _ in range(64)]\n'
           'at = [ctypes.addressof(ctypes.c_char.from_buffer(m)) for m in maps]\n'
           'print({above - below for above, below in zip(at, at[1:]) if not below < vdso < above})')
    with start('sh', '-c', 'echo $$; sleep 60; :') as tool:
        with open('/proc/%d/maps' % int(tool.stdout.readline())) as maps: # from outside of the run
            lines = maps.read().splitlines()
        os.killpg(tool.pid, signal.SIGKILL)
    ours = [line for line in lines if line.endswith('/tally-rt') or ' rw-s ' in line and 'memfd:tally' in line]
    check(len(ours) >= 5, '\n'.join(lines))
    for line in ours:
        # Where the kernel puts programs, and ThreadSanitizer expects them.
        check(0x555555554000 <= int(line.split('-')[0], 16) < 0x568000000000, line)


def case_too_little_address_space_is_said():
    limited = ['sh', '-c', 'ulimit -v 150000; exec "$@"', 'sh']
    if run(*limited, TALLY, '--version').returncode:
        skip('the tool itself, as it is built here, needs more than 150 MB')
    if os.geteuid() == 0:
        limited += ['setpriv', '--bounding-set=-sys_resource', '--inh-caps=-sys_resource']
    done = run(*limited, TALLY, 'run', '--', 'true')
    if done.returncode == 0:
        skip('150 MB are enough here')
    equal(done.returncode, 127)
    contains(done.stderr, 'ulimit -v')


def case_without_room_for_events_programs_run():
    """Also those that share memory with their parent for a moment, and a run within the run."""
    need_room()
    shares = "import subprocess; print(subprocess.run(['/bin/echo', 'there']).returncode)"
    for limit in ('-v 1000000', '-f 0'):
        done = run('bash', '-c', 'ulimit %s; exec "$@" | cat' % limit, '-', TALLY, 'run', '--',
                   sys.executable, '-c', shares)
        equal((done.stdout, done.stderr), ('there\n0\n', ''))
        done = run('bash', '-c', 'ulimit %s; "$@" | cat' % limit, '-', TALLY, 'run', '--',
                   TALLY, 'run', '--', 'echo', 'there')
        equal((done.stdout, done.stderr), ('there\n', ''))


def case_a_limit_from_outside():
    need_room()
    done = run('sh', '-c', 'ulimit -v 1500000; exec "$@"', 'sh', TALLY, 'run', '--', 'sh', '-c',
               'ulimit -v')
    equal((done.returncode, done.stderr), (0, ''))
    # Who may not raise it has as much less as the runtime takes.
    check(0 < int(done.stdout) <= 1500000, done.stdout)


def case_a_program_with_address_sanitizer():
    with Folder() as folder:
        source = folder.file('a.c', '#include <stdlib.h>\nint main(int argc, char **argv) {'
                             'char *p = malloc(8); free(p); return argc > 1 ? *p : 5; }')
        program = folder.path + '/a'
        if not shutil.which('cc') or run('cc', '-g', '-fsanitize=address', source, '-o',
                                         program).returncode:
            skip('no compiler with AddressSanitizer here')
        equal(run(program).returncode, 5)
        same(program)
        done = under(program, 'wrong')
        equal(done.returncode, run(program, 'wrong').returncode)
        contains(done.stderr, 'heap-use-after-free')
        contains(done.stderr, 'a.c:2')


def case_a_program_with_thread_sanitizer():
    """It ends where there is memory that it does not know."""
    with Folder() as folder:
        source = folder.file('a.c', 'int main(void) { return 5; }')
        program = folder.path + '/a'
        if not shutil.which('cc') or run('cc', '-fsanitize=thread', source, '-o',
                                         program).returncode:
            skip('no compiler with ThreadSanitizer here')
        if run(program).returncode != 5:
            skip('it does not work here natively')
        same(program)


# tally-rt

def case_the_runtime_needs_nothing_and_touches_no_vector_register():
    if not shutil.which('readelf') or not shutil.which('objdump'):
        skip('no binutils here')
    equal(run('nm', '--undefined-only', RT).stdout, '', 'undefined symbols')
    dynamic = run('readelf', '-dW', RT).stdout
    check('NEEDED' not in dynamic, 'it needs libraries:\n' + dynamic)
    relocations = run('readelf', '-rW', RT).stdout
    kinds = {line.split()[2] for line in relocations.splitlines() if 'R_X86_64' in line}
    equal(kinds, {'R_X86_64_RELATIVE'}, 'relocations')
    segments = run('readelf', '-lW', RT).stdout
    for segment in ('INTERP', 'TLS', 'RWE'):
        check(segment not in segments, 'it has %s:\n%s' % (segment, segments))
    code = run('objdump', '-d', '--no-show-raw-insn', RT).stdout
    check('syscall' in code, 'objdump shows no code')
    # FS is the program's: what is interpreted may load from there.
    theirs = re.search(r'<copy_load_fs>:\n.*?\n\n', code, re.S).group(0)
    code = code.replace(theirs, '')
    used = [line for line in code.splitlines() if re.search(r'%[xyz]mm|%fs:', line)]
    # Where translated code is entered and left, counters and the program's registers change places.
    move = re.compile(r'movaps +(%xmm1[1-5],%gs:PLACE|%gs:PLACE,%xmm1[1-5])$'.replace(
        'PLACE', r'(0x[0-9a-f]+|(0x[0-9a-f]+)?\(%rcx\))'))
    moves = [line for line in used if move.search(line)]
    equal(len(moves), 20, 'moves of vector registers')
    # The second lookup of a target looks whether a counter has got to 0, as translated code does.
    looks = [line for line in used if re.search(r'movmskpd %xmm1[1-5],%e[ac]x$', line)]
    equal(len(looks), 5, 'looks at vector registers')
    # The model searches its sets with four, which it saves (runtime/model/scan.h).
    wrong = [line for line in used if line not in moves + looks and
             (not re.search(r'%xmm[0-3]\b', line) or re.search(r'%xmm([4-9]|1\d)|%[yz]mm|%fs:', line))]
    equal(wrong, [], 'vector registers and thread-local storage')


def case_the_runtime_says_how_it_is_started():
    done = run(RT)
    equal(done.returncode, 127)
    contains(done.stderr, 'tally run')


OPENS_MEMORY = """
import os, signal, sys
child = os.fork()
if not child:
    signal.pause()
os.close(os.open('/proc/%d/mem' % child, int(sys.argv[1])))
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""


def case_a_debugger_is_told_that_it_cannot_work():
    for flags, told in (os.O_RDONLY, 0), (os.O_RDWR, 1):
        done = under(sys.executable, '-E', '-S', '-c', OPENS_MEMORY, str(flags))
        equal((done.returncode, done.stdout), (0, ''))
        equal(len(re.findall('^tally: .*breakpoints.*without it$', done.stderr, re.M)), told,
              done.stderr)
        equal(done.stderr.count('\n'), told)


def case_strace_works():
    if not shutil.which('strace'):
        skip('no strace here')
    with Folder() as folder:
        out = os.path.join(folder.path, 'out')
        done = under('strace', '-f', '-o', out, '-e', 'trace=exit_group', TARGET, 'again', '1')
        equal((done.returncode, done.stderr), (0, ''))
        with open(out) as file:
            check('exited with 0' in file.read(), 'strace has seen no end')


class Uprobe:
    """A probe of the kernel's at each offset of a file, in every process that maps it."""
    TRACING = '/sys/kernel/tracing/'

    def __init__(self, path, offsets):
        self.group = 'tally_%d' % os.getpid()
        self.lines = ['p:%s/at_%x %s:0x%x' % (self.group, offset, path, offset)
                      for offset in offsets]

    def write(self, name, text):
        file = os.open(self.TRACING + name, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, text.encode() + b'\n')
        finally:
            os.close(file)

    def __enter__(self):
        try:
            for line in self.lines:
                self.write('uprobe_events', line)
            self.write('events/%s/enable' % self.group, '1')
        except OSError as error:
            self.__exit__()
            skip('no uprobes: %s' % error.strerror)
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.write('events/%s/enable' % self.group, '0')
        with contextlib.suppress(OSError):
            self.write('uprobe_events', '-:%s/' % self.group)


def code_offsets(path, name):
    """Of the first instructions of function @name of an executable at fixed addresses."""
    out = subprocess.run(['objdump', '-d', '--no-show-raw-insn', '--disassemble=' + name, path],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [line.split(':')[0] for line in out.splitlines() if line.startswith('  ')]
    with open(path, 'rb') as file:
        headers = file.read(4096)
    base, number = struct.unpack_from('<Q', headers, 32)[0], struct.unpack_from('<H', headers, 56)[0]
    for address in (int(line, 16) for line in lines[:4]):
        for i in range(number):
            kind, _, offset, start, _, size = struct.unpack_from('<IIQQQQ', headers, base + 56 * i)
            if kind == 1 and start <= address < start + size:
                yield address - start + offset


def case_probes_of_the_kernel_do_not_show():
    need_root()
    if not shutil.which('objdump'):
        skip('needs objdump')
    with Folder() as folder:
        path = shutil.copy(TARGET, folder.path)
        offsets = list(code_offsets(path, 'main'))
        check(len(offsets) == 4, offsets)
        with Uprobe(path, offsets):
            equal(same(path, 'again', '3').stdout.split(), ['3', '2', '1', '0'])


if __name__ == '__main__':
    main()
