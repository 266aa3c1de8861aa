# Repositories, databases, cryptography, servers and their clients.

#: git short needs git
git clone -q "$DATA/repo" r; cd r; git log --oneline --graph --all | md5sum; git log --stat -3 --format=%H; git blame dir1/file1.txt | md5sum; git diff HEAD~5 --shortstat; git grep -c ba | tail -2; git status --short; cd ..; rm -rf r

#: git-work timeout 120 needs git
export GIT_AUTHOR_DATE='@1700000000 +0000' GIT_COMMITTER_DATE='@1700000000 +0000'; cp -r "$DATA/repo" r; cd r; git config user.email a@b; git config user.name n
git checkout -q -b work HEAD~10; echo more >>dir0/file0.txt; git commit -qam change; git rebase -q main 2>&1; git rev-parse HEAD; git merge -q --no-ff -m merge main~1 2>&1 | tail -1; git stash list; git gc -q; git fsck 2>&1 | tail -1; git count-objects -v | grep in-pack; git bundle create -q ../b HEAD && git bundle verify -q ../b 2>&1 | tail -1; cd ..; rm -rf r b

#: sqlite3 short needs sqlite3
cp "$DATA/items.csv" .; sqlite3 t.db <<'END'
create table t (id integer primary key, name text, price real, n int);
create table items (id, name, price, tags);
.mode csv
.import items.csv items
select count(*), sum(price) from items;
begin; with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) insert into t select x, 'n' || (x % 97), x * 0.37, x % 13 from c; commit;
create index i on t (name, n); select name, count(*), round(sum(price), 2) from t where n > 6 group by name order by 2 desc, 1 limit 5;
select count(*) from t a join t b on a.name = b.name and a.id < b.id where a.n = 3 and b.n = 4 and a.id < 4000; update t set price = price * 2 where id % 3 = 0; delete from t where id % 7 = 0; vacuum; pragma integrity_check; select sum(price) from t; select * from none;
END
rm -f t.db items.csv

#: sqlite3-processes needs sqlite3
sqlite3 t.db 'pragma journal_mode = wal; create table t (n)'; for i in 1 2 3 4; do (for k in 1 2 3 4 5; do sqlite3 -cmd '.timeout 20000' t.db "insert into t values ($i * $k)"; done) & done; wait; sqlite3 t.db 'select sum(n), count(*) from t'; rm -f t.db*

#: openssl short needs openssl
for d in sha256 sha512 sha3-256 blake2b512 md5; do openssl dgst -$d "$DATA/blob" | sed 's/.*= //'; done
for c in aes-256-cbc aes-128-ctr chacha20 camellia-192-cbc; do openssl enc -$c -K 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f -iv 000102030405060708090a0b0c0d0e0f -in "$DATA/text" 2>/dev/null | md5sum; done; openssl prime 2305843009213693951

#: openssl-keys needs openssl
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out k 2>/dev/null; openssl pkey -in k -pubout -out p; echo text >t; openssl dgst -sha256 -sign k -out s t; openssl dgst -sha256 -verify p -signature s t; openssl ecparam -name prime256v1 -genkey -noout -out e; openssl req -x509 -key e -subj /CN=t -days 1 -out c && openssl verify -CAfile c c; openssl speed -seconds 1 -bytes 1024 sha256 2>/dev/null | grep -c ^sha256; rm -f k s p e c

#: tls needs openssl curl python3
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout k -subj /CN=localhost -days 1 -out c 2>/dev/null
cat >s.py <<'END'
import http.server, ssl, subprocess, threading
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler); s.RequestHandlerClass.log_message = lambda *a: None
t = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); t.load_cert_chain('c', 'k'); s.socket = t.wrap_socket(s.socket, server_side=True); threading.Thread(target=s.serve_forever, daemon=True).start()
print(subprocess.run(['curl', '-sS', '--cacert', 'c', '--resolve', 'localhost:%d:127.0.0.1' % s.server_port, 'https://localhost:%d/s.py' % s.server_port], capture_output=True).stdout == open('s.py', 'rb').read())
END
/usr/bin/python3 s.py; rm -f k c

#: curl short needs curl python3
cp "$DATA/words" "$DATA/items.json" .; /usr/bin/python3 -u -m http.server --bind 127.0.0.1 0 >log 2>&1 & server=$!
while ! port=$(grep -o -m1 "port [0-9]*" log 2>&1); do sleep 0.05; done; port=${port#port }
curl -s http://127.0.0.1:$port/words | md5sum; curl -s -o out -w '%{http_code} %{size_download}\n' http://127.0.0.1:$port/items.json; curl -sf http://127.0.0.1:$port/none; echo $?; kill $server; { wait $server; } 2>quiet; echo $?; rm quiet; rm log; curl -s file://$DATA/words | tail -1; curl -s http://127.0.0.1:1/; echo $?

#: server-under-load timeout 120 needs python3
cat >s.py <<'END'
import http.server, socketserver, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.path * 50).encode(); self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H); s.daemon_threads = True; threading.Thread(target=s.serve_forever).start(); total = [0] * 6
def client(n):
    for k in range(40): total[n] += len(urllib.request.urlopen('http://127.0.0.1:%d/%d/%d' % (s.server_address[1], n, k)).read())
t = [threading.Thread(target=client, args=(n,)) for n in range(6)]; [x.start() for x in t]; [x.join() for x in t]; s.shutdown(); print(total)
END
/usr/bin/python3 s.py

#: unix-sockets short needs python3
/usr/bin/python3 - <<'END'
import array, os, select, socket
a, b = socket.socketpair(); pid = os.fork()
if not pid:
    m, anc, f, _ = b.recvmsg(16, socket.CMSG_SPACE(4)); fd = array.array('i', anc[0][2])[0]; os.write(fd, b'through a passed descriptor'); os._exit(m == b'fd' and 5)
r, w = os.pipe(); socket.send_fds(a, [b'fd'], [w]); os.close(w); print(os.waitpid(pid, 0)[1] >> 8, os.read(r, 100))
e = select.epoll(); e.register(a, select.EPOLLIN); b.send(b'x' * 10); print([(fd == a.fileno(), ev) for fd, ev in e.poll(1)]); print(a.recv(100), os.sysconf('SC_NPROCESSORS_ONLN') > 0)
fd = os.memfd_create('m'); os.write(fd, b'memory'); print(os.pread(fd, 3, 2), os.readlink('/proc/self/fd/%d' % fd)); print(os.eventfd_read(os.eventfd(7)))
END

#: ssh-keygen needs ssh-keygen
ssh-keygen -q -t ed25519 -N '' -C c -f k; ssh-keygen -y -f k >p; cut -d' ' -f1,2 k.pub | cmp - p -n 60; ssh-keygen -l -f k.pub | cut -d' ' -f1,3-; rm -f k k.pub p

#: gpg needs gpg
export GNUPGHOME=$HOME/g; mkdir -m 700 g; gpg --batch -q --passphrase x --pinentry-mode loopback -c -o t.gpg "$DATA/words" 2>/dev/null; gpg --batch -q --passphrase x --pinentry-mode loopback -d t.gpg 2>/dev/null | md5sum; gpgconf --kill all; sleep 0.2; rm -rf g t.gpg

#: apt needs apt-cache dpkg-query
dpkg-query -W -f '${Package} ${Version}\n' | md5sum; apt-cache show coreutils | grep ^Package; dpkg --compare-versions 1.2~rc1 lt 1.2; echo $?

#: gawk-server needs gawk
gawk 'BEGIN { s = "/inet/tcp/0/127.0.0.1/1"; r = (s |& getline x); print r < 0 ? "refused" : "connected" }' 2>/dev/null

#: perf-list needs perf
# Which events there are is what differs where the kernel has none.
perf --version; perf test list 2>&1 | wc -l; perf list --raw-dump sdt
