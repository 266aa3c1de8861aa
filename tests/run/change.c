// SPDX-License-Identifier: MIT
/* Code that changes: written by the program itself, by others, by the kernel, or mapped anew. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

#define PAGE 4096
#define RWX  (PROT_READ | PROT_WRITE | PROT_EXEC)

typedef int function(void);

static char *map(size_t size, int protection)
{
	char *memory = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(memory != MAP_FAILED);
	return memory;
}

/* mov $value, %eax; ret */
static void put(char *at, int value)
{
	at[0] = (char)0xb8;
	memcpy(at + 1, &value, 4);
	at[5] = (char)0xc3;
}

static int call(char *at)
{
	return ((function *)at)();
}

static void case_written_again(void)
{
	char *code = map(PAGE, RWX);
	long sum = 0;

	for (int i = 0; i < 3; i++) {
		put(code, i);
		say("%d\n", call(code));
	}
	for (int i = 0; i < 20000; i++) {
		put(code + i % 16 * 64, i);
		sum += call(code + i % 16 * 64);
	}
	say("sum %ld\n", sum);
	/* One byte of it, called many times before and after. */
	for (int i = 0; i < 100; i++) {
		code[1] = (char)i;
		for (int j = 0; j < 100; j++)
			sum += call(code);
	}
	say("sum %ld\n", sum);
}

/* An instruction writes over the one behind it, over itself, and over one before it. */
static void case_its_own_block(void)
{
	static const unsigned char next[] = {
		0xc6, 0x05, 0x01, 0x00, 0x00, 0x00, 0x2a, /* movb $42, 1(%rip) */
		0xb8, 0x01, 0x00, 0x00, 0x00,		  /* mov $1, %eax: its operand is hit */
		0xc3,
	};
	static const unsigned char loop[] = {
		0x31, 0xc0,			    /* xor %eax, %eax */
		0xb9, 0x0a, 0x00, 0x00, 0x00,	    /* mov $10, %ecx */
		0x83, 0xc0, 0x01,		    /* 7: add $1, %eax */
		0xfe, 0x05, 0xf9, 0xff, 0xff, 0xff, /* incb -7(%rip): that operand */
		0xff, 0xc9,			    /* dec %ecx */
		0x75, 0xf3,			    /* jnz 7 */
		0xc3,
	};
	static const unsigned char itself[] = {
		0xb8, 0x05, 0x00, 0x00, 0x00,		  /* mov $5, %eax */
		0xc6, 0x05, 0xf9, 0xff, 0xff, 0xff, 0x90, /* movb $0x90, -7(%rip): itself */
		0x83, 0xc0, 0x02,			  /* add $2, %eax */
		0xc3,
	};
	char *code = map(2 * PAGE, RWX);

	memcpy(code, next, sizeof(next));
	say("next %d %d\n", call(code), call(code));
	memcpy(code + 64, loop, sizeof(loop));
	say("loop %d\n", call(code + 64));
	say("again %d\n", call(code + 64));
	memcpy(code + 128, itself, sizeof(itself));
	say("itself %d\n", call(code + 128));
	/* Across the border of two pages. */
	memcpy(code + PAGE - 9, next, sizeof(next));
	say("border %d\n", call(code + PAGE - 9));
	put(code + PAGE - 3, 77);
	say("border %d\n", call(code + PAGE - 3));
	put(code + PAGE - 3, 78);
	say("border %d\n", call(code + PAGE - 3));
	code[PAGE] = 9;
	say("border %d\n", call(code + PAGE - 3));
}

/* Data that is written all the time on the page of the code that writes it. */
static void case_data_beside_code(void)
{
	static const unsigned char counter[] = {
		0x48, 0xff, 0x05, 0xf9, 0x00, 0x00, 0x00, /* incq 0xf9(%rip): at 0x100 */
		0x48, 0x8b, 0x05, 0xf2, 0x00, 0x00, 0x00, /* mov 0xf2(%rip), %rax: the same */
		0xc3,
	};
	char *code = map(PAGE, RWX);
	long sum = 0;

	memcpy(code, counter, sizeof(counter));
	for (int i = 0; i < 30000; i++)
		sum += call(code);
	say("sum %ld\n", sum);
	for (int i = 0; i < 30000; i++) {
		*(volatile int *)(code + 0x800) = i;
		sum += call(code);
	}
	say("sum %ld\n", sum);
}

static void case_protections(void)
{
	char *code = map(PAGE, PROT_READ | PROT_WRITE);
	long sum = 0;

	for (int i = 0; i < 200; i++) {
		need(mprotect(code, PAGE, PROT_READ | PROT_WRITE) == 0);
		put(code, i);
		need(mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0);
		sum += call(code) + call(code);
	}
	say("sum %ld\n", sum);
	need(mprotect(code, PAGE, PROT_EXEC) == 0);
	say("execute only %d\n", call(code));
	need(mprotect(code, PAGE, RWX) == 0);
	put(code, 5);
	say("all %d\n", call(code));
}

static sigjmp_buf jump;
static char *base;
static void fault(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	char *rip = (char *)registers[REG_RIP];

	say("signal %d code %d address %ld rip there %d\n", number, info->si_code,
	    (long)((char *)info->si_addr - base), rip == base);
	siglongjmp(jump, 1);
}

/* Code that was executed before and may not be executed any more, or is no more. */
static void case_taken_away(void)
{
	char *code = map(2 * PAGE, RWX);

	base = code;
	handle(SIGSEGV, fault, 0);
	put(code, 1);
	put(code + PAGE, 2);
	say("%d %d\n", call(code), call(code + PAGE));
	need(mprotect(code, PAGE, PROT_READ | PROT_WRITE) == 0);
	if (sigsetjmp(jump, 1) == 0)
		call(code);
	need(mprotect(code, PAGE, PROT_NONE) == 0);
	if (sigsetjmp(jump, 1) == 0)
		call(code);
	need(mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0);
	say("%d\n", call(code));
	if (sigsetjmp(jump, 1) == 0)
		code[1] = 9; /* the program may not, whatever the runtime allows itself */
	need(munmap(code, PAGE) == 0);
	if (sigsetjmp(jump, 1) == 0)
		call(code);
	say("%d\n", call(code + PAGE));
	char *other = mmap(code, 2 * PAGE, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	need(other == code);
	put(code, 3);
	put(code + PAGE, 4);
	say("%d %d\n", call(code), call(code + PAGE));
	need(madvise(code, 2 * PAGE, MADV_DONTNEED) == 0); /* zeroes: add %al, (%rax) */
	put(code, 5);
	say("%d %d\n", call(code), code[PAGE]);
	/* Moved, and something else in its place. */
	char *target = map(2 * PAGE, RWX);
	char *moved = mremap(code, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
	need(moved == target);
	say("moved %d\n", call(moved));
	if (sigsetjmp(jump, 1) == 0)
		call(code);
	put(moved, 6);
	say("moved %d\n", call(moved));
}

/* One memory, two addresses: written here, executed there. */
static void case_two_views(void)
{
	int memory = memfd_create("code", 0);
	long sum = 0;

	need(memory >= 0 && ftruncate(memory, 2 * PAGE) == 0);
	char *write_view = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	char *code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0);
	need(write_view != MAP_FAILED && code != MAP_FAILED);
	for (int i = 0; i < 100; i++) {
		put(write_view + i, i);
		sum += call(code + i);
		put(write_view + 1, i);
		sum += call(code + 1);
	}
	say("sum %ld\n", sum);
	/* A view that comes later, of one page, after code was executed. */
	char *late = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, PAGE);
	need(late != MAP_FAILED);
	put(late, 1);
	say("%d\n", call(code + PAGE));
	put(late, 2);
	say("%d\n", call(code + PAGE));
}

/* The kernel writes over code that has run: read, and another process's hand. */
static void case_by_the_kernel(void)
{
	char *code = map(PAGE, RWX);
	int ends[2];
	char text[64];

	need(pipe(ends) == 0);
	for (int i = 0; i < 3; i++) {
		put(code, i);
		need(call(code) == i);
		put(text, 100 + i);
		need(write(ends[1], text, 6) == 6);
		say("read %s", result_name(read(ends[0], code, 6)));
		say(" %d\n", call(code));
	}
	put(text, 55);
	struct iovec local = {text, 6}, remote = {code, 6};
	say("vm_writev %s", result_name(process_vm_writev(getpid(), &local, 1, &remote, 1, 0)));
	say(" %d\n", call(code));
	FILE *file = tmpfile();
	put(text, 66);
	need(file && write(fileno(file), text, 6) == 6);
	say("pread %s", result_name(pread(fileno(file), code, 6, 0)));
	say(" %d\n", call(code));
	say("getcwd %d\n", getcwd(code, PAGE) != NULL);
	char *mapped = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0);
	need(mapped != MAP_FAILED);
	say("mapped %d\n", call(mapped));
}

/* One read fills a page of data, one of code that has run, and one of data. */
static void case_read_across(void)
{
	char *memory = map(3 * PAGE, RWX), *code = memory + PAGE;
	static char content[3 * PAGE];
	FILE *file = tmpfile();

	put(content + PAGE, 7);
	need(file && fwrite(content, sizeof(content), 1, file) == 1 && fflush(file) == 0);
	for (int i = 0; i < 3; i++) {
		put(code, i);
		need(call(code) == i);
		say("pread %s", result_name(pread(fileno(file), memory, 3 * PAGE, 0)));
		say(" %d\n", call(code));
	}
}

/*
 * An instruction on the border of two pages, the second of which is written again and again: first
 * beside the code, then the end of the instruction. The first page may be written to, or not.
 */
static void over_the_border(int protection)
{
	char *code = map(2 * PAGE, RWX), *start = code + PAGE - 2;
	long sum = 0;

	put(start, 7);
	need(mprotect(code, PAGE, protection) == 0);
	for (int i = 0; i < 200; i++) {
		code[PAGE + 100] = (char)i;
		put(code + PAGE + 200, i);
		sum += call(code + PAGE + 200) + call(start);
	}
	for (int i = 0; i < 200; i++) {
		start[2] = (char)i; /* a byte of the value */
		sum += call(start);
	}
	/* A page that is watched by now, unless nobody watches any more. */
	need(protection == RWX || mprotect(code, PAGE, RWX) == 0);
	for (int i = 0; i < 3; i++) {
		put(code, i);
		sum += call(code);
	}
	say("sum %ld\n", sum);
}

static void case_over_the_border(void)
{
	over_the_border(RWX);
	over_the_border(PROT_READ | PROT_EXEC);
}

/* Past the protection of the pages: they are never writable. */
static void case_through_proc(void)
{
	char *code = map(2 * PAGE, RWX);
	int memory = open("/proc/self/mem", O_RDWR);
	char text[8];
	long sum = 0;

	if (memory < 0) {
		say("skip: /proc/self/mem cannot be written to\n");
		_exit(0);
	}
	put(code, 1);
	put(code + PAGE, 2);
	need(mprotect(code, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
	say("%d %d\n", call(code), call(code + PAGE));
	for (int i = 0; i < 100; i++) {
		put(text, i);
		need(pwrite(memory, text, 6, (off_t)code) == 6);
		sum += call(code);
		need(lseek(memory, (off_t)code + PAGE, SEEK_SET) == (off_t)code + PAGE);
		need(write(memory, text, 6) == 6);
		sum += call(code + PAGE);
		struct iovec vector = {text, 6};
		put(text, 2 * i);
		need(pwritev(memory, &vector, 1, (off_t)code) == 6);
		sum += call(code);
	}
	say("sum %ld\n", sum);
}

static void case_libraries(void)
{
	static const char *const names[] = {"PLUGIN1", "PLUGIN2"};
	long sum = 0;

	for (int i = 0; i < 60; i++) {
		void *library = dlopen(getenv(names[i % 2]), RTLD_NOW | RTLD_LOCAL);
		need(library);
		int (*plugin)(int) = (int (*)(int))dlsym(library, "plugin");
		need(plugin);
		sum = sum * 3 % 1000003 + plugin(i);
		need(dlclose(library) == 0);
	}
	say("sum %ld\n", sum);
}

/* ---- several threads ---- */

static char *page_code;
static volatile int asked, answered, value, stop;

static void *caller(void *argument)
{
	long wrong = 0;

	while (!stop) {
		if (asked == answered)
			continue;
		/* The processor is told to look again, as the manuals want it. */
		__asm__ volatile("cpuid" : : "a"(0) : "rbx", "rcx", "rdx", "memory");
		wrong += call(page_code) != value;
		answered = asked;
	}
	*(long *)argument = wrong;
	return NULL;
}

static void case_between_threads(void)
{
	pthread_t thread;
	long wrong;

	page_code = map(PAGE, RWX);
	put(page_code, 0);
	pthread_create(&thread, NULL, caller, &wrong);
	for (int i = 1; i <= 500; i++) {
		put(page_code, i);
		value = i;
		asked = i;
		while (answered != i)
			sched_yield();
	}
	stop = 1;
	pthread_join(thread, NULL);
	say("wrong %ld\n", wrong);
}

static void *make_and_run(void *argument)
{
	long sum = 0;

	for (int i = 0; i < 300; i++) {
		char *code = map(PAGE, RWX);

		put(code, i);
		sum += call(code);
		put(code, 2 * i);
		sum += call(code);
		munmap(code, PAGE);
	}
	*(long *)argument = sum;
	return NULL;
}

static void case_makers(void)
{
	pthread_t threads[4];
	long sums[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, make_and_run, &sums[i]);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		say("sum %ld\n", sums[i]);
	}
}

/* Several write data on a page whose code another executes: all faults at once are one fault. */
static void *write_beside(void *argument)
{
	volatile long *mine = argument;

	while (!stop)
		++*mine;
	return NULL;
}

static void case_many_writers(void)
{
	pthread_t threads[3];
	long *data, sum = 0;

	stop = 0;
	page_code = map(PAGE, RWX);
	put(page_code, 3);
	data = (long *)(page_code + 2048);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, write_beside, &data[i * 16]);
	for (int i = 0; i < 300; i++) {
		sum += call(page_code);
		sched_yield();
	}
	for (int i = 0; i < 3; i++) {
		while (__atomic_load_n(&data[i * 16], __ATOMIC_RELAXED) == 0)
			sum += call(page_code) - 3;
	}
	stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	say("sum %ld\n", sum);
}

/* A child of fork writes its copy; the parent's stays. */
static void case_forked(void)
{
	char *code = map(PAGE, RWX);

	put(code, 1);
	say("%d\n", call(code));
	pid_t child = fork();
	if (child == 0) {
		put(code, 2);
		_exit(call(code));
	}
	say_end("child", child);
	say("parent %d\n", call(code));
	put(code, 3);
	child = fork();
	if (child == 0)
		_exit(call(code));
	say_end("child", child);
}

/* A nested function whose address is taken: code on the stack. */
static int apply(int (*what)(int), int x)
{
	return what(x);
}

static int __attribute__((noinline)) trampoline(int base_value)
{
	int add(int x)
	{
		return x + base_value;
	}

	return apply(add, 1) + apply(add, 2);
}

static void case_on_the_stack(void)
{
	long sum = 0;

	for (int i = 0; i < 3000; i++)
		sum += trampoline(i);
	say("sum %ld\n", sum);
}

/* The kernel writes to the page of the stack that has the trampoline: results, signal frames. */
static volatile int handled;
static void on_stack_signal(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	handled++;
}

static int __attribute__((noinline)) kernel_beside(int base_value)
{
	int status = -1, ends[2] = {-1, -1};
	struct timespec time = {-1, -1};

	int add(int x)
	{
		return x + base_value;
	}

	int sum = apply(add, 1);
	raise(SIGUSR1);
	sum += apply(add, 2);
	pid_t child = fork();
	if (child == 0)
		_exit(apply(add, 3) & 63);
	sum += apply(add, 4);
	need(waitpid(child, &status, 0) == child);
	sum += apply(add, WEXITSTATUS(status));
	need(pipe(ends) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
	sum += apply(add, 5);
	need(raw(SYS_clock_gettime, 0, &time) == 0 && time.tv_sec > 0);
	return sum;
}

static void case_kernel_on_the_stack(void)
{
	long sum = 0;

	handle(SIGUSR1, on_stack_signal, 0);
	for (int i = 0; i < 20; i++)
		sum += kernel_beside(i);
	say("sum %ld handled %d\n", sum, handled);
}

/* A signal handler mends the code that faulted. */
static void mend(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)info;
	say("signal %d at %ld\n", number, (long)((char *)registers[REG_RIP] - base));
	put(base, 12);
}

static void case_mended_by_a_handler(void)
{
	base = map(PAGE, RWX);
	handle(SIGILL, mend, 0);
	base[0] = 0x0f;
	base[1] = 0x0b;
	say("%d\n", call(base));
	say("%d\n", call(base));
}

/* As the kernel shows it. */
static void say_permissions(const char *at)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], permissions[5];
	unsigned long start, end;

	need(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, permissions) == 3 &&
		    start <= (unsigned long)at && (unsigned long)at < end)
			say("%s\n", permissions);
	fclose(maps);
}

/* What may be written is read all the same by the processor, also where it is watched. */
static void case_not_to_be_read(void)
{
	char *code = map(PAGE, PROT_WRITE | PROT_EXEC);

	say_permissions(code);
	for (int i = 0; i < 3; i++) {
		put(code, i);
		say("%d\n", call(code));
	}
	say("%d\n", *code);
	need(mprotect(code, PAGE, PROT_WRITE | PROT_EXEC) == 0);
	say_permissions(code);
}

static pthread_barrier_t begun, seen;

static void *stay(void *unused)
{
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&seen);
	return unused;
}

/* A hole that the program has left is empty, whatever the runtime has put there meanwhile. */
static void case_hole(void)
{
	enum { SIZE = 32 << 20, STACK = 64 << 10, THREADS = 40 };
	char *stacks = map(THREADS * STACK, PROT_READ | PROT_WRITE);
	char *hole = map(SIZE, PROT_READ), *top = hole + SIZE - PAGE;
	pthread_t threads[THREADS];
	pthread_attr_t attributes;
	long went = 0;

	need(!pthread_barrier_init(&begun, NULL, THREADS + 1));
	need(!pthread_barrier_init(&seen, NULL, THREADS + 1));
	need(!pthread_attr_init(&attributes));
	need(!munmap(hole, SIZE));
	for (int i = 0; i < THREADS; i++) {
		need(!pthread_attr_setstack(&attributes, stacks + i * STACK, STACK));
		need(!pthread_create(&threads[i], &attributes, stay, NULL));
	}
	pthread_barrier_wait(&begun);
	need(mmap(hole + SIZE / 2, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		  0) == hole + SIZE / 2);
	say("mprotect: %s\n", result_name(mprotect(top, PAGE, PROT_READ)));
	say("madvise: %s\n", result_name(madvise(top, PAGE, MADV_DONTNEED)));
	say("mremap: %s\n",
	    mremap(top, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? errno_name(errno) : "0");
	/* What is before the hole, and what is behind it, is the program's. */
	say("both: %s %s\n", result_name(madvise(hole, SIZE, MADV_WIPEONFORK)),
	    result_name(mprotect(hole + SIZE / 2, SIZE / 2, PROT_NONE)));
	say_permissions(hole + SIZE / 2);
	say("neither: %s\n", result_name(madvise(hole, SIZE, MADV_REMOVE)));
	say("munmap: %s\n", result_name(munmap(hole, SIZE)));
	say("gone: %s\n", result_name(madvise(hole + SIZE / 2, PAGE, MADV_NORMAL)));
	pthread_barrier_wait(&seen);
	for (int i = 0; i < THREADS; i++)
		went += !pthread_join(threads[i], NULL);
	say("threads: %ld\n", went);
}

/* Two children have executed what is no more when the parent has another one. */
static void case_cut_off_behind_children(void)
{
	static const unsigned char seven[] = {0xb8, 7, 0, 0, 0, 0xc3};
	const int file = memfd_create("code", MFD_CLOEXEC);
	int (*cut)(void);
	int status;

	need(file >= 0 && !ftruncate(file, 4096) &&
	     pwrite(file, seven, sizeof(seven), 100) == sizeof(seven));
	cut = (int (*)(void))(
		(char *)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) + 100);
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			need(!ftruncate(file, 0));
		pid_t child = fork();

		if (!child)
			_exit(i < 2 ? cut() : 8);
		need(waitpid(child, &status, 0) == child);
		say_status("child", status);
	}
}

const struct test_case cases[] = {
	{"cut_off_behind_children", case_cut_off_behind_children},
	{"not_to_be_read", case_not_to_be_read},
	{"hole", case_hole},
	{"written_again", case_written_again},
	{"its_own_block", case_its_own_block},
	{"data_beside_code", case_data_beside_code},
	{"protections", case_protections},
	{"taken_away", case_taken_away},
	{"two_views", case_two_views},
	{"by_the_kernel", case_by_the_kernel},
	{"read_across", case_read_across},
	{"over_the_border", case_over_the_border},
	{"through_proc", case_through_proc},
	{"libraries", case_libraries},
	{"between_threads", case_between_threads},
	{"makers", case_makers},
	{"many_writers", case_many_writers},
	{"forked", case_forked},
	{"on_the_stack", case_on_the_stack},
	{"kernel_on_the_stack", case_kernel_on_the_stack},
	{"mended_by_a_handler", case_mended_by_a_handler},
	{NULL, NULL},
};
