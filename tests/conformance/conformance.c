// SPDX-License-Identifier: MIT
/*
 * The runner: selects cases, runs each in a process of its own, prints TAP.
 *
 * A case is a process group under a subreaper. Its verdict is written to a page that all its
 * processes share, so that a check may fail in a grandchild or in a thread; the first one counts.
 * When the case ends, or does not end in time, the whole group is killed and reaped.
 */
#include "conformance.h"

#include <fnmatch.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "matrix.h"
#include "system.h"

enum verdict_kind { PASSED, FAILED, CANNOT_, NOT_ALLOWED_ };

struct verdict {
	_Atomic int claimed;
	_Atomic int kind;
	char text[1024];
};

static struct verdict *verdict; /* shared by the processes of a case */
static pid_t case_pid;

static struct {
	void (*undo)(void *);
	void *arg;
} at_end[8];
static unsigned int at_ends;

extern const struct abi_case *const __start_abi_cases[], *const __stop_abi_cases[];
static const struct abi_case **cases;
static size_t case_count;

/* ---- verdicts ---- */

void abi_at_end(void (*undo)(void *), void *arg)
{
	if (at_ends == sizeof(at_end) / sizeof(at_end[0]))
		FAIL("more than %u things to undo", at_ends);
	at_end[at_ends].undo = undo;
	at_end[at_ends].arg = arg;
	at_ends++;
}

static _Noreturn void leave(int status)
{
	if (getpid() == case_pid)
		while (at_ends) {
			at_ends--;
			at_end[at_ends].undo(at_end[at_ends].arg);
		}
	_exit(status);
}

static void settle(enum verdict_kind kind, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
static void settle(enum verdict_kind kind, const char *format, va_list args)
{
	int unclaimed = 0;

	if (!atomic_compare_exchange_strong(&verdict->claimed, &unclaimed, 1))
		return;
	vsnprintf(verdict->text, sizeof(verdict->text), format, args);
	atomic_store(&verdict->kind, (int)kind);
}

static void settlef(enum verdict_kind kind, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void settlef(enum verdict_kind kind, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	settle(kind, format, args);
	va_end(args);
}

void abi_fail(const char *file, int line, const char *format, ...)
{
	const char *name = strrchr(file, '/');
	char text[900];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	settlef(FAILED, "%s:%d: %s", name ? name + 1 : file, line, text);
	leave(1);
}

void abi_cannot(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	settle(CANNOT_, format, args);
	va_end(args);
	leave(0);
}

void abi_not_allowed(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	settle(NOT_ALLOWED_, format, args);
	va_end(args);
	leave(0);
}

void abi_compare(const char *file, int line, const char *left, const char *op, const char *right,
		 bool holds, uint64_t l, uint64_t r)
{
	if (!holds)
		abi_fail(file, line, "%s %s %s does not hold: %lld (%#llx) and %lld (%#llx)", left,
			 op, right, (long long)l, (unsigned long long)l, (long long)r,
			 (unsigned long long)r);
}

void abi_errno(const char *file, int line, const char *call, long result, int got, int wanted)
{
	if (result != -1)
		abi_fail(file, line, "%s returned %ld, wanted %s", call, result,
			 strerrorname_np(wanted));
	if (got != wanted)
		abi_fail(file, line, "%s gave %s, wanted %s", call, strerrorname_np(got),
			 strerrorname_np(wanted));
}

long abi_ok(const char *file, int line, const char *call, long result)
{
	if (result == -1)
		abi_fail(file, line, "%s: %s", call, strerrorname_np(errno));
	return result;
}

/* ---- running ---- */

static _Noreturn void run_child(const struct abi_case *test, const void *row, sigset_t *mask)
{
	setpgid(0, 0);
	sigprocmask(SIG_SETMASK, mask, NULL);
	dup2(STDERR_FILENO, STDOUT_FILENO); /* the runner's stdout is TAP */
	case_pid = getpid();
	test->run(row);
	leave(0);
}

/* Waits for the case's own process; false when it took too long. */
static bool wait_in_time(pid_t pid, unsigned int seconds, int *status)
{
	struct timespec now, end;
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	for (;;) {
		struct timespec left;

		if (waitpid(pid, status, WNOHANG) == pid)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &now);
		left.tv_sec = end.tv_sec - now.tv_sec;
		left.tv_nsec = end.tv_nsec - now.tv_nsec;
		if (left.tv_nsec < 0) {
			left.tv_sec--;
			left.tv_nsec += 1000000000;
		}
		if (left.tv_sec < 0)
			return false;
		sigtimedwait(&child, NULL, &left);
	}
}

struct run {
	unsigned int seconds; /* that a case may take */
	unsigned int run, passed, failed, skipped;
	struct matrix *matrix;
};

typedef void each_id_fn(const char *id, void *arg);

static void each_id(const char *ids, each_id_fn *fn, void *arg)
{
	char copy[512], *rest = copy;

	if (snprintf(copy, sizeof(copy), "%s", ids) >= (int)sizeof(copy)) {
		fprintf(stderr, "conformance: a case with too many ids: %s\n", ids);
		exit(2);
	}
	for (char *id; (id = strsep(&rest, " "));)
		fn(id, arg);
}

struct outcome {
	struct matrix *matrix;
	enum matrix_result result;
};

static void note_outcome(const char *id, void *arg)
{
	const struct outcome *outcome = arg;

	matrix_ran(outcome->matrix, id, outcome->result);
}

static void run_one(const struct abi_case *test, const struct abi_row *about, const void *row,
		    void *arg)
{
	struct run *run = arg;
	struct outcome outcome = {run->matrix, MATRIX_PASSED};
	sigset_t child, before;
	int status = 0;
	bool in_time;
	pid_t pid;

	memset(verdict, 0, sizeof(*verdict));
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		run_child(test, row, &before);
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	setpgid(pid, pid);
	in_time = wait_in_time(pid, run->seconds, &status);
	kill(-pid, SIGKILL);
	while (waitpid(-pid, in_time ? NULL : &status, 0) > 0)
		;
	sigprocmask(SIG_SETMASK, &before, NULL);

	if (!in_time)
		settlef(FAILED, "no end within %u seconds", run->seconds);
	else if (WIFSIGNALED(status))
		settlef(FAILED, "died by SIG%s", sigabbrev_np(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		settlef(FAILED, "ended with status %d", WEXITSTATUS(status));

	run->run++;
	switch (atomic_load(&verdict->kind)) {
	case PASSED:
		run->passed++;
		printf("ok %u - %s: %s\n", run->run, about->ids, about->what);
		break;
	case FAILED:
		run->failed++;
		outcome.result = MATRIX_FAILED;
		printf("not ok %u - %s: %s\n# %s\n", run->run, about->ids, about->what,
		       verdict->text);
		break;
	default:
		run->skipped++;
		outcome.result = MATRIX_SKIPPED;
		printf("ok %u - %s: %s # SKIP this %s: %s\n", run->run, about->ids, about->what,
		       verdict->kind == CANNOT_ ? "kernel cannot" : "user may not", verdict->text);
	}
	fflush(stdout);
	if (run->matrix)
		each_id(about->ids, note_outcome, &outcome);
}

/* ---- selecting ---- */

struct selection {
	const char *area;
	char **globs;
	int count;
	bool later, out, in; /* past the first id; of another area; some glob matches */
};

static void select_id(const char *id, void *arg)
{
	struct selection *selection = arg;
	size_t length = selection->area ? strlen(selection->area) : 0;

	if (!selection->later && length)
		selection->out = strncmp(id, selection->area, length) != 0 || id[length] != '.';
	selection->later = true;
	for (int i = 0; i < selection->count; i++)
		selection->in |= fnmatch(selection->globs[i], id, 0) == 0;
}

/* The area is what the first id begins with; the globs are held against each id. */
static bool selected(const char *ids, const char *area, char **globs, int count)
{
	struct selection selection = {area, globs, count, false, false, count == 0};

	each_id(ids, select_id, &selection);
	return selection.in && !selection.out;
}

typedef void each_fn(const struct abi_case *test, const struct abi_row *about, const void *row,
		     void *arg);

static int in_source_order(const void *left, const void *right)
{
	const struct abi_case *a = *(const struct abi_case *const *)left;
	const struct abi_case *b = *(const struct abi_case *const *)right;
	int order = strcmp(a->file, b->file);

	return order ? order : a->line - b->line;
}

/* The compiler is free to emit them in any order. */
static void sort_cases(void)
{
	case_count = (size_t)(__stop_abi_cases - __start_abi_cases);
	cases = malloc(case_count * sizeof(cases[0]));
	if (!cases) {
		perror("conformance");
		exit(2);
	}
	memcpy(cases, __start_abi_cases, case_count * sizeof(cases[0]));
	qsort(cases, case_count, sizeof(cases[0]), in_source_order);
}

static void each(const char *area, char **globs, int count, each_fn *fn, void *arg)
{
	for (size_t at = 0; at < case_count; at++) {
		const struct abi_case *test = cases[at];

		if (!test->table && selected(test->about.ids, area, globs, count))
			fn(test, &test->about, NULL, arg);
		for (size_t i = 0; i < test->rows; i++) {
			const void *row = (const char *)test->table + i * test->row_size;
			const struct abi_row *about = row;

			if (selected(about->ids, area, globs, count))
				fn(test, about, row, arg);
		}
	}
}

static void count_one(const struct abi_case *test, const struct abi_row *about, const void *row,
		      void *arg)
{
	(void)test, (void)about, (void)row;
	++*(unsigned int *)arg;
}

static void list_one(const struct abi_case *test, const struct abi_row *about, const void *row,
		     void *arg)
{
	(void)test, (void)row, (void)arg;
	printf("%s: %s\n", about->ids, about->what);
}

static void name_one(const char *id, void *arg)
{
	matrix_named(arg, id);
}

static void cover_one(const struct abi_case *test, const struct abi_row *about, const void *row,
		      void *arg)
{
	(void)test, (void)row;
	each_id(about->ids, name_one, arg);
}

static int coverage(const char *path)
{
	struct matrix *matrix = matrix_read(path);
	int status;

	if (!matrix)
		return 2;
	each(NULL, NULL, 0, cover_one, matrix);
	status = matrix_print(matrix) ? 0 : 1;
	matrix_free(matrix);
	return status;
}

static const char usage[] =
	"usage: conformance [--area AREA] [--timeout SECONDS] [ID-GLOB...]\n"
	"       conformance --list [--area AREA] [ID-GLOB...]\n"
	"       conformance --coverage [--matrix FILE]\n"
	"\n"
	"Runs the cases whose ids match a glob, all without one, and prints TAP.\n"
	"\n"
	"  -a, --area AREA      only cases whose first id begins with AREA and a dot\n"
	"  -l, --list           print ids and descriptions, run nothing\n"
	"  -c, --coverage       print which rows of the matrix have a case; exits 1 when\n"
	"                       a row has neither a case nor an excuse\n"
	"  -m, --matrix FILE    the matrix, " ABI_MATRIX " by default\n"
	"  -t, --timeout N      a case that runs longer than N seconds fails, 30 by default\n"
	"  -s, --change-sysctls lets cases change /proc/sys/kernel/perf_event_paranoid and put it\n"
	"                       back; without it they show the level that is set\n"
	"\n"
	"ABI_EXACT=1 in the environment demands exact counts of hardware events.\n";

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"area", required_argument, NULL, 'a'},
		{"list", no_argument, NULL, 'l'},
		{"coverage", no_argument, NULL, 'c'},
		{"matrix", required_argument, NULL, 'm'},
		{"timeout", required_argument, NULL, 't'},
		{"change-sysctls", no_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *area = NULL, *matrix = ABI_MATRIX;
	struct run run = {.seconds = 30};
	bool list = false, cover = false;
	unsigned int planned = 0;
	int option;

	if (argc == 4 && strcmp(argv[1], ABI_AFTER_EXEC) == 0)
		return abi_after_exec(argv[2], (unsigned int)strtoul(argv[3], NULL, 10));

	while ((option = getopt_long(argc, argv, "a:lcm:t:sh", options, NULL)) != -1)
		switch (option) {
		case 'a':
			area = optarg;
			break;
		case 'l':
			list = true;
			break;
		case 'c':
			cover = true;
			break;
		case 'm':
			matrix = optarg;
			break;
		case 't':
			run.seconds = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 's':
			abi_may_change_sysctls = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return 2;
		}
	argv += optind;
	argc -= optind;

	sort_cases();
	if (cover)
		return coverage(matrix);
	if (list) {
		each(area, argv, argc, list_one, NULL);
		return 0;
	}
	each(area, argv, argc, count_one, &planned);
	if (!planned) {
		fprintf(stderr, "conformance: no case matches; see --list\n");
		return 2;
	}
	verdict = mmap(NULL, sizeof(*verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (verdict == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1)) {
		perror("conformance");
		return 2;
	}
	printf("1..%u\n", planned);
	if (access(matrix, R_OK) == 0)
		run.matrix = matrix_read(matrix);
	each(area, argv, argc, run_one, &run);
	printf("# %u passed, %u failed, %u skipped\n", run.passed, run.failed, run.skipped);
	if (run.matrix)
		matrix_print_results(run.matrix);
	matrix_free(run.matrix);
	return run.failed ? 1 : 0;
}
