// SPDX-License-Identifier: MIT
/*
 * What is made of a block (enter.S says what is in the registers):
 *
 *	mov $pc, %ecx				block.h
 *	cmpl $line, SLOT+4(%rbx)		of each line of code: is it where it would be?
 *	jne cold
 *	movzwl SLOT(%rbx), %ecx			then its time is there
 *	mov %rbp, (%rbx, %rcx, 8)
 *	add $NEAR_TICK, %rbp
 *	mov WORD(%rsi), %rax			of operands that go together
 *	lea FIRST(%rax), %ecx			their first byte
 *	lea LAST(%rax), %rdx			and their last one
 *	shr $6, %rdx; shl $23, %rdx		whose line must be
 *	shr $3, %ecx; and %r11d, %ecx
 *	xor (%r10, %rcx), %rdx			what is in the slot of the first one's
 *	cmp %r11, %rdx; ja cold
 *	mov %rbp, (%rbx, %rdx, 8)		then the place of its time is left
 *	...
 *	add $instructions | loads, %r13
 *	add $lines | conditions | stores, %r14
 *	mov NEXT(%rsi), %eax; lea NEXT(%rsi), %rsi
 *	...					the branch, predicted
 *
 * Of a condition, without a branch of its own:
 *
 *	mov %r12d, %ecx; xor $branch, %ecx; and $mask, %ecx
 *	xor %edx, %edx; cmpl $behind, PC(%rax); setne %dl	whether it was taken
 *	add %rdx, %r8
 *	lea (%rdx, %r12, 2), %r12
 *	shl $STEPS, %edx
 *	or BY_BRANCH(%rbx), %dl
 *	or (%rdi, %rcx), %dl			by history
 *	mov STEPS(%rbx, %rdx, 4), %edx
 *	mov %dl, BY_BRANCH(%rbx)
 *	mov %dh, (%rdi, %rcx)
 *	add %rdx, %r9
 *
 * And then
 *
 *	jmp *%rax
 *
 * It is kept short, and on one side: in programs of some size the time goes into fetching it. Only
 * who is not found in his slot goes to the cold side, where all that go together are used in a call.
 */
#include "runtime/model/compile.h"

#include <stddef.h>

#include "runtime/model/state.h"

/* ---- bytes ---- */

#define EMIT(at, ...)                                                                              \
	do {                                                                                       \
		static const uint8_t bytes_[] = {__VA_ARGS__};                                     \
                                                                                                   \
		__builtin_memcpy(at, bytes_, sizeof(bytes_));                                      \
		(at) += sizeof(bytes_);                                                            \
	} while (0)

static void put32(uint8_t **at, uint64_t value)
{
	const uint32_t low = (uint32_t)value;

	__builtin_memcpy(*at, &low, sizeof(low));
	*at += sizeof(low);
}

/*
 * The disp of an instruction whose opcode and ModRM byte have been put: of the register that is
 * relative to another, in as few bytes as it takes. Code is fetched from afar in programs of some
 * size, and that takes longer than executing it.
 */
static void put_displacement(uint8_t **at, uint8_t modrm, int64_t value)
{
	if (value == (int8_t)value) {
		*(*at)++ = modrm | 0x40;
		*(*at)++ = (uint8_t)value;
		return;
	}
	*(*at)++ = modrm | 0x80;
	put32(at, (uint64_t)value);
}

/* Members of the model, which rbx points at. */
#define PUT_MEMBER(at, member) put32(&(at), offsetof(struct model, member))

/* The rel32 that ends at @end. */
static void lead(uint8_t *end, const uint8_t *to)
{
	const uint32_t relative = (uint32_t)(to - end);

	__builtin_memcpy(end - 4, &relative, sizeof(relative));
}

/* jne, to what is not known yet: returns behind its rel32. */
static uint8_t *emit_jne(struct compiled *c)
{
	EMIT(c->hot, 0x0f, 0x85, 0, 0, 0, 0);
	return c->hot;
}

/* Takes @bytes for cold code, to which the jump that ends at @jump leads. */
static uint8_t *cold(struct compiled *c, unsigned int bytes, uint8_t *jump)
{
	c->cold -= bytes;
	lead(jump, c->cold);
	return c->cold;
}

/* ---- the first level ---- */

/* add $NEAR_TICK, %rbp */
static void emit_time(struct compiled *c)
{
	EMIT(c->hot, 0x48, 0x83, 0xc5, NEAR_TICK);
}

/* ---- fetches ---- */

/* cmpl $line, slot + 4(%rbx); jne; movzwl slot(%rbx), %ecx; mov %rbp, (%rbx, %rcx, 8) */
static uint8_t *emit_use(struct compiled *c, uint64_t line)
{
	const uint64_t slot = offsetof(struct model, code_slots[line % CODE_SLOTS]);
	uint8_t *jump;

	EMIT(c->hot, 0x81, 0xbb);
	put32(&c->hot, slot + 4);
	put32(&c->hot, line << NEAR_PLACE_BITS >> 32);
	jump = emit_jne(c);
	EMIT(c->hot, 0x0f, 0xb7, 0x8b);
	put32(&c->hot, slot);
	EMIT(c->hot, 0x48, 0x89, 0x2c, 0xcb);
	return jump;
}

/*
 * Cold: movabs $line, %rdi; call *MODEL_FETCH(%rbx); jmp back. The first one of a block begins with
 * where that is described (block.h), which is not looked at: it is far away.
 */
static void emit_call_fetch(struct compiled *c, const struct block *b, uint64_t line, uint8_t *jump)
{
	enum { BLOCK = 5, BYTES = 10 + 3 + 5 };
	uint8_t *at = cold(c, b ? BLOCK + BYTES : BYTES, jump);

	if (b) {
		EMIT(at, 0xb9); /* mov $block, %ecx */
		put32(&at, (uint64_t)(uintptr_t)b);
	}
	EMIT(at, 0x48, 0xbf);
	put32(&at, line);
	put32(&at, line >> 32);
	EMIT(at, 0xff, 0x53, MODEL_FETCH, 0xe9, 0, 0, 0, 0);
	lead(at, c->hot);
}

/* A block lies in two lines at most (BLOCK_MAX_LENGTH). */
static void emit_fetch(struct compiled *c, const struct block *b)
{
	const uint64_t last = (b->pc + b->length - 1) >> MACHINE_LINE_SHIFT;
	const uint64_t first = b->pc >> MACHINE_LINE_SHIFT;
	uint8_t *jump;

	for (uint64_t line = first; line <= last; line++) {
		jump = emit_use(c, line);
		emit_time(c);
		emit_call_fetch(c, line == first ? b : NULL, line, jump);
	}
}

/* ---- operands ---- */

/* From the first byte of some accesses to their last one. */
struct span {
	int64_t first, last;
};

static struct span span_of(const struct block *b, const struct block_access *a)
{
	const int64_t first = a->delta + (a->word ? 0 : (int64_t)(uint64_t)b);

	return (struct span){first, first + (a->what & BLOCK_SIZE)};
}

static bool within(struct span inner, struct span outer)
{
	return inner.first >= outer.first && inner.last <= outer.last;
}

/*
 * How many accesses from @i on are looked up at once: those that lie together, and, if what they
 * are reached by is aligned as it mostly is, in one line.
 */
static unsigned int together(const struct block *b, unsigned int i, struct span *span)
{
	const struct block_access *first = &b->accesses[i], *a = first;

	*span = span_of(b, first);
	for (a++; a < b->accesses + b->nr_accesses; a++) {
		const struct span next = span_of(b, a);

		if (a->what & BLOCK_STRING || a->word != first->word || a->base != first->base)
			break;
		if (within(next, *span))
			continue;
		if (next.first >> 4 != span->first >> 4 || next.last >> 4 != span->first >> 4 ||
		    span->last >> 4 != span->first >> 4)
			break;
		span->first = next.first < span->first ? next.first : span->first;
		span->last = next.last > span->last ? next.last : span->last;
	}
	return (unsigned int)(a - first);
}

/* The lower half of the first byte's address to ecx, and the last one's address to rdx. */
static void emit_addresses(struct compiled *c, const struct block_access *a, struct span span)
{
	if (!a->word && !a->base) {
		EMIT(c->hot, 0xb9); /* mov $first, %ecx */
		put32(&c->hot, (uint64_t)span.first);
		EMIT(c->hot, 0xba); /* mov $last, %edx */
		put32(&c->hot, (uint64_t)span.last);
		return;
	}
	if (a->word) {
		EMIT(c->hot, 0x48, 0x8b); /* mov 8*word(%rsi), %rax */
		put_displacement(&c->hot, 0x06, 8 * a->word);
	}
	if (a->base) {
		if (a->word)
			EMIT(c->hot, 0x48, 0x03, 0x43, MODEL_FS); /* add MODEL_FS(%rbx), %rax */
		else
			EMIT(c->hot, 0x48, 0x8b, 0x43, MODEL_FS); /* mov */
	}
	if (span.first) {
		EMIT(c->hot, 0x8d); /* lea first(%rax), %ecx */
		put_displacement(&c->hot, 0x08, span.first);
	} else {
		EMIT(c->hot, 0x89, 0xc1); /* mov %eax, %ecx */
	}
	EMIT(c->hot, 0x48, 0x8d); /* lea last(%rax), %rdx */
	put_displacement(&c->hot, 0x10, span.last);
}

/*
 * With the first address in rcx and the last one in rdx:
 *
 *	shr $6, %rdx; shl $23, %rdx; shr $3, %ecx; and %r11d, %ecx; xor (%r10, %rcx), %rdx;
 *	cmp %r11, %rdx; ja; mov %rbp, (%rbx, %rdx, 8)
 */
static uint8_t *emit_use_data(struct compiled *c)
{
	uint8_t *jump;

	EMIT(c->hot, 0x48, 0xc1, 0xea, MACHINE_LINE_SHIFT, 0x48, 0xc1, 0xe2, NEAR_PLACE_BITS);
	EMIT(c->hot, 0xc1, 0xe9, MACHINE_LINE_SHIFT - 3, 0x44, 0x21, 0xd9);
	EMIT(c->hot, 0x49, 0x33, 0x14, 0x0a, 0x4c, 0x39, 0xda);
	EMIT(c->hot, 0x0f, 0x87, 0, 0, 0, 0);
	jump = c->hot;
	EMIT(c->hot, 0x48, 0x89, 0x2c, 0xd3);
	return jump;
}

/* mov $which, %edi; call *member(%rbx) */
static void emit_call(uint8_t **at, uint32_t which, uint8_t member)
{
	EMIT(*at, 0xbf);
	put32(at, which);
	EMIT(*at, 0xff, 0x53);
	*(*at)++ = member;
}

/* Cold: they are used one after the other; comes back behind. */
static void emit_accesses(struct compiled *c, const struct block *b, unsigned int i,
			  unsigned int nr, struct span span)
{
	enum { BYTES = 5 + 3 + 5 };
	const struct block_access *a = &b->accesses[i];
	uint8_t *at, *jump;

	emit_addresses(c, a, span);
	jump = emit_use_data(c);
	/* The next time that data is used at has to be another; at the end, code is used first. */
	if (i + nr < b->nr_accesses)
		emit_time(c);
	at = cold(c, BYTES, jump);
	emit_call(&at, ACCESSES(i, nr) | (a->what & BLOCK_STORE ? ACCESSES_STORE : 0), MODEL_LINE);
	EMIT(at, 0xe9, 0, 0, 0, 0);
	lead(at, c->hot);
}

static void emit_operands(struct compiled *c, const struct block *b)
{
	struct span span;
	unsigned int nr;

	for (unsigned int i = 0; i < b->nr_accesses; i += nr) {
		nr = block_strings(b, i);
		if (nr) {
			emit_call(&c->hot, ACCESSES(i, nr), MODEL_ACCESS);
			continue;
		}
		nr = together(b, i, &span);
		emit_accesses(c, b, i, nr, span);
	}
}

/* ---- sums ---- */

/* add, %r14: as many stores at a time as a constant can be. */
static void emit_add_lines(struct compiled *c, uint64_t lines, uint64_t stores)
{
	const uint64_t most = (1UL << (31 - SUM_STORES)) - 1;

	do {
		const uint64_t some = stores < most ? stores : most;

		EMIT(c->hot, 0x49, 0x81, 0xc6);
		put32(&c->hot, lines | some << SUM_STORES);
		lines = 0;
		stores -= some;
	} while (stores);
}

static void emit_sums(struct compiled *c, const struct block *b)
{
	const uint64_t insns = BLOCK_PART(b->counts, BLOCK_INSTRUCTIONS);
	const uint64_t slots = (uint32_t)b->cost;

	EMIT(c->hot, 0x49, 0x81, 0xc5); /* add, %r13 */
	put32(&c->hot, insns | BLOCK_PART(b->counts, BLOCK_LOAD_OPERANDS) << SUM_LOADS);
	emit_add_lines(c, b->cost >> 32 | (uint64_t)(b->end == BLOCK_CONDITIONAL) << SUM_CONDITIONS,
		       BLOCK_PART(b->counts, BLOCK_STORE_OPERANDS));
	if (slots == insns)
		return;
	EMIT(c->hot, 0x48, 0x81, 0x83); /* addq, extra_slots(%rbx) */
	PUT_MEMBER(c->hot, extra_slots);
	put32(&c->hot, slots - insns);
}

/* mov NEXT(%rsi), %eax; lea NEXT(%rsi), %rsi */
static void emit_next(struct compiled *c, const struct block *b)
{
	EMIT(c->hot, 0x8b);
	put_displacement(&c->hot, 0x06, 8 * b->words);
	EMIT(c->hot, 0x48, 0x8d); /* lea NEXT(%rsi), %rsi */
	put_displacement(&c->hot, 0x36, 8 * b->words);
}

static void emit_add_branch(struct compiled *c, uint32_t sum)
{
	EMIT(c->hot, 0x49, 0x81, 0xc0); /* add, %r8 */
	put32(&c->hot, sum);
}

/* ---- branches ---- */

static void emit_jump(uint8_t **at)
{
	EMIT(*at, 0xff, 0xe0); /* jmp *%rax */
}

static void put_by_branch(uint8_t **at, uint64_t branch)
{
	put32(at, offsetof(struct model, predictor.by_branch) + predict_branch_place(branch));
}

static void emit_condition(struct compiled *c, uint64_t behind)
{
	uint8_t **at = &c->hot;

	EMIT(*at, 0x44, 0x89, 0xe1, 0x81, 0xf1); /* mov %r12d, %ecx; xor, %ecx */
	put32(at, predict_history_place(behind));
	EMIT(*at, 0x81, 0xe1); /* and, %ecx */
	put32(at, (1 << PREDICT_HISTORY_BITS) - 1);
	EMIT(*at, 0x31, 0xd2);					/* xor %edx, %edx */
	EMIT(*at, 0x81, 0x78, offsetof(struct block_head, pc)); /* cmpl $behind, PC(%rax) */
	put32(at, behind);
	EMIT(*at, 0x0f, 0x95, 0xc2);		  /* setne %dl */
	EMIT(*at, 0x49, 0x01, 0xd0);		  /* add %rdx, %r8 */
	EMIT(*at, 0x4e, 0x8d, 0x24, 0x62);	  /* lea (%rdx, %r12, 2), %r12 */
	EMIT(*at, 0xc1, 0xe2, PREDICT_STEP_BITS); /* shl, %edx */
	EMIT(*at, 0x0a, 0x93);			  /* or by_branch(%rbx), %dl */
	put_by_branch(at, behind);
	EMIT(*at, 0x0a, 0x14, 0x0f); /* or (%rdi, %rcx), %dl */
	EMIT(*at, 0x8b, 0x94, 0x93); /* mov steps(%rbx, %rdx, 4), %edx */
	PUT_MEMBER(*at, predictor.steps);
	EMIT(*at, 0x88, 0x93); /* mov %dl, by_branch(%rbx) */
	put_by_branch(at, behind);
	EMIT(*at, 0x88, 0x34, 0x0f); /* mov %dh, (%rdi, %rcx) */
	EMIT(*at, 0x49, 0x01, 0xd1); /* add %rdx, %r9 */
	emit_jump(at);
}

/* mov %r15d, %ecx; and $.., %ecx: where the top of the stack is. */
static void emit_top(struct compiled *c)
{
	EMIT(c->hot, 0x44, 0x89, 0xf9, 0x83, 0xe1, PREDICT_RETURNS - 1);
}

static void emit_push(struct compiled *c, uint64_t behind)
{
	emit_add_branch(c, 1u << SUM_CALLS);
	EMIT(c->hot, 0x41, 0xff, 0xc7); /* inc %r15d */
	emit_top(c);
	EMIT(c->hot, 0xc7, 0x84, 0x8b); /* movl $behind, returns(%rbx, %rcx, 4) */
	PUT_MEMBER(c->hot, predictor.returns);
	put32(&c->hot, behind);
}

/* Cold: incq wrong(%rbx); jmp *%rax */
static void emit_return(struct compiled *c)
{
	enum { BYTES = 9 };
	uint8_t *at;

	emit_top(c);
	EMIT(c->hot, 0x41, 0xff, 0xcf); /* dec %r15d */
	EMIT(c->hot, 0x8b, 0x94, 0x8b); /* mov returns(%rbx, %rcx, 4), %edx */
	PUT_MEMBER(c->hot, predictor.returns);
	EMIT(c->hot, 0x39, 0x50, offsetof(struct block_head, pc)); /* cmp %edx, PC(%rax) */
	at = cold(c, BYTES, emit_jne(c));
	EMIT(at, 0x48, 0xff, 0x83);
	PUT_MEMBER(at, wrong);
	emit_jump(&at);
	emit_jump(&c->hot);
}

/* mov $behind, %ecx; call *MODEL_TARGET(%rbx); jmp *%rax */
static void emit_target(struct compiled *c, uint64_t behind)
{
	EMIT(c->hot, 0xb9);
	put32(&c->hot, behind);
	EMIT(c->hot, 0xff, 0x53, MODEL_TARGET);
	emit_jump(&c->hot);
}

static void emit_branch(struct compiled *c, const struct block *b)
{
	const uint64_t behind = b->pc + b->length;

	switch (b->end) {
	case BLOCK_ON:
		emit_jump(&c->hot);
		break;
	case BLOCK_CONDITIONAL:
		emit_condition(c, behind);
		break;
	case BLOCK_JUMP:
		emit_add_branch(c, 1u << SUM_JUMPS);
		emit_jump(&c->hot);
		break;
	case BLOCK_JUMP_INDIRECT:
		emit_add_branch(c, 1u << SUM_JUMPS);
		emit_target(c, behind);
		break;
	case BLOCK_CALL:
		emit_push(c, behind);
		emit_jump(&c->hot);
		break;
	case BLOCK_CALL_INDIRECT:
		emit_push(c, behind);
		emit_target(c, behind);
		break;
	case BLOCK_RETURN:
		emit_return(c);
		break;
	}
}

/* ---- blocks ---- */

/* mov $pc, %ecx: struct block_head */
static uint64_t emit_head(uint8_t **at, uint64_t pc)
{
	const uint64_t code = (uint64_t)*at;

	EMIT(*at, 0xb9);
	put32(at, pc);
	return code;
}

uint64_t model_compile(struct compiled *c, const struct block *b)
{
	const uint64_t code = emit_head(&c->hot, b->pc);

	emit_fetch(c, b);
	emit_operands(c, b);
	emit_sums(c, b);
	emit_next(c, b);
	emit_branch(c, b);
	return code;
}

void model_compile_end(struct compiled_end *end)
{
	uint8_t *at = end->code;

	emit_head(&at, 0);
	EMIT(at, 0xff, 0x63, MODEL_LEAVE); /* jmp *MODEL_LEAVE(%rbx) */
}
