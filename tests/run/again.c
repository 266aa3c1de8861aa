// SPDX-License-Identifier: MIT
/*
 * Programs that are executed again find what was translated before, but where something else lies
 * there by now. What is called here is half of a file, at a fixed address: so much code that the
 * process that has called it leaves it to others.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "case.h"
#include "tests/run/kernels_maps.h"

#define SIZE (256UL << 10)
#define AT   ((void *)0x20000000)

/* What a file has to be older than, so that its times tell it from what it was before. */
static void settle(const char *path)
{
	struct timespec now, changed;
	struct stat file;

	need(!stat(path, &file));
	changed = file.st_ctim;
	for (;;) {
		clock_gettime(CLOCK_REALTIME, &now);
		if (now.tv_sec - changed.tv_sec + (now.tv_nsec > changed.tv_nsec) > 2)
			break;
		usleep(20000);
	}
}

static const char *path_of(const char *name)
{
	static char paths[2][PATH_MAX];
	static unsigned int turn;
	char *path = paths[turn++ % 2];

	snprintf(path, PATH_MAX, "%s/%s", getenv("CASE_DIR") ? getenv("CASE_DIR") : ".", name);
	return path;
}

/* mov $value, %eax; lea (%rdx), %edx ...; ret */
static void put_function(uint8_t *at, size_t size, uint8_t value)
{
	uint8_t *end = at + size - 1;

	memcpy(at, (const uint8_t[]){0xb8, value, 0, 0, 0}, 5);
	for (at += 5; at + 2 <= end; at += 2)
		memcpy(at, (const uint8_t[]){0x8d, 0x12}, 2);
	memset(at, 0xc3, (size_t)(end + 1 - at));
}

/* Of two halves, in place if it is there already. */
static const char *make_file(const char *name, uint8_t first, uint8_t second)
{
	static uint8_t content[2 * SIZE];
	const char *path = path_of(name);
	int fd = open(path, O_WRONLY | O_CREAT, 0700);

	need(fd >= 0);
	put_function(content, SIZE, first);
	put_function(content + SIZE, SIZE, second);
	need(write(fd, content, sizeof(content)) == sizeof(content));
	close(fd);
	return path;
}

/* ---- children: the program itself, with arguments ---- */

/* Executes `PROGRAM part path offset` and says how it ends. */
static void again(const char *part, const char *path, unsigned long offset)
{
	char text[32];
	pid_t pid;

	snprintf(text, sizeof(text), "%lu", offset);
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", case_argv[0], part, path, text, NULL);
		_exit(99);
	}
	say_end(part, pid);
}

static void *map_argument(void)
{
	int fd = open(case_argv[2], O_RDONLY);
	void *at = mmap(AT, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd,
			atol(case_argv[3]));

	need(at == AT);
	close(fd);
	return at;
}

static int call(void *at)
{
	int (*function)(void);

	memcpy(&function, &at, sizeof(function));
	return function();
}

static void of_file(void)
{
	exit(call(map_argument()));
}

static void of_second_half(void)
{
	exit(call((uint8_t *)map_argument() + SIZE / 2));
}

static void of_memory(void)
{
	uint8_t *at = mmap(AT, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	need(at == AT);
	put_function(at, SIZE, 50);
	exit(call(at));
}

static void become(void *at, int prot)
{
	need(!mprotect(at, SIZE, prot));
}

static void made_executable(void)
{
	uint8_t *at = mmap(AT, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	need(at == AT);
	put_function(at, SIZE, 60);
	become(at, PROT_READ | PROT_EXEC);
	exit(call(at));
}

/* Changed where it lies, and as it was again by its protection. */
static void changed(void)
{
	uint8_t *at = map_argument();

	become(at, PROT_READ | PROT_WRITE | PROT_EXEC);
	put_function(at, SIZE, 70);
	become(at, PROT_READ | PROT_EXEC);
	exit(call(at));
}

static void unmapped(void)
{
	uint8_t *at = map_argument();

	need(!munmap(at, SIZE));
	of_memory();
}

static void moved(void)
{
	uint8_t *at = map_argument(), *other = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
						    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	put_function(other, SIZE, 80);
	become(other, PROT_READ | PROT_EXEC);
	need(mremap(other, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
	exit(call(at));
}

/* ---- memory that is executable, or is not, without a call that says so ---- */

static void attached(void)
{
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0700);
	uint8_t *at = shmat(id, NULL, 0);

	put_function(at, SIZE, 90);
	need(!shmdt(at));
	at = shmat(id, AT, SHM_EXEC);
	need(!shmctl(id, IPC_RMID, NULL) && at == AT);
	exit(call(at));
}

static uint8_t *map_data(void)
{
	uint8_t *at = mmap(AT, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	need(at == AT);
	put_function(at, SIZE, 100);
	return at;
}

static void implied(void)
{
	need(personality(READ_IMPLIES_EXEC) != -1);
	exit(call(map_data()));
}

static void duplicated(void)
{
	uint8_t *other = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	put_function(other, SIZE, 110);
	need(mremap(other, 0, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, AT) == AT);
	exit(call(AT));
}

static void grown(void)
{
	uint8_t *above = (uint8_t *)AT + SIZE;

	need(mmap(above, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_GROWSDOWN, -1,
		  0) == above);
	while (above > (uint8_t *)AT)
		*(volatile uint8_t *)(above -= 4096) = 0;
	put_function(above, SIZE, 120);
	exit(call(above));
}

static void data(void)
{
	no_core();
	exit(call(map_data()));
}

static void nothing_there(void)
{
	no_core();
	exit(call(AT));
}

/* What is to differ from the file is in the constant of the first instruction. */
#define CONSTANT_AT ((char *)AT + 1)

static void written(void)
{
	const uint8_t value = 130;
	void *at = map_argument();
	int fd = open("/proc/self/mem", O_RDWR);

	need(pwrite(fd, &value, 1, (off_t)CONSTANT_AT) == 1);
	exit(call(at));
}

/* As a debugger does, which is told on standard error what it cannot do. */
static void poked(void)
{
	int status;
	long word;
	pid_t pid = fork();

	if (!pid) {
		void *at = map_argument();

		need(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
		raise(SIGSTOP);
		exit(call(at));
	}
	need(freopen("/dev/null", "w", stderr));
	need(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	word = ptrace(PTRACE_PEEKTEXT, pid, CONSTANT_AT, NULL);
	need(!ptrace(PTRACE_POKETEXT, pid, CONSTANT_AT, (word & ~0xffL) | 140));
	need(!ptrace(PTRACE_DETACH, pid, NULL, NULL));
	need(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	exit(WEXITSTATUS(status));
}

static const char *const parts[] = {
	"_of_memory", "_made_executable", "_changed", "_unmapped", "_moved",	    "_attached",
	"_implied",   "_duplicated",	  "_grown",   "_data",	   "_nothing_there"};

/* ---- cases ---- */

static void often(const char *path, unsigned long offset)
{
	for (int i = 0; i < 3; i++)
		again("_of_file", path, offset);
}

static void other_code(void)
{
	const char *one = make_file("one", 1, 2), *two = make_file("two", 3, 4);

	settle("/proc/self/exe");
	settle(two);
	often(one, 0);
	often(two, 0);
	often(one, 0);
	often(one, SIZE);
	often(one, 0);
	for (unsigned int i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		again(parts[i], one, 0);
		again(parts[i], one, 0);
		often(one, 0);
	}
	often(make_file("one", 5, 6), 0);
}

/* What is left first is what has to be right: nobody leaves much the same once more. */
static void first(const char *part)
{
	const char *file = make_file("one", 1, 2);

	settle("/proc/self/exe");
	settle(file);
	for (int i = 0; i < 3; i++)
		again(part, file, 0);
	often(file, 0);
}

/* Of each half of a file two halves, which are called by different processes. */
static void beside_other_code(void)
{
	static uint8_t content[2 * SIZE];
	const char *path = path_of("halves");
	int fd = open(path, O_WRONLY | O_CREAT, 0700);

	for (uint8_t i = 0; i < 4; i++)
		put_function(content + i * SIZE / 2, SIZE / 2, i + 1);
	need(fd >= 0 && write(fd, content, sizeof(content)) == sizeof(content));
	close(fd);
	settle("/proc/self/exe");
	settle(path);
	for (int i = 0; i < 3; i++)
		again("_of_second_half", path, 0);
	often(path, SIZE);
	again("_of_second_half", path, SIZE);
}

static void changed_first(void)
{
	first("_changed");
}

static void memory_first(void)
{
	first("_made_executable");
}

static void written_first(void)
{
	first("_written");
}

static void poked_first(void)
{
	first("_poked");
}

/* Whether it has code that another process has left: natively nobody asks. */
static void found(void)
{
	static char maps[1 << 16];
	bool in_run = false, kept = false;

	need(read_kernels_maps(maps, sizeof(maps)));
	for (const char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n")) {
		in_run |= strstr(line, "tally-rt") != NULL;
		kept |= strstr(line, "rwxp") && strstr(line, "memfd:tally");
	}
	exit(in_run && !kept);
}

static void is_found(void)
{
	const char *file = make_file("file", 1, 2);

	settle("/proc/self/exe");
	often(file, 0);
	for (int i = 0; i < 3; i++)
		again("_found", "", 0);
}

/* ---- where the program's memory lies, without randomness ---- */

static void place(void)
{
	void *at = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(write(STDOUT_FILENO, &at, sizeof(at)) == sizeof(at));
}

static void *place_of_another(void)
{
	int fds[2];
	void *at;
	pid_t pid;

	need(!pipe(fds));
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		execl("/proc/self/exe", case_argv[0], "_place", NULL);
		_exit(99);
	}
	need(read(fds[0], &at, sizeof(at)) == sizeof(at));
	close(fds[0]);
	close(fds[1]);
	waitpid(pid, NULL, 0);
	return at;
}

static void same_places(void)
{
	void *first;

	need(personality(ADDR_NO_RANDOMIZE) != -1);
	settle("/proc/self/exe");
	first = place_of_another();
	for (int i = 0; i < 4; i++)
		say("%s\n", place_of_another() == first ? "the same" : "another");
}

/* ---- who cannot leave anything, and is the first that would ---- */

static void limited(void)
{
	settle("/proc/self/exe");
	need(!setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, 1 << 20}));
	execl("/proc/self/exe", case_argv[0], "_nothing", NULL);
}

/* No pwrite64(2), which nobody here calls. */
static const struct sock_fprog *filter(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	settle("/proc/self/exe");
	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	return &program;
}

static void filtered_by_prctl(void)
{
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter()));
}

static void filtered(void)
{
	need(!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter()));
}

static void filtered_and_executed(void)
{
	filtered();
	execl("/proc/self/exe", case_argv[0], "_nothing", NULL);
}

/* A run that has begun under a filter, as all do in a container, where a program sets another. */
static void filtered_twice(void)
{
	static struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const char *tally = getenv("TALLY");

	need(tally && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){1, &all}));
	execl(tally, "tally", "run", "--", case_argv[0], "_filtered_often", NULL);
}

static void filtered_often(void)
{
	for (int i = 0; i < 3; i++)
		again("filtered-and-executed", "", 0);
}

static void nothing(void)
{
}

const struct test_case cases[] = {
	{"other-code", other_code},
	{"beside-other-code", beside_other_code},
	{"changed-first", changed_first},
	{"memory-first", memory_first},
	{"written-first", written_first},
	{"poked-first", poked_first},
	{"is-found", is_found},
	{"same-places", same_places},
	{"limited", limited},
	{"filtered-by-prctl", filtered_by_prctl},
	{"filtered", filtered},
	{"filtered-and-executed", filtered_and_executed},
	{"filtered-twice", filtered_twice},
	{"_filtered_often", filtered_often},
	{"_of_file", of_file},
	{"_of_second_half", of_second_half},
	{"_of_memory", of_memory},
	{"_made_executable", made_executable},
	{"_changed", changed},
	{"_unmapped", unmapped},
	{"_moved", moved},
	{"_attached", attached},
	{"_implied", implied},
	{"_duplicated", duplicated},
	{"_grown", grown},
	{"_data", data},
	{"_nothing_there", nothing_there},
	{"_written", written},
	{"_poked", poked},
	{"_found", found},
	{"_place", place},
	{"_nothing", nothing},
	{NULL, NULL},
};
