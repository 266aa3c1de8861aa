// SPDX-License-Identifier: MIT
/*
 * Descriptors that the program has not opened are not there, by whatever way they are named: the
 * runtime has its own from 1000 on. And /proc/self/exe is the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "case.h"

enum { FIRST = 1000, LAST = 1004 };

#define EACH(fd)  for (int fd = FIRST; fd <= LAST; fd++)
#define SAY(call) say(#call " %s\n", result_name(call))

static void case_by_number(void)
{
	int pipes[2], file = open("/proc/self/exe", O_RDONLY);
	sigset_t set;
	char byte = 0;

	sigemptyset(&set);
	need(pipe(pipes) == 0 && file >= 0);
	EACH(fd)
	{
		SAY(read(fd, &byte, 1));
		SAY(write(fd, &byte, 1));
		SAY(fcntl(fd, F_GETFD));
		SAY(dup(fd));
		SAY(dup2(fd, fd));
		SAY(close(fd));
		SAY(sendfile(pipes[1], fd, NULL, 1));
		SAY(sendfile(fd, file, NULL, 1));
		SAY(splice(fd, NULL, pipes[1], NULL, 1, 0));
		SAY(splice(pipes[0], NULL, fd, NULL, 1, SPLICE_F_NONBLOCK));
		SAY(copy_file_range(file, NULL, fd, NULL, 1, 0));
		SAY(signalfd(fd, &set, 0));
		SAY(send(fd, &byte, 1, 0));
		SAY(getsockopt(fd, SOL_SOCKET, SO_TYPE, &set, &(socklen_t){8}));
		SAY(fgetxattr(fd, "user.tally", &byte, 1));
		SAY(syncfs(fd));
		SAY(fchmod(fd, 0700));
		SAY(ftruncate(fd, 0));
		void *memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		say("mmap %s\n", memory == MAP_FAILED ? errno_name(errno) : "");
		SAY(openat(fd, "name", O_RDONLY));
		SAY(mkdirat(fd, "name", 0700));
		SAY(renameat(fd, "name", AT_FDCWD, "other"));
		SAY(linkat(AT_FDCWD, "name", fd, "other", 0));
		SAY(symlinkat("name", fd, "other"));
		SAY(unlinkat(fd, "name", 0));
		SAY(fchownat(fd, "", 0, 0, AT_EMPTY_PATH));
		SAY(faccessat(fd, "/", R_OK, 0));
		SAY(execveat(fd, "", (char *[]){"program", NULL}, (char *[]){NULL}, AT_EMPTY_PATH));
	}
}

static void case_polled(void)
{
	int pipes[2];

	need(pipe(pipes) == 0 && write(pipes[1], "x", 1) == 1);
	/* Natively the table of descriptors could be too small for the numbers to matter. */
	need(fcntl(pipes[0], F_DUPFD, LAST + 1) >= 0);
	EACH(fd)
	{
		struct pollfd list[] = {{pipes[0], POLLIN, 0}, {fd, POLLIN, 9}, {-1, POLLIN, 9}};
		struct timespec no_time = {0, 0};
		fd_set set;

		say("poll %s", result_name(poll(list, 3, -1)));
		say(" %d %d %d\n", list[0].revents, list[1].revents, list[2].revents);
		say("ppoll %s", result_name(ppoll(list + 1, 1, NULL, NULL)));
		say(" %d of %d\n", list[1].revents, list[1].fd - fd);
		FD_ZERO(&set);
		FD_SET(pipes[0], &set);
		SAY(select(FD_SETSIZE, &set, NULL, NULL, NULL));
		FD_SET(fd, &set);
		SAY(select(FD_SETSIZE, &set, NULL, NULL, NULL));
		SAY(select(FD_SETSIZE, NULL, &set, NULL, NULL));
		SAY(pselect(fd + 1, NULL, NULL, &set, &no_time, NULL));
		SAY(select(fd, &set, NULL, NULL, NULL));
		struct epoll_event event = {.events = EPOLLIN};
		int epoll = epoll_create1(0);
		need(epoll >= 0);
		SAY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
		SAY(epoll_wait(fd, &event, 1, 0));
		close(epoll);
	}
}

/* A message with one byte and two descriptors. */
struct parcel {
	struct iovec vector;
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr head;
	} control;
	struct msghdr message;
};

static struct msghdr *fill(struct parcel *parcel, int first, int second)
{
	int both[2] = {first, second};

	*parcel = (struct parcel){.vector = {"x", 1}};
	parcel->control.head = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(both)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	};
	memcpy(CMSG_DATA(&parcel->control.head), both, sizeof(both));
	parcel->message = (struct msghdr){
		.msg_iov = &parcel->vector,
		.msg_iovlen = 1,
		.msg_control = &parcel->control,
		.msg_controllen = sizeof(parcel->control),
	};
	return &parcel->message;
}

static void case_sent(void)
{
	struct parcel parcels[3];
	char bytes[16];
	int pair[2], received = 0;

	need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	SAY(sendmsg(pair[0], fill(&parcels[0], 0, 1), 0));
	EACH(fd)
	{
		SAY(sendmsg(pair[0], fill(&parcels[0], 1, fd), 0));
		struct mmsghdr list[3] = {
			{.msg_hdr = *fill(&parcels[0], 0, 1)},
			{.msg_hdr = *fill(&parcels[1], fd, 1)},
			{.msg_hdr = *fill(&parcels[2], 0, 1)},
		};
		SAY(sendmmsg(pair[0], list, 3, 0));
		SAY(sendmmsg(pair[0], list + 1, 2, 0));
		SAY(sendmmsg(pair[0], list + 2, 1, 0));
		while (recv(pair[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			received++;
	}
	say("received %d\n", received);
}

static void try_path(int folder, const char *path)
{
	char *words[] = {"program", NULL};
	struct stat status;
	char text[4096];

	SAY(openat(folder, path, O_RDONLY));
	SAY(openat(folder, path, O_PATH | O_NOFOLLOW));
	SAY(fstatat(folder, path, &status, 0));
	SAY(fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW));
	SAY(faccessat(folder, path, R_OK, 0));
	SAY(readlinkat(folder, path, text, sizeof(text)));
	SAY(utimensat(folder, path, NULL, 0));
	SAY(fchmodat(folder, path, 0700, 0));
	SAY(linkat(folder, path, AT_FDCWD, "link", AT_SYMLINK_FOLLOW));
	SAY(execveat(folder, path, words, words + 1, 0));
}

static void case_by_path(void)
{
	static const char *const folders[] = {"/proc/self/fd", "/dev/fd", "/proc/thread-self/fd",
					      "/proc/self/fdinfo"};
	struct stat status;
	struct statfs fs;

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		int folder = open(folders[i], O_RDONLY | O_DIRECTORY);
		need(folder >= 0);
		EACH(fd)
		{
			char path[64];

			snprintf(path, sizeof(path), "%s/%d", folders[i], fd);
			try_path(AT_FDCWD, path);
			snprintf(path, sizeof(path), "%d", fd);
			try_path(folder, path);
			snprintf(path, sizeof(path), "./%d", fd);
			try_path(folder, path);
		}
		close(folder);
	}
	need(chdir("/proc/self/fd") == 0);
	SAY(stat("1000", &status));
	SAY(lstat("1001", &status));
	SAY(statfs("1002", &fs));
	SAY(getxattr("1000", "user.tally", NULL, 0));
}

/* Elsewhere these are names like others. */
static void case_files_of_such_names(void)
{
	struct stat status;

	need(mkdir("fd", 0700) == 0);
	EACH(fd)
	{
		char path[16];

		snprintf(path, sizeof(path), "%d", fd);
		int made = open(path, O_WRONLY | O_CREAT, 0600);
		need(made >= 0 && write(made, "x", 1) == 1);
		close(made);
		SAY(stat(path, &status));
		SAY(truncate(path, 0));
		SAY(unlink(path));
		need(symlink("/proc/self/exe", path) == 0);
		SAY(access(path, X_OK));
		need(chdir("fd") == 0 && mkdir(path, 0700) == 0);
		SAY(stat(path, &status));
		need(rmdir(path) == 0 && chdir("..") == 0);
	}
}

/* getdents(2), which old C libraries call. */
static void case_listed(void)
{
	struct old_entry {
		unsigned long inode, offset;
		unsigned short length;
		char name[];
	} * entry;
	int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	_Alignas(8) char buffer[200];
	long size;

	need(folder == 3);
	while ((size = raw(SYS_getdents, folder, buffer, sizeof(buffer))) > 0)
		for (long at = 0; at < size; at += entry->length) {
			entry = (struct old_entry *)(buffer + at);
			say("%s type %d\n", entry->name, buffer[at + entry->length - 1]);
		}
	say("end %ld\n", size);
}

static void copy_program(const char *to)
{
	static char buffer[1 << 16];
	int from = open("/proc/self/exe", O_RDONLY), fd = open(to, O_WRONLY | O_CREAT, 0755);
	ssize_t size;

	need(from >= 0 && fd >= 0);
	while ((size = read(from, buffer, sizeof(buffer))) > 0)
		need(write(fd, buffer, size) == size);
	close(from);
	close(fd);
}

static void say_copy(void)
{
	struct stat status;

	need(stat("copy", &status) == 0);
	say("mode %o times %d\n", status.st_mode,
	    status.st_atime == 1000000 && status.st_mtime == 2000000);
}

/* What is done to the link's target is done to the program's file. */
static void case__own_file(void)
{
	static const char exe[] = "/proc/self/exe";
	struct timeval times[2] = {{1000000, 0}, {2000000, 0}};
	struct statfs fs, own;
	char text[16] = "";

	SAY(chmod(exe, 0711));
	say_copy();
	SAY(utimes(exe, times));
	say_copy();
	need(statfs(exe, &fs) == 0 && statfs("copy", &own) == 0);
	say("file system %d\n",
	    memcmp(&fs.f_fsid, &own.f_fsid, sizeof(fs.f_fsid)) == 0 && fs.f_type == own.f_type);
	SAY(setxattr(exe, "user.tally", "value", 5, 0));
	SAY(getxattr("copy", "user.tally", text, sizeof(text)));
	SAY(getxattr(exe, "user.tally", text, sizeof(text)));
	SAY(lgetxattr(exe, "user.tally", text, sizeof(text)));
	SAY(open(exe, O_RDONLY | O_NOFOLLOW));
	SAY(access(exe, X_OK));
	SAY(unlink("copy"));
	SAY(access(exe, X_OK));
}

static void case_own_file(void)
{
	copy_program("copy");
	pid_t child = fork();

	if (child == 0) {
		execl("./copy", "copy", "_own_file", (char *)NULL);
		_exit(9);
	}
	say_end("copy", child);
}

/* Whether @path is the same file as the program. */
static void say_same(const char *what, int dirfd, const char *path)
{
	struct stat program, other;

	need(stat("/proc/self/exe", &program) == 0);
	need(fstatat(dirfd, path, &other, AT_EMPTY_PATH) == 0);
	say("%s %d\n", what, program.st_dev == other.st_dev && program.st_ino == other.st_ino);
}

/* Executed in the name space of mounts that it changes: what it is then belongs to that. */
static void case__mounted(void)
{
	static const char exe[] = "/proc/self/exe";
	int tree;

	SAY(mount(exe, "bound", NULL, MS_BIND, NULL));
	say_same("bound", AT_FDCWD, "bound");
	SAY(umount2("bound", MNT_DETACH));
	tree = (int)raw(SYS_open_tree, AT_FDCWD, exe, OPEN_TREE_CLOEXEC | OPEN_TREE_CLONE);
	need(tree >= 0);
	say_same("tree", tree, "");
	tree = (int)raw(SYS_open_tree, AT_FDCWD, exe, OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	need(tree >= 0);
	SAY(mount("exe", "bound", NULL, MS_BIND, NULL));
	SAY(mount(NULL, "bound", NULL, MS_BIND, NULL));
}

/* As root of name spaces of users and of mounts, which takes no privilege. */
static int be_root(void)
{
	char map[32];
	int length = snprintf(map, sizeof(map), "0 %d 1", (int)geteuid()), file, written;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -1;
	file = open("/proc/self/uid_map", O_WRONLY);
	written = (int)write(file, map, (size_t)length);
	close(file);
	return written == length ? 0 : -1;
}

/* Container runtimes bind their own file elsewhere, and execute it from there. */
static void case_mounted(void)
{
	int file = open("bound", O_WRONLY | O_CREAT, 0600);

	need(file >= 0);
	close(file);
	copy_program("copy");
	pid_t child = fork();

	if (child == 0) {
		if (be_root() == 0)
			execl("./copy", "copy", "_mounted", (char *)NULL);
		_exit(9);
	}
	say_end("copy", child);
}

const struct test_case cases[] = {
	{"by_number", case_by_number},
	{"polled", case_polled},
	{"sent", case_sent},
	{"by_path", case_by_path},
	{"files_of_such_names", case_files_of_such_names},
	{"listed", case_listed},
	{"own_file", case_own_file},
	{"mounted", case_mounted},
	{"_mounted", case__mounted},
	{"_own_file", case__own_file},
	{NULL, NULL},
};
