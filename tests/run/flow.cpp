// SPDX-License-Identifier: MIT
/* Control flow that goes by return addresses: exceptions, backtraces, jumps, contexts. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <execinfo.h>
#include <setjmp.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <utility>
#include <vector>

extern "C" {
#include "case.h"
}

struct guard {
	const char *name;
	~guard()
	{
		say("unwound %s\n", name);
	}
};

static int __attribute__((noinline)) thrower(int depth)
{
	guard g{depth % 2 ? "odd" : "even"};

	if (depth == 0)
		throw std::runtime_error("from the bottom");
	return thrower(depth - 1) + 1;
}

static void case_exceptions()
{
	try {
		thrower(4);
	} catch (const std::exception &e) {
		say("caught %s\n", e.what());
	}
	try {
		try {
			std::vector<int>().at(7);
		} catch (...) {
			say("again\n");
			throw;
		}
	} catch (const std::out_of_range &) {
		say("out of range\n");
	}
	std::exception_ptr kept;
	std::thread other([&] {
		try {
			throw 42;
		} catch (...) {
			kept = std::current_exception();
		}
	});
	other.join();
	try {
		std::rethrow_exception(kept);
	} catch (int value) {
		say("from the thread %d\n", value);
	}
	long sum = 0;
	for (int i = 0; i < 3000; i++) {
		try {
			if (i % 3)
				throw i;
			sum += 1;
		} catch (int value) {
			sum += value;
		}
	}
	say("sum %ld\n", sum);
}

/* An exception out of a signal handler: the unwinder goes through the frame and its restorer. */
static void throwing(int number, siginfo_t *, void *)
{
	throw number;
}

static int __attribute__((noinline)) touch(volatile int *at)
{
	guard g{"touch"};

	return *at + 1;
}

static void case_exception_from_a_handler()
{
	handle(SIGSEGV, throwing, SA_NODEFER);
	for (int i = 0; i < 3; i++) {
		try {
			touch(nullptr);
		} catch (int number) {
			say("caught %d\n", number);
		}
	}
}

static void __attribute__((noinline)) show_backtrace()
{
	void *addresses[64];
	int count = backtrace(addresses, 64);

	say("frames %d\n", count);
	for (int i = 0; i < count && i < 5; i++) {
		char *function = nullptr;
		char **symbols = backtrace_symbols(&addresses[i], 1);

		function = strrchr(symbols[0], '/');
		char *bracket = function ? strchr(function, '[') : nullptr;
		if (bracket)
			*bracket = 0; /* the address differs from run to run */
		say("%s\n", function ? function : "?");
		free(symbols);
	}
}

static void __attribute__((noinline)) level2()
{
	show_backtrace();
	__asm__ volatile("");
}

static void backtrace_in_handler(int, siginfo_t *, void *)
{
	show_backtrace();
}

static void case_backtrace()
{
	level2();
	handle(SIGUSR1, backtrace_in_handler, 0);
	raise(SIGUSR1);
}

static jmp_buf jumped;
[[noreturn]] static void __attribute__((noinline)) jump_from(int depth)
{
	if (depth == 0)
		longjmp(jumped, 3);
	jump_from(depth - 1);
}

static void case_setjmp()
{
	volatile int times = 0;

	for (volatile int i = 0; i < 1000; i = i + 1) {
		if (setjmp(jumped) == 0)
			jump_from(i % 20);
		times = times + 1;
	}
	say("times %d\n", times);
}

static ucontext_t home, generator;
static volatile int produced;
static void generate(int from, int to)
{
	for (int i = from; i < to; i++) {
		produced = i;
		swapcontext(&generator, &home);
	}
	produced = -1;
}

static void case_contexts()
{
	static char stack[65536];
	static long sum = 0;

	getcontext(&generator);
	generator.uc_stack.ss_sp = stack;
	generator.uc_stack.ss_size = sizeof(stack);
	generator.uc_link = &home;
	makecontext(&generator, (void (*)())generate, 2, 5, 2000);
	for (;;) {
		swapcontext(&home, &generator);
		if (produced < 0)
			break;
		sum += produced;
	}
	say("sum %ld\n", sum);
}

/* Return addresses that no call has pushed, calls that never return, and stacks switched by hand.
 */
extern "C" long odd_returns(long);
__asm__(".text\n"
	"odd_returns:\n"
	"	mov %rdi, %rcx\n"
	"	xor %eax, %eax\n"
	"1:	lea 2f(%rip), %rdx\n"
	"	push %rdx\n"
	"	ret\n" /* to 2: pushed by hand */
	"	ud2\n"
	"2:	inc %rax\n"
	"	call 3f\n" /* the address is thrown away */
	"	ud2\n"
	"3:	pop %rdx\n"
	"	inc %rax\n"
	"	call 4f\n" /* the address is read, moved on by 2, and returned to */
	"	ud2\n"
	"	inc %rax\n"
	"	push $7\n"
	"	push $8\n"
	"	lea 5f(%rip), %rdx\n"
	"	push %rdx\n"
	"	ret $16\n"
	"	ud2\n"
	"4:	addq $2, (%rsp)\n"
	"	ret\n"
	"5:	call 6f\n" /* the same site calls and is returned to from two places */
	"	dec %rcx\n"
	"	jnz 1b\n"
	"	ret\n"
	"6:	test $1, %cl\n"
	"	jz 7f\n"
	"	ret\n"
	"7:	inc %rax\n"
	"	rep ret\n");

static void case_odd_returns()
{
	say("counted %ld\n", odd_returns(10000));
}

static int __attribute__((noinline)) ackermann(int m, int n)
{
	if (m == 0)
		return n + 1;
	return ackermann(m - 1, n ? ackermann(m, n - 1) : 1);
}

static void case_deep_recursion()
{
	say("ackermann %d\n", ackermann(2, 300) + ackermann(3, 6));
}

/* One indirect call site, many targets; many sites, one target. */
template <int n> static int target(int x)
{
	return x * n + 1;
}
template <int... n> static std::vector<int (*)(int)> targets(std::integer_sequence<int, n...>)
{
	return {target<n>...};
}

static void case_indirect_calls()
{
	auto all = targets(std::make_integer_sequence<int, 500>());
	unsigned int sum = 0;

	for (int round = 0; round < 40; round++)
		for (size_t i = 0; i < all.size(); i++)
			sum = sum * 31 + (unsigned int)all[i * 7 % all.size()](round);
	say("sum %u\n", sum);
}

static void ended()
{
	say("terminated\n");
	_exit(5);
}

static void case_terminate()
{
	std::set_terminate(ended);
	throw 1;
}

const struct test_case cases[] = {
	{"exceptions", case_exceptions},
	{"exception_from_a_handler", case_exception_from_a_handler},
	{"backtrace", case_backtrace},
	{"setjmp", case_setjmp},
	{"contexts", case_contexts},
	{"odd_returns", case_odd_returns},
	{"deep_recursion", case_deep_recursion},
	{"indirect_calls", case_indirect_calls},
	{"terminate", case_terminate},
	{NULL, NULL},
};
