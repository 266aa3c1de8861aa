// SPDX-License-Identifier: MIT
/*
 * The event has a ring, whose mapping keeps it open: no descriptor is left that the program could
 * find. It stays open when nobody samples for a while, since to touch the ring is a fault itself,
 * of which who stops and starts his event at each one would be told forever.
 *
 * Two events more do nothing but send a kick at each fault, so that the thread comes out at the
 * instruction and what is sampled is of there. They are of minor and of major faults, which the
 * kernel counts when they are over: of all it tells before, and then puts a fault off that takes
 * long, for the signal, of which the instruction would tell again without end.
 *
 * Records are numbered as they come. getrusage(2), by which faults are counted, counts the
 * same ones, so the difference between its number and ours stays what it is; where it does not, as
 * after records were lost, the newest record is taken to be of the newest fault.
 */
#include "runtime/linux/faults.h"

#include <asm/errno.h>
#include <asm/mman.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <linux/resource.h>

#include "abi/control.h"
#include "core/core.h"
#include "core/counter.h"
#include "core/host.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/memory_map.h"
#include "runtime/linux/task.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/translate/translate.h"

enum {
	KINDS = 3,	 /* each has an event of its own */
	PAGES_MOST = 16, /* of a ring */
	KEPT = 512,	 /* of the newest faults */
	FEW = 4,	 /* that may come between a record and a look at the count */
	UNWANTED = 256,	 /* that are put up with before the event is closed */
	TRIES = 8,	 /* to take in all records while there come more */
};

/* As the kernel writes it. */
struct record {
	struct perf_event_header header;
	uint64_t ip, address;
};

struct watch {
	struct perf_event_mmap_page *page; /* NULL: there is no event */
	uint64_t size;
	bool refused, drained;
	uint64_t nr;	 /* of records so far */
	uint64_t wanted; /* and when somebody last sampled */
	int64_t offset;	 /* of the fault's number is the one of its record lower */
	struct {
		uint64_t ip, address;
	} last[KEPT];
};

/* An event that sends kicks. */
struct bell {
	void *page; /* NULL: there is none */
	int fd;	    /* of which the kicks tell, though it is closed */
};

struct faults {
	struct watch of[KINDS];
	struct bell bells[KINDS - 1];

	bool watches;

	/* Of the runtime's own, that no record tells of, since records were taken in. */
	uint64_t populated;

	/* What the kernel had counted when all records had been taken in: how many of these are the
	 * runtime's own is known. */
	bool known;
	struct rusage usage;
};

/* Whether the program has begun, and there is a thread_self(). */
static bool booted;

static const uint8_t configs[KINDS] = {PERF_COUNT_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS_MIN,
				       PERF_COUNT_SW_PAGE_FAULTS_MAJ};

static struct watch *watch_of(const struct task *task, enum core_kind kind)
{
	return &task->faults->of[kind - CORE_PAGE_FAULTS];
}

/* ---- the kernel's event ---- */

static int64_t open_event(unsigned int n, uint64_t sample_type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = configs[n],
		.sample_period = 1,
		.sample_type = sample_type,
		.exclude_hv = 1,
	};
	int64_t fd = sys(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd >= 0)
		return fd;
	/* Those of system calls are not for everybody to see. */
	attr.exclude_kernel = 1;
	return sys(__NR_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* So small a ring that may not be written to never fills. */
#define BELL_SIZE (2 * PAGE)

/* Without one samples are of where the thread comes out by itself. */
static void hang(struct bell *bell, unsigned int n)
{
	const struct f_owner_ex owner = {F_OWNER_TID, (int)sys(__NR_gettid)};
	int64_t fd = open_event(n, 0);
	int raised;

	if (fd < 0)
		return;
	raised = descriptors_raise((int)fd, true);
	fd = bell->fd = raised < 0 ? (int)fd : raised;
	if (!sys(__NR_fcntl, fd, F_SETOWN_EX, &owner) &&
	    !sys(__NR_fcntl, fd, F_SETSIG, KICK_SIGNAL))
		bell->page = memory_map_shared((int)fd, BELL_SIZE, PROT_READ);
	if (bell->page)
		sys(__NR_fcntl, fd, F_SETFL, FASYNC);
	sys(__NR_close, fd);
}

static void take_down(struct bell *bell)
{
	if (bell->page)
		memory_free(bell->page, BELL_SIZE);
	bell->page = NULL;
}

/* So that nothing of it is touched for the first time later. */
static void touch(struct perf_event_mmap_page *page, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += PAGE)
		(void)*((volatile const char *)page + at);
}

static void begin(struct faults *faults, unsigned int n)
{
	struct watch *w = &faults->of[n];
	const int64_t fd = confined() ? -EPERM : open_event(n, PERF_SAMPLE_IP | PERF_SAMPLE_ADDR);

	w->refused = true;
	if (fd < 0)
		return;
	for (unsigned int pages = PAGES_MOST; pages && !w->page; pages /= 4) {
		w->size = (1 + pages) * PAGE;
		w->page = memory_map_shared((int)fd, w->size, PROT_READ | PROT_WRITE);
	}
	sys(__NR_close, fd);
	memset(w->last, 0, sizeof(w->last));
	w->refused = !w->page;
	w->nr = w->wanted = 0;
	w->offset = INT64_MIN;
	for (unsigned int i = 1; i < KINDS && w->page; i++)
		if (!faults->bells[i - 1].page)
			hang(&faults->bells[i - 1], i);
	if (w->page)
		touch(w->page, w->size);
}

static struct rusage usage(void)
{
	enum { OF_THREAD = 1 };
	struct rusage usage = {0};

	sys(__NR_getrusage, OF_THREAD, &usage);
	return usage;
}

/* Leaves out what has been told so far; whether there was anything. */
static bool leave_out(struct faults *faults)
{
	bool any = false;

	for (unsigned int n = 0; n < KINDS; n++) {
		struct perf_event_mmap_page *page = faults->of[n].page;

		if (!page)
			continue;
		any |= page->data_tail != __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		__atomic_store_n(&page->data_tail, page->data_head, __ATOMIC_RELEASE);
	}
	return any;
}

/* All faults since they were counted last, a moment ago, were the runtime's own: it begins to
 * watch. */
static void leave_out_own(struct thread *thread)
{
	unsigned int tries = 0;
	struct rusage counted;

	do
		counted = usage();
	while (leave_out(thread->task->faults) && ++tries < TRIES);
	thread->events.faults_own = (uint64_t)counted.ru_minflt -
				    core_counter_read(&thread->events, CORE_PAGE_FAULTS_MIN);
	thread->task->faults->populated = 0;
}

static void end(struct watch *w)
{
	if (w->page)
		memory_free(w->page, w->size);
	w->page = NULL;
	w->drained = false;
	w->nr = w->wanted = 0;
}

void faults_follow(struct thread *thread)
{
	struct task *task = thread->task;
	const uint64_t sampled = thread->events.sampled & CORE_KINDS_FAULTS;
	bool began = false;

	if (!sampled && !task->faults)
		return;
	/* A child of vfork(2) leaves its parent what it maps. */
	if (!task->faults && core_settings()->host && !task->vfork)
		task->faults = memory_allocate(sizeof(*task->faults), 0);
	if (!task->faults)
		return;
	task->faults->watches = false;
	for (unsigned int n = 0; n < KINDS; n++) {
		struct watch *w = &task->faults->of[n];
		const bool wanted = sampled >> (CORE_PAGE_FAULTS + n) & 1;

		if (wanted && !w->page && !w->refused) {
			begin(task->faults, n);
			leave_out_own(thread);
			began = true;
		} else if (wanted) {
			w->wanted = w->nr;
		} else if (w->nr - w->wanted > UNWANTED) {
			end(w);
		}
		task->faults->watches |= w->page != NULL;
	}
	for (unsigned int n = 1; n < KINDS && !task->faults->watches; n++)
		take_down(&task->faults->bells[n - 1]);
	thread->events.faults_watched = task->faults->watches;
	task->faults->known &= task->faults->watches;
	if (began)
		faults_drain(thread);
}

void faults_end(struct task *task)
{
	if (!task->faults)
		return;
	for (unsigned int n = 0; n < KINDS; n++)
		end(&task->faults->of[n]);
	for (unsigned int n = 1; n < KINDS; n++)
		take_down(&task->faults->bells[n - 1]);
	memory_free(task->faults, sizeof(*task->faults));
	task->faults = NULL;
}

void faults_forked(struct task *task)
{
	if (task->faults)
		*task->faults = (struct faults){0};
}

/* ---- records ---- */

/* A ring is of whole words. */
static void read_words(const struct watch *w, uint64_t at, void *to, size_t size)
{
	const char *data = (const char *)w->page + w->page->data_offset;

	for (size_t i = 0; i < size; i += 8)
		memcpy((char *)to + i, data + ((at + i) & (w->page->data_size - 1)), 8);
}

/* The program's address for one in the code cache; 0: it was in a system call, or in the runtime.
 */
static uint64_t program_address(struct thread *thread, uint64_t ip)
{
	/* What a return has found on the stack nobody knows any more. */
	const uint64_t nowhere[2] = {0};
	struct regs regs = {.rip = ip, .gpr[REG_RSP] = (uint64_t)&nowhere[1]};
	struct counts counts;

	return translate_recover(thread, &regs, &counts) == TRANSLATE_INSIDE ? regs.rip : 0;
}

/* Those of the runtime's own memory; who touches the program's does it for that. */
static bool is_own(const struct record *record)
{
	return map_has_own(record->address, record->address + 1);
}

/* Returns whether there was anything. @own goes up by how many were the runtime's own, which
 * have no number. */
static bool take(struct thread *thread, struct watch *w, uint64_t *own)
{
	const uint64_t head = __atomic_load_n(&w->page->data_head, __ATOMIC_ACQUIRE);
	const uint64_t before = w->page->data_tail;
	uint64_t tail = before;
	struct record record;

	for (; head - tail >= sizeof(record.header); tail += record.header.size) {
		read_words(w, tail, &record, sizeof(record.header));
		if (record.header.size < sizeof(record.header) || record.header.size > head - tail)
			break;
		if (record.header.type != PERF_RECORD_SAMPLE || record.header.size < sizeof(record))
			continue;
		read_words(w, tail, &record, sizeof(record));
		if (is_own(&record)) {
			++*own;
			continue;
		}
		w->last[w->nr % KEPT].ip = program_address(thread, record.ip);
		w->last[w->nr++ % KEPT].address = record.address;
	}
	__atomic_store_n(&w->page->data_tail, tail, __ATOMIC_RELEASE);
	w->drained = true;
	return tail != before;
}

/* The runtime's own are counted by one of the watches: each is told of all of them. */
static bool take_all(struct thread *thread)
{
	struct faults *faults = thread->task->faults;
	uint64_t *counted = &thread->events.faults_own, others = 0;
	bool any = false;

	for (unsigned int n = 0; n < KINDS; n++) {
		if (!faults->of[n].page)
			continue;
		any |= take(thread, &faults->of[n], counted);
		counted = &others;
	}
	return any;
}

void faults_drain(struct thread *thread)
{
	struct faults *faults = thread->task->faults;
	unsigned int tries = 0;

	if (!faults || !faults->watches)
		return;
	/* What the cache holds stays, and what is whose. */
	translate_lock();
	do
		faults->usage = usage();
	while (take_all(thread) && ++tries < TRIES);
	thread->events.faults_own += faults->populated;
	faults->populated = 0;
	faults->known = faults->bells[0].page;
	translate_unlock();
}

/* ---- what is populated ---- */

static bool is_counted(const struct thread *thread)
{
	return thread->events.software & CORE_KINDS_FAULTS;
}

/* struct core_task's populating: from here on, and until here. */
static void step_populating(struct thread *thread, bool begins)
{
	uint32_t *populating = &thread->events.populating;

	if ((*populating & 1) != begins)
		__atomic_store_n(populating, *populating + 1, __ATOMIC_SEQ_CST);
}

void faults_executing(struct thread *thread)
{
	if (is_counted(thread))
		core_host_software(&thread->events, thread->events.software & CORE_KINDS_FAULTS);
	step_populating(thread, true);
}

void faults_not_executed(struct thread *thread)
{
	step_populating(thread, false);
}

void faults_boot(struct thread *thread)
{
	thread->events.faults_watched = false;
	if (is_counted(thread))
		thread->events.faults_own =
			(uint64_t)usage().ru_minflt -
			core_counter_read(&thread->events, CORE_PAGE_FAULTS_MIN);
	step_populating(thread, false);
	booted = true;
}

uint64_t faults_before_populating(void)
{
	/* Within what is populated already all is counted at its end. */
	if (!booted || !is_counted(thread_self()) || thread_self()->events.populating & 1)
		return 0;
	step_populating(thread_self(), true);
	return (uint64_t)usage().ru_minflt + 1;
}

void faults_populated(uint64_t before)
{
	struct thread *thread;
	struct faults *faults;
	uint64_t nr;

	if (!before)
		return;
	thread = thread_self();
	faults = thread->task->faults;
	nr = (uint64_t)usage().ru_minflt + 1 - before;
	/* Where records are taken in, what they tell of is known of the same moment. */
	if (faults && faults->watches)
		faults->populated += nr;
	else
		thread->events.faults_own += nr;
	step_populating(thread, false);
}

/* ---- what they are for ---- */

void faults_known(const struct task *task, struct rusage *usage)
{
	if (!task->faults || !task->faults->known)
		return;
	usage->ru_minflt = task->faults->usage.ru_minflt;
	usage->ru_majflt = task->faults->usage.ru_majflt;
}

bool faults_tell(const struct task *task, const siginfo_t *info)
{
	if (!task->faults || info->si_code != SI_SIGIO)
		return false;
	for (unsigned int n = 1; n < KINDS; n++)
		if (task->faults->bells[n - 1].page && task->faults->bells[n - 1].fd == info->si_fd)
			return true;
	return false;
}

void faults_counted(struct task *task, enum core_kind kind, uint64_t value)
{
	struct watch *w;
	int64_t ahead;

	if (!task->faults)
		return;
	w = watch_of(task, kind);
	if (!w->page || !w->drained)
		return;
	w->drained = false;
	ahead = (int64_t)(value - w->nr);
	if (task->faults->known || ahead < w->offset || ahead > w->offset + FEW)
		w->offset = ahead;
}

bool faults_find(const struct task *task, enum core_kind kind, uint64_t number,
		 struct core_cause *cause)
{
	const struct watch *w;
	uint64_t record;

	if (!task->faults)
		return false;
	w = watch_of(task, kind);
	record = number - (uint64_t)w->offset - 1;
	if (!w->page || w->nr - record - 1 >= KEPT || record >= w->nr)
		return false;
	cause->address = w->last[record % KEPT].address;
	if (w->last[record % KEPT].ip) {
		cause->ip = w->last[record % KEPT].ip;
		cause->since = CORE_SINCE_MORE;
	}
	return true;
}
