// SPDX-License-Identifier: MIT
#include "runtime/linux/code_store.h"

#include <asm/mman.h>
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
	} ranges[RANGES_MAX];
	struct store_file files[CODE_FILES_MAX];
};

#define IMAGE_HEAD PAGE_UP(sizeof(struct image))

static struct store_head *head; /* NULL: there is no store */

static struct store_file program;

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
	code_files_boot();
}

uint64_t code_store_window(void)
{
	return head ? head->window : 0;
}

/* ---- what is in the store ---- */

static struct store_key key_of(const struct cache *cache)
{
	return (struct store_key){
		.program = program,
		.counted = cache->does.counted,
		.checked = cache->does.checked,
		.extras = cache->does.extras,
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
	return range->file && !(range->prot & PROT_WRITE) &&
	       range->offset - range->start == image->ranges[n].offset - image->ranges[n].start &&
	       code_file_same(code_file(range->file), &image->files[image->ranges[n].file]);
}

/*
 * Calls @differs with each piece from @start to @end where there is other code than what the image
 * was made from, until that says true.
 */
static bool compare(const struct image *image, uint64_t start, uint64_t end,
		    bool (*differs)(uint64_t start, uint64_t end))
{
	for (unsigned int n = 0; n < image->nr_ranges; n++) {
		const uint64_t first =
			image->ranges[n].start > start ? image->ranges[n].start : start;
		const uint64_t last = image->ranges[n].end < end ? image->ranges[n].end : end;

		for (const struct range *r = map_from(first); r && r->start < last; r = map_next(r))
			if (r->prot & PROT_EXEC && r->kind != RANGE_OWN && !is_same(image, n, r) &&
			    differs(r->start > first ? r->start : first,
				    r->end < last ? r->end : last))
				return true;
	}
	return false;
}

static bool found(uint64_t start, uint64_t end)
{
	return start < end;
}

static bool forget(uint64_t start, uint64_t end)
{
	translate_invalidate(start, end);
	return false;
}

void code_store_mapped(uint64_t start, uint64_t end)
{
	for (unsigned int n = 0; n < CACHES_MAX; n++)
		if (images[n])
			compare(images[n], start, end, forget);
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

const struct snapshot *memory_kept(const struct cache *cache, bool *spoiled)
{
	const struct store_entry *entry;
	const struct image *image;
	struct store_key key;
	bool writing;
	int64_t at;

	if (!head || cache_traces(cache))
		return NULL;
	key = key_of(cache);
	entry = find(&key, &writing);
	if (!entry) {
		begin(&key);
		return NULL;
	}
	at = apart_map(IMAGE_HEAD, PROT_READ, MAP_PRIVATE, descriptors.arena, STORE_AT + entry->at);
	if (sys_failed(at))
		return NULL;
	image = (const struct image *)at;
	if (compare(image, 0, UINT64_MAX, found)) {
		sys(__NR_munmap, at, IMAGE_HEAD);
		return NULL;
	}
	if (!map_pieces(cache, &image->snapshot, STORE_AT + entry->at + IMAGE_HEAD)) {
		sys(__NR_munmap, at, IMAGE_HEAD);
		*spoiled = true;
		return NULL;
	}
	map_add(&(struct range){(uint64_t)at, (uint64_t)at + IMAGE_HEAD, .kind = RANGE_OWN});
	images[cache_inside(cache) - 1] = image;
	return &image->snapshot;
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

	if (cache_traces(cache) || cache_is_slow(cache) || cache->code_next < WORTH_CODE)
		return false;
	if (!has_begun_twice(&key))
		return false;
	entry = find(&key, &writing);
	return !writing && (!entry || has_more(cache, entry));
}

/* With the translator locked, as the map stays what it is. */
static struct image leaving;

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
	leaving.nr_ranges++;
}

static bool is_kept(uint64_t page)
{
	for (unsigned int n = 0; n < leaving.nr_ranges; n++)
		if (page >= leaving.ranges[n].start >> PAGE_SHIFT &&
		    page < leaving.ranges[n].end >> PAGE_SHIFT)
			return true;
	return false;
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
	static uint64_t page[PAGE / sizeof(uint64_t)];

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

static void leave(struct cache *cache)
{
	struct store_entry *entry;
	uint64_t at, size;

	snapshot_take(cache, &leaving.snapshot);
	populate(cache, &leaving.snapshot);
	cache_forget_unless(cache, is_kept);
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
	leaving.nr_ranges = 0;
	for (const struct range *r = map_from(0); r; r = map_next(r))
		add_range(r);
	code_files_copy(leaving.files);
	for (unsigned int n = 0; (cache = cache_number(n)); n++)
		if (is_worth(cache))
			leave(cache);
	translate_unlock();
}
