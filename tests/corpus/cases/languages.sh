# Interpreters, just-in-time compilers and virtual machines.

#: python short needs python3
/usr/bin/python3 - <<'END'
import collections, decimal, hashlib, json, os, re, zlib
items = json.load(open(os.environ['DATA'] + '/items.json'))
print(collections.Counter(len(i['tags']) for i in items).most_common(), sum(i['price'] for i in items))
text = open(os.environ['DATA'] + '/text').read()
print(len(re.findall(r'\b(\w\w)\w*\1\b', text)), hashlib.sha256(text.encode()).hexdigest()[:12], zlib.crc32(text.encode()))
decimal.getcontext().prec = 80
print(decimal.Decimal(2).sqrt(), sum(1 / (k * k) for k in range(1, 30000)), 3 ** 777 % 10 ** 30)
END

#: python-one-line short needs python3
/usr/bin/python3 -c 1; /usr/bin/python3 -S -c 'print(1 / 0)' 2>&1; echo $?; /usr/bin/python3 -c 'import sys; sys.exit(9)'; echo $?

#: python-threads short needs python3
/usr/bin/python3 - <<'END'
import queue, threading, time
q, lock, total = queue.Queue(), threading.Lock(), 0
def work():
    global total
    while (n := q.get()) is not None:
        x = sum(i * i for i in range(n))
        with lock: total += x
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for n in range(300): q.put(n)
for t in threads: q.put(None)
for t in threads: t.join()
local = threading.local(); b = threading.Barrier(4); out = []
def meet(n):
    local.n = n; b.wait(); out.append(local.n)
ts = [threading.Thread(target=meet, args=(n,)) for n in range(4)]
[t.start() for t in ts]; [t.join() for t in ts]
print(total, sorted(out), threading.active_count())
for _ in range(100): t = threading.Thread(target=int); t.start(); t.join()
END

#: python-processes short needs python3
/usr/bin/python3 - <<'END'
import multiprocessing as mp, os, signal, subprocess, sys
def square(n): return n * n
if __name__ == '__main__':
    with mp.get_context('fork').Pool(3) as pool: print(pool.map(square, range(50)))
    p = subprocess.run(['sh', '-c', 'cat; echo err >&2; exit 4'], input=b'through a pipe\n', capture_output=True); print(p)
    print(os.spawnvp(os.P_WAIT, 'sh', ['sh', '-c', 'exit 6']), os.system('kill -9 $$'), os.popen('echo popen').read())
    pid = os.posix_spawnp('sh', ['sh', '-c', 'exit 8'], os.environ); print(os.waitpid(pid, 0)[1])
    pid = os.fork()
    if not pid: signal.pause()
    os.kill(pid, signal.SIGTERM); print(os.waitpid(pid, 0)[1])
    try: subprocess.run(['/no/such/program'])
    except OSError as e: print(e)
    m = mp.Value('i', 0); ps = [mp.Process(target=m.__setattr__, args=('value', 5))]
    [p.start() for p in ps]; [p.join() for p in ps]; print(m.value)
END

#: python-spawn needs python3
cat >s.py <<'END'
import multiprocessing as mp
def f(n): return n + 1
if __name__ == '__main__':
    with mp.get_context('spawn').Pool(2) as pool: print(pool.map(f, range(9)))
    with mp.get_context('forkserver').Pool(2) as pool: print(pool.map(f, range(9)))
END
/usr/bin/python3 s.py

#: python-signals short needs python3
/usr/bin/python3 - <<'END'
import errno, os, signal, time, select
n = 0
def handler(s, frame):
    global n; n += 1
signal.signal(signal.SIGALRM, handler); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
x = 0
while n < 200: x += sum(range(100))
r, w = os.pipe(); signal.siginterrupt(signal.SIGALRM, True); before = n
try: select.select([r], [], [], 0.1)
except InterruptedError: print('interrupted')
signal.setitimer(signal.ITIMER_REAL, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}); os.kill(os.getpid(), signal.SIGUSR1)
print(signal.sigpending(), signal.sigwait({signal.SIGUSR1}), n >= 200)
info = None
os.kill(os.getpid(), signal.SIGUSR1); info = signal.sigtimedwait({signal.SIGUSR1}, 1); print(info.si_signo, info.si_code, info.si_pid == os.getpid())
class Late(Exception): pass
def late(s, f): raise Late
signal.signal(signal.SIGVTALRM, late); signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
try: sum(i for i in range(10 ** 9))
except Late: print('late')
print(signal.getsignal(signal.SIGPIPE)); os.kill(os.getpid(), signal.SIGINT)
END
echo $?

#: python-ctypes short needs python3
/usr/bin/python3 - <<'END'
import ctypes as c
libc = c.CDLL(None); libc.qsort.restype = None
COMPARE = c.CFUNCTYPE(c.c_int, c.POINTER(c.c_int), c.POINTER(c.c_int))
a = (c.c_int * 100)(*[(i * 7919) % 101 for i in range(100)])
libc.qsort(a, 100, 4, COMPARE(lambda x, y: x[0] - y[0])); print(list(a))
libm = c.CDLL('libm.so.6'); libm.pow.restype = c.c_double; libm.pow.argtypes = [c.c_double] * 2
print(libm.pow(2, 0.5), libc.strlen(b'tally')); b = c.create_string_buffer(64)
libc.snprintf(b, 64, b'%d %s %.3f', 42, b'text', c.c_double(2.5)); print(b.value)
print(c.CDLL('libc.so.6', use_errno=True).open(b'/nothing', 0), c.get_errno())
END

#: python-crash needs python3
/usr/bin/python3 -c 'import os; os.abort()'; echo $?; /usr/bin/python3 -X faulthandler -c 'import ctypes; ctypes.string_at(0)' 2>&1 | head -1
/usr/bin/python3 -c 'import ctypes; ctypes.string_at(8)'; echo $?; /usr/bin/python3 -c 'f = lambda: f(); f()' 2>&1 | tail -1

#: python-async needs python3
/usr/bin/python3 - <<'END'
import asyncio
async def handle(r, w):
    while line := await r.readline(): w.write(line.upper()); await w.drain()
    w.close()
async def client(port, n):
    r, w = await asyncio.open_connection('127.0.0.1', port); out = []
    for i in range(20): w.write(b'line %d %d\n' % (n, i)); out.append(await r.readline())
    w.close(); return out[-1]
async def main():
    server = await asyncio.start_server(handle, '127.0.0.1', 0); port = server.sockets[0].getsockname()[1]
    print(await asyncio.gather(*(client(port, n) for n in range(25))))
    p = await asyncio.create_subprocess_shell('echo sub; exit 3', stdout=asyncio.subprocess.PIPE); print(await p.communicate(), p.returncode)
    print(await asyncio.to_thread(sum, range(1000)))
asyncio.run(main())
END

#: python-sqlite-mmap needs python3
/usr/bin/python3 - <<'END'
import mmap, os, sqlite3, ssl, lzma, bz2, array, struct, itertools
db = sqlite3.connect(':memory:'); db.create_function('twice', 1, lambda x: x * 2)
db.execute('create table t (a, b)'); db.executemany('insert into t values (?, ?)', ((i, str(i) * 3) for i in range(5000)))
print(db.execute('select sum(twice(a)), max(b), count(distinct substr(b, 1, 1)) from t where a % 7 = 3').fetchall())
m = mmap.mmap(-1, 1 << 20); m[5:10] = b'hello'; pid = os.fork()
if not pid: m[0:5] = b'child'; os._exit(0)
os.waitpid(pid, 0); print(m[:10]); print(len(lzma.compress(bytes(100000))), len(bz2.compress(bytes(100000))))
print(sum(struct.unpack('<100d', array.array('d', range(100)).tobytes())), len(list(itertools.permutations(range(7)))))
END

#: python-compile needs python3
mkdir m; for module in ast inspect difflib argparse typing pickle; do cp /usr/lib/python3*/$module.py m; done; PYTHONDONTWRITEBYTECODE= /usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash m; ls m/__pycache__ | wc -l

#: python-tests-threading timeout 300 needs /usr/lib/python3.11/test/test_threading.py
# The outcome of each test by name: how long they took and in which order is not compared.
/usr/bin/python3 -m test -v test_threading test_thread test_queue >log 2>&1; echo $?; sed -nE 's/^(.*) \.\.\. (ok|FAIL|ERROR|skipped.*)$/\1 \2/p' log | sort; rm -rf log

#: python-tests-signal timeout 300 needs /usr/lib/python3.11/test/test_signal.py
/usr/bin/python3 -m test -v test_signal test_eintr test_faulthandler test_threadsignals >log 2>&1; echo $?; sed -nE 's/^(.*) \.\.\. (ok|FAIL|ERROR|skipped.*)$/\1 \2/p' log | sort; rm -rf log

#: python-tests-subprocess timeout 400 needs /usr/lib/python3.11/test/test_subprocess.py
/usr/bin/python3 -m test -v test_subprocess test_posix test_popen test_fork1 test_wait4 >log 2>&1; echo $?; sed -nE 's/^(.*) \.\.\. (ok|FAIL|ERROR|skipped.*)$/\1 \2/p' log | sort; rm -rf log

#: python-tests-multiprocessing timeout 600 needs /usr/lib/python3.11/test/test_multiprocessing_fork.py
/usr/bin/python3 -m test -v test_multiprocessing_fork -m '*WithProcessesTest*' -m '*TestPool*' >log 2>&1; echo $?; sed -nE 's/^(.*) \.\.\. (ok|FAIL|ERROR|skipped.*)$/\1 \2/p' log | sort; rm -rf log

#: python-tests-ctypes timeout 300 needs /usr/lib/python3.11/ctypes/test
/usr/bin/python3 -m test -v test_ctypes test_mmap test_struct test_math test_float test_re test_zlib >log 2>&1; echo $?; sed -nE 's/^(.*) \.\.\. (ok|FAIL|ERROR|skipped.*)$/\1 \2/p' log | sort; rm -rf log

#: perl short needs perl
perl -e '
my (%n, $s); open my $f, "<", "$ENV{DATA}/text"; while (<$f>) { $n{lc $1}++ while /(\w+)/g; $s += () = /a\w*e/g }
print "$s ", join(" ", (sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n)[0..9]), "\n";
printf "%.12f %s %s\n", exp(1), 2**53 + 1, scalar reverse "tally"; print sprintf("%vd", "1.22.333"), "\n"; die "end\n"'

#: perl-processes short needs perl
perl -e '
$| = 1; $SIG{CHLD} = sub { $dead++ }; $SIG{ALRM} = sub { die "alarm\n" }; pipe R, W; if (!fork) { close R; print W "child $_\n" for 1..3; exit 3 }
close W; print <R>; wait; print $? >> 8, "\n"; eval { alarm 1; select undef, undef, undef, 5 }; print $@; print `echo ticks`; system "exit 2;"; print $? >> 8, "\n";
$SIG{__DIE__} = "DEFAULT"; local $SIG{USR1} = sub { print "usr1\n" }; kill USR1 => $$; my @s = sort { $a <=> $b } map { $_ * 7919 % 10007 } 1..10000; print "@s[0..4]\n"; exec "sh", "-c", "echo exec; exit 5"'

#: perl-benchmark needs perl
perl -e 'my @p; N: for my $n (2..20000) { for (@p) { last if $_ * $_ > $n; next N unless $n % $_ } push @p, $n } print scalar(@p), " $p[-1]\n"; my %h; $h{$_ * 31 % 65537} .= $_ for 1..50000; print length join "", map { $h{$_} } sort keys %h'

#: lua needs lua5.4
echo 'local t = {} for i = 1, 100000 do t[i] = (i * 7919) % 100003 end table.sort(t) print(t[500], #t, math.pi, ("x"):rep(5), pcall(error, "e")) local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(co(), co(), co())' | lua5.4 -

#: luajit short needs luajit
luajit -e 'local ffi = require "ffi"; ffi.cdef "int printf(const char *, ...); double sin(double);" local s = 0 for i = 1, 3e6 do s = s + i % 7 * 0.5 end print(s)
ffi.C.printf("%d %s\n", ffi.new("int", 42), "ffi") io.flush() local t = {} for i = 1, 2e5 do t[#t + 1] = tostring(i):reverse() end print(#table.concat(t), jit.status())
local ok, e = pcall(function() error({ code = 5 }) end) print(ok, e.code) local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end print(fib(27))'

#: node short needs node
node -e '
const fs = require("fs"), crypto = require("crypto"), zlib = require("zlib"), text = fs.readFileSync(process.env.DATA + "/text", "utf8");
const n = new Map(); for (const w of text.toLowerCase().match(/\w+/g)) n.set(w, (n.get(w) || 0) + 1);
console.log([...n].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 8));
console.log(crypto.createHash("sha256").update(text).digest("hex"), zlib.gunzipSync(zlib.gzipSync(text)).length, process.argv0, process.execPath);
Promise.reject(new Error("late")).catch(e => console.log(e.message)); setTimeout(() => process.exit(4), 5)'

#: node-jit needs node
node -e '
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } console.log(fib(30));
class V { constructor(x, y) { this.x = x; this.y = y } add(o) { return new V(this.x + o.x, this.y + o.y) } }
let v = new V(0, 0); for (let i = 0; i < 3e6; i++) v = v.add(new V(i, 0.5)); console.log(v);
const a = new Float64Array(1e5).map((_, i) => Math.sin(i)); a.sort(); console.log(a[0], a[5e4], a.reduce((s, x) => s + x));
const f = new Function("n", "let s = 0; for (let i = 0; i < n; i++) s ^= i * 31; return s"); console.log(f(1e6));
let o = {}; for (let i = 0; i < 2e5; i++) o["k" + i % 1000] = i; console.log(Object.keys(o).length, /(a+)+b$/.test("aaaaaaaaaaaaaaaaaaaaaac"));
try { (function r() { r() })() } catch (e) { console.log(e instanceof RangeError) }'

#: node-workers needs node
cat >w.js <<'END'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads'), { execFileSync, spawn, fork } = require('child_process');
if (process.argv[2] === 'child') { process.send({ got: 1 }); process.exit(0); }
if (!isMainThread) { let s = 0; for (let i = 0; i < workerData * 1e5; i++) s += i % 3; parentPort.postMessage(s); }
else {
  const done = [1, 2, 3, 4].map(n => new Promise(r => new Worker(__filename, { workerData: n }).on('message', r)));
  Promise.all(done).then(r => { console.log(r, execFileSync('echo', ['sub']).toString());
    fork(__filename, ['child']).on('message', m => console.log(m)).on('exit', c => console.log('exit', c)); 
    spawn('sh', ['-c', 'kill -TERM $$']).on('exit', (c, s) => console.log(c, s)); });
  process.on('SIGUSR2', () => console.log('usr2')); process.kill(process.pid, 'SIGUSR2');
}
END
node w.js | sort

#: node-wasm needs node
node -e '
const b = new Uint8Array([0,97,115,109,1,0,0,0,1,6,1,96,1,127,1,127,3,2,1,0,7,7,1,3,102,105,98,0,0,10,30,1,28,0,32,0,65,2,72,4,127,32,0,5,32,0,65,1,107,16,0,32,0,65,2,107,16,0,106,11,11]);
WebAssembly.instantiate(b).then(m => console.log(m.instance.exports.fib(25)), e => console.log(e.message))'

#: node-server needs node
node -e '
const http = require("http"), s = http.createServer((q, r) => { let b = ""; q.on("data", d => b += d).on("end", () => r.end(q.url + b.length)) }).listen(0, "127.0.0.1", async () => {
  const get = n => new Promise(r => { const q = http.request({ port: s.address().port, host: "127.0.0.1", path: "/" + n, method: "POST" }, m => { let t = ""; m.on("data", d => t += d).on("end", () => r(t)) }); q.end("x".repeat(n)) });
  console.log(await Promise.all([...Array(60).keys()].map(get))); s.close() })'

#: java timeout 120 needs javac java
cat >T.java <<'END'
import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class T {
  interface Shape { double area(); } record Circle(double r) implements Shape { public double area() { return Math.PI * r * r; } } record Square(double s) implements Shape { public double area() { return s * s; } }
  static int depth; static void deep() { depth++; deep(); }
  public static void main(String[] a) throws Exception {
    ExecutorService e = Executors.newFixedThreadPool(4); List<Future<Long>> f = new ArrayList<>();
    for (int n = 0; n < 8; n++) { final int k = n; f.add(e.submit(() -> LongStream.range(0, 200000).filter(x -> x % (k + 2) == 0).sum())); }
    for (Future<Long> x : f) System.out.println(x.get()); e.shutdown();
    double s = 0; for (int i = 0; i < 300000; i++) { Shape h = i % 3 == 0 ? new Circle(i) : new Square(i); s += h.area(); } System.out.printf("%.3f%n", s);
    String z = null; int caught = 0; for (int i = 0; i < 20000; i++) try { if (i % 2 == 0) caught += z.length(); } catch (NullPointerException x) { caught++; } System.out.println(caught);
    try { deep(); } catch (StackOverflowError x) { System.out.println("overflow"); } try { System.out.println(1 / (a.length)); } catch (ArithmeticException x) { System.out.println(x.getMessage()); }
    Map<String, Integer> m = new TreeMap<>(); for (int i = 0; i < 100000; i++) m.merge("k" + i % 97, 1, Integer::sum); System.out.println(m.get("k5")); byte[][] g = new byte[2000][]; for (int i = 0; i < 20000; i++) g[i % 2000] = new byte[5000]; System.gc();
    System.exit(3); } }
END
javac T.java; java -Xshare:auto -Xmx128m -XX:-UsePerfData T; echo $?; java -Xint -XX:-UsePerfData -XX:+UseSerialGC T | md5sum; rm -f *.class

#: go timeout 200 needs go
export GOCACHE=$HOME/cache GOFLAGS=-mod=mod GO111MODULE=off GOTOOLCHAIN=local
cat >m.go <<'END'
package main
import ("fmt"; "os"; "os/exec"; "os/signal"; "runtime"; "sort"; "sync"; "syscall"; "time"; "net/http"; "net/http/httptest"; "io")
func fib(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }
func main() {
	var wg sync.WaitGroup; var mu sync.Mutex; m := map[int]int{}
	for i := 0; i < 50; i++ { wg.Add(1); go func(i int) { defer wg.Done(); x := fib(15 + i%8); mu.Lock(); m[i] = x; mu.Unlock() }(i) }
	wg.Wait(); k := []int{}; for i := range m { k = append(k, i) }; sort.Ints(k); fmt.Println(len(k), m[7])
	stop := make(chan bool); go func() { for { select { case <-stop: return; default: } } }(); x := 0; for i := 0; i < 1e8; i++ { x += i }; fmt.Println(x); close(stop)
	func() { defer func() { fmt.Println("recovered:", recover()) }(); var p *int; *p = 1 }(); func() { defer func() { fmt.Println(recover()) }(); z := 0; fmt.Println(1 / z) }()
	c := make(chan os.Signal, 1); signal.Notify(c, syscall.SIGUSR1); syscall.Kill(os.Getpid(), syscall.SIGUSR1); fmt.Println(<-c)
	out, err := exec.Command("sh", "-c", "echo sub; exit 3").Output(); fmt.Println(string(out), err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	for i := 0; i < 20; i++ { r, _ := http.Get(fmt.Sprintf("%s/%d", s.URL, i)); b, _ := io.ReadAll(r.Body); if i == 19 { fmt.Println(string(b)) } }; s.Close()
	g := make([][]byte, 0); for i := 0; i < 20000; i++ { g = append(g[:i%100], make([]byte, 10000)) }; runtime.GC(); t := time.NewTimer(5 * time.Millisecond); <-t.C; fmt.Println(runtime.GOOS, os.Args[1:])
	if len(os.Args) > 1 { var p *int; _ = *p } }
END
go build -o m m.go && ./m; ./m crash >out 2>err; echo $?; head -1 err; rm out err; rm -rf cache m

#: rustc timeout 120 needs rustc
cat >m.rs <<'END'
use std::{collections::HashMap, sync::{mpsc, Arc, Mutex}, thread, process::Command};
fn main() {
    let total = Arc::new(Mutex::new(0u64)); let (tx, rx) = mpsc::channel();
    let hs: Vec<_> = (0..6).map(|n| { let (t, tx) = (total.clone(), tx.clone()); thread::spawn(move || { let s: u64 = (0..100000u64).filter(|x| x % (n + 2) == 0).sum(); *t.lock().unwrap() += s; tx.send(n).unwrap(); }) }).collect();
    for h in hs { h.join().unwrap(); } drop(tx); println!("{} {}", total.lock().unwrap(), rx.iter().sum::<u64>());
    let mut m = HashMap::new(); for w in std::fs::read_to_string(std::env::var("DATA").unwrap() + "/text").unwrap().split_whitespace() { *m.entry(w.to_string()).or_insert(0) += 1; }
    let mut v: Vec<_> = m.into_iter().collect(); v.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0))); println!("{:?}", &v[..5]);
    println!("{:?}", Command::new("sh").args(["-c", "exit 3"]).status()); println!("{}", thread::spawn(|| { panic!("in a thread") }).join().is_err());
    let v: Vec<u32> = Vec::new(); println!("{}", v[std::env::args().count()]); }
END
rustc -O m.rs 2>&1; ./m 2>err; echo $?; sed 's/ ([0-9]*)//' err; rm -f m err

#: cargo timeout 200 needs cargo
export CARGO_HOME=$HOME/.cargo CARGO_TERM_QUIET=true; cargo new --vcs none hello >/dev/null 2>&1; cd hello
printf 'pub fn f(n: u64) -> u64 { if n < 2 { n } else { f(n - 1) + f(n - 2) } }\n#[test]\nfn t() { assert_eq!(f(10), 55); }\n' >src/lib.rs; echo 'fn main() { println!("{}", hello::f(20)); }' >src/main.rs
cargo run --offline 2>&1; cargo test --offline 2>&1 | sed -n 's/; finished.*//; /^test result/p'; cd ..; rm -rf hello .cargo

#: pascal needs fpc
echo 'program t; uses sysutils; var i: integer; s: double; begin s := 0; for i := 1 to 100000 do s := s + 1 / i; writeln(s:0:10); try i := 0; writeln(10 div i) except on e: exception do writeln(e.message) end end.' >t.pas; fpc -Mobjfpc -v0 t.pas >/dev/null 2>&1; ./t; rm -f t t.o

#: fortran needs gfortran
printf 'program t\n real(8) :: a(200,200), b(200,200)\n integer :: i, j\n forall (i=1:200, j=1:200) a(i,j) = sin(real(i*j,8))\n b = matmul(a, transpose(a))\n print "(f20.10)", sum(b), b(7,9)\n stop 3\nend\n' >t.f90; gfortran -O2 t.f90 -o t && ./t; echo $?; rm -f t
