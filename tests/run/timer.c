// SPDX-License-Identifier: MIT
/* Asynchronous signals: wherever they hit, the program does not notice. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

static volatile sig_atomic_t count, stop;
/* Signals that a case waits for, at 1 kHz; CASE_SIGNALS in the environment for a longer run. */
static int enough = 300;

static void __attribute__((constructor)) read_enough(void)
{
	const char *text = getenv("CASE_SIGNALS");

	if (text)
		enough = atoi(text);
}

static void start(int which, long microseconds)
{
	struct itimerval interval = {{0, microseconds}, {0, microseconds}};

	need(setitimer(which, &interval, NULL) == 0);
}

static void counting(int number, siginfo_t *info, void *context)
{
	uint64_t noise[4] = {~0ull, ~0ull, ~0ull, ~0ull};

	(void)number;
	(void)info;
	(void)context;
	/* What a handler does to registers is undone behind it. */
	__asm__ volatile("movups %0, %%xmm0\n\tmovups %0, %%xmm15\n\tfninit\n\tfldpi\n\tstc"
			 :
			 : "m"(noise)
			 : "xmm0", "xmm15", "cc");
	__asm__ volatile("fninit");
	if (++count >= enough)
		stop = 1;
}

/*
 * Registers, flags, vectors and x87 through a loop of plain code: checked in each turn.
 * intact(&stop, &turns) returns 0, or the number of the check that failed.
 */
long intact(volatile sig_atomic_t *until, long *turns);
/* clang-format off */
__asm__(".text\n"
	".balign 16\n"
	"intact:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	push %rsi\n"
	"	mov $0x0123456789abcdef, %rax\n"
	"	movq %rax, %xmm0\n	movq %rax, %xmm7\n	movq %rax, %xmm15\n"
	"	fninit\n	fldpi\n	fld1\n"
	"	xor %r15d, %r15d\n"
	"2:	mov $1, %eax\n	mov $2, %ecx\n	mov $3, %edx\n	mov $4, %ebx\n"
	"	mov $5, %ebp\n	mov $6, %esi\n	mov $8, %r8d\n	mov $9, %r9d\n"
	"	mov $10, %r10d\n	mov $11, %r11d\n	mov $12, %r12d\n	mov $13, %r13d\n"
	"	mov $40, %r14d\n"
	"3:	stc\n"			/* the flags live through the inner loop's body */
	"	lea 1(%rax), %rax\n"
	"	jnc 9f\n"
	"	push %rax\n"
	"	pushfq\n"
	"	popfq\n"
	"	pop %rcx\n"
	"	jnc 9f\n"
	"	call 7f\n"
	"	jnc 9f\n"
	"	cmp %rax, %rcx\n	jne 8f\n"
	"	dec %r14\n	jnz 3b\n"
	"	cmp $41, %eax\n	jne 8f\n"
	"	cmp $3, %edx\n	jne 8f\n	cmp $4, %ebx\n	jne 8f\n"
	"	cmp $5, %ebp\n	jne 8f\n	cmp $6, %esi\n	jne 8f\n"
	"	cmp $8, %r8d\n	jne 8f\n	cmp $9, %r9d\n	jne 8f\n"
	"	cmp $10, %r10d\n	jne 8f\n	cmp $11, %r11d\n	jne 8f\n"
	"	cmp $12, %r12d\n	jne 8f\n	cmp $13, %r13d\n	jne 8f\n"
	"	mov $0x0123456789abcdef, %rax\n"
	"	movq %xmm0, %rcx\n	cmp %rax, %rcx\n	jne 10f\n"
	"	movq %xmm7, %rcx\n	cmp %rax, %rcx\n	jne 10f\n"
	"	movq %xmm15, %rcx\n	cmp %rax, %rcx\n	jne 10f\n"
	"	fld1\n	fucomip %st(1), %st\n	jne 11f\n	jp 11f\n"
	"	fxch\n	fldpi\n	fucomip %st(1), %st\n	jne 11f\n	jp 11f\n	fxch\n"
	"	inc %r15\n"
	"	cmpl $0, (%rdi)\n"
	"	je 2b\n"
	"	xor %eax, %eax\n"
	"	jmp 1f\n"
	"7:	lea 6f(%rip), %r11\n"
	"	jmp *%r11\n"
	"6:	mov $11, %r11d\n"
	"	ret\n"
	"8:	mov $1, %eax\n	jmp 1f\n"
	"9:	mov $2, %eax\n	jmp 1f\n"
	"10:	mov $3, %eax\n	jmp 1f\n"
	"11:	mov $4, %eax\n	jmp 1f\n"
	"1:	fninit\n"
	"	pop %rsi\n"
	"	mov %r15, (%rsi)\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n");
/* clang-format on */

static void run_intact(const char *what)
{
	long turns;

	count = 0;
	stop = 0;
	long failed = intact(&stop, &turns);
	say("%s: failed check %ld, turned %d, signals %d\n", what, failed, turns > 100,
	    count >= enough);
}

static void case_real_timer(void)
{
	handle(SIGALRM, counting, 0);
	start(ITIMER_REAL, 1000);
	run_intact("real");
}

static void case_profiling_timers(void)
{
	handle(SIGPROF, counting, SA_RESTART);
	handle(SIGVTALRM, counting, SA_RESTART);
	handle(SIGALRM, counting, SA_RESTART);
	start(ITIMER_PROF, 1000);
	start(ITIMER_VIRTUAL, 1000);
	start(ITIMER_REAL, 1000);
	run_intact("three timers");
}

static void *intact_thread(void *result)
{
	long turns;
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 1};
	struct itimerspec interval = {{0, 1000000}, {0, 1000000}};

	event._sigev_un._tid = gettid();
	need(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	need(timer_settime(timer, 0, &interval, NULL) == 0);
	*(long *)result = intact(&stop, &turns);
	timer_delete(timer);
	return NULL;
}

static void case_timers_of_threads(void)
{
	enum { THREADS = 3 };
	pthread_t threads[THREADS];
	long results[THREADS];

	handle(SIGRTMIN + 1, counting, 0);
	for (int i = 0; i < THREADS; i++)
		need(pthread_create(&threads[i], NULL, intact_thread, &results[i]) == 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		say("thread %d: %ld\n", i, results[i]);
	}
	say("signals %d\n", count >= enough);
}

/* ---- the state that the context shows is one that the processor could have ---- */

long walk(volatile sig_atomic_t *until);
#define POINTS 12
extern char w0[], w1[], w2[], w3[], w4[], w5[], w6[], w7[], w8[], w9[], w10[], w11[], w_end[];
static char *const points[POINTS + 1] = {w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w_end};
/* clang-format off */
/* In each turn rax, rbx, rcx and rdx grow by one; before wN so many of them have grown, the stack
 * is so deep, and lies on it what the table below says. */
__asm__(".text\n"
	".balign 16\n"
	"walk:	push %rbx\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	xor %eax, %eax\n	xor %ebx, %ebx\n	xor %ecx, %ecx\n	xor %edx, %edx\n"
	"	lea w8(%rip), %r8\n"
	"	lea w9(%rip), %r9\n"
	"w0:	inc %rax\n"
	"w1:	inc %rbx\n"
	"w2:	push %rax\n"
	"w3:	inc %rcx\n"
	"w4:	call w11\n"
	"w5:	call *%r8\n"		/* to w8 */
	"w6:	pop %rsi\n"
	"w7:	jmp *%r9\n"		/* to w9 */
	"w8:	ret $0\n"
	"w9:	cmpl $0, (%rdi)\n"
	"w10:	je w0\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	"w11:	inc %rdx\n"
	"	ret\n"
	"w_end:\n");
/* clang-format on */

static const struct {
	int grown;	 /* how many of rax, rbx, rcx, rdx are ahead by one */
	int depth;	 /* words pushed */
	const char *top; /* what the last of them is: a label, or "rax" */
} expected[POINTS] = {
	{0, 0, NULL},  {1, 0, NULL}, {2, 0, NULL}, {2, 1, "rax"}, {3, 1, "rax"}, {4, 1, "rax"},
	{4, 1, "rax"}, {4, 0, NULL}, {4, 2, w6},   {4, 0, NULL},  {4, 0, NULL},	 {3, 2, w5},
};

static volatile sig_atomic_t inside, outside, wrong;
static char wrong_text[256];
static void examine(int number, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	char *rip = (char *)r[REG_RIP];
	int point = -1;

	(void)number;
	(void)info;
	if (++count >= 2 * enough)
		stop = 1;
	for (int i = 0; i < POINTS; i++)
		if (points[i] == rip)
			point = i;
	if (point < 0) {
		outside++; /* before the loop, behind it, or at the ret of w11 */
		if (rip >= w0 && rip < w9)
			wrong = 1;
		return;
	}
	inside++;
	long base = r[REG_RAX] - (expected[point].grown > 0);
	uint64_t *rsp = (uint64_t *)r[REG_RSP];
	bool fine = r[REG_RBX] == base + (expected[point].grown > 1) &&
		    r[REG_RCX] == base + (expected[point].grown > 2) &&
		    r[REG_RDX] == base + (expected[point].grown > 3) &&
		    (uint64_t)rsp == (uint64_t)r[REG_RBP] - 8 * (uint64_t)expected[point].depth &&
		    r[REG_R8] == (greg_t)w8 && r[REG_R9] == (greg_t)w9;
	if (expected[point].top) {
		uint64_t top = strcmp(expected[point].top, "rax") == 0
				       ? (uint64_t)r[REG_RAX]
				       : (uint64_t)expected[point].top;
		fine &= *rsp == top;
	}
	if (fine)
		return;
	wrong = 1;
	snprintf(wrong_text, sizeof(wrong_text),
		 "at w%d: rax %lld rbx %lld rcx %lld rdx %lld depth %lld r8 %d r9 %d top %#lx\n",
		 point, r[REG_RAX], r[REG_RBX], r[REG_RCX], r[REG_RDX],
		 (r[REG_RBP] - r[REG_RSP]) / 8, r[REG_R8] == (greg_t)w8, r[REG_R9] == (greg_t)w9,
		 *rsp);
}

static void case_context_is_consistent(void)
{
	handle(SIGALRM, examine, 0);
	start(ITIMER_REAL, 700);
	walk(&stop);
	say("in the loop %d, wrong %d %s\n", inside > 100, (int)wrong, wrong_text);
}

/* ---- system calls under fire ---- */

static void tick(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	count++;
}

static void case_system_calls(void)
{
	int ends[2];
	long errors = 0, bytes = 0;

	need(pipe(ends) == 0);
	handle(SIGALRM, tick, SA_RESTART);
	start(ITIMER_REAL, 1000);
	pid_t me = getpid();
	while (count < enough / 2)
		errors += raw(SYS_getppid) <= 0 || raw(SYS_getpid) != me;
	say("plain: errors %ld\n", errors);

	pid_t child = fork();
	if (child == 0) {
		unsigned char next = 0;

		/* Timers are not inherited: one of its own. */
		start(ITIMER_REAL, 1100);
		for (long i = 0; i < 100000; i++, next++) {
			if (i % 1000 == 0)
				usleep(500); /* may be cut short */
			if (write(ends[1], &next, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(ends[1]);
	unsigned char byte, next = 0;
	ssize_t got;
	while ((got = read(ends[0], &byte, 1)) == 1) {
		errors += byte != next++;
		bytes++;
	}
	say("pipe: bytes %ld errors %ld end %zd\n", bytes, errors, got);
	say_end("writer", child);
}

/* Without SA_RESTART each call says EINTR or does its work, never both, never neither. */
static void case_interrupted_calls(void)
{
	int ends[2];
	long sent = 0, got = 0, interrupted = 0;

	need(pipe(ends) == 0);
	handle(SIGALRM, tick, 0);
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		start(ITIMER_REAL, 900);
		while (sent < 30000) {
			ssize_t done = write(ends[1], "abcdefgh", 8);

			if (done > 0)
				sent += done;
			else if (errno != EINTR)
				_exit(1);
			if (sent % 512 == 0)
				usleep(100);
		}
		_exit(sent % 251);
	}
	close(ends[1]);
	start(ITIMER_REAL, 800);
	for (;;) {
		char buffer[100];
		ssize_t done = read(ends[0], buffer, sizeof(buffer));

		if (done > 0)
			got += done;
		else if (done == 0)
			break;
		else if (errno == EINTR)
			interrupted++;
		else
			need(false);
	}
	int status;
	start(ITIMER_REAL, 0);
	need(waitpid(child, &status, 0) == child);
	need(WIFEXITED(status));
	say("all bytes %d\n", got % 251 == WEXITSTATUS(status) && got >= 30000);
}

/* A signal that comes just before a call blocks must not wait until the call ends. */
static void case_not_lost_before_a_call(void)
{
	struct timespec forever = {100, 0};
	struct itimerval once = {{0, 0}, {0, 0}};

	handle(SIGALRM, tick, 0);
	for (int i = 0; i < 400; i++) {
		int before = count;

		/* From far before the call to just behind its beginning. With a second as a net for
		 * the native race: the signal that comes before the sleep has begun. */
		once.it_value.tv_usec = 1 + i % 40;
		once.it_interval.tv_usec = 100000;
		need(setitimer(ITIMER_REAL, &once, NULL) == 0);
		while (count == before)
			nanosleep(&forever, NULL);
	}
	start(ITIMER_REAL, 0);
	say("handled all\n");
}

/* ---- out of handlers, and between stacks ---- */

static sigjmp_buf jump;
static void jump_out(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	siglongjmp(jump, 1);
}

static int work(int n)
{
	return n < 2 ? n : work(n - 1) + work(n - 2);
}

static void case_longjmp(void)
{
	volatile int jumps = 0, sum = 0;
	struct itimerval once = {{0, 0}, {0, 0}};

	handle(SIGALRM, jump_out, 0);
	while (jumps < 300) {
		if (sigsetjmp(jump, 1)) {
			jumps = jumps + 1;
		} else {
			once.it_value.tv_usec = 100 + jumps * 3;
			setitimer(ITIMER_REAL, &once, NULL);
			for (;;)
				sum = sum + work(15);
		}
	}
	say("jumps %d\n", jumps);
}

/* Threads made of contexts, switched by the timer from inside its handler. */
enum { FIBERS = 4 };
static ucontext_t fibers[FIBERS], home;
static volatile int current;
static volatile long fiber_turns[FIBERS];
static void switch_fiber(int number, siginfo_t *info, void *context)
{
	int from = current;

	(void)number;
	(void)info;
	(void)context;
	count++;
	stop = count >= enough;
	for (int i = 0; i < FIBERS; i++)
		stop = stop && fiber_turns[i] > 0;
	current = (from + 1) % FIBERS;
	swapcontext(&fibers[from], &fibers[current]);
}

/* The mask of a context holds before its stack does: a signal must not come in between. */
static sigset_t alarm_set;
static void fiber(int me)
{
	need(sigprocmask(SIG_UNBLOCK, &alarm_set, NULL) == 0);
	while (!stop) {
		need(work(10) == 55);
		fiber_turns[me]++;
	}
	need(sigprocmask(SIG_BLOCK, &alarm_set, NULL) == 0);
	start(ITIMER_REAL, 0);
	setcontext(&home);
}

static void case_contexts(void)
{
	static char stacks[FIBERS][65536];
	volatile bool done = false;

	handle(SIGALRM, switch_fiber, 0);
	sigemptyset(&alarm_set);
	sigaddset(&alarm_set, SIGALRM);
	need(sigprocmask(SIG_BLOCK, &alarm_set, NULL) == 0);
	for (int i = 0; i < FIBERS; i++) {
		getcontext(&fibers[i]);
		fibers[i].uc_stack.ss_sp = stacks[i];
		fibers[i].uc_stack.ss_size = sizeof(stacks[i]);
		makecontext(&fibers[i], (void (*)(void))fiber, 1, i);
	}
	getcontext(&home);
	if (!done) {
		done = true;
		start(ITIMER_REAL, 1000);
		setcontext(&fibers[0]);
	}
	say("all fibers ran\n");
}

/* The time calls of the vdso, which a signal may hit as well. */
static void case_clocks(void)
{
	struct timespec last = {0}, now;
	long backwards = 0;

	handle(SIGALRM, tick, 0);
	start(ITIMER_REAL, 1000);
	while (count < enough / 2) {
		need(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
		backwards += now.tv_sec < last.tv_sec ||
			     (now.tv_sec == last.tv_sec && now.tv_nsec < last.tv_nsec);
		last = now;
	}
	say("backwards %ld\n", backwards);
}

static bool has_vsyscall(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool has = false;

	need(maps);
	while (fgets(line, sizeof(line), maps))
		has |= strstr(line, "xp ") && strstr(line, "[vsyscall]");
	fclose(maps);
	return has;
}

/* Calls of gettimeofday(2) that are no instruction which could be gone back to. */
static void case_vsyscalls(void)
{
	long (*volatile call)(struct timeval *, void *) = (void *)0xffffffffff600000;
	struct timeval time;
	long failed = 0;

	if (!has_vsyscall()) {
		say("skip: the kernel has no vsyscalls\n");
		return;
	}
	handle(SIGALRM, tick, 0);
	start(ITIMER_REAL, 1000);
	while (count < enough)
		failed |= call(&time, NULL);
	start(ITIMER_REAL, 0);
	say("failed %ld\n", failed);
}

/* Processes that begin and end under fire. */
static void case_processes(void)
{
	handle(SIGALRM, tick, SA_RESTART);
	start(ITIMER_REAL, 1000);
	for (int i = 0; i < 60; i++) {
		int status;
		pid_t child = i % 2 ? fork() : vfork();

		need(child >= 0);
		if (child == 0) {
			if (i % 4 == 0)
				execl("/bin/true", "true", (char *)NULL);
			_exit(i % 4 == 0 ? 99 : i);
		}
		need(waitpid(child, &status, 0) == child);
		need(WIFEXITED(status) && WEXITSTATUS(status) == (i % 4 == 0 ? 0 : i));
	}
	say("all ended well\n");
}

const struct test_case cases[] = {
	{"real_timer", case_real_timer},
	{"profiling_timers", case_profiling_timers},
	{"timers_of_threads", case_timers_of_threads},
	{"context_is_consistent", case_context_is_consistent},
	{"system_calls", case_system_calls},
	{"interrupted_calls", case_interrupted_calls},
	{"not_lost_before_a_call", case_not_lost_before_a_call},
	{"longjmp", case_longjmp},
	{"contexts", case_contexts},
	{"clocks", case_clocks},
	{"vsyscalls", case_vsyscalls},
	{"processes", case_processes},
	{NULL, NULL},
};
