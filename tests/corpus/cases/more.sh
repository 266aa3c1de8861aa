# SPDX-License-Identifier: MIT
# Interpreters, compilers and services that most machines lack: each runs where it is installed.

#: sbcl timeout 120 needs sbcl
cat >a.lisp <<'END'
(defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(print (fib 24))
(print (handler-case (/ 1 (- 1 1)) (division-by-zero () :divided)))
(dotimes (i 60) (make-array 100000)) (gc :full t)
(print (length (loop for i below 100000 collect (* i i))))
(print (funcall (compile nil '(lambda (x) (expt x 30))) 7))
(terpri)
(sb-ext:exit :code 4)
END
sbcl --script a.lisp; echo $?

#: guile timeout 120 needs guile
cat >a.scm <<'END'
(use-modules (ice-9 threads) (srfi srfi-1))
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(display (fib 22)) (newline)
(display (par-map (lambda (x) (* x x)) (iota 20))) (newline)
(display (call-with-current-continuation (lambda (k) (for-each (lambda (x) (if (> x 3) (k x))) (iota 9)) 0))) (newline)
(display (catch 'numerical-overflow (lambda () (/ 1 0)) (lambda (key . rest) key))) (newline)
(gc) (exit 5)
END
GUILE_AUTO_COMPILE=0 guile -s a.scm; echo $?
GUILE_AUTO_COMPILE=0 guile --debug -c '(display (let loop ((i 0)) (if (= i 1000000) i (loop (+ i 1)))))'

#: ruby timeout 120 needs ruby
cat >a.rb <<'END'
q = Queue.new
ts = 4.times.map { |i| Thread.new { 50.times { |j| q << i * j } } }
ts.each(&:join)
puts q.size
trap("USR1") { puts "usr1" }
Process.kill("USR1", $$); sleep 0.05
pid = fork { exit 7 }
Process.wait pid
puts $?.exitstatus
f = Fiber.new { 5.times { |i| Fiber.yield i }; :done }
6.times { p f.resume }
def deep(n) = deep(n + 1)
begin; deep(0); rescue SystemStackError; puts "deep"; end
puts (1..20000).map { |i| "k#{i % 97}" }.tally.size
puts `echo sub`.inspect, "%.3f" % Math.sqrt(2)
r = Ractor.new { 6 * 7 } rescue nil
GC.start; GC.compact rescue nil
exit 3
END
ruby -W0 a.rb; echo $?
ruby --jit -W0 -e 's = 0; 300000.times { |i| s += i & 3 }; puts s'

#: php timeout 120 needs php
cat >a.php <<'END'
<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
echo fib(20), "\n";
$a = []; for ($i = 0; $i < 50000; $i++) $a["k" . $i % 977] = ($a["k" . $i % 977] ?? 0) + $i; ksort($a); echo count($a), " ", md5(serialize($a)), "\n";
echo preg_replace_callback('/(\w)(\d+)/', fn($m) => $m[2] . $m[1], "a12 b34 c56"), "\n";
try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo get_class($e), "\n"; }
function gen() { for ($i = 0; $i < 5; $i++) yield $i => $i * $i; } foreach (gen() as $k => $v) echo "$k=$v ";
$p = proc_open(['/bin/sh', '-c', 'read x; echo got $x; exit 6'], [['pipe', 'r'], ['pipe', 'w']], $pipes); fwrite($pipes[0], "hello\n"); echo stream_get_contents($pipes[1]); echo proc_close($p), "\n";
exit(8);
END
php a.php; echo $?
php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=16M -d opcache.jit=tracing a.php; echo $?

#: erlang timeout 120 needs erl
erl -noshell -eval '
Self = self(), Pids = [spawn(fun() -> Self ! {self(), lists:sum([X * N || X <- lists:seq(1, 2000)])} end) || N <- lists:seq(1, 200)],
io:format("~p~n", [lists:sum([receive {P, S} -> S end || P <- Pids])]),
F = fun Fib(N) when N < 2 -> N; Fib(N) -> Fib(N - 1) + Fib(N - 2) end, io:format("~p~n", [F(18)]),
io:format("~p~n", [catch 1 / (length(Pids) - 200)]), halt(6).' | sed 's/{erl_eval.*//' ; echo $?

#: mono timeout 120 needs mono mcs
cat >a.cs <<'END'
using System; using System.Threading; using System.Linq; using System.Collections.Generic;
class A {
  static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }
  static int Main(string[] a) {
    Console.WriteLine(Fib(27));
    try { string s = a.Length > 5 ? "" : null; Console.WriteLine(s.Length); } catch (NullReferenceException) { Console.WriteLine("null"); }
    try { Console.WriteLine(1 / a.Length); } catch (DivideByZeroException) { Console.WriteLine("zero"); }
    long sum = 0; var ts = Enumerable.Range(0, 4).Select(k => new Thread(() => { for (int i = 0; i < 50000; i++) Interlocked.Add(ref sum, k); })).ToList();
    ts.ForEach(t => t.Start()); ts.ForEach(t => t.Join()); Console.WriteLine(sum);
    var g = new List<byte[]>(); for (int i = 0; i < 20000; i++) { g.Add(new byte[1000]); if (g.Count > 500) g.Clear(); } GC.Collect();
    Console.WriteLine(string.Join(",", Enumerable.Range(1, 50).Where(x => x % 7 == 0)));
    return 11; } }
END
mcs -out:a.exe a.cs && mono a.exe; echo $?; rm -f a.exe

#: redis timeout 60 needs redis-server redis-cli
redis-server --port 0 --unixsocket "$PWD/s" --save '' --daemonize no --logfile /dev/null --dir . & p=$!
for i in $(seq 200); do [ -S s ] && break; sleep 0.05; done
redis-cli -s s <<'END'
set a 1
incr a
lpush l x y z
lrange l 0 -1
eval "local s = 0 for i = 1, 1000 do s = s + i end return s" 0
multi
hset h f v
hgetall h
exec
save
END
i=0; while [ $i -lt 3000 ]; do echo "set key:$i $i"; i=$((i + 1)); done | redis-cli -s s --pipe 2>&1 | tail -1
redis-cli -s s dbsize; redis-cli -s s bgsave >/dev/null; sleep 0.3; redis-cli -s s shutdown nosave; wait $p; echo $?; rm -f dump.rdb s

#: nginx timeout 60 needs nginx curl
mkdir -p logs www; head -c 200000 "$DATA/words" >www/f; cat >n.conf <<END
worker_processes 2; pid n.pid; error_log logs/e crit; daemon on;
events { worker_connections 64; }
http { access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5; gzip on; gzip_types *;
server { listen unix:$PWD/s; root www; location /s { return 418 "short\n"; } } }
END
nginx -p "$PWD/" -c n.conf
for i in 1 2 3 4 5 6; do curl -s --unix-socket $PWD/s http://x/f | md5sum; done
curl -s --compressed --unix-socket $PWD/s http://x/f | md5sum; curl -s -w '%{http_code}\n' --unix-socket $PWD/s http://x/s
kill -HUP $(cat n.pid); sleep 0.3; curl -s -o /dev/null -w '%{http_code}\n' --unix-socket $PWD/s http://x/none
kill -QUIT $(cat n.pid); for i in $(seq 100); do [ -e n.pid ] || break; sleep 0.05; done; rm -rf t? logs; ls

#: postgres timeout 120 needs /usr/lib/postgresql
b=$(ls -d /usr/lib/postgresql/*/bin | tail -1); d=$(mktemp -d /tmp/tally-pg.XXXXXX); as=
[ "$(id -u)" != 0 ] || { chown 65534 $d; as='setpriv --reuid=65534 --regid=65534 --clear-groups'; }
cd $d; export PGHOST=$d; $as $b/initdb -D db -A trust -U t --no-sync >/dev/null; echo $?
$as $b/pg_ctl -D db -w -o "-k $d -h ''" -l log start >/dev/null; echo $?
$as $b/psql -U t -d postgres -At <<'END' 2>&1
create table a (i int primary key, t text); insert into a select g, md5(g::text) from generate_series(1, 5000) g;
select count(*), sum(i), min(t) from a where i % 7 = 3; explain (costs off) select * from a where i = 5;
select 1 / (count(*) - 5000) from a;
create function f(n int) returns int language plpgsql as $$ begin if n < 2 then return n; end if; return f(n - 1) + f(n - 2); end $$; select f(12);
set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; select sum(length(t)) from a;
set jit = on; set jit_above_cost = 0; select sum(i * 2) from a;
END
$as $b/pg_ctl -D db -m fast stop >/dev/null; echo $?; cd /; rm -rf $d

#: emacs timeout 120 needs emacs
emacs --batch -Q --eval '(progn (princ (let ((s 0)) (dotimes (i 200000) (setq s (+ s (% i 7)))) s)) (terpri) (princ (shell-command-to-string "echo sub")) (with-temp-buffer (insert "b\na\nc\n") (sort-lines nil (point-min) (point-max)) (princ (buffer-string))) (princ (condition-case e (car (/ 1 0)) (arith-error "zero"))) (terpri) (kill-emacs 7))'; echo $?
echo '(defun f (x) (* x 2)) (provide (quote a))' >a.el; emacs --batch -Q -f batch-byte-compile a.el 2>/dev/null; echo $?; rm -f a.elc

#: ffmpeg timeout 120 needs ffmpeg
ffmpeg -v error -f lavfi -i testsrc=s=160x120:d=1:r=10 -pix_fmt yuv420p -c:v mpeg4 -threads 2 -bitexact -y a.avi; echo $?; ffmpeg -v error -i a.avi -f md5 -; ffmpeg -v error -f lavfi -i sine=d=1 -c:a flac -bitexact -y a.flac; ffmpeg -v error -i a.flac -f md5 -

#: imagemagick timeout 120 needs convert
convert -size 120x80 gradient:red-blue -rotate 30 -blur 0x2 -resize 50% a.ppm; md5sum a.ppm; convert a.ppm -colors 8 -depth 8 txt:- | tail -1

#: ocaml timeout 120 needs ocamlc ocaml
cat >a.ml <<'END'
let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
let () = Printf.printf "%d\n" (fib 24)
let () = try let rec f x = 1 + f x in print_int (f 1) with Stack_overflow -> print_endline "overflow"
let () = try print_int (1 / (Array.length Sys.argv - 1)) with Division_by_zero -> print_endline "zero"
let () = let h = Hashtbl.create 10 in for i = 1 to 50000 do Hashtbl.replace h (i mod 977) i done; Printf.printf "%d\n" (Hashtbl.length h); Gc.full_major (); exit 4
END
ocaml a.ml; echo $?; ocamlc -o a a.ml && ./a; echo $?; rm -f a a.cm*; command -v ocamlopt >/dev/null && ocamlopt -o b a.ml && ./b; echo $?; rm -f b a.cm* a.o

#: fish timeout 60 needs fish
fish --no-config -c 'for i in (seq 3); echo n$i; end; set x (echo sub | string upper); echo $x; false; echo $status; begin; sleep 0.05 &; end; wait; math "2^10"; exit 6'; echo $?

#: zsh needs zsh
zsh -f -c 'a=(c b a); print -l ${(o)a}; zmodload zsh/datetime; f() { return $1 }; f 5; print $?; print =(:) >/dev/null; for i in {1..3}; do (exit $i) & done; wait; print <(echo x) | wc -l; trap "print usr" USR1; kill -USR1 $$; exit 3'; echo $?

#: tcl needs tclsh
echo 'proc fib n {expr {$n < 2 ? $n : [fib [expr {$n-1}]] + [fib [expr {$n-2}]]}}; puts [fib 15]; puts [exec echo sub]; catch {expr {1/0}} e; puts $e; after 20 {set d 1}; vwait d; exit 4' >a.tcl; tclsh a.tcl; echo $?

#: swipl timeout 60 needs swipl
echo ':- initialization(main). nrev([],[]). nrev([H|T],R) :- nrev(T,S), append(S,[H],R). main :- numlist(1,300,L), nrev(L,[X|_]), writeln(X), catch(_ is 1/0, error(E,_), (print(E), nl)), findall(Y, between(1,5,Y), Ys), writeln(Ys), halt(5).' >a.pl; swipl -f a.pl </dev/null; echo $?

#: gforth needs gforth
gforth -e ': fib dup 2 < if exit then dup 1- recurse swap 2 - recurse + ; 22 fib . cr : t 1 0 / ; ' -e "' t catch . cr bye" ; echo $?

#: clisp timeout 60 needs clisp
clisp -q -norc -x '(progn (defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (compile (quote fib)) (print (fib 20)) (print (handler-case (/ 1 0) (division-by-zero () :zero))) (gc) (ext:exit 3))'; echo $?

#: r timeout 120 needs Rscript
Rscript --vanilla -e 'set.seed(1); x <- rnorm(2000); print(summary(lm(x ~ seq_along(x)))$coefficients); print(tryCatch(stop("e"), error=function(e) conditionMessage(e))); f <- function(n) if (n < 2) n else f(n-1) + f(n-2); print(f(17)); print(system("echo sub; exit 3")); m <- matrix(runif(10000), 100); print(sum(solve(m) %*% m)); quit(status=5)'; echo $?

#: octave timeout 120 needs octave-cli
octave-cli --norc --no-history --eval 'a = magic(4); disp(det(a(1:3,1:3))); try; error("x"); catch e; disp(e.message); end; disp(sum(cellfun(@numel, strsplit("a,bb,ccc", ",")))); exit(3)'; echo $?

#: gnuplot needs gnuplot
echo 'set term dumb 60 15; plot [0:6] sin(x)' | gnuplot

#: ghc timeout 300 needs ghc
cat >A.hs <<'END'
import Control.Concurrent; import Control.Exception; import qualified Data.Map.Strict as M
main :: IO ()
main = do
  v <- newEmptyMVar
  mapM_ (\n -> forkIO (putMVar v (sum [1 .. n * 1000 :: Int]))) [1 .. 20]
  s <- sequence [takeMVar v | _ <- [1 .. 20 :: Int]]
  print (sum s); print (M.size (M.fromListWith (+) [(i `mod` 977, i) | i <- [1 .. 50000 :: Int]]))
  r <- try (evaluate (1 `div` (length s - 20))) :: IO (Either ArithException Int); print r
END
ghc -v0 -threaded -rtsopts A.hs && ./A +RTS -N2; echo $?; rm -f A A.o A.hi

#: qemu-user timeout 60 needs qemu-x86_64
qemu-x86_64 /bin/echo emulated; qemu-x86_64 /bin/sh -c 'for i in 1 2 3; do echo $i; done; exit 4'; echo $?

#: nasm needs nasm ld
printf 'section .text\nglobal _start\n_start: mov rdi,42\nmov eax,60\nsyscall\n' >a.asm; nasm -felf64 a.asm && ld a.o -o a && ./a; echo $?

#: racket timeout 120 needs racket
racket -e '(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (displayln (fib 22)) (displayln (with-handlers ([exn:fail? exn-message]) (/ 1 0))) (displayln (apply + (map touch (for/list ([i 10]) (future (lambda () (* i i))))))) (collect-garbage) (exit 4)' ; echo $?

#: nim timeout 200 needs nim
printf 'import tables, strutils\nproc fib(n: int): int = (if n < 2: n else: fib(n-1) + fib(n-2))\necho fib(22)\nvar t = initCountTable[string]()\nfor i in 0..999: t.inc("k" & $(i mod 7))\necho t["k3"]\ntry:\n  discard parseInt("x")\nexcept ValueError:\n  echo "value"\nquit(4)\n' >a.nim; nim c --hints:off --verbosity:0 --nimcache:c a.nim; ./a; echo $?; rm -rf c a

#: elixir timeout 120 needs elixir
elixir -e 'IO.inspect(Enum.map(1..20, fn i -> Task.async(fn -> i * i end) end) |> Enum.map(&Task.await/1) |> Enum.sum()); try do raise "x" rescue e -> IO.puts(Exception.message(e)) end; System.halt(3)'; echo $?

#: strace timeout 60 needs strace
strace -qq -e trace=write -o log echo hello 2>&1 | sed 's/([0-9]*)/(PID)/'; grep -c write log; rm -f log

#: rsync timeout 60 needs rsync
cp -r "$DATA" a 2>/dev/null; rsync -a a/ b/; rsync -ai a/ b/; echo change >>b/new; rsync -ai --delete a/ b/; diff -r a b && echo same; rm -rf a b
