// SPDX-License-Identifier: MIT
#include "abi/arena.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/core.h"
#include "monitor/monitor.h"

/* As the kernel has them without being told. */
enum {
	MAX_SAMPLE_RATE = 100000,
	MLOCK_KB = 516,
	MAX_STACK = 127,
	ROTATION_NS = 4000000,
};

/* The number of the unit that traces, far from those that the kernel gives. */
enum { TRACE_TYPE = 512 };

static struct {
	char *memory;
	int fd;
} arena = {NULL, -1};

static struct arena_header *header(void)
{
	return (void *)arena.memory;
}

uint32_t arena_asked(void)
{
	return __atomic_load_n(&header()->asked, __ATOMIC_SEQ_CST);
}

void arena_answer(uint32_t asked)
{
	uint32_t *answered = &header()->answered;

	__atomic_store_n(answered, asked, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
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

bool arena_owner_there(uint32_t owner)
{
	const uint32_t page = ARENA_OWNER_PAGE(owner), as = ARENA_OWNER_INCARNATION(owner);

	if (!page)
		return is_locked(ARENA_SIZE + as, 1);
	return __atomic_load_n(word_of(page, ARENA_INCARNATION), __ATOMIC_ACQUIRE) == as &&
	       arena_locked(page);
}

pid_t arena_process(uint32_t page)
{
	struct flock lock = lock_of(page * ARENA_PAGE, ARENA_PAGE);

	return fcntl(arena.fd, F_GETLK, &lock) || lock.l_type == F_UNLCK ? 0 : lock.l_pid;
}

uint32_t arena_owner_of(uint32_t page)
{
	const uint32_t *as = word_of(page, ARENA_INCARNATION);

	return ARENA_OWNER(page, __atomic_load_n(as, __ATOMIC_ACQUIRE));
}

bool arena_abandoned(uint32_t page)
{
	uint32_t giver = __atomic_load_n(word_of(page, ARENA_HANDED_OVER), __ATOMIC_ACQUIRE);

	return giver && giver != ARENA_EXPECTED && !arena_locked(page) && !arena_owner_there(giver);
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
	result = ftruncate(fd, ARENA_SIZE);
	setrlimit(RLIMIT_FSIZE, &limit);
	while (result < 0 && sigtimedwait(&too_big, NULL, &(struct timespec){0, 0}) > 0)
		;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return result;
}

/* Before Zen 2, whose events are those of later ones. Hygon's family is like the first Zen. */
static bool is_old_amd(unsigned int family, unsigned int model)
{
	return family < 0x17 || family == 0x18 || (family == 0x17 && model < 0x30);
}

static uint32_t intel_of(unsigned int family, unsigned int model)
{
	static const struct {
		uint8_t model;
		uint8_t vendor;
	} known[] = {
		{0x2a, CORE_VENDOR_INTEL_OLD},	       {0x2d, CORE_VENDOR_INTEL_OLD},
		{0x3a, CORE_VENDOR_INTEL_OLD},	       {0x3c, CORE_VENDOR_INTEL_OLD},
		{0x3d, CORE_VENDOR_INTEL_OLD},	       {0x3e, CORE_VENDOR_INTEL_OLD},
		{0x3f, CORE_VENDOR_INTEL_OLD},	       {0x45, CORE_VENDOR_INTEL_OLD},
		{0x46, CORE_VENDOR_INTEL_OLD},	       {0x47, CORE_VENDOR_INTEL_OLD},
		{0x4e, CORE_VENDOR_INTEL_OLD},	       {0x4f, CORE_VENDOR_INTEL_OLD},
		{0x55, CORE_VENDOR_INTEL_OLD},	       {0x56, CORE_VENDOR_INTEL_OLD},
		{0x5e, CORE_VENDOR_INTEL_OLD},	       {0x8e, CORE_VENDOR_INTEL_OLD},
		{0x9e, CORE_VENDOR_INTEL_OLD},	       {0xa5, CORE_VENDOR_INTEL_OLD},
		{0xa6, CORE_VENDOR_INTEL_OLD},	       {0x6a, CORE_VENDOR_INTEL_ICE_LAKE},
		{0x6c, CORE_VENDOR_INTEL_ICE_LAKE},    {0x7d, CORE_VENDOR_INTEL_ICE_LAKE},
		{0x7e, CORE_VENDOR_INTEL_ICE_LAKE},    {0x8c, CORE_VENDOR_INTEL_ICE_LAKE},
		{0x8d, CORE_VENDOR_INTEL_ICE_LAKE},    {0x9d, CORE_VENDOR_INTEL_ICE_LAKE},
		{0xa7, CORE_VENDOR_INTEL_ICE_LAKE},    {0x8f, CORE_VENDOR_INTEL_GOLDEN_COVE},
		{0x97, CORE_VENDOR_INTEL_GOLDEN_COVE}, {0x9a, CORE_VENDOR_INTEL_GOLDEN_COVE},
		{0xad, CORE_VENDOR_INTEL_GOLDEN_COVE}, {0xae, CORE_VENDOR_INTEL_GOLDEN_COVE},
		{0xb7, CORE_VENDOR_INTEL_GOLDEN_COVE}, {0xba, CORE_VENDOR_INTEL_GOLDEN_COVE},
		{0xbf, CORE_VENDOR_INTEL_GOLDEN_COVE}, {0xcf, CORE_VENDOR_INTEL_GOLDEN_COVE},
	};

	for (size_t i = 0; family == 6 && i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].model == model)
			return known[i].vendor;
	return CORE_VENDOR_INTEL;
}

/* Of the processor that programs see. */
static uint32_t vendor(void)
{
	unsigned int name = 0, eax, ebx, ecx, edx, family, model;

	if (!__get_cpuid(0, &eax, &name, &ecx, &edx) || !__get_cpuid(1, &eax, &ebx, &ecx, &edx))
		return CORE_VENDOR_INTEL;
	family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
	model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
	/* "AuthenticAMD", or "HygonGenuine", whose counters are AMD's */
	if (name == 0x68747541 || name == 0x6f677948)
		return is_old_amd(family, model) ? CORE_VENDOR_AMD_OLD : CORE_VENDOR_AMD;
	return intel_of(family, model);
}

/*
 * Whether the kernel has the call at all and lets us make it: in a container it often refuses. Who
 * may make it is told that there are no arguments.
 */
static bool kernel_has_events(void)
{
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0UL) < 0 && errno == EFAULT;
}

static void settle(const struct monitor_options *options)
{
	struct core_settings settings = {
		.paranoid = options->paranoid,
		.max_sample_rate = MAX_SAMPLE_RATE,
		.mlock_kb = MLOCK_KB,
		.max_stack = MAX_STACK,
		.counters = (uint32_t)options->counters,
		.rotation = ROTATION_NS,
		.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
		.cpu_type = PERF_TYPE_RAW,
		.breakpoint_type = PERF_TYPE_BREAKPOINT,
		.trace_type = TRACE_TYPE,
		.host = options->host && kernel_has_events(),
		.vendor = vendor(),
		.seccomp = (uint32_t)prctl(PR_GET_SECCOMP),
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
	return fd;
}

void arena_keep(int fd)
{
	struct flock lock = lock_of(0, ARENA_PAGE);

	arena.fd = fd;
	fcntl(fd, F_SETLK, &lock);
}
