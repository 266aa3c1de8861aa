// SPDX-License-Identifier: MIT
#include "lib/counter/cpulist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* More processors than Linux can have: a number above it is a mistake, not a machine. */
#define MAX_CPU 65535

static bool parse_number(const char **text, int *number)
{
	const char *p = *text;

	if (*p < '0' || *p > '9')
		return false;
	*number = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		*number = *number * 10 + (*p - '0');
		if (*number > MAX_CPU)
			return false;
	}
	*text = p;
	return true;
}

static int append_range(int **cpus, size_t *nr, int first, int last)
{
	int *grown = reallocarray(*cpus, *nr + last - first + 1, sizeof(**cpus));

	if (!grown)
		return -ENOMEM;
	*cpus = grown;
	while (first <= last)
		grown[(*nr)++] = first++;
	return 0;
}

int tly_cpulist_parse(const char *text, int **cpus, size_t *nr)
{
	int first, last, code = -EINVAL;

	*cpus = NULL;
	*nr = 0;
	if (!*text || *text == '\n')
		return 0;
	for (;;) {
		if (!parse_number(&text, &first))
			break;
		last = first;
		if (*text == '-') {
			text++;
			if (!parse_number(&text, &last) || last < first)
				break;
		}
		code = append_range(cpus, nr, first, last);
		if (code < 0)
			break;
		if (!*text || (*text == '\n' && !text[1]))
			return 0;
		code = -EINVAL;
		if (*text++ != ',')
			break;
	}
	free(*cpus);
	*cpus = NULL;
	*nr = 0;
	return code;
}

int tly_cpulist_online(int **cpus, size_t *nr)
{
	char text[4096];
	ssize_t n = -1;
	long count;
	int fd;

	fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n > 0) {
		text[n] = '\0';
		if (tly_cpulist_parse(text, cpus, nr) == 0 && *nr)
			return 0;
	}
	/* Without sysfs the numbers are a guess, right wherever no processor is offline. */
	count = sysconf(_SC_NPROCESSORS_ONLN);
	*cpus = NULL;
	*nr = 0;
	return append_range(cpus, nr, 0, count > 0 ? (int)count - 1 : 0);
}

bool tly_cpulist_has(const int *cpus, size_t nr, int cpu)
{
	for (size_t i = 0; i < nr; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}
