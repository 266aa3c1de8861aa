// SPDX-License-Identifier: MIT
/* Random calls about descriptors, and about waiting for them. */
#include "hostile_calls.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- descriptors ---- */

void do_descriptor(void)
{
	unsigned int slot = below(FDS);
	int fd = some_fd(), copy;

	switch (below(7)) {
	case 0:
		copy = dup(fd);
		break;
	case 1:
		copy = fcntl(fd, one_in(2) ? F_DUPFD : F_DUPFD_CLOEXEC, below(100));
		break;
	case 2: /* over any that is not needed */
		copy = dup2(fd, one_in(4) ? 1000 + (int)below(40) : 100 + (int)below(100));
		break;
	case 3:
		copy = 20 + (int)below(300);
		syscall(SYS_close_range, copy, copy + below(20), below(3) * 2);
		return;
	case 4:
		copy = (int)syscall(SYS_dup3, fd, 100 + below(100), one_in(2) ? O_CLOEXEC : 0);
		break;
	default:
		close(fds[slot]);
		fds[slot] = -1;
		return;
	}
	if (copy < 0)
		return;
	close(fds[slot]);
	fds[slot] = copy;
}

void send_fd(void)
{
	int fd = some_fd();
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec byte = {"x", 1};
	struct msghdr message = {.msg_iov = &byte,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	sendmsg(SOCKET_FDS + (int)below(2), &message, MSG_DONTWAIT);
}

void receive_fd(void)
{
	unsigned int slot = below(FDS);
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char text[1];
	struct iovec byte = {text, 1};
	struct msghdr message = {.msg_iov = &byte,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(SOCKET_FDS + (int)below(2), &message, MSG_DONTWAIT);
	struct cmsghdr *part = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (!part || part->cmsg_type != SCM_RIGHTS)
		return;
	if (fds[slot] >= 0)
		close(fds[slot]);
	memcpy(&fds[slot], CMSG_DATA(part), sizeof(fds[slot]));
}

void do_fcntl(void)
{
	static const int signals[] = {0, SIGIO, SIGUSR1, SIGUSR2, 35, 40, 64, 65, -1, SIGWINCH};
	struct f_owner_ex owner = {(int)below(4), one_in(2) ? getpid() : gettid()};
	int fd = some_fd();

	switch (below(8)) {
	case 0:
		fcntl(fd, F_SETFL, draw() & (O_ASYNC | O_NONBLOCK | O_APPEND | O_DIRECT));
		return;
	case 1:
		fcntl(fd, F_SETOWN, getpid());
		return;
	case 2:
		fcntl(fd, F_SETSIG, PICK(signals));
		return;
	case 3:
		if (owner.type != F_OWNER_PGRP)
			fcntl(fd, F_SETOWN_EX, &owner);
		return;
	case 4:
		fcntl(fd, F_GETOWN_EX, any_pointer(sizeof(owner)));
		return;
	case 5:
		fcntl(fd, F_SETFL, O_ASYNC);
		return;
	default:
		fcntl(fd, (int)below(20) == F_SETOWN ? F_GETFL : F_GETFD, 0);
	}
}

void do_other_calls(void)
{
	int fd = some_fd();
	char path[64];

	switch (below(9)) {
	case 0:
		fstat(fd, (struct stat *)scratch);
		return;
	case 1:
		if (write(fd, scratch, below(100)) < 0)
			return;
		return;
	case 2:
		lseek(fd, (off_t)any_number(), (int)below(4));
		return;
	case 3:
		if (pread(fd, scratch, below(100), (off_t)below(100)) < 0)
			return;
		return;
	case 4:
		if (ftruncate(fd, (off_t)below(100)) < 0)
			return;
		return;
	case 5:
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, scratch, 100) < 0)
			return;
		return;
	case 6:
		/* through /proc the pipe opens anew */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		close(open(path, O_RDONLY | O_NONBLOCK));
		return;
	case 7:
		if (splice(fd, NULL, some_fd(), NULL, 10, SPLICE_F_NONBLOCK) < 0)
			return;
		return;
	default:
		if (sendfile(fd, some_fd(), NULL, 10) < 0)
			return;
	}
}

/* ---- waiting ---- */

void do_wait(void)
{
	struct pollfd list[70];
	struct epoll_event event = {.events = EPOLLIN | (one_in(2) ? EPOLLET : 0)};
	struct timeval timeout = {0, below(2000)};
	nfds_t nr = one_in(10) ? 70 : below(5);
	/* The kernel writes as many bits as it is told there are, once there are descriptors from
	 * 1024 on. */
	struct {
		fd_set first, more;
	} sets[3];
	int fd;

	switch (below(5)) {
	case 0:
		for (nfds_t i = 0; i < nr; i++)
			list[i] = (struct pollfd){any_fd(), (short)draw(), 0};
		poll(list, nr, (int)below(3));
		return;
	case 1:
		memset(sets, 0, sizeof(sets));
		for (unsigned int i = 0; i < 4; i++)
			if ((fd = some_fd()) >= 0 && fd < FD_SETSIZE)
				FD_SET(fd, &sets[below(3)].first);
		select(one_in(4) ? (int)below(2000) : 200, &sets[0].first, &sets[1].first,
		       &sets[2].first, &timeout);
		return;
	case 2:
		event.data.u64 = draw();
		epoll_ctl(epoll_fd, 1 + (int)below(3), any_fd(), &event);
		return;
	case 3:
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, some_fd(), any_pointer(sizeof(event)));
		return;
	default:
		epoll_wait(epoll_fd, (struct epoll_event *)scratch, 1 + (int)below(10),
			   (int)below(3));
	}
}
