// SPDX-License-Identifier: MIT
/*
 * Where somebody waits for a counter to get to 0, it is looked now and then whether it has got
 * there, which is when it is not negative any more:
 *
 *	mov %rax, %gs:RAX; lahf; seto %al	if flags are not dead
 *	ptest SIGN(%rip), %xmm15
 *	jz out					as EXIT_DUE
 *	add $0x7f, %al; sahf; mov %gs:RAX, %rax
 *
 * That is late, by less than CORE_EARLY_INSNS instructions, and by as many the counter is early:
 * the thread goes on in code that checks in small steps (due.c). How late is bounded
 * whatever way the program goes. Each entry has a *level*, and each exit says how far the program
 * may have gone there since it was looked; exits lead to entries whose level is not below that
 * only, else it is looked before. So levels rise along each way without a look, as far as
 * COUNT_FAR, and each way round has one, usually before the branch that leads back. Where returns
 * and indirect jumps arrive it is always looked (branch.c).
 */
#include "runtime/translate/count_near.h"

#include "runtime/translate/build.h"
#include "runtime/translate/vectors.h"

/* ---- looking ---- */

static uint64_t *sign_of(const struct cache *cache, unsigned int kind)
{
	return (uint64_t *)(cache->lookup.code + WAYS_OUT + AMOUNTS_BYTES + 16 * kind);
}

void count_init(struct cache *cache)
{
	if (!cache_counts_in_vectors(cache))
		return;
	for (unsigned int kind = 0; kind < COUNT_VECTOR_KINDS; kind++)
		sign_of(cache, kind)[kind % 2] = 1UL << 63;
}

uint64_t count_looked(const struct cache *cache)
{
	return cache_counts_in_vectors(cache) ? cache->does.checked & CORE_KINDS_EXACT : 0;
}

/* ptest SIGN(%rip), %xmm; jz out */
static void emit_near_check(struct builder *b, unsigned int kind, enum how how)
{
	struct count *c = &b->count;

	EMIT(b, 0x66, 0x44, 0x0f, 0x38, 0x17);
	emit8(b, 0x05 | (7 - kind / 2) << 3);
	emit_relative(b, (uint64_t)sign_of(b->cache, kind));
	EMIT(b, 0x0f, 0x84, 0, 0, 0, 0);
	b->lists->near[c->nr_near++] = (struct near){b->at, b->pc, how, b->nr_insns, c->left};
}

/* What a look does not see of what the program has done. */
static unsigned int not_added(const struct count *c)
{
	unsigned int most = 0;

	for (unsigned int kind = 0; kind < COUNT_VECTOR_KINDS; kind++)
		if (c->left.of[kind] > (int)most)
			most = (unsigned int)c->left.of[kind];
	return most;
}

void count_look(struct builder *b)
{
	enum how how = KEEPING_FLAGS;

	if (due_flags_dead(b, b->pc))
		count_set_mark(b, MARK_FREE);
	if (count_is_marked(b, MARK_FREE))
		how = FREELY;
	due_borrow(b, b->pc, how);
	for (unsigned int kind = 0; kind < COUNT_VECTOR_KINDS; kind++)
		if (b->count.checked >> kind & 1)
			emit_near_check(b, kind, how);
	due_give_back(b, b->pc, how);
	b->count.gone = not_added(&b->count);
}

static void emit_near_exit(struct builder *b, const struct near *near)
{
	const uint32_t relative = b->at - near->site;

	__builtin_memcpy(near->site - 4, &relative, 4);
	b->pc = near->pc;
	b->count.left = near->left;
	b->count.insn = (struct counts){0};
	due_mark(b, near->pc, near->how);
	due_give_back(b, near->pc, near->how);
	count_emit(b, near->left, near->pc);
	emit_exit_jump(b, near->pc, near->behind ? EXIT_DUE_BEHIND : EXIT_DUE);
}

/* ---- how far the program has gone since it was looked ---- */

/* As far as exits may have. Who is as far looks at the next occasion, and at COUNT_LIMIT anyway. */
enum { COUNT_LIMIT = CORE_EARLY_INSNS - 4, COUNT_FAR = COUNT_LIMIT - 12 };

_Static_assert((int)COUNT_SLACK < (int)COUNT_FAR && COUNT_INSNS < CORE_EARLY_INSNS / 2, "");

unsigned int count_level(const struct builder *b)
{
	return count_is_marked(b, MARK_LOOKS) ? COUNT_FAR : b->count.gone;
}

static unsigned int larger(unsigned int a, unsigned int b)
{
	return a > b ? a : b;
}

void count_meet(struct builder *b, unsigned int slack)
{
	struct count *c = &b->count;
	unsigned int gone = cache_waiting(b->cache, b->pc) + slack;

	if (gone > COUNT_FAR)
		gone = COUNT_FAR;
	for (unsigned int i = 0; i < b->nr_exits; i++)
		if (b->draft->exits[i].to.pc == b->pc)
			gone = larger(gone, b->draft->exits[i].to.gone);
	for (unsigned int i = 0; i < b->nr_thunks; i++)
		if (b->lists->thunks[i].target == b->pc)
			gone = larger(gone, b->lists->thunks[i].gone);
	c->gone = larger(c->gone, gone);
}

bool count_keeps_near(const struct builder *b)
{
	return !b->asked && b->count.pairs && b->count.checked &&
	       !(b->fragment->flags & FRAGMENT_STEP);
}

void count_returned(struct builder *b)
{
	b->count.gone = 0;
	if (count_keeps_near(b))
		count_meet(b, COUNT_SLACK_RETURN); /* hardly anybody comes otherwise */
}

bool count_too_far(const struct builder *b, uint64_t target, unsigned int more)
{
	unsigned int level = COUNT_FAR;

	if (target == b->pc && more)
		return true;
	targets_level(b, target, &level);
	return b->count.gone + more > level;
}

static bool leads_too_far(const struct builder *b, uint64_t target, unsigned int more)
{
	return b->count.gone + more > COUNT_FAR || count_too_far(b, target, more);
}

bool count_leads_too_far(const struct builder *b)
{
	uint64_t target;

	switch (b->insn.class) {
	case INSN_CALL:
	case INSN_JCC:
	case INSN_LOOP:
	case INSN_XBEGIN:
		return count_too_far(b, insn_target(&b->insn, b->pc), 1);
	case INSN_PLAIN: /* flags are likely to be dead here, and behind it they are not */
		return !vectors_asked(b) && count_jcc_follows(b, &target) &&
		       leads_too_far(b, target, 2);
	}
	return false;
}

/*
 * The jcc that goes by the flags of the instruction at hand, with some between that leave flags
 * alone. Returns which it is from here on, 0: there is none.
 */
static unsigned int jcc_behind(struct builder *b, uint64_t *target)
{
	enum { MOST = 4 };
	uint64_t pc = b->pc + b->insn.length;
	uint8_t read, written;
	struct insn insn;

	for (unsigned int n = 2; n <= MOST && due_look(b, pc, &insn); n++, pc += insn.length) {
		if (insn.class == INSN_JCC) {
			*target = insn_target(&insn, pc);
			return n;
		}
		insn_flags(&insn, &read, &written);
		if (insn.class != INSN_PLAIN || written)
			break;
	}
	return 0;
}

void count_look_early(struct builder *b)
{
	struct count *c = &b->count;
	const unsigned int gone = c->gone;
	uint64_t target;
	unsigned int n;

	if (b->insn.class != INSN_PLAIN || due_flags_set(&b->insn) != DUE_FLAGS ||
	    vectors_asked(b) || count_jcc_follows(b, &target))
		return;
	n = jcc_behind(b, &target);
	if (!n || !leads_too_far(b, target, n))
		return;
	count_set_mark(b, MARK_LOOKS);
	c->gone = not_added(c);
	/* The way out has room for one addition. */
	if (c->gone >= AMOUNTS_OF_SECOND || leads_too_far(b, target, n))
		count_set_mark(b, MARK_ENTERED);
	c->gone = gone;
}

bool count_must_look(const struct builder *b)
{
	return b->count.gone >= COUNT_LIMIT;
}

/* ---- for the builder ---- */

enum { CHECK_BYTES = 16, NEAR_BYTES = 28, KEEP_BYTES = 9 + 4 + 3 + 9 };

static unsigned int nr_checked(const struct count *c)
{
	unsigned int n = 0;

	for (uint64_t kinds = c->checked; kinds; kinds &= kinds - 1)
		n++;
	return n;
}

unsigned int count_look_bytes(const struct count *c)
{
	return c->checked ? KEEP_BYTES + CHECK_BYTES * nr_checked(c) : 0;
}

unsigned int count_near_bytes(const struct builder *b)
{
	return b->count.nr_near * (NEAR_BYTES + b->cache->lookup.vectors * COUNT_ADD_BYTES);
}

bool count_near_room(const struct count *c)
{
	return c->nr_near + 2 * nr_checked(c) <= COUNT_NEAR_MAX;
}

void count_near_exits(struct builder *b)
{
	for (unsigned int i = 0; i < b->count.nr_near; i++)
		emit_near_exit(b, &b->lists->near[i]);
}
