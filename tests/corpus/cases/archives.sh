# Compressors and archivers, their threads among them.

#: gzip short
gzip -9 -n <"$DATA/text" >t.gz; gzip -l t.gz; gzip -dc t.gz | cmp - "$DATA/text" && echo same
head -c 1000 t.gz | gzip -dc | wc -c

#: bzip2 short needs bzip2
bzip2 -k <"$DATA/text" >t.bz2; bzip2 -t t.bz2 && bunzip2 -c t.bz2 | md5sum; bzip2 -t "$DATA/words"

#: xz short needs xz
head -c 300000 "$DATA/text" | xz -3 >t.xz; xz -dc t.xz | md5sum; xz --robot -l t.xz

#: xz-threads timeout 120 needs xz
cat "$DATA/text" "$DATA/blob" "$DATA/log" | xz -1 -T4 --block-size=200000 >t.xz; xz -T4 -dc t.xz | md5sum

#: zstd short needs zstd
zstd -q -12 "$DATA/text" -o t.zst; zstd -dc t.zst | md5sum; zstd -q -t "$DATA/words"

#: zstd-threads needs zstd
cat "$DATA/text" "$DATA/blob" "$DATA/log" | zstd -q -T4 -B200000 -7 >t.zst; zstd -dcq t.zst | md5sum

#: lz4 needs lz4
lz4 -q -9 <"$DATA/log" >t.lz4; lz4 -dcq t.lz4 | md5sum

#: tar short
tar -C "$DATA" --sort=name --mtime=@1700000000 --owner=0 --group=0 --numeric-owner -czf t.tgz project words
tar -tvzf t.tgz | tail -3; mkdir x; tar -xzf t.tgz -C x; diff -r x/project "$DATA/project" && echo same
tar -xzf t.tgz nothing

#: tar-pipes
tar -C "$DATA" -cf - repo | xz -0 -T2 | (mkdir y && cd y && xz -d | tar -xf - && cd repo && ls | wc -l)

#: zip needs zip unzip
cp "$DATA/words" "$DATA/numbers" .; zip -q -X t.zip words numbers; unzip -tq t.zip; unzip -p t.zip words | md5sum; rm t.zip

#: cpio needs cpio
cd "$DATA/project"; ls | LC_ALL=C sort | cpio -o --quiet -H newc --reproducible | cpio -t --quiet | tail -2

#: ar
for n in 1 2 3; do echo "int f$n(void) { return $n; }" | gcc -x c -c - -o f$n.o; done
ar rcsD lib.a f1.o f2.o f3.o; nm lib.a; ar t lib.a
