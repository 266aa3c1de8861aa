# Shells and processes: pipelines, jobs, signals, exit statuses, exec in all its forms.

#: dash short
i=0; while [ $i -lt 5000 ]; do i=$((i + 1)); case $i in *99) printf '%s ' $i ;; esac; done; echo
for w in $(head -50 "$DATA/words"); do (echo "$w"); done | md5sum; exit 7

#: bash short needs bash
bash -c '
declare -A n; while read -r w; do n[${#w}]=$((${n[${#w}]:-0} + 1)); done <"$DATA/words"
for k in "${!n[@]}"; do echo "$k ${n[$k]}"; done | sort -n
a=({1..200}); echo "${a[@]:190:5} ${#a[@]}"; [[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[@]}"
printf -v x "%08.3f" 3.14159; echo "$x ${x//0/o}"; exit 3'

#: bash-functions needs bash
bash -c 'f() { (( $1 < 2 )) && { echo "$1"; return; }; echo $(( $(f $(($1 - 1))) + $(f $(($1 - 2))) )); }; f 10'

#: bash-processes needs bash
bash -c '
diff <(sort "$DATA/words") <(sort -r "$DATA/words" | tac) && echo equal
false | true | false; echo "${PIPESTATUS[@]}"; set -o pipefail; false | true; echo $?
coproc C { tr a-z A-Z; }; echo hello >&"${C[1]}"; exec {C[1]}>&-; cat <&"${C[0]}"; wait
for i in 1 2 3; do (exit $i) & pids[i]=$!; done; for i in 3 1 2; do wait ${pids[i]}; echo $?; done; sleep 0.2 & wait -n; echo $?'

#: bash-signals short needs bash
bash -c '
trap "echo usr1" USR1; trap "echo exit" EXIT; trap "" USR2; kill -USR1 $$; kill -USR2 $$; kill -TERM $BASHPID' ; echo $?
bash -c 'sleep 100 & kill -KILL $!; wait $!; echo $?; (kill -SEGV $BASHPID); echo $?; (ulimit -c 0; kill -ABRT $BASHPID); echo $?' 2>&1 | sed 's/ *[0-9]\{3,\} / /; s/line [0-9]*//'

#: bash-jobs needs bash
bash -c '
set -m; sleep 30 & kill -STOP %1; sleep 0.1; jobs -s | cut -c1-14; kill -CONT %1; sleep 0.1; jobs -r | cut -c1-14; kill %1; wait %1 2>/dev/null; echo $?'

#: exit-statuses short
sh -c 'exit 42'; echo $?; sh -c 'kill -9 $$'; echo $?; sh -c 'kill -PIPE $$'; echo $?
./nothing; echo $?; touch plain; ./plain; echo $?; "$HOME"; echo $?; nothing-in-path; echo $?

#: ends-by-signal short
kill -TERM $$

#: scripts short
printf '#!/bin/sh\necho "script $0 $*"\n' >s; printf '#! /usr/bin/env -S bash -e\necho "$0" "$@"\nfalse\necho no\n' >e
printf '#!./s with args \necho never\n' >nested; printf '#!/no/such/interpreter\n' >bad; printf 'echo no interpreter line $1\n' >plain
printf '#!/usr/bin/awk -f\nBEGIN { print "awk", ARGV[1] }\n' >a; printf '#!' >empty; printf '#!/bin/sh -eu' >noeol
chmod +x s e nested bad plain a empty noeol; ./s 1 2; ./e x; echo $?; ./nested y; ./bad; echo $?; ./plain 5; ./a z; ./empty; ./noeol; echo $?; PATH=.:$PATH s found

#: argv0 short needs bash
bash -c 'exec -a renamed /bin/cat /proc/self/cmdline' | tr '\0' ' '; bash -c 'exec -a "" /bin/cat /proc/self/comm'
bash -c 'exec -a -login sh -c "echo \$0"'

#: identity short needs python3
cat /proc/self/comm; readlink /proc/self/exe; tr '\0' ' ' </proc/self/cmdline; tr '\0' '\n' </proc/self/environ | grep -c TALLY
/usr/bin/python3 -c "
import os, ctypes
for p in ('/proc/self/exe', '/proc/%d/exe' % os.getpid(), '/proc/thread-self/exe'):
    print(os.readlink(p), os.stat(p).st_ino == os.stat('/usr/bin/python3').st_ino)
print(open('/proc/self/comm').read(), open('/proc/self/cmdline').read().split('\0')[0], sorted(os.environ))
print(open('/proc/self/stat').read().split()[1])
auxv = ctypes.CDLL(None).getauxval; auxv.restype = ctypes.c_ulong
print(ctypes.string_at(auxv(31)), auxv(6), auxv(23), bool(auxv(33)), auxv(3) % 4096, auxv(4), auxv(5))"

#: environment short
env -i A=1 B='two words' /usr/bin/env; env -u HOME sh -c 'echo ${HOME-unset}'; printenv LC_ALL TALLY_RUN; env -C / pwd

#: limits short
sh -c 'ulimit -n 64; ls /proc/self/fd | wc -l; cat "$DATA/words" | wc -l'; sh -c 'ulimit -S -s 512; sort "$DATA/words" | wc -l'
sh -c 'ulimit -f 1; head -c 10000 /dev/zero >big'; echo $?

#: cpu-limit
(ulimit -t 1; exec sh -c 'while :; do :; done'); echo $?

#: descriptors short
exec 3>three 7<"$DATA/words"; echo to three >&3; head -c 10 <&7; exec 3>&- 7<&-; ls /proc/self/fd; echo closed >&3; exec 9>&1 >/dev/null; echo nine >&9

#: xargs short
seq 200 | xargs -P4 -n 10 sh -c 'echo $# $1' sh | sort -n | md5sum; printf 'a b\nc\n' | xargs -I{} echo '<{}>'; echo x | xargs false; echo $?

#: daemon short needs setsid
setsid sh -c 'sleep 0.2; echo from the daemon >note' >/dev/null 2>&1 </dev/null & sleep 0.6; cat note
nohup sh -c 'echo nohup' 2>/dev/null

#: timeout short
timeout 0.2 sleep 10; echo $?; timeout -s KILL 0.2 sleep 10; echo $?; timeout 10 sh -c 'exit 5'; echo $?
timeout --preserve-status -s INT 0.2 sh -c 'trap "trap \"\" INT; echo int; exit 9" INT; sleep 10 & wait'; echo $?

#: stop-and-continue short
sleep 0.3 & kill -STOP $!; sleep 0.5; cut -d' ' -f3 /proc/$!/stat; kill -CONT $!; wait $!; echo $?

#: fifo
mkfifo f; (sort <f >sorted) & tr a-z A-Z <"$DATA/words" >f; wait; md5sum sorted

#: many-processes
i=0; while [ $i -lt 150 ]; do i=$((i + 1)); /bin/true; /bin/echo $i; done | tail -1

#: here-documents short
cat <<END | rev
$(head -1 "$DATA/words") $((6 * 7)) `echo back`
END

#: pty needs script
script -qec 'tty >/dev/null && stty size; echo in a terminal; sh -c "kill -INT \$\$"; echo $?' /dev/null </dev/null | tr -d '\r'

#: flock needs flock
for i in 1 2 3 4; do flock lock sh -c 'n=$(cat n 2>/dev/null || echo 0); sleep 0.02; echo $((n + 1)) >n' & done; wait; cat n

#: make short needs make gcc
cp -r "$DATA/project" p; cd p; make -s -j2 program >/dev/null 2>&1; ./program; make -n | head -1; touch part3.c; make -j2 | wc -l; make clean; echo 'x: ; false' >fails; make -f fails

#: make-deep needs make
printf 'all: a b c\na b c:\n\t@$(MAKE) -s -f Makefile N=$(N)x leaf-$@\nleaf-%%:\n\t@echo $* $(N) $(shell echo $(N) | wc -c)\n' >Makefile; make -s -j2 -O | sort

#: ld-so short
# ldd tries the 32-bit loader, too, which has tally say that it runs natively.
/lib64/ld-linux-x86-64.so.2 /bin/echo by the loader; LD_TRACE_LOADED_OBJECTS=1 /bin/true | grep -c libc.so; LD_BIND_NOW=1 /bin/echo now; ldd /bin/ls 2>/dev/null | wc -l

#: process-list
sleep 5 & sh -c 'sleep 0.1'; ps -o comm=,args= -p $!; pgrep -P $$ -x sleep | wc -l; kill $!

#: tclsh needs tclsh
echo 'proc fib n { if {$n < 2} { return $n }; expr {[fib [expr {$n-1}]] + [fib [expr {$n-2}]]} }; puts [fib 17]; puts [exec echo sub | tr a-z A-Z]; error oops' >t.tcl; tclsh t.tcl

#: busybox needs busybox
busybox sh -c 'echo hi | busybox awk "{ print \$1, 6 * 7 }"; busybox sha1sum "$DATA/words" | cut -c1-40; exec busybox true'

#: tmux needs tmux
tmux -f /dev/null -S "$HOME/socket" new-session -d 'echo inside >note; sleep 0.2'; sleep 1; cat note; rm -f socket
