// SPDX-License-Identifier: MIT
/* What a program reads of its own memory map, and of others'. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

enum { PAGE = 4096, RWX = PROT_READ | PROT_WRITE | PROT_EXEC };

static char text[8 << 20];

/* What is left to read of @fd, so many bytes at a time. */
static size_t read_all(int fd, size_t at_once)
{
	size_t length = 0;
	ssize_t n;

	need(fd >= 0);
	while ((n = read(fd, text + length, at_once)) > 0)
		length += (size_t)n;
	need(n == 0);
	text[length] = '\0';
	return length;
}

static void read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	read_all(fd, PAGE);
	close(fd);
}

static void read_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	read_file(path);
}

struct line {
	unsigned long start, end, offset;
	char perms[5], name[256];
};

static bool parse(const char *from, struct line *line)
{
	int name = 0;

	if (sscanf(from, "%lx-%lx %4s %lx %*s %*u%n", &line->start, &line->end, line->perms,
		   &line->offset, &name) < 4)
		return false;
	from += name;
	from += strspn(from, " ");
	snprintf(line->name, sizeof(line->name), "%.*s", (int)strcspn(from, "\n"), from);
	return true;
}

/* Each mapping in @text, from @from to @to, without what differs from process to process. */
static void say_lines(const void *from, const void *to)
{
	struct line line;

	for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
		if (!parse(at, &line) || line.start < (unsigned long)from ||
		    line.end > (unsigned long)to)
			continue;
		const char *slash = strrchr(line.name, '/');

		say("%#lx %s %#lx %s\n", strcmp(line.name, "[stack]") ? line.end - line.start : 0,
		    line.perms, line.offset, slash ? slash + 1 : line.name);
	}
}

static void say_all(void)
{
	say_lines(NULL, (void *)-1UL);
}

static void *map(size_t size, int prot)
{
	void *at = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(at != MAP_FAILED);
	return at;
}

/* Pages that are no part of anything beside them. */
static char *map_apart(size_t size, int prot)
{
	char *at = map(size + 2 * (size_t)PAGE, PROT_NONE);

	need(mprotect(at + PAGE, size, prot) == 0);
	return at + PAGE;
}

/* "mov $value, %eax; ret" */
static int execute(char *at, int value)
{
	at[0] = (char)0xb8;
	memcpy(at + 1, &value, sizeof(value));
	at[5] = (char)0xc3;
	return ((int (*)(void))at)();
}

/* Of a program without libraries, which has the same memory wherever it runs. */
static void case_all(void)
{
	if (personality(ADDR_NO_RANDOMIZE) != ADDR_NO_RANDOMIZE) {
		execl("/proc/self/exe", case_argv[0], "all", NULL);
		need(!"exec");
	}
	free(malloc(1 << 16));
	read_file("/proc/self/maps");
	say_all();
}

/* Others' likewise, however they are named. */
static void case_of_another(void)
{
	int begun[2], done[2], status;
	char byte, path[64];
	pid_t child;

	need(pipe(begun) == 0 && pipe(done) == 0);
	child = fork();
	if (child == 0) {
		char *at = map_apart(2 * PAGE, RWX);

		need(execute(at, 1) == 1 && write(begun[1], "x", 1) == 1);
		need(read(done[0], &byte, 1) == 1);
		_exit(0);
	}
	need(read(begun[0], &byte, 1) == 1);
	read_of(child, "maps");
	say_all();
	snprintf(path, sizeof(path), "/proc/%d/task/%d/maps", child, child);
	read_file(path);
	say_all();
	read_of(child, "smaps");
	say_all();
	need(write(done[1], "x", 1) == 1 && waitpid(child, &status, 0) == child);
}

static void case_code_that_is_written(void)
{
	char *at = map_apart(4 * PAGE, RWX);

	for (int i = 0; i < 3; i++)
		say("%d\n", execute(at + PAGE, i));
	read_file("/proc/self/maps");
	say_lines(at, at + 4 * PAGE);
	need(mprotect(at + PAGE, PAGE, PROT_WRITE | PROT_EXEC) == 0);
	say("%d\n", execute(at + PAGE, 7));
	read_file("/proc/self/maps");
	say_lines(at, at + 4 * PAGE);
	need(mprotect(at, 4 * PAGE, PROT_EXEC) == 0);
	read_file("/proc/self/maps");
	say_lines(at, at + 4 * PAGE);
}

/* "rd wr ex mr", and what else of it is only about permissions. */
static void case_smaps(void)
{
	char *at = map_apart(4 * PAGE, RWX), start[32], *found;
	unsigned long size = 0, resident = 0;

	for (int i = 0; i < 4; i++)
		execute(at + i * PAGE, i);
	read_file("/proc/self/smaps");
	say_lines(at, at + 4 * PAGE);
	snprintf(start, sizeof(start), "%08lx-", (unsigned long)at);
	found = strstr(text, start);
	need(found);
	need(sscanf(strstr(found, "Size:"), "Size: %lu", &size) == 1);
	need(sscanf(strstr(found, "Rss:"), "Rss: %lu", &resident) == 1);
	say("%lu kB, %lu kB, %.20s\n", size, resident, strstr(found, "VmFlags:"));
}

/* Whether what has been read has the mapping at @at. */
static const char *has(const void *at)
{
	struct line line;

	for (const char *from = text; *from; from = strchr(from, '\n') + 1)
		if (parse(from, &line) && line.start <= (unsigned long)at &&
		    (unsigned long)at < line.end)
			return "there";
	return "not there";
}

/* The kernel says what there is when it is asked. */
static void case_when_it_is_read(void)
{
	int fd = open("/proc/self/maps", O_RDONLY);
	char *at = map_apart(PAGE, PROT_READ), *then;
	struct iovec part = {text, sizeof(text) - 1};

	read_all(fd, PAGE);
	say("mapped before it is read: %s\n", has(at));
	then = map_apart(PAGE, PROT_READ);
	say("at the end: %ld\n", (long)read(fd, text, 1));
	need(lseek(fd, 0, SEEK_SET) == 0);
	read_all(fd, PAGE);
	say("mapped before it is read again: %s\n", has(then));
	need(munmap(then - PAGE, 3 * PAGE) == 0);
	memset(text, 0, PAGE);
	need(pread(fd, text, sizeof(text) - 1, 0) > 0);
	say("unmapped: %s\n", has(then));
	need(munmap(at - PAGE, 3 * PAGE) == 0);
	need(lseek(fd, 0, SEEK_SET) == 0);
	memset(text, 0, PAGE);
	need(readv(fd, &part, 1) > 0);
	say("unmapped: %s\n", has(at));
}

static unsigned int lines_between(const char *from, const char *to)
{
	struct line line;
	unsigned int nr = 0;

	for (const char *at = text; *at; at = strchr(at, '\n') + 1)
		nr += parse(at, &line) && line.start >= (unsigned long)from &&
		      line.end <= (unsigned long)to;
	return nr;
}

/* So it does of what no call has mapped, or another one than mmap(2) has parted. */
static void case_when_something_else_has_changed(void)
{
	enum { PAGES = 64 };
	char *at = map_apart(PAGES * PAGE, PROT_READ | PROT_WRITE);
	int fd = open("/proc/self/maps", O_RDONLY);
	char start[32];

	need(mlock(at + PAGE, PAGE) == 0);
	read_all(fd, PAGE);
	say("locked: %u\n", lines_between(at, at + PAGES * PAGE));
	fd = open("/proc/self/maps", O_RDONLY);
	need(munlock(at + PAGE, PAGE) == 0);
	read_all(fd, PAGE);
	say("unlocked: %u\n", lines_between(at, at + PAGES * PAGE));
	fd = open("/proc/self/maps", O_RDONLY);
	need(madvise(at + PAGE, PAGE, MADV_DONTFORK) == 0);
	read_all(fd, PAGE);
	say("advised: %u\n", lines_between(at, at + PAGES * PAGE));
	need(madvise(at, PAGES * PAGE, MADV_NOHUGEPAGE) == 0);
	need(madvise(at, PAGES * PAGE, MADV_DOFORK) == 0);
	fd = open("/proc/self/smaps", O_RDONLY);
	memset(at, 1, PAGES * PAGE);
	read_all(fd, PAGE);
	snprintf(start, sizeof(start), "%08lx-", (unsigned long)at);
	need(strstr(text, start));
	say("touched: %.24s\n", strstr(strstr(text, start), "Rss:"));
}

/* It is one file, whatever its numbers. */
static void case_other_numbers(void)
{
	enum { MANY = 40 };
	const int fd = open("/proc/self/maps", O_RDONLY);
	const int others[] = {dup(fd), dup2(fd, 50), dup3(fd, 51, O_CLOEXEC),
			      fcntl(fd, F_DUPFD, 60)};
	int many[MANY];
	struct stat file;
	char *at;

	close(fd);
	for (int i = 0; i < 4; i++) {
		at = map_apart(PAGE, PROT_READ);
		need(lseek(others[i], 0, SEEK_SET) == 0);
		read_all(others[i], PAGE);
		need(fstat(others[i], &file) == 0);
		say("%s, %o\n", has(at), file.st_mode);
	}
	for (int i = 0; i < 4; i++)
		close(others[i]);
	/* Numbers that are not used again. */
	for (int i = 0; i < MANY; i++)
		need((many[i] = open("/proc/self/maps", O_RDONLY)) >= 0);
	for (int i = 0; i < MANY; i++)
		close(many[i]);
	for (int i = 0; i < MANY; i++)
		need((many[i] = open("/dev/null", O_RDONLY)) >= 0);
	many[0] = open("/proc/self/maps", O_RDONLY);
	at = map_apart(PAGE, PROT_READ);
	read_all(many[0], PAGE);
	say("%s\n", has(at));
}

/* Who has no memory any more has no maps. */
static void case_of_one_that_has_ended(void)
{
	int go[2], fds[2], status;
	char byte, path[64];
	pid_t child;

	need(pipe(go) == 0);
	child = fork();
	if (child == 0) {
		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	fds[0] = open(path, O_RDONLY);
	fds[1] = open(path, O_RDONLY);
	say("while it lives: %d\n", read_all(fds[1], PAGE) > 0);
	close(go[1]);
	need(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT) == 0);
	for (int i = 0; i < 2; i++) {
		need(lseek(fds[i], 0, SEEK_SET) == 0);
		say("ended: %zu\n", read_all(fds[i], PAGE));
	}
	need(waitpid(child, &status, 0) == child);
	/* A negative errno value of some kernels is an end, too. */
	say("gone: %d\n", read(fds[0], &byte, 1) <= 0);
}

/* In pieces it is the same as at once. */
static void case_in_pieces(void)
{
	static char whole[1 << 16];
	const size_t sizes[] = {1, 7, 100, 1024, sizeof(whole)};
	int fd = open("/proc/self/maps", O_RDONLY);
	size_t length = read_all(fd, sizeof(text) - 1);

	need(length < sizeof(whole));
	memcpy(whole, text, length);
	for (int i = 0; i < 5; i++) {
		need(lseek(fd, 0, SEEK_SET) == 0);
		say("%d\n", read_all(fd, sizes[i]) == length && !memcmp(text, whole, length));
	}
	need(lseek(fd, 10, SEEK_SET) == 10);
	say("%d\n", read_all(fd, 100) == length - 10 && !memcmp(text, whole + 10, length - 10));
	need(pread(fd, text, 50, 5) == 50);
	say("%d\n", !memcmp(text, whole + 5, 50));
}

/* A parent's file says of the parent. */
static void case_inherited(void)
{
	int fd = open("/proc/self/maps", O_RDONLY), other = dup2(fd, 100);
	char *at = map_apart(PAGE, PROT_READ);
	pid_t child = fork();

	if (child == 0) {
		need(munmap(at, PAGE) == 0);
		read_all(fd, PAGE);
		say("in the parent: %s\n", has(at));
		read_file("/proc/self/maps");
		say("in the child: %s\n", has(at));
		_exit(0);
	}
	say_end("child", child);
	say("read by the child: %ld\n", (long)read(other, text, 1));
}

static void case_looked_at(void)
{
	const char *const names[] = {"maps", "smaps"};
	char path[64];
	struct stat file;
	struct statx more;
	int fd;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/self/%s", names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		need(fd >= 0 && raw(SYS_fstat, fd, &file) == 0);
		say("%o, %ld bytes, %d\n", file.st_mode, (long)file.st_size,
		    file.st_uid == geteuid());
		need(fstat(fd, &file) == 0);
		say("%o, %ld bytes\n", file.st_mode, (long)file.st_size);
		need(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more) == 0);
		say("%o, %ld bytes\n", more.stx_mode, (long)more.stx_size);
		say("%#x %#x\n", fcntl(fd, F_GETFL), fcntl(fd, F_GETFD));
		say("written: %s\n", errno_name(write(fd, "x", 1) < 0 ? errno : 0));
		close(fd);
		/* The number is that of something else. */
		need(open("/dev/null", O_RDONLY) == fd && fstat(fd, &file) == 0);
		say("%d, %ld\n", S_ISCHR(file.st_mode), (long)read(fd, text, 1));
		close(fd);
	}
	fd = open("/proc/self/maps", O_RDONLY);
	say("%#x\n", fcntl(fd, F_GETFD));
	for (int i = SEEK_SET; i <= SEEK_HOLE; i++)
		say("%s\n", errno_name(lseek(fd, 0, i) < 0 ? errno : 0));
	fd = open("/proc/self/maps", O_RDONLY | O_APPEND | O_NONBLOCK);
	say("%#x\n", fcntl(fd, F_GETFL));
	fd = open("/proc/self/maps", O_PATH);
	say("%s\n", errno_name(read(fd, text, 1) < 0 ? errno : 0));
	say("%s\n", result_name(open("/proc/self/maps", O_RDONLY | O_DIRECTORY)));
	say("%s\n", result_name(open("/proc/self/maps", O_RDONLY | O_CREAT | O_EXCL, 0600)));
	say("%s\n", result_name(open("/proc/self/no/maps", O_RDONLY)));
}

static unsigned int nr_lines(int fd)
{
	unsigned int nr = 0;

	read_all(fd, PAGE);
	close(fd);
	for (const char *at = text; *at; at = strchr(at, '\n') + 1)
		nr++;
	return nr;
}

static void *in_a_thread(void *unused)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", gettid());
	say("%s\n", nr_lines(open(path, O_RDONLY)) == nr_lines(open("/proc/self/maps", O_RDONLY))
			    ? "the same"
			    : "others");
	return unused;
}

/* Of a program without libraries, as there are files that it has mapped. */
static void list(const char *path)
{
	DIR *folder = opendir(path);
	unsigned int nr = 0;

	need(folder);
	while (readdir(folder))
		nr++;
	closedir(folder);
	say("%u\n", nr);
}

static void case_files(void)
{
	char path[64];
	int status;
	pid_t child;

	list("/proc/self/map_files");
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/proc/%d/map_files", child);
	list(path);
	need(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
}

static void case_names(void)
{
	const struct open_how how = {.flags = O_RDONLY};
	const int proc = open("/proc", O_PATH), self = open("/proc/self", O_RDONLY);
	char folder[] = "linkXXXXXX";
	pthread_t thread;
	int dots;

	need(proc >= 0 && self >= 0 && mkdtemp(folder) && rmdir(folder) == 0);
	need(symlink("/proc/self/task", folder) == 0);
	dots = open(folder, O_PATH);
	unlink(folder);
	say("%u\n", nr_lines(open("/proc/self/maps", O_RDONLY)));
	say("%u\n", nr_lines(open("/proc/thread-self/maps", O_RDONLY)));
	say("%u\n", nr_lines(open("//proc/./self/../self/maps", O_RDONLY)));
	say("%u\n", nr_lines(openat(proc, "self/maps", O_RDONLY)));
	say("%u\n", nr_lines(openat(self, "maps", O_RDONLY)));
	say("%u\n", nr_lines(openat(dots, "../maps", O_RDONLY)));
	say("%u\n", nr_lines((int)syscall(SYS_openat2, self, "maps", &how, sizeof(how))));
	say("%u\n", nr_lines((int)syscall(SYS_open, "/proc/self/maps", O_RDONLY)));
	need(chdir("/proc/self") == 0);
	say("%u\n", nr_lines(open("maps", O_RDONLY)));
	need(pthread_create(&thread, NULL, in_a_thread, NULL) == 0);
	pthread_join(thread, NULL);
}

static void case_stack_of_the_first_thread(void)
{
	pthread_attr_t attributes;
	struct line line = {0};
	void *start;
	size_t size;

	need(pthread_getattr_np(pthread_self(), &attributes) == 0);
	need(pthread_attr_getstack(&attributes, &start, &size) == 0);
	read_file("/proc/self/maps");
	for (const char *at = text; *at; at = strchr(at, '\n') + 1)
		if (parse(at, &line) && !strcmp(line.name, "[stack]"))
			break;
	/* It ends with the page in which the program began. */
	say("%d\n",
	    (unsigned long)start + size > line.start && (unsigned long)start + size <= line.end);
	say("%d\n", (char *)&line > (char *)start && (char *)&line < (char *)start + size);
}

static void *end_at_once(void *unused)
{
	return unused;
}

static volatile bool enough;

static void *begin_and_end(void *unused)
{
	while (!enough) {
		pthread_t threads[8];

		for (int i = 0; i < 8; i++)
			need(pthread_create(&threads[i], NULL, end_at_once, NULL) == 0);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
	}
	return unused;
}

/* What a program that is not position-independent has lies at the ends of the address space. */
static void case_while_threads_begin(void)
{
	const char *const names[] = {"/proc/self/maps", "/proc/self/smaps"};
	unsigned int foreign = 0;
	struct line line;
	pthread_t thread;

	need(pthread_create(&thread, NULL, begin_and_end, NULL) == 0);
	for (int i = 0; i < 300; i++) {
		read_file(names[i % 2]);
		for (const char *at = text; *at; at = strchr(at, '\n') + 1)
			foreign +=
				parse(at, &line) && line.start >= 1UL << 46 && line.end < 7UL << 44;
	}
	enough = true;
	pthread_join(thread, NULL);
	say("%u\n", foreign);
}

static void case_many(void)
{
	enum { MANY = 20000 };
	char *at = map(MANY * (size_t)PAGE, PROT_NONE);
	struct line line;
	unsigned int nr = 0;

	for (unsigned int i = 0; i < MANY; i += 2)
		need(mprotect(at + i * (size_t)PAGE, PAGE, PROT_READ) == 0);
	read_file("/proc/self/maps");
	for (const char *from = text; *from; from = strchr(from, '\n') + 1)
		nr += parse(from, &line) && line.start >= (unsigned long)at &&
		      line.start < (unsigned long)at + (MANY - 2) * (size_t)PAGE;
	say("%u\n", nr);
}

/* With little of what it takes. */
static void case_limits(void)
{
	const char *const full = "no number is left";
	struct rlimit limit;
	int last = -1, fd;

	need(setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, RLIM_INFINITY}) == 0);
	read_file("/proc/self/maps");
	say("%s\n", has(&text));
	need(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	limit.rlim_cur = 64;
	need(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	say("%s\n", result_name(open("/proc/self/maps", O_RDONLY)));
	close(last);
	fd = open("/proc/self/maps", O_RDONLY);
	say("%d\n", fd == last);
	read_all(fd, PAGE);
	say("%s: %s\n", full, has(full));
}

const struct test_case cases[] = {
	{"all", case_all},
	{"of_another", case_of_another},
	{"code_that_is_written", case_code_that_is_written},
	{"smaps", case_smaps},
	{"when_it_is_read", case_when_it_is_read},
	{"when_something_else_has_changed", case_when_something_else_has_changed},
	{"other_numbers", case_other_numbers},
	{"of_one_that_has_ended", case_of_one_that_has_ended},
	{"in_pieces", case_in_pieces},
	{"inherited", case_inherited},
	{"looked_at", case_looked_at},
	{"files", case_files},
	{"names", case_names},
	{"stack_of_the_first_thread", case_stack_of_the_first_thread},
	{"while_threads_begin", case_while_threads_begin},
	{"many", case_many},
	{"limits", case_limits},
	{NULL, NULL},
};
