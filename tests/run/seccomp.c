// SPDX-License-Identifier: MIT
/* Programs that confine themselves: what they allow is all that they need, and what not is not
 * made. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define NUMBER	     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ARGUMENT(n)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define SAY(what)    BPF_STMT(BPF_RET | BPF_K, (what))
/* Where the word that was loaded is @value, @what. */
#define IF(value, what) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, 1), SAY(what)
#define ALLOWED(call)	IF(__NR_##call, SECCOMP_RET_ALLOW)
#define UNLESS(value)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 1, 0)

static long install(struct sock_filter *code, size_t length, unsigned int flags)
{
	const struct sock_fprog program = {(unsigned short)length, code};

	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

#define CONFINE(...)                                                                               \
	do {                                                                                       \
		struct sock_filter code[] = {__VA_ARGS__};                                         \
		need(!install(code, COUNT(code), 0));                                              \
	} while (0)

#define IN_CHILD(what, ...)                                                                        \
	do {                                                                                       \
		pid_t child = fork();                                                              \
		if (!child) {                                                                      \
			__VA_ARGS__;                                                               \
			raw(SYS_exit, 3);                                                          \
		}                                                                                  \
		say_end(what, child);                                                              \
	} while (0)

static void write_word(const char *word)
{
	raw(SYS_write, 1, word, strlen(word));
}

static void be_strict(void)
{
	need(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	write_word("strict\n");
}

static void *wait_strictly(void *unused)
{
	(void)unused;
	be_strict();
	raw(SYS_getpid);
	return NULL;
}

static void be_strict_in_a_thread(void)
{
	pthread_t thread;

	need(!pthread_create(&thread, NULL, wait_strictly, NULL));
	need(!pthread_join(thread, NULL)); /* the kernel has ended it alone */
	write_word("joined\n");
}

static void case_strict(void)
{
	no_core();
	IN_CHILD("exit", be_strict());
	IN_CHILD("getpid", be_strict(); raw(SYS_getpid));
	IN_CHILD("close", be_strict(); raw(SYS_close, 0));
	IN_CHILD("mode", be_strict(); prctl(PR_GET_SECCOMP));
	IN_CHILD("thread", be_strict_in_a_thread());
	IN_CHILD("arguments", say("%s\n", result_name(syscall(SYS_seccomp, 0, 1, NULL))));
	IN_CHILD("filtered", CONFINE(SAY(SECCOMP_RET_ALLOW));
		 say("%s\n", result_name(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))));
}

/* What is left is less than the runtime itself needs. */
static void confine_to_little(void)
{
	CONFINE(NUMBER, ALLOWED(write), ALLOWED(exit), ALLOWED(rt_sigreturn), ALLOWED(tkill),
		ALLOWED(fork), ALLOWED(wait4), ALLOWED(mmap), ALLOWED(munmap),
		SAY(SECCOMP_RET_KILL_PROCESS));
}

static void on_usr1(int number)
{
	(void)number;
	write_word("in the handler\n");
}

static void signal_self(void)
{
	const pid_t self = gettid();

	signal(SIGUSR1, on_usr1);
	confine_to_little();
	raw(SYS_tkill, self, SIGUSR1);
}

static void fork_confined(void)
{
	confine_to_little();
	long child = raw(SYS_fork);
	int status = 0;

	if (!child) {
		write_word("in the child\n");
		raw(SYS_exit, 4);
	}
	raw(SYS_wait4, child, &status, 0, NULL);
	if (WEXITSTATUS(status) == 4)
		write_word("it has ended\n");
}

/* Code that is written over, and code that appears: both are the runtime's to see. */
static void make_code(void)
{
	static const unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3}; /* mov $0, %eax; ret */
	unsigned char *page;
	int sum = 0;

	confine_to_little();
	for (int round = 0; round < 3; round++) {
		page = (unsigned char *)raw(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(page, code, sizeof(code));
		for (int i = 0; i < 100; i++) {
			page[1] = (unsigned char)i;
			sum += ((int (*)(void))page)();
		}
		raw(SYS_munmap, page, 4096);
	}
	write_word(sum == 3 * 4950 ? "right\n" : "wrong\n");
}

static void case_little(void)
{
	no_core();
	IN_CHILD("exit", confine_to_little(); write_word("confined\n"));
	IN_CHILD("exit_group", confine_to_little(); _exit(0));
	IN_CHILD("getpid", confine_to_little(); raw(SYS_getpid));
	IN_CHILD("clone", confine_to_little(); raw(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	IN_CHILD("signal", signal_self());
	IN_CHILD("fork", fork_confined());
	IN_CHILD("code", make_code());
}

/* Of calls that the runtime makes itself, or answers. */
static void case_refused(void)
{
	struct rlimit limit;
	char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CONFINE(NUMBER, IF(__NR_mprotect, SECCOMP_RET_ERRNO | EXDEV),
		IF(__NR_munmap, SECCOMP_RET_ERRNO | ENOTTY), IF(__NR_brk, SECCOMP_RET_ERRNO | 4096),
		IF(__NR_sigaltstack, SECCOMP_RET_ERRNO | EDOM),
		IF(__NR_rt_sigaction, SECCOMP_RET_ERRNO | ERANGE),
		IF(__NR_prlimit64, SECCOMP_RET_ERRNO | ENOEXEC),
		IF(__NR_clone, SECCOMP_RET_ERRNO | ECHILD),
		IF(__NR_clone3, SECCOMP_RET_ERRNO | ENOSYS),
		IF(__NR_vfork, SECCOMP_RET_ERRNO | ENFILE),
		IF(__NR_execve, SECCOMP_RET_ERRNO | EISDIR),
		IF(__NR_perf_event_open, SECCOMP_RET_ERRNO | EMFILE),
		IF(__NR_rseq, SECCOMP_RET_ERRNO | EBADF), IF(__NR_getpid, SECCOMP_RET_ERRNO | 0),
		SAY(SECCOMP_RET_ALLOW));
	say("mprotect: %s\n", errno_name(-(int)raw(SYS_mprotect, page, 4096, PROT_EXEC)));
	say("munmap: %s\n", errno_name(-(int)raw(SYS_munmap, page, 4096)));
	say("still there: %d\n", *page);
	say("brk: %ld\n", raw(SYS_brk, 0));
	say("sigaltstack: %s\n", errno_name(-(int)raw(SYS_sigaltstack, NULL, NULL)));
	say("sigaction: %s\n", errno_name(-(int)raw(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 8)));
	say("prlimit: %s\n", errno_name(-(int)raw(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit)));
	say("clone: %s\n", errno_name(-(int)raw(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
	say("vfork: %s\n", errno_name(-(int)raw(SYS_vfork)));
	say("execve: %s\n", errno_name(-(int)raw(SYS_execve, "/bin/true", NULL, NULL)));
	say("perf_event_open: %s\n", errno_name(-(int)raw(SYS_perf_event_open, 0, 0, 0, 0, 0)));
	say("rseq: %s\n", errno_name(-(int)raw(SYS_rseq, 0, 0, 0, 0)));
	say("getpid: %ld\n", raw(SYS_getpid));
}

static void ask_for(long answer)
{
	say("getppid: %ld\n", answer + raw(SYS_getppid));
	say("poll: %ld\n", answer + raw(SYS_poll, NULL, 0, 0));
}

static void *answer_eight_calls(void *from)
{
	int listener;

	need(read(*(int *)from, &listener, sizeof(listener)) == sizeof(listener));
	for (int i = 0; i < 8; i++) {
		struct seccomp_notif notif = {0};

		need(!ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notif));
		struct seccomp_notif_resp response = {.id = notif.id, .error = -511 - i / 2};
		need(!ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response));
	}
	return NULL;
}

/* Those that the kernel has for itself are answers like any other, where a filter gives them. */
static void case_answers(void)
{
	struct sock_filter asking[] = {NUMBER, IF(__NR_getppid, SECCOMP_RET_USER_NOTIF),
				       IF(__NR_poll, SECCOMP_RET_USER_NOTIF),
				       SAY(SECCOMP_RET_ALLOW)};
	pthread_t thread;
	int channel[2];

	for (long answer = 511; answer < 518; answer++)
		IN_CHILD("answer",
			 CONFINE(NUMBER, IF(__NR_getppid, SECCOMP_RET_ERRNO | answer),
				 IF(__NR_poll, SECCOMP_RET_ERRNO | answer), SAY(SECCOMP_RET_ALLOW));
			 ask_for(answer));
	need(!pipe(channel));
	need(!pthread_create(&thread, NULL, answer_eight_calls, channel));
	int listener = (int)install(asking, COUNT(asking), SECCOMP_FILTER_FLAG_NEW_LISTENER);
	need(listener >= 0);
	need(write(channel[1], &listener, sizeof(listener)) == sizeof(listener));
	for (long answer = 511; answer < 515; answer++)
		ask_for(answer);
	need(!pthread_join(thread, NULL));
}

/* By arguments, and by more than one filter: the strictest counts. */
static void case_filters(void)
{
	CONFINE(NUMBER, UNLESS(__NR_mprotect), SAY(SECCOMP_RET_ALLOW), ARGUMENT(2),
		IF(PROT_READ | PROT_WRITE | PROT_EXEC, SECCOMP_RET_ERRNO | EPERM),
		SAY(SECCOMP_RET_ALLOW));
	CONFINE(NUMBER, UNLESS(__NR_mprotect), SAY(SECCOMP_RET_ALLOW), ARGUMENT(1),
		IF(4096, SECCOMP_RET_ERRNO | ENXIO), SAY(SECCOMP_RET_ALLOW));
	char *pages = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int size = 4096; size <= 8192; size += 4096)
		for (int prot = 0; prot < 8; prot++)
			say("%d %d: %s\n", size, prot,
			    result_name(mprotect(pages, (size_t)size, prot)));
}

/* What filters may compute. */
static void case_computed(void)
{
	static const int operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
					 BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH};
	static const unsigned int operands[] = {1, 3, 31, 40, 0x80000001};

	for (size_t i = 0; i < COUNT(operations); i++)
		for (size_t j = 0; j < COUNT(operands); j++) {
			const unsigned short by_k = BPF_ALU | BPF_K | operations[i],
					     by_x = BPF_ALU | BPF_X | operations[i];
			const bool shift = operations[i] == BPF_LSH || operations[i] == BPF_RSH;
			struct sock_filter code[] = {
				NUMBER,
				UNLESS(__NR_mprotect),
				SAY(SECCOMP_RET_ALLOW),
				ARGUMENT(3),
				BPF_STMT(BPF_ST, 5),
				BPF_STMT(BPF_LDX | BPF_IMM, operands[j]),
				BPF_STMT(by_x, 0),
				BPF_STMT(BPF_STX, 6),
				BPF_STMT(BPF_MISC | BPF_TAX, 0),
				BPF_STMT(BPF_LD | BPF_MEM, 5),
				BPF_STMT(by_k, shift ? operands[j] % 32 : operands[j]),
				BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
				BPF_STMT(BPF_LDX | BPF_MEM, 6),
				BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
				BPF_STMT(BPF_LDX | BPF_W | BPF_LEN, 0),
				BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
				BPF_STMT(BPF_ALU | BPF_NEG, 0),
				BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
				BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 3000, 4, 0),
				BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 1500, 3, 0),
				BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 64, 1, 0),
				BPF_STMT(BPF_JMP | BPF_JA, 1),
				SAY(SECCOMP_RET_ERRNO | EPERM),
				BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO),
				BPF_STMT(BPF_RET | BPF_A, 0),
			};
			pid_t child = fork();

			if (!child) {
				need(!install(code, COUNT(code), 0));
				for (unsigned int n = 0; n < 4; n++)
					say("%zu %zu: %ld\n", i, j,
					    raw(SYS_mprotect, 0, 0, 0, n * 0x12345677));
				_exit(0);
			}
			waitpid(child, NULL, 0);
		}
}

static const char *trapped_at;

/* Answers a call in the kernel's stead, as sandboxes do. */
static void on_sys(int number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	say("signal %d, code %d, call %d, arch %x\n", number, info->si_code, info->si_syscall,
	    info->si_arch);
	say("errno: %d\n", info->si_errno);
	say("rax: %lld, rdi: %llx, rsi: %llx\n", registers[REG_RAX], registers[REG_RDI],
	    registers[REG_RSI]);
	say("place: %d %d\n", info->si_call_addr == (void *)registers[REG_RIP],
	    info->si_call_addr == (void *)trapped_at);
	registers[REG_RAX] = 0x1234567;
}

static long trapping(long number, long first, long second)
{
	long result;

	__asm__ volatile("lea 1f(%%rip), %%rcx\n\tmov %%rcx, %1\n\tsyscall\n1:"
			 : "=a"(result), "=m"(trapped_at)
			 : "a"(number), "D"(first), "S"(second)
			 : "rcx", "r11", "memory");
	return result;
}

static void case_trap(void)
{
	no_core();
	handle(SIGSYS, on_sys, 0);
	CONFINE(NUMBER, IF(__NR_getppid, SECCOMP_RET_TRAP | 77),
		IF(__NR_munmap, SECCOMP_RET_TRAP | 78), IF(__NR_execve, SECCOMP_RET_TRAP | 79),
		IF(__NR_vfork, SECCOMP_RET_TRAP), IF(1 << 20, SECCOMP_RET_TRAP),
		SAY(SECCOMP_RET_ALLOW));
	say("getppid: %lx\n", trapping(SYS_getppid, 0x11, 0x22));
	say("munmap: %lx\n", trapping(SYS_munmap, 0x1000, 0x2000));
	say("execve: %lx\n", trapping(SYS_execve, 3, 4));
	say("vfork: %lx\n", trapping(SYS_vfork, 5, 6));
	say("none: %lx\n", trapping(1 << 20, 7, 8));
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	IN_CHILD("blocked", sigprocmask(SIG_BLOCK, &set, NULL); trapping(SYS_munmap, 0, 0));
	IN_CHILD("ignored", signal(SIGSYS, SIG_IGN); trapping(SYS_getppid, 0, 0));
}

/* ---- threads ---- */

static pthread_barrier_t installed, looked;

static void *look(void *result)
{
	pthread_barrier_wait(&installed);
	*(long *)result = raw(SYS_mprotect, 0, 0, 0);
	pthread_barrier_wait(&looked);
	return NULL;
}

static void *count_up(void *result)
{
	++*(long *)result;
	return NULL;
}

/* Each thread has its filters, and gives them to those that it begins. */
static void case_threads(void)
{
	for (unsigned int flags = 0; flags <= SECCOMP_FILTER_FLAG_TSYNC; flags++) {
		struct sock_filter code[] = {NUMBER, IF(__NR_mprotect, SECCOMP_RET_ERRNO | ELOOP),
					     /* Of the runtime alone. */
					     IF(__NR_arch_prctl, SECCOMP_RET_KILL_PROCESS),
					     IF(__NR_sigaltstack, SECCOMP_RET_KILL_PROCESS),
					     SAY(SECCOMP_RET_ALLOW)};
		pthread_t thread, later;
		long result = 0, calls = 0;

		IN_CHILD("threads", {
			need(!pthread_barrier_init(&installed, NULL, 2));
			need(!pthread_barrier_init(&looked, NULL, 2));
			need(!pthread_create(&thread, NULL, look, &result));
			pthread_t before[5];
			for (int i = 0; i < 5; i++) /* their stacks are left for the next ones */
				need(!pthread_create(&before[i], NULL, count_up, &calls));
			for (int i = 0; i < 5; i++)
				need(!pthread_join(before[i], NULL));
			need(!install(code, COUNT(code), flags));
			pthread_barrier_wait(&installed);
			pthread_barrier_wait(&looked);
			say("beside: %s, self: %s\n", errno_name(-(int)result),
			    errno_name(-(int)raw(SYS_mprotect, 0, 0, 0)));
			need(!pthread_join(thread, NULL));
			need(!pthread_create(&later, NULL, count_up, &calls));
			need(!pthread_join(later, NULL));
			say("calls: %ld\n", calls);
		});
	}
}

static void case_wrong(void)
{
	struct sock_filter code[] = {NUMBER, BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2),
				     SAY(SECCOMP_RET_ALLOW)};
	static struct sock_filter many[BPF_MAXINSNS + 1];

	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = (struct sock_filter)SAY(SECCOMP_RET_ALLOW);
	need(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	say("unaligned: %s\n", result_name(install(code, 3, 0)));
	say("without an end: %s\n", result_name(install(code, 1, 0)));
	say("empty: %s\n", result_name(install(code, 0, 0)));
	say("flags: %s\n", result_name(install(many, 1, 1 << 20)));
	say("address: %s\n", result_name(install((void *)8, 1, 0)));
	say("program: %s\n", result_name(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 8)));
	say("longest: %s\n", result_name(install(many, BPF_MAXINSNS, 0)));
	say("too long: %s\n", result_name(install(many, BPF_MAXINSNS + 1, 0)));
	say("mode: %d\n", prctl(PR_GET_SECCOMP));
}

const struct test_case cases[] = {
	{"strict", case_strict},   {"little", case_little},
	{"refused", case_refused}, {"answers", case_answers},
	{"filters", case_filters}, {"computed", case_computed},
	{"trap", case_trap},	   {"threads", case_threads},
	{"wrong", case_wrong},	   {NULL, NULL},
};
