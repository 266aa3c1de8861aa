# Compilers, linkers and debuggers, and what they make.

#: gcc short needs gcc
cat >t.c <<'END'
#include <math.h>
#include <stdio.h>
int main(int c, char **v) { long double s = 0; for (int i = 1; i < 1000; i++) s += sinl(i) / i; printf("%.15Lf %f %s\n", s, pow(2, 0.5), v[1]); return c; }
END
gcc -O2 -g -Wall t.c -o t -lm && ./t x; echo $?; gcc -S -o - t.c | tail -3; echo 'int main( {' | gcc -x c - 2>&1 | tail -2; rm -f t

#: gcc-big timeout 120 needs gcc
for o in -O0 -O2; do gcc $o "$DATA/big.c" -o big -frandom-seed=1 && ./big; objcopy -O binary -j .text big text; md5sum <text; done; rm -f big

#: gcc-lto timeout 120 needs gcc
cp "$DATA/project"/*.c .; echo '#define VERSION 42' >version.h; gcc -O2 -flto=2 *.c -o p 2>&1 && ./p; rm -f p

#: g++ timeout 120 needs g++
cat >t.cc <<'END'
#include <algorithm>
#include <future>
#include <iostream>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
struct guard { int &n; ~guard() { n++; } };
static int deep(int n, int &c) { guard g{c}; if (!n) throw std::runtime_error("bottom"); return deep(n - 1, c) + 1; }
int main() {
	int c = 0; for (int i = 0; i < 300; i++) try { deep(i % 40, c); } catch (const std::exception &e) { c += e.what()[0] == 'b'; } std::cout << c << '\n';
	std::vector<std::future<long>> f; for (int n = 0; n < 6; n++) f.push_back(std::async(std::launch::async, [n] { long s = 0; for (int i = 0; i < 100000; i++) s += i % (n + 2); if (n == 5) throw n; return s; }));
	for (auto &x : f) try { std::cout << x.get() << '\n'; } catch (int n) { std::cout << "threw " << n << '\n'; }
	std::regex r("\\w+"); std::map<std::string, int> m; std::string t = "the quick brown fox jumps over the lazy dog"; for (std::sregex_iterator i(t.begin(), t.end(), r), e; i != e; ++i) m[i->str()]++; for (auto &[k, v] : m) std::cout << k << v << ' ';
	try { throw std::out_of_range("x"); } catch (...) { try { std::rethrow_exception(std::current_exception()); } catch (std::logic_error &e) { std::cout << e.what() << std::endl; } } throw 1; }
END
g++ -O2 -pthread t.cc -o t && ./t; echo $?; rm -f t

#: clang timeout 120 needs clang
clang -O1 "$DATA/big.c" -o big 2>&1 && ./big; echo 'int f(int x) { return x * 7; }' | clang -O2 -x c - -S -emit-llvm -o - | grep mul; rm -f big

#: tcc needs tcc
printf '#include <stdio.h>\nint main(int c, char **v) { printf("run in memory %%s\\n", v[1]); return 4; }\n' >t.c; tcc -run t.c arg; echo $?

#: binutils short needs objdump
objdump -d /bin/true | tail -n +4 | md5sum; readelf -Wa /bin/true | md5sum; nm -D /bin/ls | head -3; strings -n 8 /bin/true | md5sum; size /bin/true

#: assembler short needs as
printf '.globl _start\n_start: mov $1, %%eax\n mov $1, %%edi\n lea m(%%rip), %%rsi\n mov $6, %%edx\n syscall\n mov $60, %%eax\n mov $9, %%edi\n syscall\nm: .ascii "hello\\n"\n' >a.s; as a.s -o a.o && ld a.o -o a && ./a; echo $?; ld -pie --no-dynamic-linker a.o -o b && ./b; ld -Ttext-segment=0x700000000 a.o -o c && ./c; strip a; ./a; echo $?

#: link-kinds short needs gcc
printf '#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\nstatic __thread int t = 5;\nstatic void *f(void *p) { t += 1; return p; }\nint main(void) { pthread_t h; void *r; pthread_create(&h, 0, f, &t); pthread_join(h, &r); printf("%%d %%d %%s\\n", t, r == &t, getenv("LC_ALL")); return time(0) > 0 ? 0 : 1; }\n' >t.c
for kind in '-static' '-static-pie' '-no-pie' '-pie' '-no-pie -Wl,-z,norelro -Wl,-Ttext-segment=0x10000000' '-O2 -fcf-protection -z now' '-mcmodel=large -no-pie -fno-pic'; do gcc -pthread $kind t.c -o t 2>&1 && ./t; echo "$kind: $?"; done; rm -f t

#: musl needs musl-gcc
printf '#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n#include <sys/wait.h>\nstatic void *f(void *p) { return p; }\nint main(int c, char **v) { pthread_t h; void *r; pthread_create(&h, 0, f, v); pthread_join(h, &r); int s = 0; if (!fork()) execlp("sh", "sh", "-c", "exit 7", (char *)0); wait(&s); printf("%%d %%d\\n", r == v, s >> 8); return 0; }\n' >t.c
musl-gcc t.c -o t && ./t; echo $?; musl-gcc -static t.c -o t && ./t; echo $?; rm -f t

#: plugins needs gcc
printf 'int twice(int x) { return 2 * x; }\nint thrice(int x) { return 3 * x; }\n' >p.c; for n in 1 2 3; do sed "s/2/$n/" p.c | gcc -shared -fPIC -x c - -o p$n.so; done
cat >d.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(void) { for (int k = 0; k < 40; k++) for (int n = 1; n <= 3; n++) { char path[16]; sprintf(path, "./p%d.so", n); void *h = dlopen(path, RTLD_NOW); int (*f)(int) = (int (*)(int))dlsym(h, "twice"); if (f(21) != 21 * n) return n; dlclose(h); } puts("loaded"); return !!dlopen("./none.so", RTLD_LAZY); }
END
gcc d.c -o d && ./d; echo $?; LD_PRELOAD=./p1.so ./d; rm -f *.so d

#: contexts short needs gcc
cat >t.c <<'END'
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t one, two; static int n; static jmp_buf j; static sigjmp_buf sj;
static void f(void) { for (;;) { n++; swapcontext(&two, &one); } }
static void fault(int s) { siglongjmp(sj, s); }
__attribute__((noinline)) static int trace(int d) { void *b[64]; return d ? trace(d - 1) + 0 * d : backtrace(b, 64); }
static void down(int d) { if (d) down(d - 1); longjmp(j, 5); }
int main(void) {
	two.uc_stack.ss_sp = malloc(65536); two.uc_stack.ss_size = 65536; getcontext(&two); two.uc_stack.ss_sp = malloc(65536); two.uc_stack.ss_size = 65536; makecontext(&two, f, 0);
	for (int i = 0; i < 1000; i++) swapcontext(&one, &two); printf("%d\n", n); printf("%d\n", setjmp(j) ? 5 : (down(20), 0)); signal(SIGSEGV, fault); signal(SIGFPE, fault);
	for (int i = 0; i < 500; i++) { int s = sigsetjmp(sj, 1); if (s == SIGSEGV) n++; else if (!s) { *(volatile int *)8 = 1; } } printf("%d %d\n", n, trace(20) - trace(10)); volatile int z = 0; if (!sigsetjmp(sj, 1)) printf("%d\n", 1 / z); puts("end"); fflush(stdout); abort(); }
END
gcc -O1 t.c -o t && ./t; echo $?; rm -f t

#: simd short needs gcc
cat >t.c <<'END'
#include <immintrin.h>
#include <stdio.h>
#include <string.h>
__attribute__((target("avx2,fma"))) static double avx(void) { double a[64], r[4]; for (int i = 0; i < 64; i++) a[i] = i * 0.37; __m256d s = _mm256_setzero_pd(); for (int k = 0; k < 100000; k++) for (int i = 0; i < 64; i += 4) s = _mm256_fmadd_pd(_mm256_loadu_pd(a + i), _mm256_set1_pd(1e-3), s); _mm256_storeu_pd(r, s); return r[0] + r[1] + r[2] + r[3]; }
__attribute__((target("avx512f"))) static long avx512(void) { __m512i s = _mm512_set1_epi64(3); for (int k = 0; k < 1000; k++) s = _mm512_mask_add_epi64(s, 0x5a, s, _mm512_rol_epi64(s, 7)); return _mm512_reduce_add_epi64(s); }
__attribute__((target("sse4.2,aes,pclmul,bmi2,adx"))) static unsigned long bits(void) { unsigned long x = 1; __m128i k = _mm_set1_epi32(77), s = k; for (int i = 1; i < 100000; i++) { x = _mm_crc32_u64(x, (unsigned long)i) ^ _pdep_u64(x, 0x5555555555555555) ^ _pext_u64((unsigned long)i, 0xf0f0); s = _mm_aesenc_si128(s, k); } return x ^ (unsigned long)_mm_extract_epi64(s, 1); }
int main(void) { long double p = 0; for (int i = 1; i < 10000; i++) p += 1.0L / i / i; printf("%.17Lf %lx\n", p, bits()); if (__builtin_cpu_supports("avx2")) printf("%f\n", avx()); if (__builtin_cpu_supports("avx512f")) printf("%lx\n", avx512()); char b[300]; memset(b, 'x', 299); b[299] = 0; printf("%zu %d\n", strlen(b), memcmp(b, b + 1, 298)); }
END
gcc -O2 t.c -o t && ./t; rm -f t

#: cmake needs cmake
printf 'cmake_minimum_required(VERSION 3.13)\nproject(t C)\ninclude(CheckFunctionExists)\ncheck_function_exists(fork HAVE_FORK)\nadd_executable(t t.c)\n' >CMakeLists.txt; echo 'int main(void) { return 3; }' >t.c; cmake -S . -B out >/dev/null && cmake --build out >/dev/null; out/t; echo $?; grep HAVE_FORK: out/CMakeCache.txt; rm -rf out

#: gdb timeout 120 needs gdb gcc
printf 'struct s { int a; char b[8]; };\nstruct s v = { 42, "text" };\nint f(int x) { return x + v.a; }\nint main(void) { return f(1); }\n' >t.c; gcc -g -no-pie t.c -o t
gdb -nx -batch -ex 'print v' -ex 'ptype struct s' -ex 'info line f' -ex 'disassemble f' -ex 'python print(6 * 7)' t 2>&1; rm -f t

#: valgrind-version needs valgrind
valgrind --version

#: stripped
cp /bin/ls ls; strip -R .comment ls; ./ls -d /; rm ls

#: more-code-than-the-cache-holds timeout 120 needs gcc
awk 'BEGIN { n = 300000; for (i = 0; i < n; i++) printf "f%d: lea %d(%%rdi), %%eax\ntest $1, %%al\njz 1f\ninc %%edx\n1: xor %%eax, %%edx\nrol $3, %%edx\nret\n", i, i
	print ".globl run\nrun: xor %edx, %edx"; for (i = 0; i < n; i++) print "call f" i; print "mov %edx, %eax\nret\n.section .note.GNU-stack, \"\", @progbits" }' >f.s
cat >t.c <<'END'
#include <pthread.h>
#include <stdio.h>
unsigned run(unsigned);
static void *all(void *p) { for (int i = 0; i < 2; i++) printf("%x\n", run(7)); return p; }
int main(void) { pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, all, 0); for (int i = 0; i < 3; i++) pthread_join(t[i], 0); return 0; }
END
gcc -O1 -pthread t.c f.s -o t && ./t; rm -f f.s t
