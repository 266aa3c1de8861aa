// SPDX-License-Identifier: MIT
#include "abi/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/fatal.h"
#include "abi/store.h"
#include "core/core.h"
#include "monitor/machine.h"
#include "monitor/memory_limit.h"
#include "monitor/monitor.h"
#include "monitor/vendor.h"

/* As the kernel has them without being told. */
enum {
	MLOCK_KB = 516,
	MAX_STACK = 127,
	ROTATION_NS = 4000000,
};

/* The numbers of units that are ours on every host, far from those that the kernel gives. */
enum { TRACE_TYPE = 512, PROBE_TYPE, OP_TYPE };

static struct {
	char *memory;
	int fd;
} arena = {NULL, -1};

static struct arena_header *header(void)
{
	return (void *)arena.memory;
}

void arena_answer(uint32_t ticket)
{
	uint32_t *answered = &header()->answered;

	if ((int32_t)(ticket - __atomic_load_n(answered, __ATOMIC_RELAXED)) <= 0)
		return;
	__atomic_store_n(answered, ticket, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void arena_woken(void)
{
	__atomic_add_fetch(&header()->woken, 1, __ATOMIC_SEQ_CST);
}

void arena_set_command(pid_t pid)
{
	if (arena.memory)
		__atomic_store_n(&header()->command, pid, __ATOMIC_RELEASE);
}

bool arena_is_there(void)
{
	return arena.memory;
}

void arena_set_reserves(void)
{
	__atomic_store_n(&header()->reserves, 1, __ATOMIC_RELEASE);
}

bool arena_command_handles(int signal, pid_t sender)
{
	struct timespec time;
	uint64_t now, handled;

	if (!arena.memory)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &time);
	now = arena_handled(signal, sender,
			    (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000);
	handled = __atomic_load_n(&header()->handled[signal % ARENA_HANDLED], __ATOMIC_ACQUIRE);
	return arena_handled_just(handled, now) && arena_handled_of(handled) == sender;
}

uint32_t arena_used(void)
{
	uint32_t used = __atomic_load_n(&header()->used, __ATOMIC_RELAXED);

	return used < ARENA_PAGES ? used : ARENA_PAGES - 1;
}

static struct flock lock_of(uint64_t start, uint64_t length)
{
	return (struct flock){
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)start,
		.l_len = (off_t)length,
	};
}

static bool is_locked(uint64_t start, uint64_t length)
{
	struct flock lock = lock_of(start, length);

	return !fcntl(arena.fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

bool arena_locked(uint32_t page)
{
	return is_locked(page * ARENA_PAGE, ARENA_PAGE);
}

static uint32_t *word_of(uint32_t page, uint32_t at)
{
	return (void *)(arena.memory + page * ARENA_PAGE + at);
}

static uint32_t *who_is(uint32_t number)
{
	return (uint32_t *)(arena.memory + ARENA_NUMBERS_AT) + number;
}

uint32_t arena_number(uint32_t number)
{
	return __atomic_load_n(who_is(number), __ATOMIC_ACQUIRE);
}

uint32_t arena_numbers(void)
{
	const uint32_t given = arena_number(0), first = ARENA_OWNER_INCARNATION(ARENA_MONITOR) + 1;

	return given < ARENA_INCARNATIONS - first ? first + given : ARENA_INCARNATIONS;
}

bool arena_owner_there(uint32_t owner)
{
	const uint32_t page = ARENA_OWNER_PAGE(owner), as = ARENA_OWNER_INCARNATION(owner);

	if (!page)
		return arena_number(as) && is_locked(ARENA_SIZE + as, 1);
	return __atomic_load_n(word_of(page, ARENA_INCARNATION), __ATOMIC_ACQUIRE) == as &&
	       arena_locked(page);
}

static pid_t who_locks(uint64_t start, uint64_t length)
{
	struct flock lock = lock_of(start, length);

	return fcntl(arena.fd, F_GETLK, &lock) || lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

pid_t arena_process(uint32_t page)
{
	return who_locks(page * ARENA_PAGE, ARENA_PAGE);
}

pid_t arena_process_of_number(uint32_t number)
{
	return who_locks(ARENA_SIZE + number, 1);
}

uint32_t arena_owner_of(uint32_t page)
{
	const uint32_t *as = word_of(page, ARENA_INCARNATION);

	return ARENA_OWNER(page, __atomic_load_n(as, __ATOMIC_ACQUIRE));
}

void arena_forsake(uint32_t owner)
{
	const uint32_t next = ARENA_OWNER_INCARNATION(owner) + 1;
	uint32_t as = ARENA_OWNER_INCARNATION(owner);

	__atomic_compare_exchange_n(word_of(ARENA_OWNER_PAGE(owner), ARENA_INCARNATION), &as,
				    next < ARENA_INCARNATIONS ? next : 1, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

void arena_forsake_number(uint32_t number, uint32_t who)
{
	__atomic_compare_exchange_n(who_is(number), &who, 0, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
}

static uint32_t giver_of(uint32_t page)
{
	return __atomic_load_n(word_of(page, ARENA_HANDED_OVER), __ATOMIC_ACQUIRE);
}

static bool is_held(uint32_t page, uint32_t giver)
{
	return arena_locked(page) || giver == ARENA_EXPECTED || (giver && arena_owner_there(giver));
}

bool arena_held(uint32_t page)
{
	return is_held(page, giver_of(page));
}

bool arena_abandoned(uint32_t page)
{
	uint32_t giver = giver_of(page);

	return giver && !is_held(page, giver);
}

void arena_free(uint32_t page)
{
	if (!arena_locked(page))
		__atomic_store_n(word_of(page, ARENA_HANDED_OVER), 0, __ATOMIC_RELEASE);
}

void arena_discard(uint64_t offset, uint64_t size)
{
	fallocate(arena.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}

bool arena_inside(uint32_t page)
{
	return __atomic_load_n(word_of(page, ARENA_INSIDE), __ATOMIC_SEQ_CST);
}

/* A limit on the size of files (ulimit -f) holds for this one, too, which is only as big as what
 * is used of it: the soft one is lifted as far as may be, and a size beyond is no reason to die. */
static int grow(int fd)
{
	struct rlimit limit, lifted;
	sigset_t too_big, mask;
	int result;

	sigemptyset(&too_big);
	sigaddset(&too_big, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &too_big, &mask);
	getrlimit(RLIMIT_FSIZE, &limit);
	lifted = (struct rlimit){limit.rlim_max, limit.rlim_max};
	setrlimit(RLIMIT_FSIZE, &lifted);
	result = ftruncate(fd, STORE_AT + STORE_SIZE);
	setrlimit(RLIMIT_FSIZE, &limit);
	while (result < 0 && sigtimedwait(&too_big, NULL, &(struct timespec){0, 0}) > 0)
		;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return result;
}

/*
 * Whether the kernel has the call at all and lets us make it: in a container it often refuses. Who
 * may make it is told that there are no arguments.
 */
static bool kernel_has_events(void)
{
	return !fatal_open() && syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0UL) < 0 &&
	       errno == EFAULT;
}

/* As an inode, or 0. */
static uint64_t name_space(const char *path)
{
	struct stat file;

	return stat(path, &file) ? 0 : file.st_ino;
}

static void settle(const struct monitor_options *options)
{
	struct core_settings settings = {
		.paranoid = options->paranoid,
		.max_sample_rate = (uint32_t)options->max_sample_rate,
		.mlock_kb = MLOCK_KB,
		.max_stack = MAX_STACK,
		.counters = (uint32_t)options->counters,
		.rotation = ROTATION_NS,
		.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
		.cpu_type = PERF_TYPE_RAW,
		.breakpoint_type = PERF_TYPE_BREAKPOINT,
		.trace_type = TRACE_TYPE,
		.probe_type = PROBE_TYPE,
		.op_type = OP_TYPE,
		.host = options->host && kernel_has_events(),
		.vendor = vendor_of(machine_cpuid),
		.user_name_space = name_space("/proc/self/ns/user"),
		.name_space = name_space("/proc/self/ns/pid"),
		.machine = options->machine,
	};

	core_attach(arena.memory);
	core_setup(&settings);
}

static bool map(int fd)
{
	void *at;

	if (grow(fd) < 0)
		return false;
	at = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return false;
	arena.memory = at;
	return true;
}

/* How much all processes together may leave. */
static uint64_t room(void)
{
	const uint64_t share = memory_limit() / 16;

	return share < STORE_ROOM ? share : STORE_ROOM;
}

/* Where there is no random number, each process has one of its own, and leaves nothing. */
static void begin_store(int fd, const struct monitor_options *options)
{
	static struct store_head head; /* larger than a small stack (ulimit -s 64) */

	head.room = options->shares_code ? room() : 0;
	if (getrandom(&head.window, sizeof(head.window), GRND_NONBLOCK) != sizeof(head.window))
		return;
	if (pwrite(fd, &head, offsetof(struct store_head, entries), STORE_AT) < 0)
		return;
}

int arena_make(const struct monitor_options *options)
{
	int fd = memfd_create("tally", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	if (!map(fd)) {
		close(fd);
		return -1;
	}
	settle(options);
	begin_store(fd, options);
	return fd;
}

void arena_keep(int fd)
{
	struct flock lock = lock_of(0, ARENA_PAGE);

	arena.fd = fd;
	fcntl(fd, F_SETLK, &lock);
}
