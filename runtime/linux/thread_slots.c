// SPDX-License-Identifier: MIT
#include "runtime/linux/thread_slots.h"

#include "core/core.h"
#include "runtime/linux/arena.h"
#include "runtime/linux/faults.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/task.h"
#include "runtime/linux/threads.h"
#include "runtime/translate/translate.h"

_Static_assert(sizeof(struct task) <= PAGE && sizeof(struct thread) <= PAGE, "");

/* All slots of the process. Slots are added and never taken away. */
static struct task *slots;
static struct lock lock = {.kind = LOCK_SLOTS};

static bool tables_differ;

/* As much of the stack as every thread needs. */
#define USUAL_STACK (2 * PAGE)

_Alignas(PAGE) char slot_first[SLOT_SIZE];

char *slot_signal_stack(struct task *task)
{
	return (char *)task + SLOT_HEAD;
}

char *slot_runtime_stack(struct task *task)
{
	return slot_signal_stack(task) + SIGNAL_STACK_SIZE;
}

struct thread *slot_own_thread(struct task *task)
{
	return (struct thread *)((char *)task + PAGE);
}

static void *new_memory(void)
{
	static bool first_taken;
	void *memory;

	if (!__atomic_exchange_n(&first_taken, true, __ATOMIC_RELAXED))
		return slot_first;
	memory = memory_allocate(SLOT_SIZE, 0);
	if (memory) {
		memory_populate((uint64_t)memory, (uint64_t)memory + PAGE);
		memory_populate((uint64_t)memory + SLOT_SIZE - USUAL_STACK,
				(uint64_t)memory + SLOT_SIZE);
	}
	return memory;
}

struct task *slot_new(void)
{
	struct task *task = new_memory();

	if (!task)
		return NULL;
	task->used = 1;
	lock_take(&lock);
	task->next = slots;
	__atomic_store_n(&slots, task, __ATOMIC_RELEASE);
	lock_give(&lock);
	return task;
}

/*
 * The page that the thread before had in the slot is for the next one, if it can be: under another
 * table of descriptors it has to be given away, or has been lost. Then its memory is another
 * thread's, which is not to be touched. A task that could not be ended (tasks_end()) is left in its
 * page to who takes that next and can, or to the monitor.
 */
static void keep_page(struct task *task)
{
	if (!task->thread)
		return;
	if (!task->owner ||
	    (arena_is_still(task->owner) && !slots_tables_differ() && !task->thread->events.live)) {
		task->thread->tid = 0; /* of the one before */
		return;
	}
	arena_leave(task->owner);
	task->thread = NULL;
	task->owner = 0;
}

struct task *slot_reused(void)
{
	struct task *task;

	lock_take(&lock);
	for (task = slots; task; task = task->next) {
		uint32_t unused = 0;

		if (__atomic_compare_exchange_n(&task->used, &unused, 1, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED)) {
			/* Nobody who visits it takes it for the one before. */
			task->pid = 0;
			keep_page(task);
			break;
		}
	}
	lock_give(&lock);
	return task;
}

struct task *slot_of(int tid)
{
	struct task *task = __atomic_load_n(&slots, __ATOMIC_ACQUIRE);

	for (; task; task = task->next)
		if (__atomic_load_n(&task->used, __ATOMIC_ACQUIRE) && task->thread &&
		    task->thread->tid == tid)
			break;
	return task;
}

void slot_give(struct task *task)
{
	__atomic_store_n(&task->used, 0, __ATOMIC_RELEASE);
}

struct thread *slot_adopt(struct task *task, struct thread *thread, uint32_t page)
{
	arena_adopt(thread, page);
	thread->self = thread;
	thread->task = task;
	thread->locks = task->locks;
	thread->stack = (char *)task + SLOT_SIZE;
	task->thread = thread;
	task->owner = page ? arena_owner(thread) : 0;
	return thread;
}

void slot_leave_page(struct task *task)
{
	if (task->owner)
		arena_leave(task->owner);
	task->owner = 0;
	task->thread = slot_own_thread(task);
}

struct thread *slot_thread(struct task *task)
{
	struct thread *thread = task->thread;

	if (!thread) {
		lock_take(&lock);
		thread = arena_take();
		lock_give(&lock);
	}
	if (!thread) {
		thread = slot_own_thread(task);
		thread->page = 0;
	}
	core_task_clear(&thread->events);
	return slot_adopt(task, thread, thread->page);
}

void threads_visit(void (*visit)(struct task *task, void *what), void *what)
{
	lock_take(&lock);
	for (struct task *task = slots; task; task = task->next)
		if (__atomic_load_n(&task->used, __ATOMIC_ACQUIRE))
			visit(task, what);
	lock_give(&lock);
}

bool slots_tables_differ(void)
{
	return __atomic_load_n(&tables_differ, __ATOMIC_RELAXED);
}

void slots_tables_part(void)
{
	__atomic_store_n(&tables_differ, true, __ATOMIC_RELAXED);
}

void slots_lock(void)
{
	lock_take(&lock);
}

void slots_unlock(void)
{
	lock_give(&lock);
}

void slots_forked(const struct task *self)
{
	for (struct task *task = slots; task; task = task->next) {
		faults_forked(task);
		if (task == self)
			continue;
		if (task->thread)
			arena_forget(task->thread);
		task->thread = NULL;
		task->used = 0;
	}
}
