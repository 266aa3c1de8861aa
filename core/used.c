// SPDX-License-Identifier: MIT
#include "core/used.h"

#include <string.h>

#include "core/arena.h"
#include "core/core.h"
#include "core/counter.h"
#include "core/repair.h"

void core_used(struct core_task *task, uint64_t kinds, const struct core_used *used)
{
	const uint64_t own = task->faults_own;
	const uint64_t minor = used->minor_faults > own ? used->minor_faults - own : 0;
	const uint64_t values[] = {
		[CORE_TASK_CLOCK] = used->run_time,
		[CORE_CPU_CLOCK] = used->run_time,
		[CORE_PAGE_FAULTS] = minor + used->major_faults + task->faults_failed,
		[CORE_PAGE_FAULTS_MIN] = minor,
		[CORE_PAGE_FAULTS_MAJ] = used->major_faults,
		[CORE_CONTEXT_SWITCHES] = used->switches,
		[CORE_CPU_MIGRATIONS] = used->migrations,
	};

	/* Those of the runtime's own are found by how they have been counted: all kinds, or
	 * none. */
	if (kinds & CORE_KINDS_FAULTS)
		kinds |= CORE_KINDS_FAULTS;
	for (unsigned int kind = 0; kind < sizeof(values) / sizeof(*values); kind++)
		if (kinds & CORE_KIND_BIT(kind))
			core_counter_raise(task, kind, values[kind]);
}

/* ---- as /proc has it ---- */

static const char *skip_blanks(const char *text)
{
	while (*text == ' ' || *text == '\t' || *text == ':')
		text++;
	return text;
}

uint64_t core_text_number(const char *text)
{
	uint64_t value = 0;

	for (text = skip_blanks(text); *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

uint64_t core_text_field(const char *text, const char *name)
{
	size_t length = strlen(name);

	while (*text) {
		if (!strncmp(text, name, length))
			return core_text_number(text + length);
		while (*text && *text != '\n')
			text++;
		text += *text == '\n';
	}
	return 0;
}

/* The blank-separated word @nr of stat, counted from 1 as proc(5) does; comm may have anything. */
static uint64_t stat_number(const char *text, unsigned int nr)
{
	const char *at = strrchr(text, ')');

	for (unsigned int word = 2; at && *at && word < nr; word++) {
		while (*at && *at != ' ')
			at++;
		at = skip_blanks(at);
	}
	return at ? core_text_number(at) : 0;
}

void core_used_stat(struct core_used *used, const char *stat)
{
	enum { MINOR_FAULTS = 10, MAJOR_FAULTS = 12 };

	used->minor_faults = stat_number(stat, MINOR_FAULTS);
	used->major_faults = stat_number(stat, MAJOR_FAULTS);
}

void core_used_read(struct core_used *used, uint64_t kinds, int32_t pid, int32_t tid,
		    core_read_file *read)
{
	char text[4096];

	if (kinds & CORE_KINDS_CLOCKS && read(pid, tid, "schedstat", text, sizeof(text)))
		used->run_time = core_text_number(text);
	if (kinds & CORE_KINDS_FAULTS && read(pid, tid, "stat", text, sizeof(text)))
		core_used_stat(used, text);
	if (kinds & CORE_KIND_BIT(CORE_CONTEXT_SWITCHES) &&
	    read(pid, tid, "status", text, sizeof(text)))
		used->switches = core_text_field(text, "voluntary_ctxt_switches") +
				 core_text_field(text, "nonvoluntary_ctxt_switches");
	if (kinds & CORE_KIND_BIT(CORE_CPU_MIGRATIONS) &&
	    read(pid, tid, "sched", text, sizeof(text)))
		used->migrations = core_text_field(text, "se.nr_migrations");
}

void core_used_by_proc(struct core_task *task, uint64_t kinds, int32_t pid, int32_t tid,
		       core_read_file *read)
{
	struct core_used used = {0};

	core_used_read(&used, kinds, pid, tid, read);
	core_used(task, kinds, &used);
}

/* ---- who could not tell ---- */

/* The process's first thread, if it has not ended by itself. */
static struct core_task *first_of(const struct core_task *task)
{
	struct core_task *first = core_task(task->first);

	return task->first && first->live && first->process == task->process &&
			       first->tid == first->pid
		       ? first
		       : NULL;
}

void core_used_ended(struct core_task *task, const struct core_used *used)
{
	struct core_task *first = first_of(task);

	if (!first || first == task)
		return;
	__atomic_fetch_add(&first->ended.run_time, used->run_time, __ATOMIC_RELAXED);
	__atomic_fetch_add(&first->ended.minor_faults, used->minor_faults, __ATOMIC_RELAXED);
	__atomic_fetch_add(&first->ended.major_faults, used->major_faults, __ATOMIC_RELAXED);
}

void core_used_alone(struct core_task *task, const struct core_used *others)
{
	task->first = core_page(task);
	task->ended = *others;
}

static bool is_lost(const struct core_task *task, uint64_t process)
{
	return task->process == process && task->tid != task->pid;
}

bool core_used_any_lost(uint64_t process)
{
	bool any = false;

	core_tree_lock();
	for (uint32_t page = core_tree()->live; page && !any; page = core_task(page)->next_live)
		any = is_lost(core_task(page), process) && core_task(page)->software;
	core_tree_unlock();
	return any;
}

/* What was seen of it last, in the kernel's numbers. */
static struct core_used seen(const struct core_task *task)
{
	const uint64_t cpu = core_counter_read(task, CORE_CPU_CLOCK);
	struct core_used used = {
		.run_time = core_counter_read(task, CORE_TASK_CLOCK),
		.minor_faults = core_counter_read(task, CORE_PAGE_FAULTS_MIN) + task->faults_own,
		.major_faults = core_counter_read(task, CORE_PAGE_FAULTS_MAJ),
	};

	if (cpu > used.run_time)
		used.run_time = cpu;
	return used;
}

static uint64_t rest(uint64_t of, uint64_t known)
{
	return of > known ? of - known : 0;
}

void core_used_lost(uint64_t process, const struct core_used *others)
{
	struct core_task *lost = NULL, *first = NULL;
	uint64_t kinds = CORE_KINDS_CLOCKS | CORE_KINDS_FAULTS;
	struct core_used known = {0}, used;

	core_tree_lock();
	for (uint32_t page = core_tree()->live; page; page = core_task(page)->next_live) {
		struct core_task *task = core_task(page);

		if (!is_lost(task, process))
			continue;
		used = seen(task);
		known.run_time += used.run_time;
		known.minor_faults += used.minor_faults;
		known.major_faults += used.major_faults;
		if (!(task->software & CORE_KINDS_CLOCKS))
			kinds &= ~CORE_KINDS_CLOCKS;
		if (!(task->software & CORE_KINDS_FAULTS))
			kinds &= ~CORE_KINDS_FAULTS;
		lost = task;
		first = first_of(task);
	}
	if (lost && first) {
		used = seen(lost);
		used.run_time += rest(others->run_time, known.run_time + first->ended.run_time);
		used.minor_faults +=
			rest(others->minor_faults, known.minor_faults + first->ended.minor_faults);
		used.major_faults +=
			rest(others->major_faults, known.major_faults + first->ended.major_faults);
		core_used(lost, kinds, &used);
	}
	core_tree_unlock();
}
