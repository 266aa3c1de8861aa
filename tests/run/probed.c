// SPDX-License-Identifier: MIT
/*
 * What events of the unit `uprobe` count where code of a file is executed, and where functions
 * return: of which tasks, in which mappings. The kernel has them natively for who may ask it, and
 * so says what is right.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe_case.h"

/* ---- what is probed ---- */

__attribute__((noipa)) static int recurses(int n)
{
	__asm__ volatile("");
	return n ? 1 + recurses(n - 1) : 0;
}

static jmp_buf back;

__attribute__((noipa)) static int may_jump(int jumps)
{
	__asm__ volatile("");
	if (jumps)
		longjmp(back, 1);
	return 3;
}

/* Each leaves by a jump to the next one, which returns for all; the last of them takes its time. */
int chain_first(int n), chain_last(int n);
__asm__(".text\n"
	".type chain_first, @function\n"
	"chain_first: inc %edi\n"
	"	jmp chain_last\n"
	".type chain_last, @function\n"
	"chain_last: lea 1(%rdi), %eax\n"
	"	ret\n");

/* A loop from its beginning on, which keeps its argument below the stack. */
int begins_again(int n);
__asm__(".text\n"
	".type begins_again, @function\n"
	"begins_again:\n"
	"	test %edi, %edi\n"
	"	jz 1f\n"
	"	mov %rdi, -8(%rsp)\n"
	"	xor %edi, %edi\n"
	"	jmp begins_again\n"
	"1:	mov -8(%rsp), %rax\n"
	"	ret\n");

/* Moved about as a page by itself. */
__attribute__((section(".text.page"), aligned(4096), noipa)) static int on_a_page(int n)
{
	__asm__ volatile("nop");
	return n + 1;
}
__attribute__((section(".text.page"), aligned(4096), used)) static void behind_the_page(void)
{
}

/* ---- counting ---- */

static void case_count(void)
{
	struct perf_event_attr attr = probe(called, ENTRY);
	int fd, copy;

	attr.disabled = 1;
	fd = own_event(&attr);
	call(called, 3);
	say_count("disabled", fd);
	need(!ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	call(called, 100);
	say_count("enabled", fd);
	call(recurses, 2);
	say_count("others", fd);
	need(!ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	call(called, 2);
	say_count("reset", fd);
	copy = dup(fd);
	close(fd);
	call(called, 2);
	say_count("closed once", copy);
	need(!ioctl(copy, PERF_EVENT_IOC_DISABLE, 0));
	call(called, 2);
	say_count("disabled", copy);
	close(copy);
	call(called, 2);
	for (int excludes = 0; excludes < 4; excludes++) {
		attr = probe(called, ENTRY);
		attr.exclude_kernel = excludes & 1;
		attr.exclude_user = excludes >> 1;
		fd = own_event(&attr);
		call(called, 4);
		say_count("whatever is excluded", fd);
		close(fd);
	}
}

static void case_group(void)
{
	struct perf_event_attr first = probe(called, ENTRY), second = probe(recurses, ENTRY);
	struct {
		uint64_t nr, enabled, running, first[2], second[2], software[2];
	} all;
	struct perf_event_attr software = faults();
	int leader, members[2];

	first.read_format = second.read_format = software.read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
		PERF_FORMAT_TOTAL_TIME_RUNNING;
	first.disabled = 1;
	leader = own_event(&first);
	members[0] = open_event(&second, 0, -1, leader, 0);
	members[1] = open_event(&software, 0, -1, leader, 0);
	say("members %d %d\n", members[0] >= 0, members[1] >= 0);
	need(!ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	call(called, 7);
	call(recurses, 4);
	fault(50);
	need(!ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	call(called, 1);
	say("size %ld\n", (long)read(leader, &all, sizeof(all)));
	say("of %lu: %lu %lu, faults %d, times %d\n", (unsigned long)all.nr,
	    (unsigned long)all.first[0], (unsigned long)all.second[0], all.software[0] >= 50,
	    all.enabled && all.enabled == all.running);
	/* The other way round. */
	close(leader), close(members[0]), close(members[1]);
	software.disabled = 1;
	leader = own_event(&software);
	members[0] = open_event(&first, 0, -1, leader, 0);
	first.disabled = 0;
	members[1] = open_event(&first, 0, -1, leader, 0);
	need(!ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	call(called, 5);
	say("size %ld\n", (long)read(leader, &all, sizeof(all)));
	say("of %lu: %lu %lu\n", (unsigned long)all.nr, (unsigned long)all.second[0],
	    (unsigned long)all.software[0]);
}

/* ---- returns ---- */

static void case_returns(void)
{
	struct perf_event_attr attr = probe(recurses, RETURN);
	int fd = own_event(&attr), entered;

	recurses(30);
	say_count("of one call after the other", fd);
	for (int i = 0; i < 20; i++)
		recurses(i);
	say_count("and more", fd);
	close(fd);

	attr = probe(chain_first, RETURN);
	fd = own_event(&attr);
	attr = probe(chain_last, RETURN);
	entered = own_event(&attr);
	call(chain_first, 5);
	call(chain_last, 2);
	say_count("left by a jump", fd);
	say_count("returned for two", entered);
	close(fd), close(entered);
}

static void case_below_the_stack(void)
{
	struct perf_event_attr attr = probe(begins_again, RETURN);
	int fd = own_event(&attr);

	for (int i = 1; i < 10; i++)
		say("kept %d\n", begins_again(i));
	close(fd);
}

static void case_left_by_longjmp(void)
{
	struct perf_event_attr attr = probe(may_jump, RETURN);
	int fd = own_event(&attr), entered;
	volatile int others = 0;

	attr = probe(may_jump, ENTRY);
	entered = own_event(&attr);
	for (volatile int i = 0; i < 20; i++) {
		if (!setjmp(back))
			may_jump(i % 3 == 0);
		else
			others = called(others);
	}
	say_count("entered", entered);
	say_count("returned", fd);
	say("jumps %d\n", others);
}

static function *volatile next;

/* As an interpreter does it: all from one place. */
__attribute__((noipa)) static void dispatch(volatile int *n)
{
	while (*n < 20) {
		next = *n % 3 ? may_jump : called;
		++*n;
		next(1);
	}
}

static void case_left_for_another(void)
{
	struct perf_event_attr attr = probe(may_jump, RETURN);
	int fd = own_event(&attr), other;
	volatile int n = 0;

	attr = probe(called, RETURN);
	other = own_event(&attr);
	setjmp(back);
	dispatch(&n);
	say_count("always left", fd);
	say_count("returned", other);
}

static int inner_fd;

__attribute__((noipa)) static int enables(int n)
{
	if (!n)
		enable(inner_fd);
	return n;
}

static void case_enabled_within(void)
{
	struct perf_event_attr attr = probe(enables, RETURN);

	attr.disabled = 1;
	inner_fd = own_event(&attr);
	call(enables, 1);
	say_count("it was entered before", inner_fd);
	call(enables, 1);
	say_count("and again", inner_fd);
}

__attribute__((noipa)) static int forks(int n)
{
	const pid_t pid = fork();

	if (pid)
		say_end("child", pid);
	return pid ? n : -1;
}

static void case_returns_in_a_child(void)
{
	struct perf_event_attr attr = probe(forks, RETURN);
	int fd;

	own_faults();
	attr.inherit = 1;
	fd = own_event(&attr);
	if (forks(1) < 0)
		_exit(0);
	say_count("both", fd);
}

/* ---- other tasks ---- */

static void *call_thrice(void *arg)
{
	call(called, 3);
	return arg;
}

static void with_thread(void)
{
	pthread_t thread;

	need(!pthread_create(&thread, NULL, call_thrice, NULL));
	call(called, 10);
	need(!pthread_join(thread, NULL));
}

/* With an event that is not inherited: where all are, the kernel loses now and then what a child
 * counts, as if it took its probe for its parent's. */
static void tasks(int inherit)
{
	struct perf_event_attr attr = probe(called, ENTRY);
	int fd, status;
	pid_t pid;

	own_faults();
	attr.inherit = inherit;
	fd = own_event(&attr);
	with_thread();
	pid = fork();
	if (!pid) {
		call(called, 100);
		with_thread();
		_exit(0);
	}
	need(waitpid(pid, &status, 0) == pid);
	say_count("of tasks", fd);
}

static void case_one_task(void)
{
	tasks(false);
}

static void case_inherited(void)
{
	tasks(true);
}

static void case__image(void)
{
	call(called, 6);
}

static void case_exec(void)
{
	struct perf_event_attr attr = probe(called, ENTRY);
	int go[2], status, fd;
	pid_t pid;
	char c;

	close(own_event(&attr));
	need(!pipe(go));
	pid = fork();
	if (!pid) {
		need(read(go[0], &c, 1) == 1);
		call(called, 50);
		execl("/proc/self/exe", "probed", "_image", NULL);
		_exit(1);
	}
	attr.disabled = 1;
	attr.enable_on_exec = 1;
	fd = open_event(&attr, pid, -1, -1, 0);
	need(fd >= 0 && write(go[1], "", 1) == 1);
	need(waitpid(pid, &status, 0) == pid);
	say_count("of the other image", fd);
}

/* ---- mappings ---- */

/* In another process, so that nothing of it is mapped here yet. */
static uint64_t offset_in(const char *library, const char *name)
{
	uint64_t offset = 0;
	int told[2];

	need(!pipe(told));
	if (!fork()) {
		void *handle = dlopen(library, RTLD_NOW);

		need(handle && dlsym(handle, name));
		offset = offset_of(dlsym(handle, name));
		_exit(write(told[1], &offset, sizeof(offset)) != sizeof(offset));
	}
	need(read(told[0], &offset, sizeof(offset)) == sizeof(offset));
	wait(NULL);
	close(told[0]), close(told[1]);
	return offset;
}

/* Others may have probes in that one, and theirs come and go. */
static void copy_file(const char *from, const char *to)
{
	char bytes[4096];
	int in, out;
	ssize_t n;

	need(from);
	in = open(from, O_RDONLY);
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
	need(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		need(write(out, bytes, (size_t)n) == n);
	close(in), close(out);
}

static void case_library(void)
{
	static const char path[] = "./plugin.so";
	struct perf_event_attr attr;
	function *plugin;
	void *handle;
	int fd, returns;

	copy_file(getenv("PLUGIN1"), path);
	attr = probe_in(path, offset_in(path, "plugin"));
	fd = own_event(&attr);
	attr.config = RETURN;
	returns = own_event(&attr);
	for (int round = 0; round < 3; round++) {
		handle = dlopen(path, RTLD_NOW);
		need(handle);
		plugin = (function *)(uintptr_t)dlsym(handle, "plugin");
		need(plugin);
		call(plugin, 5);
		say_count("entered", fd);
		say_count("returned", returns);
		dlclose(handle);
	}
}

static function *page_of(int fd, uint64_t offset, void *address, int prot, int flags)
{
	void *at = mmap(address, 4096, prot, flags, fd, (off_t)offset);

	need(fd >= 0 && at != MAP_FAILED);
	close(fd);
	return (function *)(uintptr_t)at;
}

static function *page_at(void *address, int prot, int flags)
{
	return page_of(open(own_path, O_RDONLY), offset_of((const void *)(uintptr_t)on_a_page),
		       address, prot, flags);
}

static void *address_of(function *code)
{
	return (void *)(uintptr_t)code;
}

static void case_mappings(void)
{
	enum { CODE = PROT_READ | PROT_EXEC };
	struct perf_event_attr attr = probe(on_a_page, ENTRY);
	function *early = page_at(NULL, CODE, MAP_PRIVATE), *late, *moved;
	int fd = own_event(&attr);
	void *place;

	call(on_a_page, 1);
	say_count("where it was", fd);
	call(early, 10);
	say_count("mapped twice", fd);
	late = page_at(NULL, CODE, MAP_PRIVATE);
	call(late, 100);
	say_count("mapped later", fd);
	place = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	moved = (function *)(uintptr_t)mremap(address_of(late), 4096, 4096,
					      MREMAP_MAYMOVE | MREMAP_FIXED, place);
	need(address_of(moved) == place);
	call(moved, 1000);
	say_count("moved", fd);
	late = page_at(NULL, CODE, MAP_SHARED);
	call(late, 10000);
	say_count("shared", fd);
	late = page_at(NULL, PROT_READ, MAP_PRIVATE);
	need(!mprotect(address_of(late), 4096, CODE));
	call(late, 20000);
	say_count("made code", fd);
}

static volatile unsigned short semaphore __attribute__((section(".data.probes"))) = 0;

static int open_with(uint64_t counter, int when)
{
	struct perf_event_attr attr = probe(called, when);

	attr.disabled = 1;
	attr.config |= counter << 32;
	return open_event(&attr, 0, -1, -1, 0);
}

static void case_semaphore(void)
{
	const uint64_t counter = offset_of((const void *)(uintptr_t)&semaphore);
	struct perf_event_attr attr = probe(called, ENTRY);
	int fds[3];
	pid_t pid;

	close(own_event(&attr));
	say("nobody %d\n", semaphore);
	fds[0] = open_with(counter, ENTRY);
	say("one %d\n", semaphore);
	say("another: %s\n", result_name(open_with(counter + 2, ENTRY)));
	say("none: %s\n", result_name(open_with(0, ENTRY)));
	say("odd: %s\n", result_name(open_with(counter + 1, ENTRY)));
	fds[1] = open_with(counter, RETURN);
	fds[2] = open_with(counter, ENTRY);
	need(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
	say("three %d\n", semaphore);
	enable(fds[2]);
	call(called, 3);
	say_count("counted", fds[2]);
	pid = fork();
	if (!pid) {
		say("in a child %d\n", semaphore);
		_exit(0);
	}
	say_end("it", pid);
	close(fds[0]), close(fds[2]);
	say("one of them %d\n", semaphore);
	close(fds[1]);
	say("none left %d\n", semaphore);
	semaphore = 7;
	fds[0] = open_with(counter, ENTRY);
	say("another process's, too %d\n", semaphore);
	close(fds[0]);
	say("and gone %d\n", semaphore);
}

static void case_semaphore_of_a_library(void)
{
	static const char path[] = "./plugin.so";
	volatile unsigned short *there;
	struct perf_event_attr attr;
	void *handle;
	int fd;

	copy_file(getenv("PLUGIN1"), path);
	attr = probe_in(path, offset_in(path, "plugin"));
	attr.config = offset_in(path, "plugin_semaphore") << 32;
	attr.disabled = 1;
	fd = own_event(&attr);
	for (int round = 0; round < 2; round++) {
		handle = dlopen(path, RTLD_NOW);
		need(handle);
		there = dlsym(handle, "plugin_semaphore");
		need(there);
		say("mapped later %d\n", *there);
		dlclose(handle);
	}
	handle = dlopen(path, RTLD_NOW);
	there = dlsym(handle, "plugin_semaphore");
	close(fd);
	say("closed %d\n", *there);
}

/* Somebody has a probe in a library that is loaded when others have seen returns to more places
 * than fit. */
static pthread_barrier_t meeting;
static function *loaded;

static void *wait_for_library(void *arg)
{
	const int fd = own_event(arg);

	call(called, 3);
	pthread_barrier_wait(&meeting);
	pthread_barrier_wait(&meeting);
	call(loaded, 10);
	say_count("loaded later", fd);
	return arg;
}

static void call_from_everywhere(function *code)
{
	/* sub $8, %rsp; call *%rsi; add $8, %rsp; ret */
	static const unsigned char bytes[16] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd6,
						0x48, 0x83, 0xc4, 0x08, 0xc3};
	enum { PLACES = 40000 };
	char *at = mmap(NULL, PLACES * sizeof(bytes), PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(at != MAP_FAILED);
	for (int i = 0; i < PLACES; i++, at += sizeof(bytes)) {
		memcpy(at, bytes, sizeof(bytes));
		need(((int (*)(int, function *))(uintptr_t)at)(i, code) == i + 1);
	}
}

static void case_crowd(void)
{
	static const char path[] = "./plugin.so";
	struct perf_event_attr attr = probe(called, RETURN), other;
	pthread_t thread;
	void *handle;
	int fd;

	copy_file(getenv("PLUGIN1"), path);
	other = probe_in(path, offset_in(path, "plugin"));
	need(!pthread_barrier_init(&meeting, NULL, 2));
	need(!pthread_create(&thread, NULL, wait_for_library, &other));
	pthread_barrier_wait(&meeting);
	fd = own_event(&attr);
	call_from_everywhere(called);
	say_count("returned", fd);
	handle = dlopen(path, RTLD_NOW);
	need(handle);
	loaded = (function *)(uintptr_t)dlsym(handle, "plugin");
	pthread_barrier_wait(&meeting);
	need(!pthread_join(thread, NULL));
}

/* Something else where a probe was. */
static void case_replaced(void)
{
	struct perf_event_attr attr = probe(on_a_page, ENTRY);
	function *code = page_at(NULL, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	const unsigned char plain[] = {0x8d, 0x47, 0x07, 0xc3}; /* lea 7(%rdi), %eax; ret */
	int fd = own_event(&attr);

	call(code, 3);
	say_count("the page", fd);
	need(mmap(address_of(code), 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == address_of(code));
	memcpy(address_of(code), plain, sizeof(plain));
	say("result %d\n", code(1));
	call(code, 3);
	say_count("another", fd);
	need(page_at(address_of(code), PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED) == code);
	call(code, 3);
	say_count("the page again", fd);
}

/* What is mapped has no path any more by the time that it becomes code. */
static void case_deleted(void)
{
	const int file = open("page", O_RDWR | O_CREAT | O_TRUNC, 0755);
	struct perf_event_attr attr;
	function *code;
	char path[64];
	int fd;

	need(write(file, (const void *)(uintptr_t)on_a_page, 4096) == 4096);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dup(file));
	code = page_of(file, 0, NULL, PROT_READ, MAP_PRIVATE);
	need(!unlink("page"));
	attr = probe_in(path, 0);
	fd = own_event(&attr);
	need(!mprotect(address_of(code), 4096, PROT_READ | PROT_EXEC));
	call(code, 7);
	say_count("deleted", fd);
}

/* Of the whole system: so in a file that nobody else has. */
static void case_processors(void)
{
	struct perf_event_attr attr = probe_in("page", 0);
	const long nr = sysconf(_SC_NPROCESSORS_CONF);
	int fd = open("page", O_RDWR | O_CREAT | O_TRUNC, 0755), fds[256], n = 0;
	uint64_t sum = 0;
	function *code;
	pid_t pid;

	need(write(fd, (const void *)(uintptr_t)on_a_page, 4096) == 4096);
	code = page_of(fd, 0, NULL, PROT_READ | PROT_EXEC, MAP_PRIVATE);
	close(own_event(&attr));
	for (int cpu = 0; cpu < nr && n < 256; cpu++) {
		fds[n] = open_event(&attr, -1, cpu, -1, 0);
		n += fds[n] >= 0;
	}
	call(code, 20);
	pid = fork();
	if (!pid) {
		call(code, 22);
		_exit(0);
	}
	say_end("child", pid);
	for (int i = 0; i < n; i++)
		sum += count_of(fds[i]);
	say("on all of them %lu\n", (unsigned long)sum);
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, case_##name                                                                 \
	}

const struct test_case cases[] = {
	CASE(count),
	CASE(group),
	CASE(returns),
	CASE(below_the_stack),
	CASE(left_by_longjmp),
	CASE(left_for_another),
	CASE(enabled_within),
	CASE(returns_in_a_child),
	CASE(one_task),
	CASE(inherited),
	CASE(exec),
	CASE(processors),
	CASE(deleted),
	CASE(library),
	CASE(mappings),
	CASE(semaphore),
	CASE(semaphore_of_a_library),
	CASE(replaced),
	CASE(crowd),
	CASE(_image),
	{0},
};
