// SPDX-License-Identifier: MIT
/*
 * `branches COMMAND` has the unit that traces write every branch of the command, and prints them,
 * one a line:
 *
 *	FROM TO
 *
 * in hexadecimal digits. Exit status 77: there is no such unit.
 */
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, RING = 9 * PAGE, AREA = 256 * PAGE };

static int unit(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/intel_bts/type", "r");
	int type;

	if (!file || fscanf(file, "%d", &type) != 1)
		exit(77);
	fclose(file);
	return type;
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The command waits for a byte before it is executed. */
static pid_t start(char **argv, int *go)
{
	int ends[2];
	pid_t pid;
	char byte;

	if (pipe(ends))
		fail("pipe");
	pid = fork();
	if (!pid) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) != 1)
			_exit(127);
		close(ends[0]);
		execv(argv[0], argv);
		_exit(127);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

/* Announced as it is there, from the first byte on, and nothing left out. */
static void check_records(const struct perf_event_mmap_page *page)
{
	const unsigned char *data = (const unsigned char *)page + PAGE;
	uint64_t announced = 0, started = 0;

	for (uint64_t at = 0; at < page->data_head;) {
		const struct perf_event_header *header = (const void *)(data + at);
		const uint64_t *body = (const void *)(header + 1);

		started += header->type == PERF_RECORD_ITRACE_START;
		if (header->type == PERF_RECORD_AUX) {
			if (body[0] != announced || body[2]) {
				fprintf(stderr, "AUX at %#lx, %#lx bytes, flags %#lx\n", body[0],
					body[1], body[2]);
				exit(1);
			}
			announced += body[1];
		}
		at += header->size;
	}
	if (started != 1 || announced != page->aux_head) {
		fprintf(stderr, "started %lu times, %#lx bytes, of which %#lx are announced\n",
			started, (uint64_t)page->aux_head, announced);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.disabled = 1,
		.enable_on_exec = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	struct perf_event_mmap_page *page;
	const uint64_t *area;
	int fd, go, status;
	pid_t pid;

	if (argc < 2)
		return 2;
	attr.type = (uint32_t)unit();
	pid = start(argv + 1, &go);
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, 0UL);
	if (fd < 0)
		fail("perf_event_open");
	page = mmap(NULL, RING, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		fail("the ring");
	page->aux_offset = RING;
	page->aux_size = AREA;
	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, RING);
	if (area == MAP_FAILED)
		fail("the AUX area");
	if (write(go, "", 1) != 1 || waitpid(pid, &status, 0) != pid)
		fail("the command");
	check_records(page);
	for (uint64_t i = 0; i < page->aux_head / sizeof(*area); i += 3)
		printf("%lx %lx\n", area[i], area[i + 1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
