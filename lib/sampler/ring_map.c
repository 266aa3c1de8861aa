// SPDX-License-Identifier: MIT
/* Mapping a ring and its AUX area, and saying why the kernel would not. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/readfile.h"
#include "lib/sampler/ring.h"

static int refused(int code, const char *what, size_t bytes, struct tally_error *err)
{
	size_t kb = bytes / 1024;

	switch (code) {
	case EPERM:
		tly_error(err, -EPERM,
			  "%s of %zu kB does not fit in the memory that this user may lock "
			  "(%ld kB per processor for all rings together)",
			  what, kb, tly_read_setting("/proc/sys/kernel/perf_event_mlock_kb", -1));
		return tly_error_remedy(
			err, "ask for fewer pages, or: sudo sysctl kernel.perf_event_mlock_kb=%zu",
			2 * kb + 64);
	case EINVAL:
		tly_error(err, -EINVAL, "the kernel does not map %s of %zu kB for this event", what,
			  kb);
		return tly_error_remedy(err, "the pages must be a power of two, and an event with "
					     "inherit must be bound to a processor");
	case EOPNOTSUPP:
		return tly_error(err, -EOPNOTSUPP, "the event's unit writes no AUX data");
	case ENOMEM:
		tly_error(err, -ENOMEM, "no memory for %s of %zu kB", what, kb);
		return tly_error_remedy(err, "ask for fewer pages");
	default:
		return tly_error(err, -code, "mapping %s of %zu kB: %m", what, kb);
	}
}

static bool is_power_of_two(size_t n)
{
	return n && !(n & (n - 1));
}

int tally_ring_map(int fd, size_t pages, unsigned int flags, struct tally_ring **ring,
		   struct tally_error *err)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	int prot = flags & TALLY_RING_OVERWRITE ? PROT_READ : PROT_READ | PROT_WRITE;
	struct tally_ring *new;
	char *base;

	*ring = NULL;
	if (!is_power_of_two(pages) || pages > SIZE_MAX / page_size / 2)
		return tly_error(err, -EINVAL, "a ring of %zu pages: it must be a power of two",
				 pages);
	new = malloc(sizeof(*new));
	if (!new)
		return tly_error(err, -ENOMEM, "out of memory");
	base = mmap(NULL, (1 + pages) * page_size, prot, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		free(new);
		return refused(errno, "a ring", pages * page_size, err);
	}
	tly_ring_init(new, (struct perf_event_mmap_page *)base, base + page_size, pages * page_size,
		      flags);
	*ring = new;
	return 0;
}

void tally_ring_unmap(struct tally_ring *ring)
{
	if (!ring)
		return;
	if (ring->aux)
		munmap((void *)ring->aux, ring->aux_size);
	munmap(ring->page, ring->size + sysconf(_SC_PAGESIZE));
	tly_ring_release(ring);
	free(ring);
}

int tally_ring_map_aux(struct tally_ring *ring, int fd, size_t pages, bool overwrite,
		       struct tally_error *err)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	void *aux;

	if (!is_power_of_two(pages) || pages > SIZE_MAX / page_size / 2)
		return tly_error(err, -EINVAL,
				 "an AUX area of %zu pages: it must be a power of two", pages);
	if (ring->flags & TALLY_RING_OVERWRITE)
		return tly_error(err, -EINVAL, "an overwrite ring cannot have an AUX area");
	if (ring->aux)
		return tly_error(err, -EEXIST, "the ring has an AUX area already");
	ring->page->aux_offset = ring->size + page_size;
	ring->page->aux_size = pages * page_size;
	aux = mmap(NULL, pages * page_size, overwrite ? PROT_READ : PROT_READ | PROT_WRITE,
		   MAP_SHARED, fd, (off_t)ring->page->aux_offset);
	if (aux == MAP_FAILED)
		return refused(errno, "an AUX area", pages * page_size, err);
	ring->aux = aux;
	ring->aux_size = pages * page_size;
	ring->aux_overwrite = overwrite;
	ring->aux_tail = ring->page->aux_tail;
	return 0;
}
