// SPDX-License-Identifier: MIT
/*
 * The harness of the ABI conformance suite.
 *
 * The cases talk to perf_event_open(2) through syscall(2) and <linux/perf_event.h> and nothing
 * else, so that they judge whoever implements the call: the kernel, or a user-mode stand-in that
 * the suite runs under. Each case names the rows of abi-matrix.tsv that it shows, runs in a process
 * of its own, and ends in one of
 *
 *	pass	every check held and the process returned
 *	fail	a check did not hold (file, line and values are told), it crashed, or it hung
 *	skip	this kernel or machine cannot show it, or this user may not: the reason is told
 */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

/* ---- declaring cases ---- */

/* What a table's rows begin with; ids are rows of the matrix, separated by blanks. */
struct abi_row {
	const char *ids;
	const char *what;
};

struct abi_case {
	struct abi_row about; /* unused when there is a table */
	const char *file;
	int line;
	void (*run)(const void *row);
	const void *table;
	size_t row_size;
	size_t rows;
};

/* A row of the matrix that no case can show, and why. */
struct abi_excuse {
	const char *id;
	const char *why;
};

#define ABI_PASTE_(a, b) a##b
#define ABI_PASTE(a, b)	 ABI_PASTE_(a, b)

/* The linker gathers the pointers: a case exists by being written. */
#define ABI_REGISTER(section_, object)                                                             \
	static const __typeof__(object) *const ABI_PASTE(object, _entry)                           \
		__attribute__((section(section_), used)) = &(object)

/* ABI_CASE("arg.entry", "returns a fresh descriptor") { ... } */
#define ABI_CASE(ids, what) ABI_CASE_(ids, what, __COUNTER__)
#define ABI_CASE_(ids_, what_, n)                                                                  \
	static void ABI_PASTE(case_, n)(const void *unused);                                       \
	static const struct abi_case ABI_PASTE(abi_case_, n) = {.about = {ids_, what_},            \
								.file = __FILE__,                  \
								.line = __LINE__,                  \
								.run = ABI_PASTE(case_, n)};       \
	ABI_REGISTER("abi_cases", ABI_PASTE(abi_case_, n));                                        \
	static void ABI_PASTE(case_, n)(const void *unused __attribute__((unused)))

/*
 * Cases of one shape: one run for each element of the array `table_`, whose first member is a
 * struct abi_row. The body sees the element as `row`.
 */
#define ABI_TABLE(table_) ABI_TABLE_(table_, __COUNTER__)
#define ABI_TABLE_(table_, n)                                                                      \
	static void ABI_PASTE(body_, n)(const __typeof__((table_)[0]) *row);                       \
	static void ABI_PASTE(case_, n)(const void *row)                                           \
	{                                                                                          \
		ABI_PASTE(body_, n)(row);                                                          \
	}                                                                                          \
	static const struct abi_case ABI_PASTE(abi_case_, n) = {.file = __FILE__,                  \
								.line = __LINE__,                  \
								.run = ABI_PASTE(case_, n),        \
								.table = (table_),                 \
								.row_size = sizeof((table_)[0]),   \
								.rows = sizeof(table_) /           \
									sizeof((table_)[0])};      \
	ABI_REGISTER("abi_cases", ABI_PASTE(abi_case_, n));                                        \
	static void ABI_PASTE(body_, n)(const __typeof__((table_)[0]) *row)

#define ABI_EXCUSE(id, why) ABI_EXCUSE_(id, why, __COUNTER__)
#define ABI_EXCUSE_(id_, why_, n)                                                                  \
	static const struct abi_excuse ABI_PASTE(abi_excuse_, n) = {id_, why_};                    \
	ABI_REGISTER("abi_excuses", ABI_PASTE(abi_excuse_, n))

/* ---- verdicts; they end the process, whichever process of the case speaks ---- */

_Noreturn void abi_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
_Noreturn void abi_cannot(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void abi_not_allowed(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define FAIL(...)	 abi_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CANNOT(...)	 abi_cannot(__VA_ARGS__)
#define NOT_ALLOWED(...) abi_not_allowed(__VA_ARGS__)

/* Runs in the case's own process when it ends, also by a failed check; at most eight. */
void abi_at_end(void (*undo)(void *), void *arg);

void abi_compare(const char *file, int line, const char *left, const char *op, const char *right,
		 bool holds, uint64_t l, uint64_t r);
void abi_errno(const char *file, int line, const char *call, long result, int got, int wanted);
long abi_ok(const char *file, int line, const char *call, long result);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			FAIL("not so: %s", #condition);                                            \
	} while (0)

/* CHECK_CMP(seen, <=, 3): signed, tells both values when it does not hold. */
#define CHECK_CMP(left, op, right)                                                                 \
	do {                                                                                       \
		int64_t l_ = (int64_t)(left), r_ = (int64_t)(right);                               \
		abi_compare(__FILE__, __LINE__, #left, #op, #right, l_ op r_, (uint64_t)l_,        \
			    (uint64_t)r_);                                                         \
	} while (0)
#define CHECK_EQ(left, right) CHECK_CMP(left, ==, right)

/* The call returns -1 with this errno. */
#define CHECK_ERRNO(call, wanted)                                                                  \
	do {                                                                                       \
		errno = 0;                                                                         \
		long result_ = (long)(call);                                                       \
		abi_errno(__FILE__, __LINE__, #call, result_, errno, wanted);                      \
	} while (0)

/* The call does not return -1; yields what it returned. */
#define CHECK_OK(call) abi_ok(__FILE__, __LINE__, #call, (long)(call))

/* ---- rights and features ---- */

bool abi_privileged(void);		  /* CAP_PERFMON or CAP_SYS_ADMIN */
int abi_paranoid(void);			  /* perf_event_paranoid; CANNOT when it is not there */
void abi_need_level(int least, int most); /* of it; else CANNOT */
long abi_sysctl(const char *name);	  /* /proc/sys/kernel/NAME; CANNOT when it is not there */

/* From here on an ordinary user with no capability; nothing when already one. */
void abi_drop_rights(void);

#define NEED_RIGHTS()                                                                              \
	do {                                                                                       \
		if (!abi_privileged())                                                             \
			NOT_ALLOWED("needs CAP_PERFMON or root");                                  \
	} while (0)

void abi_need_root(void);
/* Where perf_event_paranoid is above 2, some kernels refuse every event to who lacks the right. */
void abi_need_events(void);
/* To measure kernel mode: the right to, or perf_event_paranoid below 2. */
void abi_need_kernel_mode(void);
/* PERF_COUNT_HW_INSTRUCTIONS opens. */
void abi_need_hardware(void);
/* Two processors this process may run on, in cpus[]. */
void abi_need_two_cpus(int cpus[2]);
/*
 * Where the kernel lets what one event asked for into the records of another (docs/conformance.md,
 * "left out on purpose"): until the case ends, no other test of ours records, on the whole machine.
 */
void abi_keep_recorders_out(void);
int abi_first_cpu(void); /* one this process may run on */
void abi_pin(pid_t tid, int cpu);

/* The number in /sys/bus/event_source/devices/PMU/type; -1 when there is none. */
int abi_pmu_type(const char *pmu);
/* First line of a small file, without the newline; -1 when it cannot be read. */
int abi_line(const char *path, char *line, size_t size);
/*
 * The tracing directory, mounted in a namespace of this case's own when nobody mounted it. The id
 * of a trace point in it; both CANNOT when there is none.
 */
const char *abi_tracing(void);
uint64_t abi_tracepoint(const char *system_and_name);
/* Events of that type are known. */
void abi_need_tracepoints(void);
/* Decimal of "field:... NAME; offset:N" of the trace point's format file. */
unsigned int abi_tracepoint_offset(const char *system_and_name, const char *field);

/* ---- events ---- */

int perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
	      unsigned long flags);

/* Disabled, user mode only: what anybody may open on himself. */
struct perf_event_attr abi_attr(uint32_t type, uint64_t config);
struct perf_event_attr abi_software(uint64_t config);
struct perf_event_attr abi_breakpoint(uint32_t bp_type, const volatile void *addr, uint64_t len);

int abi_must_open(const char *file, int line, const struct perf_event_attr *attr, pid_t pid,
		  int cpu, int group, unsigned long flags);
/* Opens or ends the case: skips when rights, breakpoint registers or hardware lack, else fails. */
void abi_must_refuse(const char *file, int line, const struct perf_event_attr *attr, pid_t pid,
		     int cpu, int group, unsigned long flags, int wanted);
#define OPEN(attr, pid, cpu, group) abi_must_open(__FILE__, __LINE__, attr, pid, cpu, group, 0)
#define OPEN_SELF(attr)		    OPEN(attr, 0, -1, -1)
#define OPEN_FLAGS(attr, pid, cpu, group, flags)                                                   \
	abi_must_open(__FILE__, __LINE__, attr, pid, cpu, group, flags)
/* perf_event_open refuses this with that errno. */
#define CHECK_REFUSED(attr, pid, cpu, group, flags, wanted)                                        \
	abi_must_refuse(__FILE__, __LINE__, attr, pid, cpu, group, flags, wanted)

/* The caller's page faults in user mode, and what `work_faults(10)` adds to such an event. */
int abi_faults(int group, bool disabled);
uint64_t abi_faults_add(int fd);

#define START(fd) CHECK_OK(ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
#define STOP(fd)  CHECK_OK(ioctl(fd, PERF_EVENT_IOC_DISABLE, 0))
#define RESET(fd) CHECK_OK(ioctl(fd, PERF_EVENT_IOC_RESET, 0))

/* One read(2) that must deliver exactly so many words. */
void abi_read_words(const char *file, int line, int fd, uint64_t *words, size_t count);
#define READ_WORDS(fd, words, count) abi_read_words(__FILE__, __LINE__, fd, words, count)

uint64_t abi_value(const char *file, int line, int fd);
#define VALUE(fd) abi_value(__FILE__, __LINE__, fd) /* of an event whose read_format is 0 */

uint64_t abi_id(const char *file, int line, int fd);
#define ID(fd) abi_id(__FILE__, __LINE__, fd) /* by PERF_EVENT_IOC_ID */

/* ---- ring buffers ---- */

struct ring {
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	uint64_t size; /* of the record area, a power of two */
	uint64_t tail;
	bool writable;
	/* the record handed out last, in one piece */
	union {
		struct perf_event_header header;
		uint64_t words[65536 / 8];
	} * record;
};

/* Maps 1 + pages pages; a read-only mapping is an overwritable buffer. */
struct ring abi_map(const char *file, int line, int fd, unsigned int pages, int prot);
#define MAP(fd, pages)		  abi_map(__FILE__, __LINE__, fd, pages, PROT_READ | PROT_WRITE)
#define MAP_PROT(fd, pages, prot) abi_map(__FILE__, __LINE__, fd, pages, prot)
void abi_unmap(struct ring *ring);

/* Next record, NULL when there is none; consumes it when the mapping is writable. */
const struct perf_event_header *abi_next(const char *file, int line, struct ring *ring);
#define NEXT(ring) abi_next(__FILE__, __LINE__, ring)
/* Next record of this type, skipping others; NULL when there is none. */
const struct perf_event_header *abi_next_of(const char *file, int line, struct ring *ring,
					    uint32_t type);
#define NEXT_OF(ring, type) abi_next_of(__FILE__, __LINE__, ring, type)
/* The same, and it has to be there. */
const struct perf_event_header *abi_expect(const char *file, int line, struct ring *ring,
					   uint32_t type);
#define EXPECT(ring, type) abi_expect(__FILE__, __LINE__, ring, type)
/* Consumes everything; how many were of this type. */
unsigned int abi_drain(const char *file, int line, struct ring *ring, uint32_t type);
#define DRAIN(ring, type) abi_drain(__FILE__, __LINE__, ring, type)

/* The bytes behind the header, as words. */
static inline const uint64_t *abi_words(const struct perf_event_header *header)
{
	return (const uint64_t *)(const void *)(header + 1);
}

static inline const uint32_t *abi_halves(const struct perf_event_header *header)
{
	return (const uint32_t *)(const void *)(header + 1);
}

/* PERF_RECORD_SAMPLE in the documented order; absent fields are 0. Pointers lead into the record.
 */
struct sample {
	uint64_t identifier, ip, time, addr, id, stream_id, period;
	uint32_t pid, tid, cpu, cpu_reserved;
	const uint64_t *read;
	size_t read_words;
	uint64_t nr;
	const uint64_t *ips;
	uint32_t raw_size;
	const unsigned char *raw;
	uint64_t branches, hw_index;
	const struct perf_branch_entry *branch;
	uint64_t user_abi, intr_abi;
	const uint64_t *user_regs, *intr_regs;
	uint64_t stack_size, stack_dyn_size;
	const unsigned char *stack;
	uint64_t weight, data_src, transaction, phys_addr, cgroup;
	uint64_t data_page_size, code_page_size, aux_size;
};

/* Fails unless the fields fill the record to its last byte. */
struct sample abi_sample(const char *file, int line, const struct perf_event_attr *attr,
			 const struct perf_event_header *header);
#define SAMPLE(attr, header) abi_sample(__FILE__, __LINE__, attr, header)

/* The identity that sample_id_all appends to other records. */
struct trailer {
	uint32_t pid, tid, cpu, cpu_reserved;
	uint64_t time, id, stream_id, identifier;
	size_t size;
};

struct trailer abi_trailer(const char *file, int line, const struct perf_event_attr *attr,
			   const struct perf_event_header *header);
#define TRAILER(attr, header) abi_trailer(__FILE__, __LINE__, attr, header)

/* ---- other processes ---- */

/* fork; the child runs work(arg) and exits with 0. */
pid_t abi_spawn(const char *file, int line, void (*work)(void *), void *arg);
#define SPAWN(work, arg) abi_spawn(__FILE__, __LINE__, work, arg)
/* Waits for it; it must have exited with 0. */
void abi_join(const char *file, int line, pid_t pid);
#define JOIN(pid) abi_join(__FILE__, __LINE__, pid)

/* Lets one process wait for another. */
struct gate {
	int fd[2];
};
struct gate abi_gate(void);
void abi_pass(struct gate *gate); /* lets one waiter through */
void abi_wait(struct gate *gate);

/*
 * Replaces this process by a fresh image of this program that does `work` `count` times and exits
 * with 0; the names are those of abi_after_exec() in workload.h.
 */
_Noreturn void abi_exec(const char *work, unsigned int count);

#endif
