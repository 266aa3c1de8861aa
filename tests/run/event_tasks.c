// SPDX-License-Identifier: MIT
/* Whom events measure. */
#include "event_case.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void case_another_process(void)
{
	struct perf_event_attr attr = faults();
	int go, fd, status;
	pid_t child;

	close(own_faults());
	child = start_child(&go, 20);
	fd = open_event(&attr, child, -1, -1, 0);
	need(fd >= 0);
	need(write(go, "x", 1) == 1);
	need(waitpid(child, &status, 0) == child);
	say("counts: %d\n", count_of(fd) >= 20);
	TRY_AT(open_event(&attr, child, -1, -1, 0));
}

/* How long it has been enabled. */
static uint64_t enabled(int fd)
{
	uint64_t words[2];

	need(read(fd, words, sizeof(words)) == sizeof(words));
	return words[1];
}

/* It may be on its way into the call yet; in there it has no time. */
static bool comes_to_stand(int fd)
{
	for (unsigned int i = 0; i < 1000; i++) {
		const uint64_t before = enabled(fd);

		usleep(5000);
		if (enabled(fd) == before)
			return true;
	}
	return false;
}

/* Who waits in the kernel has no time, also where nobody measured it when it went there. */
static void case_time_of_who_waits(void)
{
	struct perf_event_attr attr = faults();
	int go, fd, status;
	pid_t child;

	close(own_faults());
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	child = start_child(&go, 20);
	for (unsigned int i = 0; i < 10; i++) {
		usleep(1000);
		fd = open_event(&attr, child, -1, -1, 0);
		need(fd >= 0);
		say("stands: %d\n", comes_to_stand(fd));
		if (i < 9)
			close(fd);
	}
	need(write(go, "x", 1) == 1);
	need(waitpid(child, &status, 0) == child);
	say("has gone on: %d\n", enabled(fd) > 0);
}

/* Nor has who waits for its child to execute something, or to end. */
static void case_time_of_who_waits_for_vfork(void)
{
	struct perf_event_attr attr = faults();
	int fd, status, ends[2];
	char byte;
	pid_t child;

	close(own_faults());
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	need(!pipe(ends));
	child = fork();
	if (!child) {
		close(ends[1]);
		if (!vfork()) {
			(void)!read(ends[0], &byte, 1);
			_exit(0);
		}
		_exit(0);
	}
	close(ends[0]);
	fd = open_event(&attr, child, -1, -1, 0);
	need(fd >= 0);
	say("stands: %d\n", comes_to_stand(fd));
	close(ends[1]);
	need(waitpid(child, &status, 0) == child);
	say("has gone on: %d\n", enabled(fd) > 0);
}

static void case_inherit(void)
{
	struct perf_event_attr attr = faults();
	int status, fd;
	uint64_t before;

	attr.inherit = 1;
	fd = own_event(&attr);
	before = count_of(fd);
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child) {
			if (i == 1 && !fork())
				fault(100);
			fault(100);
			while (wait(&status) > 0)
				;
			if (i == 2)
				kill(getpid(), SIGKILL);
			_exit(0);
		}
		need(waitpid(child, &status, 0) == child);
	}
	say("of four processes: %d\n", count_of(fd) - before >= 400);
	TRY_AT(mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

static void *fault_in_thread(void *nothing)
{
	fault(100);
	return nothing;
}

static void case_threads(void)
{
	struct perf_event_attr attr = faults();
	pthread_t threads[4];
	uint64_t before;
	int alone = own_faults(), fd;

	attr.inherit = 1;
	fd = own_event(&attr);
	before = count_of(alone);
	for (int i = 0; i < 4; i++)
		need(!pthread_create(&threads[i], NULL, fault_in_thread, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	say("of four threads: %d\n", count_of(fd) >= 400);
	say("of none: %d\n", count_of(alone) - before < 400);
}

/* As a profiler starts a command: it counts from its exec on, and ends with it. */
static void case_enable_on_exec(void)
{
	struct perf_event_attr attr = faults();
	int ends[2], status, fd;
	char byte;
	pid_t child;

	close(own_faults());
	need(!pipe(ends));
	child = fork();
	if (!child) {
		close(ends[1]);
		need(read(ends[0], &byte, 1) == 1);
		fault(50);
		execl("/proc/self/exe", case_argv[0], "_execed", NULL);
		_exit(1);
	}
	attr.disabled = attr.enable_on_exec = attr.inherit = 1;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	fd = open_event(&attr, child, -1, -1, PERF_FLAG_FD_CLOEXEC);
	need(fd >= 0);
	need(write(ends[1], "x", 1) == 1);
	need(waitpid(child, &status, 0) == child);
	say_status("the command", status);
	uint64_t counts[3];
	need(read(fd, counts, sizeof(counts)) == sizeof(counts));
	say("counts: %d, all the time: %d\n", counts[0] >= 100,
	    counts[1] && counts[1] == counts[2]);
}

static void case_execed(void)
{
	fault(100);
	_exit(3);
}

/* The same by vfork: the context goes to another memory. */
static void case_spawn(void)
{
	struct perf_event_attr attr = faults();
	uint64_t before;
	int status, fd;

	attr.inherit = 1;
	fd = own_event(&attr);
	before = count_of(fd);
	for (int i = 0; i < 3; i++) {
		pid_t child = vfork();

		if (!child) {
			execl(i == 1 ? "/nowhere" : "/proc/self/exe", case_argv[0], "_execed",
			      NULL);
			_exit(1);
		}
		need(waitpid(child, &status, 0) == child);
		say_status("child", status);
	}
	say("counts: %d\n", count_of(fd) - before >= 200);
}

static void *execute_self(void *unused)
{
	execl("/proc/self/exe", case_argv[0], "_execed", NULL);
	return unused;
}

/* The first thread counts and is amid its code, and its event goes as another one executes; which
 * has the first one's number from then on. */
static void case_exec_of_another_thread(void)
{
	enum { CHILDREN = 20 };
	struct perf_event_attr attr = faults();
	int status, executed = 0;

	for (int i = 0; i < CHILDREN; i++) {
		const pid_t child = fork();
		pthread_t other;

		need(child >= 0);
		if (!child) {
			for (int j = 0; j < 4; j++)
				need(open_event(&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) >= 0);
			need(!pthread_create(&other, NULL, execute_self, NULL));
			for (;;)
				__asm__ volatile("");
		}
		need(waitpid(child, &status, 0) == child);
		executed += WIFEXITED(status) && WEXITSTATUS(status) == 3;
	}
	say("executed: %d\n", executed);
}

static void *end_soon(void *nanoseconds)
{
	const struct timespec some = {.tv_nsec = (long)nanoseconds};

	nanosleep(&some, NULL);
	_exit(4);
}

/* A thread ends the process as another one executes: whichever is first, what was counted is not
 * lost, and what has been executed counts. */
static void case_exec_beside_the_end(void)
{
	enum { CHILDREN = 120, STEPS = 60, STEP_NS = 15000 };
	struct perf_event_attr attr = faults();
	int fd, status, lost = 0;

	attr.inherit = 1;
	fd = own_event(&attr);
	for (int i = 0; i < CHILDREN; i++) {
		const uint64_t before = count_of(fd);
		const pid_t child = fork();
		pthread_t other;

		need(child >= 0);
		if (!child) {
			fault(100);
			need(!pthread_create(&other, NULL, end_soon,
					     (void *)(long)(i % STEPS * STEP_NS)));
			execute_self(NULL);
		}
		need(waitpid(child, &status, 0) == child);
		need(WIFEXITED(status));
		lost += count_of(fd) - before < (WEXITSTATUS(status) == 3 ? 200 : 100);
	}
	say("lost: %d\n", lost);
}

/* Before it has executed anything. */
static pid_t stopped_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	need(!ptrace(PTRACE_ATTACH, pid, NULL, NULL));
	need(waitpid(pid, NULL, 0) == pid);
	return pid;
}

/* Nothing of a child that has been stopped may go to the next one. */
static void case_children_that_are_stopped(void)
{
	struct perf_event_attr attr = faults();
	int refused = 0;

	close(own_faults());
	attr.sample_period = 1;
	for (int i = 0; i < 100; i++) {
		pid_t first = stopped_child(), second = stopped_child();
		int fd = open_event(&attr, first, -1, -1, 0);

		refused += fd < 0;
		close(fd);
		kill(first, SIGKILL);
		kill(second, SIGKILL);
		need(waitpid(first, NULL, 0) == first && waitpid(second, NULL, 0) == second);
	}
	say("refused: %d\n", refused);
}

/* What the events of a traced task are told of its exec is there when its tracer is. */
static void case_exec_of_a_traced_child(void)
{
	struct perf_event_attr attr = faults();
	const struct perf_event_mmap_page *page;
	const char *data;
	pid_t child;
	int fd, status;

	close(own_faults());
	child = fork();
	if (!child) {
		need(!ptrace(PTRACE_TRACEME, 0, NULL, NULL));
		raise(SIGSTOP);
		execl("/nonexistent", "nonexistent", NULL);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	need(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.comm = attr.comm_exec = 1;
	fd = open_event(&attr, child, -1, -1, 0);
	need(fd >= 0);
	page = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(page != MAP_FAILED);
	data = (const char *)page + PAGE;
	need(!ptrace(PTRACE_CONT, child, NULL, NULL));
	need(waitpid(child, &status, 0) == child);
	say("stopped: %d\n", WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	for (uint64_t at = 0; at < page->data_head;) {
		const struct perf_event_header *header = (const void *)(data + at);

		say("record %u, exec %d: %s\n", header->type,
		    (header->misc & PERF_RECORD_MISC_COMM_EXEC) != 0,
		    (const char *)(header + 1) + 8);
		at += header->size;
	}
	need(!ptrace(PTRACE_CONT, child, NULL, NULL));
	need(waitpid(child, &status, 0) == child);
	say_status("then", status);
	say("%d bytes in all\n", (int)page->data_head);
}

static _Atomic bool enough;

/* What the runtime keeps of an event for epoll(7), again and again. */
static void *watch_event(void *watching)
{
	const int *const fds = watching;
	struct epoll_event item = {.events = EPOLLIN};

	while (!enough)
		need(!epoll_ctl(fds[0], EPOLL_CTL_MOD, fds[1], &item));
	return NULL;
}

/* A child has what another thread of its parent was at, and waits for none of its locks. */
static void case_fork_beside_events(void)
{
	struct epoll_event item = {.events = EPOLLIN};
	int fds[2] = {-1, own_faults()}, status, done = 0;
	pthread_t thread;

	/* Many, so that it takes long to look one up. */
	for (int i = 0; i < 200; i++) {
		fds[0] = epoll_create1(EPOLL_CLOEXEC);
		need(!epoll_ctl(fds[0], EPOLL_CTL_ADD, fds[1], &item));
	}
	need(!pthread_create(&thread, NULL, watch_event, fds));
	for (int i = 0; i < 200; i++) {
		pid_t child = fork();

		need(child >= 0);
		if (!child)
			_exit(epoll_ctl(fds[0], EPOLL_CTL_MOD, fds[1], &item) != 0);
		need(waitpid(child, &status, 0) == child);
		done += !status;
	}
	enough = true;
	need(!pthread_join(thread, NULL));
	say("children that went on: %d\n", done);
}

/* Whose time stamp counter may not be read; times are measured by it. */
static void case_without_tsc(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1,
	};
	uint64_t before;
	int fd;

	no_core();
	close(own_faults());
	fd = own_event(&attr);
	TRY(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	before = count_of(fd);
	for (volatile int i = 0; i < 100000; i++)
		;
	say("time goes on: %d\n", count_of(fd) > before);
	pid_t child = fork();
	if (!child) {
		__builtin_ia32_rdtsc();
		_exit(0);
	}
	say_end("rdtsc", child);
	TRY(prctl(PR_SET_TSC, PR_TSC_ENABLE));
	say("read: %d\n", __builtin_ia32_rdtsc() != 0);
}

/* Each is process 1 to itself, and ends when nobody holds the other end of @go any more. */
static pid_t start_first(int *go, int nr_pages)
{
	int ends[2];
	char byte;
	pid_t child;

	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (!child) {
		close(ends[1]);
		if (write(ends[0], "r", 1) == 1 && read(ends[0], &byte, 1) == 1)
			fault(nr_pages);
		while (read(ends[0], &byte, 1) > 0)
			;
		_exit(getpid());
	}
	close(ends[0]);
	*go = ends[1];
	need(child < 0 || read(ends[1], &byte, 1) == 1);
	return child;
}

static void case_name_spaces_of_numbers(void)
{
	struct perf_event_attr attr = faults();
	int go[2], fd[2], status;
	pid_t child[2];

	close(own_faults());
	for (int i = 0; i < 2; i++) {
		child[i] = start_first(&go[i], 100 * (i + 1));
		if (child[i] < 0) {
			say("none to be had\n");
			return;
		}
		fcntl(go[i], F_SETFD, FD_CLOEXEC);
		fd[i] = open_event(&attr, child[i], -1, -1, 0);
		need(fd[i] >= 0);
	}
	for (int i = 0; i < 2; i++)
		need(write(go[i], "x", 1) == 1);
	for (int i = 1; i >= 0; i--) {
		close(go[i]);
		need(waitpid(child[i], &status, 0) == child[i]);
		say_status("the first", status);
	}
	say("each its own: %d\n", count_of(fd[0]) >= 100 && count_of(fd[0]) < 200 &&
					  count_of(fd[1]) >= 200 && count_of(fd[1]) < 300);
}

static int just_end(void *nothing)
{
	(void)nothing;
	return 0;
}

static int fault_and_end(void *nothing)
{
	fault(100);
	return just_end(nothing);
}

static int execute_another(void *nothing)
{
	(void)nothing;
	execl("/proc/self/exe", case_argv[0], "_execed", NULL);
	return 1;
}

/* What children have that share one thing with their parent and not the other, and those behind
 * them. */
static void case_children_that_share(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	static const struct {
		const char *name;
		int flags;
		int (*what)(void *);
	} kinds[] = {
		{"descriptors", CLONE_FILES, fault_and_end},
		{"nothing", 0, fault_and_end},
		{"memory", CLONE_VM, just_end},
		{"nothing", 0, fault_and_end},
		{"descriptors", CLONE_FILES, fault_and_end},
		{"nothing", 0, fault_and_end},
		{"descriptors", CLONE_FILES, execute_another},
		{"nothing", 0, fault_and_end},
	};
	struct perf_event_attr attr = faults();
	int status, fd;

	attr.inherit = 1;
	fd = own_event(&attr);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const uint64_t before = count_of(fd);
		const pid_t child =
			clone(kinds[i].what, stack + sizeof(stack), kinds[i].flags | SIGCHLD, NULL);

		need(child > 0);
		need(waitpid(child, &status, 0) == child);
		say("%s: exit %d, counted: %d\n", kinds[i].name, WEXITSTATUS(status),
		    kinds[i].what != fault_and_end || count_of(fd) - before >= 100);
	}
}

static bool tells_of_an_end(const struct perf_event_mmap_page *page)
{
	const char *data = (const char *)page + PAGE;
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	struct perf_event_header record;

	for (uint64_t at = 0; at < head; at += record.size) {
		memcpy(&record, data + at, sizeof(record));
		if (record.type == PERF_RECORD_EXIT)
			return true;
		need(record.size >= sizeof(record));
	}
	return false;
}

static volatile sig_atomic_t children_ended;

static void note_end(int number)
{
	(void)number;
	children_ended++;
}

/* As perf does, which reads its rings a last time when it is told of the end, and waits then. */
static void case_the_end_of_a_killed_child(void)
{
	struct perf_event_attr attr = faults();
	const struct sigaction action = {.sa_handler = note_end};
	sigset_t ends, none;
	int told = 0;

	close(own_faults());
	attr.task = 1;
	sigemptyset(&none);
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	sigaction(SIGCHLD, &action, NULL);
	for (int i = 0; i < 20; i++) {
		struct perf_event_mmap_page *page;
		int go, status, fd;
		const pid_t child = start_child(&go, 20);

		children_ended = 0;
		fd = open_event(&attr, child, -1, -1, 0);
		need(fd >= 0);
		page = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		need(page != MAP_FAILED);
		need(!kill(child, i % 2 ? SIGKILL : SIGTERM));
		while (!children_ended)
			sigsuspend(&none);
		told += tells_of_an_end(page);
		need(waitpid(child, &status, 0) == child);
		munmap(page, RING);
		close(fd);
		close(go);
	}
	say("told of %d ends\n", told);
}

/* Where nobody handles it, the signal of an overflow ends who has it: then others go on. */
static void case_the_end_by_an_overflow(void)
{
	enum { CHILDREN = 200 };
	struct perf_event_attr attr = faults();
	int ended = 0;

	attr.sample_period = 1;
	close(own_event(&attr));
	for (int i = 0; i < CHILDREN; i++) {
		const pid_t child = fork();
		int status;

		need(child >= 0);
		if (!child) {
			const int fd = open_event(&attr, 0, -1, -1, 0);

			map_ring(fd);
			need(!fcntl(fd, F_SETFL, O_ASYNC) && !fcntl(fd, F_SETSIG, SIGUSR1));
			need(!fcntl(fd, F_SETOWN, getpid()));
			fault(20);
			_exit(3);
		}
		need(waitpid(child, &status, 0) == child);
		ended += WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1;
	}
	say("ended by it: %d\n", ended);
}

static volatile pid_t newborn;
static volatile bool all_born;

/* Who is born is killed some time later, 0 to 200 us. */
static void *kill_newborn(void *unused)
{
	enum { STEPS = 100, STEP_NS = 2000 };

	for (unsigned int i = 0; !all_born; i++) {
		struct timespec began, now;

		while (!newborn && !all_born)
			;
		clock_gettime(CLOCK_MONOTONIC, &began);
		do
			clock_gettime(CLOCK_MONOTONIC, &now);
		while ((now.tv_sec - began.tv_sec) * 1000000000 + now.tv_nsec - began.tv_nsec <
		       i * 7 % STEPS * STEP_NS);
		if (newborn)
			kill(newborn, SIGKILL);
		newborn = 0;
	}
	return unused;
}

/* Whatever it has locked then: its parent, which is still about to let it go, goes on. */
static void case_the_end_at_birth(void)
{
	enum { CHILDREN = 300 };
	struct perf_event_attr attr = faults();
	int ended = 0, status;
	pthread_t killer;

	attr.inherit = attr.task = attr.comm = 1;
	for (int i = 0; i < 4; i++)
		own_event(&attr);
	need(!pthread_create(&killer, NULL, kill_newborn, NULL));
	for (int i = 0; i < CHILDREN; i++) {
		/* The number is there before the child is. */
		const pid_t child = (pid_t)syscall(SYS_clone, CLONE_PARENT_SETTID | SIGCHLD, NULL,
						   &newborn, NULL, 0UL);

		need(child >= 0);
		if (!child)
			for (;;)
				prctl(PR_SET_NAME, "newborn");
		need(waitpid(child, &status, 0) == child);
		ended += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		while (newborn)
			;
	}
	all_born = true;
	pthread_join(killer, NULL);
	say("ended at birth: %d\n", ended);
}

static int outputs[2];

static void *change_output(void *at_it)
{
	for (unsigned int i = 0;; i++) {
		ioctl(outputs[0], PERF_EVENT_IOC_SET_OUTPUT, i % 2 ? (long)outputs[1] : -1L);
		*(volatile bool *)at_it = true;
	}
	return NULL;
}

/* What a child's threads have locked when they are stopped and killed, who has the same descriptors
 * has locked as well, and still has then. */
static void case_the_end_of_who_shares_descriptors(void)
{
	enum { CHILDREN = 300, STEPS = 50, STEP_NS = 2000 };
	struct perf_event_attr attr = faults();
	volatile bool *at_it =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int changed = 0;

	outputs[0] = own_event(&attr);
	outputs[1] = own_event(&attr);
	ring_page(outputs[1]);
	for (int i = 0; i < CHILDREN; i++) {
		const struct timespec some = {.tv_nsec = i % STEPS * STEP_NS};
		const pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
		pthread_t other;

		need(child >= 0);
		if (!child) {
			for (int j = 0; j < 2; j++)
				need(!pthread_create(&other, NULL, change_output, (void *)at_it));
			change_output((void *)at_it);
		}
		while (!*at_it)
			sched_yield();
		nanosleep(&some, NULL);
		kill(child, i % 2 ? SIGSTOP : SIGKILL);
		changed += !ioctl(outputs[0], PERF_EVENT_IOC_SET_OUTPUT, -1L);
		kill(child, SIGKILL);
		need(waitpid(child, NULL, 0) == child);
		changed += !ioctl(outputs[0], PERF_EVENT_IOC_SET_OUTPUT, outputs[1]);
		*at_it = false;
	}
	say("changed: %d\n", changed);
}

static void *end_at_once(void *unused)
{
	return unused;
}

static void *end_process_soon(void *nanoseconds)
{
	const struct timespec soon = {.tv_nsec = (long)nanoseconds};

	nanosleep(&soon, NULL);
	_exit(0);
}

/* Has children until another thread ends the process, where one has ended before; each says if
 * it cannot measure itself. */
static _Noreturn void have_children(long nanoseconds, int wrong)
{
	struct perf_event_attr attr = faults();
	pthread_t other;

	need(!pthread_create(&other, NULL, end_process_soon, (void *)nanoseconds));
	need(!pthread_create(&other, NULL, end_at_once, NULL) && !pthread_join(other, NULL));
	for (;;) {
		if (fork())
			continue;
		if (open_event(&attr, 0, -1, -1, 0) < 0)
			need(write(wrong, "", 1) == 1);
		_exit(0);
	}
}

/* Who is born beside the end of its process lives on, and can be measured. */
static void case_born_at_the_end(void)
{
	enum { PARENTS = 100 };
	struct perf_event_attr attr = faults();
	int ends[2], wrong = 0;
	char byte;

	own_event(&attr);
	need(!pipe(ends));
	for (int i = 0; i < PARENTS; i++) {
		const pid_t child = fork();

		need(child >= 0);
		if (!child)
			have_children(2000000 + i * 10000, ends[1]);
		need(waitpid(child, NULL, 0) == child);
	}
	close(ends[1]);
	while (read(ends[0], &byte, 1) == 1)
		wrong++;
	say("could not measure themselves: %d\n", wrong);
}

static int exit_beside(void *unused)
{
	(void)unused;
	_exit(4);
}

/* A process in the same memory ends: what is mapped there stays. */
static void case_the_end_of_who_shares_memory(void)
{
	static _Alignas(16) char stack[1 << 16];
	struct perf_event_attr attr = faults();
	struct perf_event_mmap_page *page;
	uint64_t head;
	pid_t child;

	attr.sample_period = 1;
	page = ring_page(own_event(&attr));
	child = clone(exit_beside, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	need(child >= 0);
	say_end("beside", child);
	head = page->data_head;
	fault(5);
	say("written: %d\n", page->data_head > head);
}

static struct perf_event_mmap_page *mapped_beside;

static int map_beside(void *fd)
{
	mapped_beside = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, (int)(long)fd, 0);
	_exit(mapped_beside == MAP_FAILED ? 5 : 4);
}

/* So does what it has mapped, for who never mapped anything. */
static void case_rings_of_who_shares_memory(void)
{
	enum { TRIES = 100 };
	static _Alignas(16) char stack[1 << 16];
	const struct timespec moment = {.tv_nsec = 1000000};
	struct perf_event_attr attr = faults();
	uint64_t head;
	pid_t child;
	int fd, written = 0;

	attr.sample_period = 1;
	fd = own_event(&attr);
	child = clone(map_beside, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD,
		      (void *)(long)fd);
	need(child >= 0);
	say_end("beside", child);
	for (int i = 0; i < TRIES; i++) {
		head = mapped_beside->data_head;
		fault(1);
		written += mapped_beside->data_head > head;
		nanosleep(&moment, NULL);
	}
	say("written: %d\n", written == TRIES);
}

/* Code that was not there before, again and again. */
static int make_code_for_ever(void *at_it)
{
	enum { RET = 0xc3 };

	for (;;) {
		char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		memset(code, RET, PAGE);
		for (int i = 0; i < PAGE; i++)
			((void (*)(void))(code + i))();
		munmap(code, PAGE);
		*(volatile bool *)at_it = true;
	}
	return 0;
}

/* Or is killed: nobody waits for what it had locked, nor for it to leave its code. */
static void case_the_end_amid_shared_memory(void)
{
	enum { CHILDREN = 60, STEPS = 50, STEP_NS = 2000 };
	static _Alignas(16) char stack[1 << 16];
	volatile bool at_it;
	int killed = 0, status;

	for (int i = 0; i < CHILDREN; i++) {
		const struct timespec some = {.tv_nsec = i % STEPS * STEP_NS};
		pid_t child;

		at_it = false;
		child = clone(make_code_for_ever, stack + sizeof(stack),
			      CLONE_VM | SIGCHLD | (i % 2 ? CLONE_FILES : 0), (void *)&at_it);
		need(child >= 0);
		while (!at_it)
			sched_yield();
		nanosleep(&some, NULL);
		kill(child, SIGKILL);
		need(waitpid(child, &status, 0) == child);
		killed += WIFSIGNALED(status);
		munmap(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), PAGE);
	}
	say("killed: %d\n", killed);
}

const struct test_case cases[] = {
	{"the_end_of_who_shares_descriptors", case_the_end_of_who_shares_descriptors},
	{"the_end_of_who_shares_memory", case_the_end_of_who_shares_memory},
	{"the_end_amid_shared_memory", case_the_end_amid_shared_memory},
	{"rings_of_who_shares_memory", case_rings_of_who_shares_memory},
	{"born_at_the_end", case_born_at_the_end},
	{"the_end_at_birth", case_the_end_at_birth},
	{"the_end_by_an_overflow", case_the_end_by_an_overflow},
	{"the_end_of_a_killed_child", case_the_end_of_a_killed_child},
	{"children_that_share", case_children_that_share},
	{"name_spaces_of_numbers", case_name_spaces_of_numbers},
	{"without_tsc", case_without_tsc},
	{"fork_beside_events", case_fork_beside_events},
	{"another_process", case_another_process},
	{"time_of_who_waits", case_time_of_who_waits},
	{"time_of_who_waits_for_vfork", case_time_of_who_waits_for_vfork},
	{"inherit", case_inherit},
	{"threads", case_threads},
	{"enable_on_exec", case_enable_on_exec},
	{"_execed", case_execed},
	{"exec_of_another_thread", case_exec_of_another_thread},
	{"exec_beside_the_end", case_exec_beside_the_end},
	{"spawn", case_spawn},
	{"children_that_are_stopped", case_children_that_are_stopped},
	{"exec_of_a_traced_child", case_exec_of_a_traced_child},
	{NULL, NULL},
};
