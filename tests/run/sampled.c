// SPDX-License-Identifier: MIT
/*
 * Overflows of code that goes round in the same few instructions, in all the ways in which that can
 * be done: the counter is where it has to be each time, in user mode. Nothing of this makes a
 * system call, by which what was missed would come out.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, RING = PAGE + 16 * PAGE };

/* ---- samples ---- */

struct sample {
	struct perf_event_header header;
	uint64_t value;
};

/* Samples say what has been counted, so the n-th one has n periods: all that are due are there. */
static void sample(uint64_t config, uint64_t period, void (*work)(long), long argument)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = config,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_READ,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	const struct perf_event_mmap_page *page;
	const struct sample *samples;
	uint64_t count;

	assert_return_code(fd, errno);
	page = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	samples = (const struct sample *)((const char *)page + PAGE);
	assert_return_code(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0), errno);
	work(argument);
	assert_return_code(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), errno);
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	assert_true(count > 10 * period);
	assert_int_equal(page->data_head, count / period * sizeof(*samples));
	for (uint64_t i = 0; i < count / period; i++) {
		assert_int_equal(samples[i].header.type, PERF_RECORD_SAMPLE);
		assert_int_equal(samples[i].value, (i + 1) * period);
	}
	munmap((void *)page, RING);
	close(fd);
}

/* So few that none of them is throttled. */
enum { ROUNDS = 1000000, PERIOD = 20011 };

static void each_is_there(void (*work)(long))
{
	sample(PERF_COUNT_HW_INSTRUCTIONS, PERIOD, work, ROUNDS);
	sample(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, PERIOD, work, ROUNDS);
}

/* ---- loops ---- */

static void amid_a_block(long n)
{
	__asm__ volatile("nop; nop; 1: dec %0; jnz 1b" : "+r"(n));
}

static void behind_a_condition(long n)
{
	__asm__ volatile("test %0, %0; jz 2f; 1: dec %0; jnz 1b; 2:" : "+r"(n));
}

static void by_a_jump(long n)
{
	__asm__ volatile("1: dec %0; jz 2f; nop; jmp 1b; 2:" : "+r"(n));
}

static void by_an_indirect_jump(long n)
{
	void *head;

	__asm__ volatile("lea 1f(%%rip), %1; 1: dec %0; jz 2f; jmp *%1; 2:" : "+r"(n), "=&r"(head));
}

static void by_loop(long n)
{
	__asm__ volatile("test %0, %0; jz 2f; 1: loop 1b; 2:" : "+c"(n));
}

/* Out of the red zone. */
static void behind_a_call(long n)
{
	__asm__ volatile("sub $128, %%rsp; jmp 2f; 1: ret; 2: call 1b; 3: dec %0; jnz 3b; "
			 "add $128, %%rsp"
			 : "+r"(n));
}

static void loops(void **state)
{
	(void)state;
	each_is_there(amid_a_block);
	each_is_there(behind_a_condition);
	each_is_there(by_a_jump);
	each_is_there(by_an_indirect_jump);
	each_is_there(by_loop);
	each_is_there(behind_a_call);
}

/* ---- nothing but calls ---- */

extern const char out[];

__asm__(".text\n"
	"direct:\n"
	"	push %rbx\n"
	"	mov %rsp, %rbx\n"
	"	mov %rdi, %rsp\n"
	"1:	call 1b\n"
	"indirect:\n"
	"	push %rbx\n"
	"	mov %rsp, %rbx\n"
	"	lea 1f(%rip), %rax\n"
	"	mov %rdi, %rsp\n"
	"1:	call *%rax\n"
	"out:\n"
	"	mov %rbx, %rsp\n"
	"	pop %rbx\n"
	"	ret\n");

void direct(long stack);
void indirect(long stack);

static void get_out(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)signal;
	(void)info;
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)out;
}

/* Until the stack is full. */
static void calls(void **state)
{
	static char handlers[1 << 16];
	const struct sigaction action = {.sa_sigaction = get_out,
					 .sa_flags = SA_SIGINFO | SA_ONSTACK};
	const stack_t alternative = {.ss_sp = handlers, .ss_size = sizeof(handlers)};
	struct sigaction before;
	char *stack = mmap(NULL, PAGE + 8L * ROUNDS, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(stack, MAP_FAILED);
	assert_return_code(mprotect(stack, PAGE, PROT_NONE), errno);
	assert_return_code(sigaltstack(&alternative, NULL), errno);
	assert_return_code(sigaction(SIGSEGV, &action, &before), errno);
	sample(PERF_COUNT_HW_INSTRUCTIONS, PERIOD, direct, (long)(stack + PAGE + 8L * ROUNDS));
	sample(PERF_COUNT_HW_INSTRUCTIONS, PERIOD, indirect, (long)(stack + PAGE + 8L * ROUNDS));
	assert_return_code(sigaction(SIGSEGV, &before, NULL), errno);
	munmap(stack, PAGE + 8L * ROUNDS);
}

/* ---- code beside what it writes ---- */

static int kept_xmm15;

/*
 * Each write is to the page of the instruction, which is made ready to be executed alone at first;
 * and then a counter may be near that was not when the way to the write began.
 */
static void call_pages(long code)
{
	static const uint64_t pattern[2] __attribute__((aligned(16))) = {0x0123456789abcdef, 42};
	static uint64_t after[2] __attribute__((aligned(16)));

	for (int i = 0; i < 16; i++) {
		__asm__ volatile("sub $128, %%rsp; movaps %1, %%xmm15; call *%2; "
				 "movaps %%xmm15, %0; add $128, %%rsp"
				 : "=m"(after)
				 : "m"(pattern), "r"(code + (long)i * PAGE)
				 : "rcx", "xmm15", "memory");
		kept_xmm15 += !memcmp(after, pattern, sizeof(after));
	}
}

static void written_code(void **state)
{
	/* mov $30, %ecx; 1: nop ...; mov %ecx, 256(%rip); dec %ecx; jnz 1b; ret */
	static const unsigned char begin[] = {0xb9, 30, 0, 0, 0},
				   end[] = {0x89, 0x0d, 0, 1, 0, 0, 0xff, 0xc9, 0x75, 0xce, 0xc3};
	enum { NOPS = 40, NOP = 0x90 };
	char *code = mmap(NULL, 16L * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	for (long i = 0; i < 16; i++) {
		char *page = code + i * PAGE;

		memcpy(page, begin, sizeof(begin));
		memset(page + sizeof(begin), NOP, NOPS);
		memcpy(page + sizeof(begin) + NOPS, end, sizeof(end));
	}
	sample(PERF_COUNT_HW_INSTRUCTIONS, 251, call_pages, (long)code);
	assert_int_equal(kept_xmm15, 16);
	munmap(code, 16L * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops),
		cmocka_unit_test(calls),
		cmocka_unit_test(written_code),
	};

	return cmocka_run_group_tests_name("run/sampled", tests, NULL, NULL);
}
