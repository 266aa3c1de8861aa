// SPDX-License-Identifier: MIT
#include "runtime/linux/code_store.h"

#include <asm/mman.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/resource.h>

#include "abi/store.h"
#include "runtime/linux/apart.h"
#include "runtime/linux/code_files.h"
#include "runtime/linux/confined.h"
#include "runtime/linux/descriptors.h"
#include "runtime/linux/memory.h"
#include "runtime/linux/memory_map.h"
#include "runtime/linux/task.h"
#include "runtime/string.h"
#include "runtime/sys.h"
#include "runtime/thread.h"
#include "runtime/translate/caches.h"
#include "runtime/translate/snapshot.h"

enum { RANGES_MAX = 128 };

/*
 * An image, as it lies in the store; its pieces follow, one behind the other. What of the program's
 * memory it was made from is in the ranges: there is no code in it of anything else.
 */
struct image {
	struct snapshot snapshot;
	uint32_t nr_ranges;
	struct {
		uint64_t start, end, offset;
		uint32_t file;
		bool shown; /* mapped by the time that any code is executed; else withheld */
	} ranges[RANGES_MAX];
	struct store_file files[CODE_FILES_MAX];
};

#define IMAGE_HEAD PAGE_UP(sizeof(struct image))

static struct store_head *head; /* NULL: there is no store */

static struct store_file program;
static uint32_t first_files; /* those with numbers below are mapped before any code is executed */

/* Of the caches that began with one, by number. */
static const struct image *images[CACHES_MAX];

/* ---- beginning ---- */

void code_store_boot(void)
{
	int64_t at;

	if (descriptors.arena < 0 || !code_file_identify(descriptors.program, &program))
		return;
	at = apart_map(STORE_HEAD_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors.arena,
		       STORE_AT);
	if (sys_failed(at))
		return;
	memory_own((uint64_t)at, (uint64_t)at + STORE_HEAD_SIZE);
	head = (struct store_head *)at;
	/* Where nothing is left nobody asks for files. */
	if (head->room)
		code_files_boot();
}

uint64_t code_store_window(void)
{
	return head ? head->window : 0;
}

/* ---- what is in the store ---- */

/* Beside what instrumentation there is: code that has FS for its own. */
#define OF_FS (1UL << 63)

static struct store_key key_of(const struct cache *cache)
{
	return (struct store_key){
		.program = program,
		.counted = cache->does.counted,
		.checked = cache->does.checked,
		.extras = cache->does.extras | (segment_is_fs() ? OF_FS : 0),
		.code = (uint64_t)cache->lookup.code,
		.tables = (uint64_t)cache->lookup.tables,
	};
}

static uint32_t state_of(const struct store_entry *entry)
{
	return __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
}

/* Who takes longer was killed. */
#define WRITING_NS 10000000000UL

static bool is_being_written(const struct store_entry *entry)
{
	return state_of(entry) == STORE_WRITING && code_files_now() - entry->since < WRITING_NS;
}

/* Of those with that key the one with most code; and whether somebody is making another. */
static const struct store_entry *find(const struct store_key *key, bool *writing)
{
	const uint32_t nr = __atomic_load_n(&head->nr, __ATOMIC_RELAXED);
	const struct store_entry *best = NULL;

	*writing = false;
	for (uint32_t i = 0; i < nr && i < STORE_ENTRIES; i++) {
		const struct store_entry *entry = &head->entries[i];

		if (state_of(entry) == STORE_FREE || memcmp(&entry->key, key, sizeof(*key)))
			continue;
		*writing |= is_being_written(entry);
		if (state_of(entry) == STORE_READY && (!best || entry->code > best->code))
			best = entry;
	}
	return best;
}

/* What is executed once is not worth leaving anything. */
static uint8_t *begun(const struct store_key *key)
{
	const uint64_t *words = (const uint64_t *)key;
	uint64_t hash = 0;

	for (unsigned int i = 0; i < sizeof(*key) / sizeof(*words); i++)
		hash = (hash ^ words[i]) * HASH_MULTIPLIER;
	return &head->begun[(hash >> 32) % STORE_BEGUN];
}

static void begin(const struct store_key *key)
{
	uint8_t *times = begun(key);

	if (__atomic_load_n(times, __ATOMIC_RELAXED) < 2)
		__atomic_add_fetch(times, 1, __ATOMIC_RELAXED);
}

static bool has_begun_twice(const struct store_key *key)
{
	return __atomic_load_n(begun(key), __ATOMIC_RELAXED) >= 2;
}

/* ---- going on with an image ---- */

static bool is_same(const struct image *image, unsigned int n, const struct range *range)
{
	return range->file && range->prot & PROT_EXEC && !(range->prot & PROT_WRITE) &&
	       range->offset - range->start == image->ranges[n].offset - image->ranges[n].start &&
	       code_file_same(code_file(range->file), &image->files[image->ranges[n].file]);
}

/* Whether all of the range has the code that the image was made from. */
static bool is_there(const struct image *image, unsigned int n)
{
	const struct range *range;

	for (uint64_t at = image->ranges[n].start; at < image->ranges[n].end; at = range->end) {
		range = map_at(at);
		if (!range || !is_same(image, n, range))
			return false;
	}
	return true;
}

static bool is_usable(const struct image *image)
{
	for (unsigned int n = 0; n < image->nr_ranges; n++)
		if (image->ranges[n].shown && !is_there(image, n))
			return false;
	return true;
}

/* What lies from @start to @end is there, as far as the map knows. */
static void show(struct cache *cache, const struct image *image, uint64_t start, uint64_t end)
{
	for (unsigned int n = 0; n < image->nr_ranges; n++)
		if (!image->ranges[n].shown && image->ranges[n].start < end &&
		    image->ranges[n].end > start && is_there(image, n))
			cache_show(cache, image->ranges[n].start >> PAGE_SHIFT,
				   (image->ranges[n].end - 1) >> PAGE_SHIFT);
}

void code_store_mapped(uint64_t start, uint64_t end)
{
	struct cache *cache;

	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (images[n])
			show(cache, images[n], start, end);
}

static bool map_piece(const struct cache *cache, const struct snapshot_piece *piece, int fd,
		      uint64_t offset)
{
	const bool code = piece->area == SNAPSHOT_CODE;
	const uint64_t flags = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;

	return !sys_failed(sys(__NR_mmap, snapshot_place(cache, piece), piece->size,
			       PROT_READ | PROT_WRITE | (code ? PROT_EXEC : 0U),
			       fd < 0 ? flags | MAP_ANONYMOUS : flags, fd, fd < 0 ? 0 : offset));
}

static bool map_pieces(const struct cache *cache, const struct snapshot *s, uint64_t offset)
{
	for (unsigned int i = 0; i < s->nr_pieces; i++) {
		if (!map_piece(cache, &s->pieces[i], descriptors.arena, offset)) {
			/* None of them, then: what lies there is as it was at first, but for what
			 * it began with. */
			while (i--)
				map_piece(cache, &s->pieces[i], -1, 0);
			return false;
		}
		offset += s->pieces[i].size;
	}
	return true;
}

bool memory_kept(struct cache *cache, bool *spoiled)
{
	const struct store_entry *entry;
	const struct image *image;
	struct store_key key;
	bool writing;
	int64_t at;

	if (!first_files)
		first_files = code_files_known();
	if (!head || !head->room || cache_traces(cache))
		return false;
	key = key_of(cache);
	entry = find(&key, &writing);
	if (!entry) {
		begin(&key);
		return false;
	}
	at = apart_map(IMAGE_HEAD, PROT_READ, MAP_PRIVATE, descriptors.arena, STORE_AT + entry->at);
	if (sys_failed(at))
		return false;
	image = (const struct image *)at;
	if (!is_usable(image)) {
		sys(__NR_munmap, at, IMAGE_HEAD);
		return false;
	}
	if (!map_pieces(cache, &image->snapshot, STORE_AT + entry->at + IMAGE_HEAD)) {
		sys(__NR_munmap, at, IMAGE_HEAD);
		*spoiled = true;
		return false;
	}
	map_add(&(struct range){(uint64_t)at, (uint64_t)at + IMAGE_HEAD, .kind = RANGE_OWN});
	images[cache_inside(cache) - 1] = image;
	snapshot_adopt(cache, &image->snapshot);
	show(cache, image, 0, UINT64_MAX);
	return true;
}

void memory_forget_kept(const struct cache *cache)
{
	const uint64_t at = (uint64_t)images[cache_inside(cache) - 1];

	if (!at)
		return;
	images[cache_inside(cache) - 1] = NULL;
	map_remove(at, at + IMAGE_HEAD);
	sys(__NR_munmap, at, IMAGE_HEAD);
}

/* ---- leaving one ---- */

/* Less is made as quickly as it is found. */
enum { WORTH_CODE = 16 << 10 };

/*
 * Whether there is so much more code than in the one that is there: an eighth, so that all that are
 * ever left of one program take no more than nine times as much as the last; more of what is large,
 * when there is little room.
 */
static bool has_more(const struct cache *cache, const struct store_entry *entry)
{
	const uint64_t used = __atomic_load_n(&head->used, __ATOMIC_RELAXED);
	const bool large = entry->size > (head->room - used) / 8;

	return cache->code_next > entry->code + entry->code / (large ? 1 : 8) + WORTH_CODE;
}

static bool is_worth(const struct cache *cache)
{
	const struct store_key key = key_of(cache);
	const struct store_entry *entry;
	bool writing;

	if (cache_traces(cache) || cache_is_slow(cache) || cache_stops(cache) ||
	    cache->code_next < WORTH_CODE)
		return false;
	if (!has_begun_twice(&key))
		return false;
	entry = find(&key, &writing);
	return !writing && (!entry || has_more(cache, entry));
}

/* With the translator locked, as the map stays what it is. */
static _Alignas(PAGE) struct image leaving;

static void add_range(const struct range *range)
{
	const uint32_t n = leaving.nr_ranges;

	if (n == RANGES_MAX || !(range->prot & PROT_EXEC) || range->prot & PROT_WRITE ||
	    range->kind != RANGE_PRIVATE || !range->file ||
	    !code_file_is_settled(code_file(range->file)))
		return;
	leaving.ranges[n].start = range->start;
	leaving.ranges[n].end = range->end;
	leaving.ranges[n].offset = range->offset;
	leaving.ranges[n].file = range->file;
	leaving.ranges[n].shown = range->file < first_files;
	leaving.nr_ranges++;
}

static unsigned int range_of(uint64_t page)
{
	unsigned int n = 0;

	while (n < leaving.nr_ranges && (page < leaving.ranges[n].start >> PAGE_SHIFT ||
					 page >= leaving.ranges[n].end >> PAGE_SHIFT))
		n++;
	return n;
}

static unsigned int group(uint64_t page)
{
	const unsigned int n = range_of(page);

	if (n == leaving.nr_ranges)
		return CACHE_GROUP_NONE;
	return leaving.ranges[n].shown ? CACHE_GROUP_SHOWN : CACHE_GROUPS + n;
}

static int64_t pagemap; /* proc_pid_pagemap(5) */

#define PAGEMAP_PRESENT (1UL << 63)
#define PAGEMAP_SWAPPED (1UL << 62)
#define PAGEMAP_FILE	(1UL << 61)

/* A debugger, or who writes to /proc/PID/mem, changes pages that the program may not write, which
 * are copies then. */
static bool is_of_file(uint64_t page)
{
	uint64_t is;

	if (sys(__NR_pread64, pagemap, &is, sizeof(is), page * sizeof(is)) != sizeof(is))
		return false;
	return !(is & PAGEMAP_SWAPPED) && (!(is & PAGEMAP_PRESENT) || is & PAGEMAP_FILE);
}

static bool is_kept(uint64_t page)
{
	return range_of(page) < leaving.nr_ranges && is_of_file(page);
}

static bool put(const void *from, uint64_t size, uint64_t offset)
{
	return sys(__NR_pwrite64, descriptors.arena, from, size, offset) == (int64_t)size;
}

static bool is_empty(const uint64_t *page)
{
	unsigned int i = 0;

	while (i < PAGE / sizeof(*page) && !page[i])
		i++;
	return i == PAGE / sizeof(*page);
}

static bool put_instead(uint64_t word, uint64_t size, uint64_t offset)
{
	static _Alignas(PAGE) uint64_t page[PAGE / sizeof(uint64_t)];

	for (unsigned int i = 0; i < PAGE / sizeof(*page); i++)
		page[i] = word;
	for (uint64_t at = 0; at < size; at += PAGE)
		if (!put(page, PAGE, offset + at))
			return false;
	return true;
}

/* What is empty there is empty in the store. */
static bool put_pages(const uint8_t *from, uint64_t size, uint64_t offset)
{
	uint64_t at = 0, end;

	for (; at < size; at = end) {
		const bool empty = is_empty((const uint64_t *)(from + at));

		end = at + PAGE;
		while (end < size && is_empty((const uint64_t *)(from + end)) == empty)
			end += PAGE;
		if (!empty && !put(from + at, end - at, offset + at))
			return false;
	}
	return true;
}

static bool write_image(const struct cache *cache, uint64_t offset)
{
	const struct snapshot *s = &leaving.snapshot;

	if (!put(&leaving, sizeof(leaving), offset))
		return false;
	offset += IMAGE_HEAD;
	for (unsigned int i = 0; i < s->nr_pieces; i++) {
		const struct snapshot_piece *piece = &s->pieces[i];

		if (piece->instead ? !put_instead(piece->instead, piece->size, offset)
				   : !put_pages(snapshot_place(cache, piece), piece->size, offset))
			return false;
		offset += piece->size;
	}
	return true;
}

static uint64_t size_of(const struct snapshot *s)
{
	uint64_t size = IMAGE_HEAD;

	for (unsigned int i = 0; i < s->nr_pieces; i++)
		size += s->pieces[i].size;
	return size;
}

static struct store_entry *take_entry(uint64_t size, uint64_t *at)
{
	uint32_t n;

	*at = __atomic_fetch_add(&head->used, size, __ATOMIC_RELAXED);
	if (*at + size > head->room) {
		__atomic_fetch_sub(&head->used, size, __ATOMIC_RELAXED);
		return NULL;
	}
	n = __atomic_fetch_add(&head->nr, 1, __ATOMIC_RELAXED);
	return n < STORE_ENTRIES ? &head->entries[n] : NULL;
}

/* All that may be left is looked at, and most of it for the first time where nothing is. */
static void populate(const struct cache *cache, const struct snapshot *s)
{
	for (unsigned int i = 0; i < s->nr_pieces; i++)
		sys(__NR_madvise, snapshot_place(cache, &s->pieces[i]), s->pieces[i].size,
		    MADV_POPULATE_READ);
}

/* Where something else lies now, that would be found with what is made of it. */
static void forget_others(struct cache *cache)
{
	const struct image *image = images[cache_inside(cache) - 1];

	for (unsigned int n = 0; image && n < image->nr_ranges; n++)
		if (!image->ranges[n].shown && !is_there(image, n))
			cache_forget_withheld(cache, image->ranges[n].start >> PAGE_SHIFT,
					      (image->ranges[n].end - 1) >> PAGE_SHIFT);
}

static void leave(struct cache *cache)
{
	struct store_entry *entry;
	uint64_t at, size;

	snapshot_take(cache, &leaving.snapshot);
	populate(cache, &leaving.snapshot);
	cache_forget_unless(cache, is_kept);
	forget_others(cache);
	cache_withhold(cache, group);
	snapshot_take(cache, &leaving.snapshot);
	size = size_of(&leaving.snapshot);
	entry = take_entry(size, &at);
	if (!entry)
		return;
	entry->key = key_of(cache);
	entry->at = STORE_HEAD_SIZE + at;
	entry->size = size;
	entry->code = cache->code_next;
	entry->since = code_files_now();
	__atomic_store_n(&entry->state, STORE_WRITING, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->state,
			 write_image(cache, STORE_AT + entry->at) ? STORE_READY : STORE_LOST,
			 __ATOMIC_RELEASE);
}

/* A limit on the size of files (ulimit -f) holds for this one, too. */
static bool may_write(void)
{
	struct rlimit64 limit = {0};

	return !sys(__NR_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit) &&
	       limit.rlim_cur >= STORE_AT + STORE_SIZE;
}

void code_store_leave(const struct thread *thread)
{
	bool any = false;
	struct cache *cache;

	if (!head || !head->room || confined() || thread->task->vfork ||
	    !code_file_is_settled(&program))
		return;
	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		any |= is_worth(cache);
	if (!any || !may_write())
		return;
	translate_lock();
	pagemap = sys(__NR_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	leaving.nr_ranges = 0;
	for (const struct range *r = map_from(0); r; r = map_next(r))
		add_range(r);
	code_files_copy(leaving.files);
	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (!sys_failed(pagemap) && is_worth(cache))
			leave(cache);
	if (!sys_failed(pagemap))
		sys(__NR_close, pagemap);
	translate_unlock();
}
