// SPDX-License-Identifier: MIT
#include "runtime/translate/inside.h"

#include "runtime/lock.h"
#include "runtime/pmu/tracer.h"
#include "runtime/translate/build.h"
#include "runtime/translate/caches.h"
#include "runtime/translate/instrument.h"
#include "runtime/translate/learned.h"

/* enter.S */
extern const char translate_drain[], translate_leave[], translate_jump_miss[],
	translate_return_miss[], translate_touch[];

static struct lock lock = {.kind = LOCK_TRANSLATOR};
static struct thread *threads;

/* Not 0 while somebody waits for the threads to leave a cache; none may enter any. */
static uint32_t emptying;

void translate_lock(void)
{
	lock_take(&lock);
}

void translate_unlock(void)
{
	lock_give(&lock);
}

/* ---- threads ---- */

static void prepare(struct thread *thread)
{
	instrument_begin(thread);
	thread->drain = (void *)translate_drain;
	thread->touch = (void *)translate_touch;
	thread->leave = (void *)translate_leave;
	thread->jump_miss = (void *)translate_jump_miss;
	thread->return_miss = (void *)translate_return_miss;
	recover_forget(thread);
	thread->inside = 0;
}

void translate_thread(struct thread *thread)
{
	prepare(thread);
	thread->tracer = NULL;
	lock_take(&lock);
	thread->next = threads;
	threads = thread;
	lock_give(&lock);
}

void translate_thread_gone(struct thread *thread)
{
	struct thread **link = &threads;

	lock_take(&lock);
	while (*link && *link != thread)
		link = &(*link)->next;
	if (*link)
		*link = thread->next;
	lock_give(&lock);
	tracer_end(thread);
}

void translate_forking(const struct thread *thread)
{
	learned_begin();
	lock_take(&lock);
	learned_take(cache_of(thread));
	lock_give(&lock);
}

void translate_forked(struct thread *thread)
{
	caches_forked();
	learned_forked();
	tracer_forked(thread);
	prepare(thread);
	thread->next = NULL;
	threads = thread;
}

bool translate_init(const struct translate_memory *memory)
{
	return caches_init(memory);
}

/* ---- emptying a cache ---- */

const struct thread *inside_threads(void)
{
	return threads;
}

bool cache_entered(const struct cache *cache)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (const struct thread *t = threads; t; t = t->next)
		if (__atomic_load_n(&t->inside, __ATOMIC_SEQ_CST) == cache_inside(cache))
			return true;
	return false;
}

/* A process that was killed in this memory does not get here. */
static void let_out_gone(void)
{
	for (struct thread *t = threads; t && lock_is_gone; t = t->next)
		if (__atomic_load_n(&t->inside, __ATOMIC_SEQ_CST) && lock_is_gone(t))
			come_out(t);
}

/*
 * Once all exits lead out, who is inside gets here soon, and waits for the lock where he is not
 * inside: nothing that blocks is ever done in emitted code.
 */
void inside_empty(struct cache *cache)
{
	enum { PATIENCE = 1000 };

	__atomic_store_n(&emptying, 1, __ATOMIC_SEQ_CST);
	cache_disconnect(cache);
	for (unsigned int turn = 1; cache_entered(cache); turn++) {
		sys(__NR_sched_yield);
		if (turn % PATIENCE == 0)
			let_out_gone();
	}
	for (struct thread *t = threads; t; t = t->next)
		recover_forget(t);
	cache_empty(cache);
	__atomic_store_n(&emptying, 0, __ATOMIC_SEQ_CST);
}

void translate_interrupted(struct thread *gone, void (*mend)(void))
{
	const bool making = instrument_inherit(gone), inherited = lock_inherit(&lock, gone);
	struct cache *cache;

	/* Somebody may be waiting for it to come out, with the lock. */
	come_out(gone);
	if (!making && !inherited)
		return;
	if (!inherited)
		lock_take(&lock);
	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		inside_empty(cache);
	if (making)
		instrument_interrupted();
	mend();
	if (making)
		translate_unlock_all();
	else
		translate_unlock();
}

/* ---- in and out ---- */

void say_inside(struct thread *thread, const struct cache *cache)
{
	__atomic_exchange_n(&thread->inside, cache_inside(cache), __ATOMIC_SEQ_CST);
}

void come_out(struct thread *thread)
{
	__atomic_store_n(&thread->inside, 0, __ATOMIC_RELEASE);
}

bool stays_inside(struct thread *thread)
{
	if (!core_task_changed(&thread->events))
		return true;
	come_out(thread);
	return false;
}

bool go_inside(struct thread *thread)
{
	say_inside(thread, cache_of(thread));
	if (!__atomic_load_n(&emptying, __ATOMIC_SEQ_CST))
		return stays_inside(thread);
	come_out(thread);
	return false;
}
