// SPDX-License-Identifier: MIT
/*
 * A program whose instructions are the same each time: no libc, nothing of the environment. It does
 * one of each that might be counted wrongly: calls, tables of jumps, string instructions, system
 * calls, a signal's handler.
 */
#include <asm/unistd.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/* How the kernel knows it. */
struct action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};
#define RESTORER 0x04000000

static volatile uint64_t sink;
static volatile int signals;

static long call(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return result;
}

static __attribute__((noinline)) unsigned int fib(unsigned int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static __attribute__((noinline)) uint64_t choose(unsigned int what, uint64_t x)
{
	switch (what % 8) {
	case 0:
		return x + 1;
	case 1:
		return x * 3;
	case 2:
		return x ^ 0x55;
	case 3:
		return x >> 1;
	case 4:
		return ~x;
	case 5:
		return x - 7;
	case 6:
		return x << 2;
	default:
		return x / 5;
	}
}

/* Each repetition is a trap to who steps, and none of them an instruction. */
static void strings(void)
{
	static char from[300], to[300];

	for (unsigned long n = 0; n < sizeof(from); n += 7) {
		void *source = from, *target = to;
		unsigned long left = n;

		__asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(left) : : "memory");
		target = to;
		left = n / 8;
		__asm__ volatile("rep stosq" : "+D"(target), "+c"(left) : "a"(n) : "memory");
		target = to;
		left = n;
		__asm__ volatile("repne scasb" : "+D"(target), "+c"(left) : "a"(1) : "cc");
		source = from;
		target = to;
		left = n;
		__asm__ volatile("repe cmpsb" : "+S"(source), "+D"(target), "+c"(left) : : "cc");
		sink += left;
	}
}

static void on_signal(int signo)
{
	signals += signo;
}

__attribute__((naked)) static void restorer(void)
{
	__asm__("mov $15, %eax\n\tsyscall");
}

static void signal_itself(void)
{
	const struct action action = {on_signal, RESTORER, restorer, 0};

	call(__NR_rt_sigaction, SIGUSR1, (long)&action, 0, 8);
	for (int i = 0; i < 5; i++)
		call(__NR_kill, call(__NR_getpid, 0, 0, 0, 0), SIGUSR1, 0, 0);
}

static void work(void)
{
	sink = fib(15);
	for (unsigned int i = 0; i < 1000; i++)
		sink = choose(i * 7 + i / 3, sink);
	strings();
	signal_itself();
}

__attribute__((force_align_arg_pointer, used)) static void begin(void)
{
	work();
	call(__NR_exit_group, signals == 5 * SIGUSR1 ? 0 : 1, 0, 0, 0);
}

__attribute__((naked)) void _start(void);
void _start(void)
{
	__asm__("call begin");
}
