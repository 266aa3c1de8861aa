/* SPDX-License-Identifier: MIT */
/*
 * Runs a command as a container would: `confine docker CMD...` under a filter that answers as
 * Docker's default seccomp profile does to a process with the default capabilities, and with no
 * other capabilities than those; `confine noperf CMD...` as on a kernel that was built without
 * perf events.
 *
 * Docker's profile lists what is allowed. This filter lists what that leaves out, which is shorter:
 * EPERM for it, ENOSYS for calls newer than the list, so that a libc takes its older way. ptrace(2)
 * and its like are refused, as the profile does it on kernels before 4.8.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define ARGUMENT(n)   (offsetof(struct seccomp_data, args) + 8 * (n)) /* its low half */

#define LOAD(offset)		  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define SKIP_UNLESS(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define ALLOW			  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(error)		  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

/* Numbers rather than SYS_ names where the headers of Debian 12 lack them. */
static const unsigned short refused[] = {
	SYS_syslog,
	SYS_uselib,
	SYS_ustat,
	SYS_sysfs,
	SYS_vhangup,
	SYS_pivot_root,
	SYS__sysctl,
	SYS_acct,
	SYS_settimeofday,
	SYS_mount,
	SYS_umount2,
	SYS_swapon,
	SYS_swapoff,
	SYS_reboot,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_iopl,
	SYS_ioperm,
	SYS_create_module,
	SYS_init_module,
	SYS_delete_module,
	SYS_get_kernel_syms,
	SYS_query_module,
	SYS_quotactl,
	SYS_nfsservctl,
	SYS_getpmsg,
	SYS_putpmsg,
	SYS_afs_syscall,
	SYS_tuxcall,
	SYS_security,
	SYS_lookup_dcookie,
	SYS_clock_settime,
	SYS_vserver,
	SYS_mbind,
	SYS_set_mempolicy,
	SYS_get_mempolicy,
	SYS_kexec_load,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_migrate_pages,
	SYS_unshare,
	SYS_move_pages,
	SYS_perf_event_open,
	SYS_fanotify_init,
	SYS_setns,
	SYS_kcmp,
	SYS_open_by_handle_at,
	SYS_finit_module,
	SYS_bpf,
	SYS_userfaultfd,
	SYS_kexec_file_load,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_open_tree,
	SYS_move_mount,
	SYS_fsopen,
	SYS_fsconfig,
	SYS_fsmount,
	SYS_fspick,
	SYS_pidfd_getfd,
	SYS_process_madvise,
	SYS_mount_setattr,
	SYS_quotactl_fd,
	450 /* set_mempolicy_home_node */,
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
};
#define NEWEST 462 /* mseal: the newest that the profile knows */

static const unsigned char kept_capabilities[] = {
	CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FSETID,	     CAP_FOWNER,      CAP_MKNOD,
	CAP_NET_RAW, CAP_SETGID,       CAP_SETUID,	     CAP_SETFCAP,     CAP_SETPCAP,
	CAP_KILL,    CAP_SYS_CHROOT,   CAP_NET_BIND_SERVICE, CAP_AUDIT_WRITE,
};

static const unsigned int allowed_personalities[] = {
	PER_LINUX, PER_LINUX32, UNAME26, PER_LINUX32 | UNAME26, 0xffffffff,
};

#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)

struct program {
	struct sock_filter code[256];
	unsigned short length;
};

static void add(struct program *program, const struct sock_filter *code, size_t nr)
{
	memcpy(program->code + program->length, code, nr * sizeof(*code));
	program->length += nr;
}

#define ADD(program, ...)                                                                          \
	add(program, (struct sock_filter[]){__VA_ARGS__},                                          \
	    LENGTH(((struct sock_filter[]){__VA_ARGS__})))

/* 32-bit calls have numbers of their own; the profile allows much the same of them. */
static void native_calls_only(struct program *program)
{
	ADD(program, LOAD(offsetof(struct seccomp_data, arch)), SKIP_UNLESS(AUDIT_ARCH_I386, 1),
	    ALLOW, LOAD(offsetof(struct seccomp_data, nr)));
}

static void docker(struct program *program)
{
	native_calls_only(program);
	for (size_t i = 0; i < LENGTH(refused); i++)
		ADD(program, SKIP_UNLESS(refused[i], 1), REFUSE(EPERM));

	/* Its flags lie in memory, where no filter can see them. */
	ADD(program, SKIP_UNLESS(SYS_clone3, 1), REFUSE(ENOSYS));
	ADD(program, SKIP_UNLESS(SYS_clone, 4), LOAD(ARGUMENT(0)),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1), REFUSE(EPERM), ALLOW);
	ADD(program, SKIP_UNLESS(SYS_socket, 4), LOAD(ARGUMENT(0)), SKIP_UNLESS(AF_VSOCK, 1),
	    REFUSE(EPERM), ALLOW);

	ADD(program, SKIP_UNLESS(SYS_personality, 2 + 2 * LENGTH(allowed_personalities)),
	    LOAD(ARGUMENT(0)));
	for (size_t i = 0; i < LENGTH(allowed_personalities); i++)
		ADD(program, SKIP_UNLESS(allowed_personalities[i], 1), ALLOW);
	ADD(program, REFUSE(EPERM));

	ADD(program, BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST, 0, 1), REFUSE(ENOSYS), ALLOW);
}

static void noperf(struct program *program)
{
	native_calls_only(program);
	ADD(program, SKIP_UNLESS(SYS_perf_event_open, 1), REFUSE(ENOSYS), ALLOW);
}

static void fail(const char *what)
{
	fprintf(stderr, "confine: %s: %s\n", what, strerror(errno));
	exit(125);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	unsigned long long kept = 0;

	for (size_t i = 0; i < LENGTH(kept_capabilities); i++)
		kept |= 1ull << kept_capabilities[i];
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EPERM)
			fail("cannot drop a capability");
	if (syscall(SYS_capget, &header, data))
		fail("cannot read the capabilities");
	for (int half = 0; half < 2; half++) {
		data[half].effective &= (unsigned int)(kept >> 32 * half);
		data[half].permitted &= (unsigned int)(kept >> 32 * half);
		data[half].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data))
		fail("cannot drop capabilities");
}

int main(int argc, char **argv)
{
	struct program program = {0};
	struct sock_fprog filter;

	if (argc < 3) {
		fputs("usage: confine docker|noperf COMMAND [ARG...]\n", stderr);
		return 125;
	}
	if (!strcmp(argv[1], "docker")) {
		docker(&program);
		drop_capabilities();
	} else if (!strcmp(argv[1], "noperf")) {
		noperf(&program);
	} else {
		fprintf(stderr, "confine: no filter is called '%s'\n", argv[1]);
		return 125;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("cannot give up gaining privileges");
	filter = (struct sock_fprog){.len = program.length, .filter = program.code};
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
		fail("cannot install the filter");
	execvp(argv[2], argv + 2);
	fail(argv[2]);
}
