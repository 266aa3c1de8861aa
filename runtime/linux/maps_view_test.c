// SPDX-License-Identifier: MIT
#include "runtime/linux/maps_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { RX = PROT_READ | PROT_EXEC, RWX = RX | PROT_WRITE, WX = PROT_WRITE | PROT_EXEC };

static char shown[1 << 20];
static size_t nr_shown;

static void collect(void *to, const char *text, size_t size)
{
	assert_ptr_equal(to, shown);
	assert_true(nr_shown + size < sizeof(shown));
	memcpy(shown + nr_shown, text, size);
	nr_shown += size;
	shown[nr_shown] = '\0';
}

static bool show(const struct maps_layout *layout, const char *text)
{
	struct maps_view *view = malloc(sizeof(*view));
	char *lines = strdup(text), *rest = lines, *line;
	bool understood = true;

	assert_non_null(view);
	assert_non_null(lines);
	nr_shown = 0;
	shown[0] = '\0';
	maps_view_begin(view, layout, collect, shown);
	while ((line = strsep(&rest, "\n")) && rest && understood)
		understood = maps_view_line(view, line);
	maps_view_end(view);
	free(lines);
	free(view);
	return understood;
}

static void expect(const struct maps_layout *layout, const char *text, const char *expected)
{
	assert_true(show(layout, text));
	assert_string_equal(shown, expected);
}

#define RANGE(start_, end_, ...)                                                                   \
	{                                                                                          \
		.start = start_, .end = end_, __VA_ARGS__                                          \
	}
#define LAYOUT(...)                                                                                \
	{                                                                                          \
		.ranges = ranges, .nr = sizeof(ranges) / sizeof(*ranges), __VA_ARGS__              \
	}

/* The heap as @text has it. */
static struct maps_layout layout_in(const char *text)
{
	struct maps_layout layout = {0};
	const char *line = strstr(text, "[heap]");

	while (line && line > text && line[-1] != '\n')
		line--;
	if (line)
		assert_int_equal(sscanf(line, "%lx-%lx", &layout.heap_start, &layout.heap_end), 2);
	return layout;
}

/* What this kernel says of this process, byte by byte: there is nothing to hide. */
static void unchanged(const char *path)
{
	static char text[sizeof(shown)];
	struct maps_layout layout;
	FILE *file = fopen(path, "r");

	if (!file) {
		print_message("# no %s\n", path);
		return;
	}
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	layout = layout_in(text);
	expect(&layout, text, text);
}

static void test_as_it_is(void **state)
{
	(void)state;
	unchanged("/proc/self/maps");
	unchanged("/proc/self/smaps");
	unchanged("/proc/self/numa_maps");
}

static void test_what_is_hidden(void **state)
{
	static const struct range ranges[] = {
		RANGE(0x20000, 0x30000, .kind = RANGE_OWN),
		RANGE(0x41000, 0x42000, .kind = RANGE_OWN),
		RANGE(0x60000, 0x70000, .kind = RANGE_OWN),
		RANGE(0x70000, 0x80000, .kind = RANGE_OWN),
	};
	const struct maps_layout layout = LAYOUT();

	(void)state;
	/* Whole; in the middle of one of the kernel's; from the middle of one to that of
	 * another. */
	expect(&layout,
	       "00020000-00030000 rw-p 00000000 00:00 0 \n"
	       "00040000-00043000 rw-p 00000000 00:00 0 \n"
	       "0005f000-00068000 r--p 00001000 fe:00 12                                 /a b\n"
	       "00068000-00088000 r--p 0000a000 fe:00 12                                 /a b\n",
	       "00040000-00041000 rw-p 00000000 00:00 0 \n"
	       "00042000-00043000 rw-p 00000000 00:00 0 \n"
	       "0005f000-00060000 r--p 00001000 fe:00 12                                 /a b\n"
	       "00080000-00088000 r--p 00022000 fe:00 12                                 /a b\n");
	expect(&layout,
	       "00010000 default anon=1 dirty=1 N0=1 kernelpagesize_kB=4\n"
	       "00020000 default anon=1 dirty=1 N0=1 kernelpagesize_kB=4\n"
	       "00030000 default\n",
	       "00010000 default anon=1 dirty=1 N0=1 kernelpagesize_kB=4\n"
	       "00030000 default\n");
}

/* Code that is watched, and code that the processor may only execute. */
static void test_permissions(void **state)
{
	static const struct range ranges[] = {
		RANGE(0x10000, 0x11000, .prot = RWX),
		RANGE(0x11000, 0x12000, .prot = RWX, .watched = true),
		RANGE(0x12000, 0x14000, .prot = RWX),
		RANGE(0x20000, 0x21000, .prot = WX, .watched = true),
		RANGE(0x30000, 0x31000, .prot = PROT_EXEC),
		RANGE(0x40000, 0x41000, .prot = RX),
		RANGE(0x50000, 0x51000, .kind = RANGE_SHARED, .prot = RWX, .watched = true),
	};
	const struct maps_layout layout = LAYOUT();

	(void)state;
	expect(&layout,
	       "00010000-00011000 rwxp 00000000 00:00 0 \n"
	       "00011000-00012000 r-xp 00000000 00:00 0 \n"
	       "00012000-00014000 rwxp 00000000 00:00 0 \n"
	       "00020000-00021000 r-xp 00000000 00:00 0 \n"
	       "00030000-00031000 r-xp 00000000 00:00 0 \n"
	       /* What the kernel has for reasons of its own: personality(2). */
	       "00040000-00041000 rwxp 00000000 00:00 0 \n"
	       "00050000-00051000 r-xs 00003000 00:01 77                                 /memfd:x (deleted)\n",
	       "00010000-00014000 rwxp 00000000 00:00 0 \n"
	       "00020000-00021000 -wxp 00000000 00:00 0 \n"
	       "00030000-00031000 --xp 00000000 00:00 0 \n"
	       "00040000-00041000 rwxp 00000000 00:00 0 \n"
	       "00050000-00051000 rwxs 00003000 00:01 77                                 /memfd:x (deleted)\n");
}

/* What goes on is one mapping only where it is the runtime that has parted it. */
static void test_what_is_one(void **state)
{
	static const struct range ranges[] = {
		RANGE(0x11000, 0x12000, .prot = RWX, .watched = true),
	};
	const struct maps_layout layout = LAYOUT();

	(void)state;
	expect(&layout,
	       "00010000-00011000 rwxp 00001000 fe:00 5                                  /a\n"
	       "00011000-00012000 r-xp 00002000 fe:00 5                                  /a\n"
	       "00012000-00013000 rwxp 00003000 fe:00 5                                  /a\n"
	       "00013000-00014000 rwxp 00004000 fe:00 5                                  /a\n",
	       "00010000-00013000 rwxp 00001000 fe:00 5                                  /a\n"
	       "00013000-00014000 rwxp 00004000 fe:00 5                                  /a\n");
	expect(&layout,
	       "00010000-00011000 rwxp 00001000 fe:00 5                                  /a\n"
	       "00011000-00012000 r-xp 00003000 fe:00 5                                  /a\n"
	       "00012000-00013000 rwxp 00004000 fe:00 6                                  /a\n",
	       "00010000-00011000 rwxp 00001000 fe:00 5                                  /a\n"
	       "00011000-00012000 rwxp 00003000 fe:00 5                                  /a\n"
	       "00012000-00013000 rwxp 00004000 fe:00 6                                  /a\n");
}

static void test_names_of_mappings(void **state)
{
	static const struct range ranges[] = {
		RANGE(0x7f0000010000, 0x7f0000020000, .kind = RANGE_OWN),
		RANGE(0x7f0000020000, 0x7f0000030000, .prot = RX),
	};
	const struct maps_layout layout = LAYOUT();

	(void)state;
	assert_true(maps_view_hides("7f0000010000-7f0000011000", &layout));
	assert_true(maps_view_hides("7f000001f000-7f0000020000", &layout));
	assert_false(maps_view_hides("7f000000f000-7f0000010000", &layout));
	assert_false(maps_view_hides("7f0000020000-7f0000030000", &layout));
	assert_false(maps_view_hides("..", &layout));
}

static void test_heap(void **state)
{
	static const struct maps_layout layout = {.heap_start = 0x12000, .heap_end = 0x14000};

	(void)state;
	expect(&layout,
	       "00010000-00011000 r--p 00000000 fe:00 5                                  /a\n"
	       "00011000-00014000 rw-p 00000000 00:00 0                                  [heap]\n"
	       "00014000-00015000 rw-p 00000000 00:00 0 \n",
	       "00010000-00011000 r--p 00000000 fe:00 5                                  /a\n"
	       "00011000-00012000 rw-p 00000000 00:00 0 \n"
	       "00012000-00014000 rw-p 00000000 00:00 0                                  [heap]\n"
	       "00014000-00015000 rw-p 00000000 00:00 0 \n");
}

static void test_fields(void **state)
{
	static const struct range ranges[] = {
		RANGE(0x11000, 0x12000, .prot = RWX, .watched = true),
		RANGE(0x13000, 0x14000, .kind = RANGE_OWN),
		RANGE(0x21000, 0x22000, .kind = RANGE_OWN),
	};
	const struct maps_layout layout = LAYOUT();

	(void)state;
	expect(&layout,
	       "00010000-00011000 rwxp 00000000 00:00 0 \n"
	       "Size:                  4 kB\n"
	       "KernelPageSize:        4 kB\n"
	       "Rss:                   4 kB\n"
	       "THPeligible:           0\n"
	       "VmFlags: rd wr ex mr \n"
	       "00011000-00012000 r-xp 00000000 00:00 0 \n"
	       "Size:                  4 kB\n"
	       "KernelPageSize:        4 kB\n"
	       "Rss:                   8 kB\n"
	       "THPeligible:           0\n"
	       "VmFlags: rd ex mr \n"
	       "00013000-00014000 rw-p 00000000 00:00 0 \n"
	       "Size:                  4 kB\n"
	       "Rss:                   4 kB\n"
	       "00020000-00024000 rw-p 00000000 00:00 0 \n"
	       "Size:                 16 kB\n"
	       "Rss:                  12 kB\n",
	       "00010000-00012000 rwxp 00000000 00:00 0 \n"
	       "Size:                  8 kB\n"
	       "KernelPageSize:        4 kB\n"
	       "Rss:                  12 kB\n"
	       "THPeligible:           0\n"
	       "VmFlags: rd wr ex mr \n"
	       "00020000-00021000 rw-p 00000000 00:00 0 \n"
	       "Size:                  4 kB\n"
	       "Rss:                  12 kB\n"
	       "00022000-00024000 rw-p 00000000 00:00 0 \n"
	       "Size:                  8 kB\n"
	       "Rss:                   0 kB\n");
	/* Large sizes, and a long name. */
	expect(&layout,
	       "00030000-00034000 rw-p 00000000 00:00 0 \n"
	       "Rss:            12345678901 kB\n"
	       "Private_Hugetlb:       0 kB\n"
	       "Private_Hugetlb: 12345678 kB\n",
	       "00030000-00034000 rw-p 00000000 00:00 0 \n"
	       "Rss:            12345678901 kB\n"
	       "Private_Hugetlb:       0 kB\n"
	       "Private_Hugetlb: 12345678 kB\n");
	/* Alone, only its flags are others. */
	expect(&layout,
	       "00011000-00012000 r-xp 00000000 00:00 0 \n"
	       "VmFlags: rd ex mr mw me \n",
	       "00011000-00012000 rwxp 00000000 00:00 0 \n"
	       "VmFlags: rd wr ex mr mw me \n");
}

static void test_what_is_no_map(void **state)
{
	static const struct maps_layout layout = {0};
	static char text[MAPS_FIELDS * 8 + 100];

	(void)state;
	assert_false(show(&layout, "hello\n"));
	assert_false(show(&layout, "00010000-\n"));
	assert_false(show(&layout, "00010000-00011000\n"));
	assert_false(show(&layout, "00010000-00011000 rwx\n"));
	assert_false(show(&layout, "00010000-00011000 rwxp\n"));
	assert_false(show(&layout, "00010000-00011000 rwxp 00000000\n"));
	assert_false(show(&layout, "00010000-00011000 rwxp 00000000 00:00\n"));
	assert_false(show(&layout, "Size:                  4 kB\n"));
	/* More fields than anybody has heard of. */
	strcpy(text, "00010000-00011000 rwxp 00000000 00:00 0 \n");
	for (int i = 0; i <= MAPS_FIELDS; i++)
		strcat(text, "A: 1 kB\n");
	assert_false(show(&layout, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_it_is),       cmocka_unit_test(test_what_is_hidden),
		cmocka_unit_test(test_permissions),    cmocka_unit_test(test_what_is_one),
		cmocka_unit_test(test_heap),	       cmocka_unit_test(test_fields),
		cmocka_unit_test(test_what_is_no_map), cmocka_unit_test(test_names_of_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
