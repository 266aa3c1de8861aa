// SPDX-License-Identifier: MIT
/*
 * What samples of hardware events say of the instruction that they are of, in user mode: it is that
 * very one, and its registers, its operand and its callers are told as they were. Written out in
 * assembly, so that all of that is known.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <asm/perf_regs.h>

#include <tally/record.h>

enum { PAGE = 4096, DATA = 256 * PAGE };

#define REG(name) (1ULL << PERF_REG_X86_##name)

/* ---- what is executed ---- */

/*
 * walk(first): a list of cells of 64 bytes, each of which holds the next one's address; NULL ends
 * it. The load takes its address from the register that it writes, and a leaf is called for each.
 */
void walk(void *first);
extern const char walk_load[], walk_store[], walk_call[], walk_back[], walk_branch[], leaf[],
	leaf_return[];

__asm__(".text\n"
	".p2align 6\n"
	"walk:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"1:\n"
	"walk_store:\n"
	"	mov %rdi, 8(%rdi)\n"
	"walk_load:\n"
	"	mov (%rdi), %rdi\n"
	"walk_call:\n"
	"	call leaf\n"
	"walk_back:\n"
	"	test %rdi, %rdi\n"
	"walk_branch:\n"
	"	jnz 1b\n"
	"	pop %rbp\n"
	"	ret\n"
	"leaf:\n"
	"	nop\n"
	"leaf_return:\n"
	"	ret\n");

/* So few that none of what is sampled is throttled: 400 in a tick of 4 ms. */
enum { CELL = 64, CELLS = 4096 };

static struct cell {
	struct cell *next, *self;
	char rest[CELL - 16];
} cells[CELLS] __attribute__((aligned(PAGE)));

static struct cell *make_list(unsigned int stride)
{
	for (unsigned int i = 0; i < CELLS; i++)
		cells[i].next = i + stride < CELLS ? &cells[i + stride] : NULL;
	return cells;
}

/* ---- the event ---- */

struct recorder {
	struct perf_event_attr attr;
	struct tally_record record;
	int fd;
	struct perf_event_mmap_page *page;
	uint64_t tail;
};

static struct recorder begin(struct perf_event_attr attr)
{
	struct recorder r = {.attr = attr};

	r.attr.size = sizeof(attr);
	r.attr.disabled = 1;
	r.attr.exclude_kernel = 1;
	r.attr.precise_ip = 2;
	r.fd = (int)syscall(SYS_perf_event_open, &r.attr, 0, -1, -1, 0);
	if (r.fd < 0 && errno == ENOENT) {
		print_message("there is no such PMU");
		skip();
	}
	assert_return_code(r.fd, errno);
	r.page = mmap(NULL, PAGE + DATA, PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
	assert_ptr_not_equal(r.page, MAP_FAILED);
	return r;
}

static struct recorder begin_at(uint64_t config, uint64_t period, uint64_t sample_type)
{
	return begin((struct perf_event_attr){
		.type = PERF_TYPE_HARDWARE,
		.config = config,
		.sample_period = period,
		.sample_type = sample_type,
	});
}

static void end(struct recorder *r)
{
	munmap(r->page, PAGE + DATA);
	close(r->fd);
}

static void record(struct recorder *r, void (*work)(void *), void *argument)
{
	assert_return_code(ioctl(r->fd, PERF_EVENT_IOC_ENABLE, 0), errno);
	work(argument);
	assert_return_code(ioctl(r->fd, PERF_EVENT_IOC_DISABLE, 0), errno);
}

/* The next sample; it is valid until the next one. NULL: there are no more. */
static const struct tally_sample *next(struct recorder *r)
{
	const unsigned char *data = (const unsigned char *)r->page + PAGE;
	struct tally_record_format format;
	const char *why = "";
	long size;

	tally_record_format_init(&format, &r->attr);
	assert_in_range(r->page->data_head, 0, DATA); /* nothing has been lost, nor gone around */
	do {
		if (r->tail == r->page->data_head)
			return NULL;
		size = tally_record_decode(&format, data + r->tail, r->page->data_head - r->tail,
					   &r->record, &why);
		if (size <= 0)
			fail_msg("%s", why);
		r->tail += (uint64_t)size;
		assert_int_not_equal(r->record.type, PERF_RECORD_LOST);
	} while (r->record.type != PERF_RECORD_SAMPLE);
	return &r->record.sample;
}

static bool is_exact(const struct recorder *r)
{
	return r->record.misc & PERF_RECORD_MISC_EXACT_IP;
}

static uint64_t reg(const struct tally_regs *regs, unsigned int number)
{
	uint64_t value = 0;

	assert_true(tally_regs_get(regs, number, &value));
	return value;
}

/* ---- which instruction ---- */

static int place_of(uint64_t ip, const char *const places[], int nr)
{
	for (int i = 0; i < nr; i++)
		if (ip == (uint64_t)places[i])
			return i;
	return -1;
}

/*
 * What a round executes of the kind that is sampled are @places: so each sample is as many of them
 * further than the one before as the period says.
 */
static void each_in_turn(struct recorder *r, const char *const places[], int nr)
{
	const struct tally_sample *sample;
	unsigned int seen = 0;
	int before = -1;

	record(r, walk, make_list(1));
	while ((sample = next(r))) {
		const int place = place_of(sample->ip, places, nr);

		assert_true(is_exact(r));
		if (before >= 0 && place >= 0) {
			assert_int_equal(place, (before + (int)r->attr.sample_period) % nr);
			seen++;
		}
		/* Behind the end of the list it is somebody else's code. */
		if (before >= 0 && place < 0)
			break;
		before = place;
	}
	assert_in_range(seen, (uint64_t)CELLS * (uint64_t)nr / r->attr.sample_period - 4,
			CELLS * 10);
	end(r);
}

static void instructions(void **state)
{
	static const char *const places[] = {walk_store,  walk_load, walk_call,	 leaf,
					     leaf_return, walk_back, walk_branch};
	struct recorder r = begin_at(PERF_COUNT_HW_INSTRUCTIONS, 101, PERF_SAMPLE_IP);

	(void)state;
	each_in_turn(&r, places, 7);
}

static void branches(void **state)
{
	static const char *const places[] = {walk_call, leaf_return, walk_branch};
	struct recorder r = begin_at(PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 41, PERF_SAMPLE_IP);

	(void)state;
	each_in_turn(&r, places, 3);
}

/* ---- what it was like ---- */

#define CACHE(id, op, result) ((id) | (op) << 8 | (result) << 16)
#define REGISTERS	      (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_REGS_INTR)
#define L1D_READS	      CACHE(0, 0, 0)
#define L1D_WRITES	      CACHE(0, 1, 0)

static struct recorder begin_cache(uint64_t config, uint64_t period, uint64_t more)
{
	return begin((struct perf_event_attr){
		.type = PERF_TYPE_HW_CACHE,
		.config = config,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | more,
		.sample_regs_user = REG(IP) | REG(SP) | REG(DI),
		.sample_regs_intr = REG(IP) | REG(SP) | REG(DI),
	});
}

static bool in_cells(uint64_t address)
{
	return address - (uint64_t)cells < sizeof(cells);
}

/* The load's own registers are gone when it is done; the return's are found by the stack. */
static void loads(void **state)
{
	struct recorder r = begin_cache(L1D_READS, 31, REGISTERS);
	const struct tally_sample *sample;
	unsigned int of_list = 0, of_stack = 0;

	(void)state;
	record(&r, walk, make_list(1));
	while ((sample = next(&r))) {
		assert_true(is_exact(&r));
		assert_int_equal(reg(&sample->regs_user, PERF_REG_X86_IP), sample->ip);
		assert_int_equal(reg(&sample->regs_intr, PERF_REG_X86_IP), sample->ip);
		if (sample->ip == (uint64_t)walk_load) {
			const struct cell *cell = (const struct cell *)sample->addr;

			assert_true(in_cells(sample->addr));
			assert_ptr_equal(cell->self, cell);
			assert_int_equal(reg(&sample->regs_user, PERF_REG_X86_DI), cell);
			assert_int_equal(reg(&sample->regs_intr, PERF_REG_X86_DI), cell->next);
			of_list++;
		} else if (sample->ip == (uint64_t)leaf_return) {
			const uint64_t sp = reg(&sample->regs_user, PERF_REG_X86_SP);

			assert_int_equal(sample->addr, sp);
			assert_int_equal(reg(&sample->regs_intr, PERF_REG_X86_SP), sp + 8);
			of_stack++;
		}
	}
	assert_in_range(of_list, CELLS / 31 - 3, CELLS);
	assert_in_range(of_stack, CELLS / 31 - 3, CELLS);
	end(&r);
}

static void stores(void **state)
{
	struct recorder r = begin_cache(L1D_WRITES, 31, REGISTERS);
	const struct tally_sample *sample;
	unsigned int of_list = 0, of_stack = 0;

	(void)state;
	record(&r, walk, make_list(1));
	while ((sample = next(&r))) {
		assert_true(is_exact(&r));
		if (sample->ip == (uint64_t)walk_store) {
			assert_true(in_cells(sample->addr));
			assert_int_equal(sample->addr % CELL, offsetof(struct cell, self));
			of_list++;
		} else if (sample->ip == (uint64_t)walk_call) {
			assert_int_equal(sample->addr,
					 reg(&sample->regs_user, PERF_REG_X86_SP) - 8);
			assert_int_equal(sample->addr, reg(&sample->regs_intr, PERF_REG_X86_SP));
			of_stack++;
		}
	}
	assert_in_range(of_list, CELLS / 31 - 3, CELLS);
	assert_in_range(of_stack, CELLS / 31 - 3, CELLS);
	end(&r);
}

/* ---- of the model ---- */

/*
 * chase(first): the list alone. choose(bits): a branch for each of DICE bytes, which is taken where
 * the byte is odd, and that of the loop.
 */
void chase(void *first);
void choose(void *bytes);
extern const char chase_load[], choose_branch[];

enum { DICE = 1 << 14 };

__asm__(".text\n"
	".p2align 6\n"
	"chase:\n"
	"chase_load:\n"
	"	mov (%rdi), %rdi\n"
	"	test %rdi, %rdi\n"
	"	jnz chase\n"
	"	ret\n"
	"choose:\n"
	"	lea 16384(%rdi), %rsi\n"
	"1:	testb $1, (%rdi)\n"
	"choose_branch:\n"
	"	jnz 2f\n"
	"	nop\n"
	"2:	inc %rdi\n"
	"	cmp %rsi, %rdi\n"
	"	jne 1b\n"
	"	ret\n");

static const struct {
	uint64_t source;
	uint32_t latency;
} memory = {
	PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, LOC_RAM) | PERF_MEM_S(LVLNUM, RAM) |
		PERF_MEM_S(OP, LOAD) | PERF_MEM_S(SNOOP, NONE) | PERF_MEM_S(LOCK, NA),
	250,
};

/* Larger than the last level, and in steps that nobody fetches in advance. */
static void *make_long_list(void)
{
	enum { SIZE = 64 << 20, STEP = PAGE + 3 * CELL };
	char *list = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t at;

	assert_ptr_not_equal(list, MAP_FAILED);
	for (at = 0; at + STEP < SIZE; at += STEP)
		*(void **)(list + at) = list + at + STEP;
	return list;
}

/* Each sample's word in the list is what was read there, and it came from far away. */
static void check_far_load(const struct tally_sample *sample)
{
	const uint64_t tlb = PERF_MEM_S(TLB, HIT) | PERF_MEM_S(TLB, WK);

	assert_int_equal(sample->data_src, memory.source | tlb);
	assert_int_equal(sample->weight & UINT32_MAX, memory.latency + 30);
	assert_int_equal(sample->addr % CELL, 0);
}

static struct recorder begin_model(uint64_t config, uint64_t period)
{
	return begin_at(config, period,
			PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC |
				PERF_SAMPLE_WEIGHT_STRUCT);
}

static void cache_misses(void **state)
{
	struct recorder r = begin_model(PERF_COUNT_HW_CACHE_MISSES, 97);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	record(&r, chase, make_long_list());
	while ((sample = next(&r))) {
		if (sample->ip != (uint64_t)chase_load)
			continue;
		assert_true(is_exact(&r));
		check_far_load(sample);
		seen++;
	}
	assert_in_range(seen, (64 << 20) / (PAGE + 3 * CELL) / 97 - 3, 400);
	end(&r);
}

/* Nearly all of the time is spent with one instruction. */
static void cycles(void **state)
{
	struct recorder r = begin_model(PERF_COUNT_HW_CPU_CYCLES, 20011);
	const struct tally_sample *sample;
	unsigned int seen = 0, elsewhere = 0;

	(void)state;
	record(&r, chase, make_long_list());
	while ((sample = next(&r))) {
		if (sample->ip != (uint64_t)chase_load || !is_exact(&r)) {
			elsewhere++;
			continue;
		}
		check_far_load(sample);
		seen++;
	}
	assert_true(seen > 20);
	assert_true(seen > 10 * elsewhere);
	end(&r);
}

static void branch_misses(void **state)
{
	static unsigned char dice[DICE];
	struct recorder r = begin_model(PERF_COUNT_HW_BRANCH_MISSES, 31);
	const struct tally_sample *sample;
	unsigned int seen = 0, elsewhere = 0;
	uint32_t random = 1;

	(void)state;
	for (unsigned int i = 0; i < DICE; i++) {
		random = random * 1664525 + 1013904223;
		dice[i] = random >> 24;
	}
	record(&r, choose, dice);
	while ((sample = next(&r))) {
		assert_true(is_exact(&r));
		if (sample->ip == (uint64_t)choose_branch)
			seen++;
		else
			elsewhere++;
	}
	assert_true(seen > DICE / 3 / 31);
	assert_true(elsewhere < 20);
	end(&r);
}

/* How far an operand was, the model is asked though nothing of its is counted. */
static void far_loads(void **state)
{
	struct recorder r = begin_cache(L1D_READS, 97, PERF_SAMPLE_DATA_SRC);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	record(&r, chase, make_long_list());
	while ((sample = next(&r))) {
		if (sample->ip != (uint64_t)chase_load)
			continue;
		assert_true(is_exact(&r));
		assert_int_equal(sample->data_src & 0xffff & ~31U, memory.source & 0xffff & ~31U);
		seen++;
	}
	assert_in_range(seen, (64 << 20) / (PAGE + 3 * CELL) / 97 - 3, 400);
	end(&r);
}

/* ---- branches to themselves ---- */

void spin(void *times);
extern const char spin_branch[];

__asm__(".text\n"
	"spin:\n"
	"	mov %rdi, %rcx\n"
	"spin_branch:\n"
	"	loop spin_branch\n"
	"	ret\n");

static void branches_to_themselves(void **state)
{
	struct recorder r = begin((struct perf_event_attr){
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
		.sample_period = 1009,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK,
		.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER,
	});
	const struct tally_sample *sample;
	struct perf_branch_entry newest;
	unsigned int seen = 0;

	(void)state;
	record(&r, spin, (void *)20000);
	while ((sample = next(&r))) {
		if (sample->ip != (uint64_t)spin_branch)
			continue;
		assert_true(sample->nr_branches >= 16);
		memcpy(&newest, sample->branches, sizeof(newest));
		assert_int_equal(newest.from, spin_branch);
		assert_int_equal(newest.to, spin_branch);
		seen++;
	}
	assert_in_range(seen, 18, 20);
	end(&r);
}

/* ---- call chains ---- */

static volatile unsigned int worked;

enum { DEPTH = 5 };

static __attribute__((noinline)) int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* As compilers make them, without frame pointers; the C library's in between. */
static __attribute__((noinline)) int descend(int depth, int *numbers, size_t nr)
{
	volatile char room[40];
	int result;

	room[depth] = 1;
	if (depth) {
		result = descend(depth - 1, numbers, nr);
	} else {
		qsort(numbers, nr, sizeof(*numbers), compare);
		result = numbers[0];
	}
	return result + room[depth];
}

static __attribute__((noinline)) void sort(void *numbers)
{
	for (unsigned int i = 0; i < 3000; i++)
		((int *)numbers)[i] = (int)(i * 7919 % 3001);
	((int *)numbers)[0] += descend(DEPTH, numbers, 3000);
}

static bool is_in(uint64_t ip, const void *function, size_t size)
{
	return ip - (uint64_t)function < size;
}

/* Who is beneath descend() in the chain is beneath its caller, and so on up to main(). */
static unsigned int frames_of(const struct tally_sample *sample, const void *function, size_t size)
{
	unsigned int nr = 0;

	for (uint64_t i = 0; i < sample->nr_ips; i++)
		nr += is_in(tally_u64(sample->ips + i), function, size);
	return nr;
}

static void chains_are_complete(struct recorder *r)
{
	/* Their sizes are not known to C; they are small, and what counts is who is called. */
	const size_t small = 0x100;
	const struct tally_sample *sample;
	unsigned int seen = 0, elsewhere = 0;

	while ((sample = next(r))) {
		if (!frames_of(sample, (const void *)compare, 16))
			continue;
		assert_int_equal(tally_u64(sample->ips), PERF_CONTEXT_USER);
		/* Of the model's, the odd chain is of where the thread has got to. */
		elsewhere += tally_u64(sample->ips + 1) != sample->ip;
		assert_true(frames_of(sample, (const void *)descend, small) >= DEPTH + 1);
		assert_true(frames_of(sample, (const void *)sort, small) >= 1);
		seen++;
	}
	assert_true(seen > 10);
	assert_true(elsewhere <= (r->attr.config == PERF_COUNT_HW_INSTRUCTIONS ? 0 : seen / 4));
}

static void call_chains(void **state)
{
	static const struct {
		uint64_t config, period;
	} events[] = {{PERF_COUNT_HW_INSTRUCTIONS, 4001}, {PERF_COUNT_HW_CPU_CYCLES, 1009}};
	static int numbers[3000];

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct recorder r = begin_at(events[i].config, events[i].period,
					     PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);

		record(&r, sort, numbers);
		chains_are_complete(&r);
		end(&r);
	}
}

/* ---- at a return ---- */

/*
 * As compilers make them with frame pointers: to the end they say that rbp is saved where it was
 * pushed, which is below the stack once it is popped.
 */
void returning(void);
void calling(void);

enum { RETURN = 5, RETURNING_END = 6, CALLING_SIZE = 0x30 };

/* clang-format off */
__asm__(".text\n"
	"returning: .cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16; .cfi_offset rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"calling: .cfi_startproc\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16; .cfi_offset rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register rbp\n"
	"	sub $16, %rsp\n"
	"	movl $50000, -8(%rbp)\n"
	"1:	call returning\n"
	"	decl -8(%rbp)\n"
	"	jnz 1b\n"
	"	leave\n"
	"	.cfi_def_cfa rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n");
/* clang-format on */

int main(void);

static __attribute__((noinline)) void call_calling(void *unused)
{
	(void)unused;
	calling();
	worked++;
}

static void chains_at_a_return(void **state)
{
	struct recorder r =
		begin_at(PERF_COUNT_HW_INSTRUCTIONS, 1009, PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	record(&r, call_calling, NULL);
	while ((sample = next(&r))) {
		if (!is_in(sample->ip, (const void *)returning, RETURNING_END))
			continue;
		assert_true(sample->nr_ips > 5);
		assert_true(is_in(tally_u64(sample->ips + 2), (const void *)calling, CALLING_SIZE));
		assert_true(is_in(tally_u64(sample->ips + 3), (const void *)call_calling, 0x40));
		assert_int_equal(frames_of(sample, (const void *)main, 0x400), 1);
		seen += sample->ip == (uint64_t)returning + RETURN;
	}
	assert_true(seen > 10);
	end(&r);
}

/* ---- through a handler, and as far as it goes ---- */

static __attribute__((noinline)) void on_signal(int number)
{
	(void)number;
	for (unsigned int i = 0; i < 200000; i++)
		worked++;
}

static __attribute__((noinline)) void interrupted(void *unused)
{
	(void)unused;
	worked = 0;
	raise(SIGUSR1);
	worked++;
}

/* Who was interrupted is in the chain of who handles it. */
static void chains_through_a_handler(void **state)
{
	struct recorder r =
		begin_at(PERF_COUNT_HW_INSTRUCTIONS, 20011, PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	signal(SIGUSR1, on_signal);
	record(&r, interrupted, NULL);
	while ((sample = next(&r))) {
		if (!is_in(sample->ip, (const void *)on_signal, 0x40))
			continue;
		assert_true(frames_of(sample, (const void *)interrupted, 0x40) >= 1);
		assert_true(frames_of(sample, (const void *)main, 0x400) >= 1);
		seen++;
	}
	assert_true(seen > 10);
	end(&r);
}

static __attribute__((noinline)) unsigned int dig(unsigned int depth)
{
	if (depth)
		return dig(depth - 1) + worked;
	on_signal(0);
	return worked;
}

static void dig_deep(void *unused)
{
	(void)unused;
	dig(1000);
}

/* The place and its callers are as many as perf_event_max_stack says, which is 127. */
static void chains_have_an_end(void **state)
{
	struct recorder r =
		begin_at(PERF_COUNT_HW_INSTRUCTIONS, 20011, PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	(void)state;
	record(&r, dig_deep, NULL);
	while ((sample = next(&r))) {
		if (!is_in(sample->ip, (const void *)on_signal, 0x40))
			continue;
		assert_int_equal(sample->nr_ips, 1 + 127);
		assert_int_equal(frames_of(sample, (const void *)dig, 0x40), 126);
		seen++;
	}
	assert_true(seen > 10);
	end(&r);
}

/* ---- code of which nothing is said ---- */

/* made(frame): works a while with that frame pointer. */
static const uint8_t made_code[] = {
	0x55,			      /* push %rbp */
	0x48, 0x89, 0xfd,	      /* mov %rdi, %rbp */
	0xb9, 0x40, 0x42, 0x0f, 0x00, /* mov $1000000, %ecx */
	0xff, 0xc9,		      /* 1: dec %ecx */
	0x75, 0xfc,		      /* jnz 1b */
	0x5d, 0xc3,		      /* pop %rbp; ret */
};

enum { MADE_LOOP = 9, MADE_END = 13 };

static void run_made(void *made)
{
	struct {
		uint64_t next, back;
	} frame = {0, (uint64_t)made + PAGE + 1};

	((void (*)(void *))made)(&frame);
}

/* Of samples in the loop, whether the caller in the made frame is told. */
static void expect_caller(uint8_t *made, bool told)
{
	struct recorder r =
		begin_at(PERF_COUNT_HW_INSTRUCTIONS, 40009, PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN);
	const struct tally_sample *sample;
	unsigned int seen = 0;

	record(&r, run_made, made);
	while ((sample = next(&r))) {
		if (sample->ip - (uint64_t)made - MADE_LOOP >= MADE_END - MADE_LOOP)
			continue;
		assert_int_equal(sample->nr_ips, told ? 3 : 2);
		assert_int_equal(tally_u64(sample->ips + 1), sample->ip);
		if (told)
			assert_int_equal(tally_u64(sample->ips + 2), made + PAGE + 1);
		seen++;
	}
	assert_in_range(seen, 40, 60);
	end(&r);
}

/* Frame pointers are believed where they lead into code, and that may come later. */
static void frame_pointers(void **state)
{
	const int prot = PROT_READ | PROT_WRITE | PROT_EXEC;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	uint8_t *made = mmap(NULL, 2 * PAGE, prot, flags, -1, 0);

	(void)state;
	assert_ptr_not_equal(made, MAP_FAILED);
	memcpy(made, made_code, sizeof(made_code));
	munmap(made + PAGE, PAGE);
	expect_caller(made, false);
	assert_ptr_equal(mmap(made + PAGE, PAGE, prot, flags | MAP_FIXED, -1, 0), made + PAGE);
	expect_caller(made, true);
	munmap(made, 2 * PAGE);
}

/* ---- what is not to change ---- */

/* Walks a list with vectors filled, and stores what is in them then. */
static void walk_with(const void *first, const uint8_t *vectors, uint8_t *after)
{
	__asm__ volatile("movups (%1), %%xmm0\n\tmovups 16(%1), %%xmm1\n\t"
			 "movups 32(%1), %%xmm2\n\tmovups 48(%1), %%xmm3\n\t"
			 "movups 64(%1), %%xmm4\n"
			 "1:\n\tmov (%0), %0\n\ttest %0, %0\n\tjnz 1b\n\t"
			 "movups %%xmm0, (%2)\n\tmovups %%xmm1, 16(%2)\n\t"
			 "movups %%xmm2, 32(%2)\n\tmovups %%xmm3, 48(%2)\n\t"
			 "movups %%xmm4, 64(%2)"
			 : "+r"(first)
			 : "r"(vectors), "r"(after)
			 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "memory");
}

/* What computes the misses borrows registers that are the program's. */
static void vectors(void **state)
{
	struct recorder r = begin_at(PERF_COUNT_HW_CACHE_MISSES, 0, 0);
	uint8_t before[5 * 16], after[5 * 16];

	(void)state;
	for (unsigned int i = 0; i < sizeof(before); i++)
		before[i] = (uint8_t)(i * 37 + 11);
	assert_return_code(ioctl(r.fd, PERF_EVENT_IOC_ENABLE, 0), errno);
	for (unsigned int i = 0; i < 10; i++) {
		memset(after, 0, sizeof(after));
		walk_with(make_list(1 + i % 3), before, after);
		assert_memory_equal(before, after, sizeof(before));
	}
	end(&r);
}

/* Pages that the process has mapped. */
static long mapped(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!f || fscanf(f, "%ld", &pages) != 1)
		abort();
	fclose(f);
	return pages;
}

/* Forks down to the last generation, which tells whether it has more than the first one. */
static int generation(unsigned int left, long first)
{
	int status;
	pid_t pid;

	walk(make_list(1));
	if (!first)
		first = mapped();
	if (!left)
		return mapped() - first > 1024;
	pid = fork();
	if (!pid)
		_exit(generation(left - 1, first));
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

/* A child has a model of its own, of more than a MiB, and not those of its forebears. */
static void generations(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CACHE_MISSES,
		.exclude_kernel = 1,
		.inherit = 1,
	};
	const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	(void)state;
	if (fd < 0 && errno == ENOENT) {
		print_message("there is no such PMU");
		skip();
	}
	assert_return_code(fd, errno);
	assert_int_equal(generation(12, 0), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(generations),
		cmocka_unit_test(instructions),
		cmocka_unit_test(branches),
		cmocka_unit_test(loads),
		cmocka_unit_test(stores),
		cmocka_unit_test(cache_misses),
		cmocka_unit_test(cycles),
		cmocka_unit_test(branch_misses),
		cmocka_unit_test(far_loads),
		cmocka_unit_test(branches_to_themselves),
		cmocka_unit_test(call_chains),
		cmocka_unit_test(chains_at_a_return),
		cmocka_unit_test(chains_through_a_handler),
		cmocka_unit_test(chains_have_an_end),
		cmocka_unit_test(frame_pointers),
	};

	return cmocka_run_group_tests_name("run/precise", tests, NULL, NULL);
}
