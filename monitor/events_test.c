// SPDX-License-Identifier: MIT
/* Descriptors of events, as the processes of a run tell of them. */
#include "monitor/monitor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/control.h"
#include "core/arena.h"
#include "core/host.h"
#include "monitor/feeds.h"
#include "monitor/numbers.h"
#include "monitor/ready.h"
#include "monitor/watches.h"

/* ---- what it tells others of ---- */

char *core_attached;
static uint64_t closed, without_feeds; /* names, of the last ones, */
static uint32_t without_leader;	       /* and an index */

void core_close(uint64_t event)
{
	closed = event;
}

void feeds_closed(uint32_t event, uint32_t generation)
{
	without_feeds = core_name(event, generation);
}

void feeds_open(int epoll)
{
	(void)epoll;
}

void feeds_close(void)
{
}

size_t feeds_nr(void)
{
	return 0;
}

void feed_add(const struct control_message *message, int fd)
{
	(void)message;
	close(fd);
}

void feed_ready(uint32_t index)
{
	(void)index;
}

void feed_ioctl(const struct control_message *message, int fd)
{
	(void)message, (void)fd;
}

void feeds_kept(uint64_t event, bool group, enum core_kept what)
{
	(void)event, (void)group, (void)what;
}

void feeds_without_leader(uint32_t leader)
{
	without_leader = leader;
}

void watches_open(int epoll)
{
	(void)epoll;
}

void watches_close(void)
{
}

size_t watches_nr(void)
{
	return 0;
}

void watches_look(void)
{
}

void watch_ready(uint32_t index)
{
	(void)index;
}

void watch_task(const struct control_message *message, int fd, pid_t sender)
{
	(void)message, (void)fd, (void)sender;
}

void watch_owner(pid_t process, uint32_t owner)
{
	(void)process, (void)owner;
}

void arena_answer(uint32_t ticket)
{
	(void)ticket;
}

void arena_woken(void)
{
}

void clock_settle(void)
{
}

void halted_help(uint32_t owner)
{
	(void)owner;
}

void numbers_tell(uint32_t page, uint64_t id, pid_t pid, pid_t tid)
{
	(void)page, (void)id, (void)pid, (void)tid;
}

bool core_crowded(void)
{
	return false;
}

void core_rotate(void)
{
}

/* ---- processes ---- */

static int epoll, to_monitor;

static void tell(const struct control_message *message)
{
	assert_int_equal(send(to_monitor, message, sizeof(*message), 0), sizeof(*message));
	events_ready(READY(READY_SOCKET, 0));
}

static int receive_pipe(uint64_t *inode)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct control_pipe pipe;
	struct iovec bytes = {&pipe, sizeof(pipe)};
	struct msghdr header = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	assert_int_equal(recvmsg(to_monitor, &header, MSG_DONTWAIT), sizeof(pipe));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(fd));
	*inode = pipe.inode;
	return fd;
}

/* The slot is the event's of that generation; it gets the descriptor that is returned. */
static int open_event(uint32_t event, uint32_t generation)
{
	struct control_message message = {
		.what = CONTROL_OPEN,
		.event = event,
		.generation = generation,
	};
	const int fd = receive_pipe(&message.inode);

	core_event(event)->state = CORE_OFF;
	core_event(event)->generation = generation;
	tell(&message);
	return fd;
}

/* What the monitor finds without being told. */
static void look(void)
{
	struct epoll_event ready[16];
	const int nr = epoll_wait(epoll, ready, 16, 0);

	for (int i = 0; i < nr; i++)
		events_ready(ready[i].data.u64);
}

static int begin(void **state)
{
	(void)state;
	core_attached = mmap(NULL, ARENA_RINGS_AT, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	epoll = epoll_create1(0);
	to_monitor = events_open(epoll);
	if (core_attached == MAP_FAILED || to_monitor < 0)
		return -1;
	closed = without_feeds = without_leader = 0;
	tell(&(struct control_message){.what = CONTROL_PIPES});
	return 0;
}

static int end(void **state)
{
	(void)state;
	events_close();
	close(to_monitor);
	close(epoll);
	return munmap(core_attached, ARENA_RINGS_AT);
}

static void without_a_descriptor_it_is_closed(void **state)
{
	const int fd = open_event(5, 1);

	(void)state;
	look();
	assert_int_equal(closed, 0);
	close(fd);
	look();
	assert_int_equal(closed, core_name(5, 1));
	assert_int_equal(without_feeds, core_name(5, 1));
}

/* A socket that has room for more gets no more, and another one for each that is taken. */
static void as_many_wait_as_are_asked_for(void **state)
{
	enum { AT_ONCE = 16 };
	uint64_t inode;

	(void)state;
	for (int i = 0; i < AT_ONCE; i++)
		close(receive_pipe(&inode));
	assert_int_equal(recv(to_monitor, &inode, sizeof(inode), MSG_DONTWAIT), -1);
	tell(&(struct control_message){.what = CONTROL_PIPES});
	close(open_event(5, 1));
	for (int i = 0; i < AT_ONCE; i++)
		close(receive_pipe(&inode));
	assert_int_equal(recv(to_monitor, &inode, sizeof(inode), MSG_DONTWAIT), -1);
}

/* It has ended with who was about to open it, who still has the descriptor. */
static void what_the_last_event_of_the_slot_had_goes(void **state)
{
	const int before = open_event(5, 1), fd = open_event(5, 2);

	(void)state;
	assert_true(ready_is_there(before, POLLHUP));
	assert_int_equal(without_feeds, core_name(5, 1));
	assert_false(ready_is_there(fd, POLLHUP));
	events_wake(5, 2);
	assert_true(ready_is_there(fd, POLLIN));
	close(before);
	look();
	assert_int_not_equal(closed, core_name(5, 2));
	close(fd);
	look();
	assert_int_equal(closed, core_name(5, 2));
}

/* Its members are kept by themselves from then on; what it was itself the slot may not say any
 * more. */
static void who_has_led_a_group_leads_it_no_more(void **state)
{
	const int fd = open_event(5, 1);

	(void)state;
	core_event(5)->keeps = true;
	core_event(5)->generation = 2;
	core_event(5)->keeps = false;
	close(fd);
	look();
	assert_int_equal(without_leader, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_a_descriptor_it_is_closed, begin, end),
		cmocka_unit_test_setup_teardown(as_many_wait_as_are_asked_for, begin, end),
		cmocka_unit_test_setup_teardown(what_the_last_event_of_the_slot_had_goes, begin,
						end),
		cmocka_unit_test_setup_teardown(who_has_led_a_group_leads_it_no_more, begin, end),
	};

	return cmocka_run_group_tests_name("monitor: descriptors of events", tests, NULL, NULL);
}
