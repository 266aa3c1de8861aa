# Text, numbers and files: coreutils and the tools around them.

#: cat
cat "$DATA/words" - <"$DATA/items.csv" | cksum

#: sort
sort -n "$DATA/numbers" | cksum
sort -u "$DATA/text" | head -3

#: sort-threads short
sort --parallel=4 -S 1M -g "$DATA/numbers" | sha256sum

#: sort-merge
split -n l/7 "$DATA/numbers" part.
for part in part.*; do sort -n -o "$part" "$part"; done
sort -n -m part.* | cksum

#: uniq
tr -cs a-z '\n' <"$DATA/text" | sort | uniq -c | sort -rn | head -20

#: join
sort "$DATA/words" >words; sort -t, -k2,2 "$DATA/items.csv" >items
join -t, -2 2 words items | comm -12 - /dev/null | wc -l
join -t, -2 2 words items | paste -d: - - | tail -5

#: cut
cut -d, -f2,3 "$DATA/items.csv" | tr a-z A-Z | tac | rev | nl | sed -n '1~500p'

#: wc
wc "$DATA"/words "$DATA"/text "$DATA"/blob
wc -L <"$DATA/log"

#: fmt
fmt -w 60 "$DATA/text" | fold -s -w 40 | expand | pr -t -3 | sed -n '1000,1020p'

#: csplit
csplit -z -n 3 "$DATA/words" '/^ba/' '{20}' | tail -3

#: digests short
for sum in md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum; do
	$sum <"$DATA/blob"
done

#: base64
base64 "$DATA/blob" | base64 -d | cmp - "$DATA/blob" && echo same
base32 <"$DATA/words" | tail -1

#: od
od -A x -t x1z -N 4000 "$DATA/blob" | tail -4; od -t f8 -N 64 "$DATA/blob"; xxd "$DATA/blob" | tail -2

#: seq
seq 1 0.25 1000 | awk '{ s += $1 } END { printf "%.6f\n", s }'
seq -w 1 7 2000 | numfmt --to=iec --padding=9 | tail -2

#: factor
factor 18446744073709551557 340282366920938463463374607431768211456 600851475143
seq 1000000 1000500 | factor | md5sum

#: expr
expr 6 \* 7; expr substr tallying 2 4; expr length "$(cat "$DATA/words")"; expr 1 / 0

#: date
date -u -d @1700000000 '+%A %d %B %Y %j %T %Z'
date -d '2024-02-29 12:00 + 1 year' +%F; date -d nonsense

#: printf
/usr/bin/printf '%05d|%-10s|%.3e|%x|%b|%q\n' 42 left 12345.678 255 'a\tb' "it's"

#: find short
mkdir -p a/b/c; touch a/one a/b/two a/b/c/three; ln -s ../one a/b/link
find . -type f -printf '%p %m %s %y\n' | sort; find a -name 't*' -exec basename {} \; | sort
find . -empty -delete; find .

#: copying short
mkdir from; cp "$DATA/words" from/; ln -s words from/link; ln from/words from/hard; mkfifo from/fifo
chmod 640 from/words; cp -a from to; mv to there; rm from/fifo; stat -c '%n %A %h %s' there/*
du -sb --apparent-size from; install -m 711 from/words program; truncate -s 12345 program
readlink -f there/link | sed "s,$HOME,,"; rm -r from

#: dd
dd if="$DATA/blob" bs=1000 count=100 skip=7 status=none | md5sum
dd if="$DATA/words" of=out bs=512 conv=swab,ucase,sync status=none; head -c 4096 /dev/zero | dd of=out seek=3 conv=notrunc 2>&1 | head -2

#: ls
mkdir d; touch -d @1700000000 d d/a d/.hidden d/with\ space; chmod 4755 d/a; ln -s nowhere d/broken
cd d; ls -1A --time-style=+%s; stat -c %Y,%n -- a .hidden; ls nothing

#: shuf
shuf --random-source="$DATA/blob" -n 10 "$DATA/words"

#: tee short
seq 100000 | tee one two | tail -1; tail -n +99999 one; tail -c 20 two; cmp one two

#: truncated-pipe short
yes | head -100000 | md5sum; seq 10000000 | head -1

#: grep short
grep -c '404' "$DATA/log"; grep -E -o '/(item|search)/[0-9]{3} ' "$DATA/log" | sort | uniq -c | sort -rn | head -5
grep -F -w -f "$DATA/words" -c "$DATA/text"; grep nothing "$DATA/words"; grep -r -l Babo "$DATA/repo" --include='*.txt' | wc -l

#: grep-pcre-jit short
grep -P -c '^(?<a>\d+)\.\d+\.(\d+)\.\g2.*"(GET|POST) (?!/static)' "$DATA/log"
grep -P -o '\b(\w)(\w)\w*\2\1\b' "$DATA/words" | head -5

#: sed short
sed -E 's/([a-z]+) ([a-z]+)/\2 \1/g; /^B/!d; y/abc/ABC/' "$DATA/text" | md5sum
printf '1\n2\n3\n' | sed -n '1!G;h;$p'; cp "$DATA/words" w; sed -i.bak '1,100d' w; wc -l w w.bak

#: awk short needs mawk
mawk -F'"' '{ split($2, r, " "); n[r[1]]++; split($3, s, " "); b[s[1]] += s[2] }
	END { for (k in n) print k, n[k] | "sort"; close("sort"); for (k in b) print k, b[k] | "sort" }' "$DATA/log"

#: gawk needs gawk
gawk '{ for (i = 1; i <= NF; i++) n[tolower($i)]++ }
	END { PROCINFO["sorted_in"] = "@val_num_desc"; for (w in n) { print w, n[w]; if (++k == 15) exit } }' "$DATA/text"
gawk 'BEGIN { printf "%s %.10f %d\n", strftime("%F", 1e9, 1), atan2(0, -1), xor(12, 10); "echo hi" | getline x; print x }'

#: diff short
sed 's/ba/xx/3' "$DATA/text" >changed; diff -u "$DATA/text" changed | tail -n +3 >patch; wc -l <patch
cp "$DATA/text" t; (echo '--- t'; echo '+++ t'; cat patch) | patch -s t && cmp t changed; diff -q t "$DATA/text"

#: ed needs ed
printf '%s\n' '1,10p' 'g/ba/s//BA/' 'w out' 'q' | ed -s "$DATA/words"

#: vim needs vim
vim -u NONE -i NONE -es -N "$DATA/words" +'%s/ba/XX/ge' +'g/^c/d' +'sort!' +'w! out' +'qa!' </dev/null; md5sum out

#: bc short needs bc
echo 'scale=200; 4*a(1); 2^500; sqrt(2)' | BC_LINE_LENGTH=0 bc -l
echo 'define f(n) { if (n < 2) return n; return f(n-1) + f(n-2); } f(17)' | bc

#: dc needs dc
echo '100k 2v p 3 4 ^ p [la1+dsa*pla20>y]sy 0sa1 lyx' | dc

#: jq needs jq
jq -c 'map(select(.stock)) | group_by(.tags | length) | map({n: length, sum: (map(.price) | add | floor)})' "$DATA/items.json"
jq -r '.[10:13][] | [.id, .name, (.tags | join("+"))] | @csv' "$DATA/items.json"; echo '{' | jq .

#: m4 needs m4
printf 'define(`f'"'"', `ifelse($1, 0, 1, `eval($1 * f(decr($1)))'"'"')'"'"')f(10) eval(2**20, 16)\n' | m4

#: file needs file
file -b "$DATA/words" "$DATA/items.json" "$DATA/big.c" /bin/true | cut -c1-60

#: locale
LC_ALL=C.UTF-8 sort "$DATA/words" | head -2; printf 'gr\303\274n\n' | LC_ALL=C.UTF-8 sed 's/./X/3'; printf '\303\244\n' | iconv -f UTF-8 -t LATIN1 | od -c

#: man needs man
printf '.TH T 1\n.SH NAME\nt \\- test\n.PP\nSome \\fBbold\\fP text that is filled and adjusted.\n' >t.1; MANWIDTH=60 man -l t.1 | cat
