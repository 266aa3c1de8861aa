// SPDX-License-Identifier: MIT
#include "matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"

/* The areas of the matrix that are about a library, not about the system call. */
static const struct {
	const char *area;
	const char *why;
} out_of_scope[] = {
	{"pfm", "libpfm4's API, which libtally-pfm is tested against on its own"},
};

struct row {
	char *id;
	char *item;
	size_t area; /* length of the id's first part */
	unsigned int cases;
	unsigned int results; /* bits by enum matrix_result */
	const char *excuse;
};

struct matrix {
	struct row *rows;
	size_t count;
	unsigned int foreign; /* ids of cases that no row has */
};

extern const struct abi_excuse *const __start_abi_excuses[], *const __stop_abi_excuses[];

static struct row *find(struct matrix *matrix, const char *id)
{
	for (size_t i = 0; i < matrix->count; i++)
		if (strcmp(matrix->rows[i].id, id) == 0)
			return &matrix->rows[i];
	return NULL;
}

static void foreign(struct matrix *matrix, const char *id)
{
	fprintf(stderr, "conformance: the matrix has no row %s\n", id);
	matrix->foreign++;
}

static bool add(struct matrix *matrix, char *line)
{
	char *id = strtok(line, "\t"), *item = NULL;
	struct row *rows, row = {0};

	if (!id || strcmp(id, "id") == 0)
		return true;
	strtok(NULL, "\t");
	item = strtok(NULL, "\t\n");
	rows = realloc(matrix->rows, (matrix->count + 1) * sizeof(*rows));
	if (!rows)
		return false;
	matrix->rows = rows;
	row.id = strdup(id);
	row.item = strdup(item ? item : "");
	row.area = strcspn(id, ".");
	rows[matrix->count++] = row;
	return row.id && row.item;
}

struct matrix *matrix_read(const char *path)
{
	struct matrix *matrix = calloc(1, sizeof(*matrix));
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool ok = matrix && file;

	while (ok && getline(&line, &size, file) > 0)
		ok = add(matrix, line);
	free(line);
	if (!ok)
		perror(path);
	if (file)
		fclose(file);
	if (!ok) {
		matrix_free(matrix);
		return NULL;
	}
	for (const struct abi_excuse *const *at = __start_abi_excuses; at < __stop_abi_excuses;
	     at++) {
		struct row *row = find(matrix, (*at)->id);

		if (row)
			row->excuse = (*at)->why;
		else
			foreign(matrix, (*at)->id);
	}
	return matrix;
}

void matrix_free(struct matrix *matrix)
{
	if (!matrix)
		return;
	for (size_t i = 0; i < matrix->count; i++) {
		free(matrix->rows[i].id);
		free(matrix->rows[i].item);
	}
	free(matrix->rows);
	free(matrix);
}

void matrix_named(struct matrix *matrix, const char *id)
{
	struct row *row = find(matrix, id);

	if (row)
		row->cases++;
	else
		foreign(matrix, id);
}

void matrix_ran(struct matrix *matrix, const char *id, enum matrix_result result)
{
	struct row *row = find(matrix, id);

	if (row)
		row->results |= 1U << result;
}

void matrix_print_results(const struct matrix *matrix)
{
	unsigned int failed = 0, passed = 0, skipped = 0;

	for (size_t i = 0; i < matrix->count; i++) {
		unsigned int results = matrix->rows[i].results;

		if (results & 1U << MATRIX_FAILED)
			failed++;
		else if (results & 1U << MATRIX_PASSED)
			passed++;
		else if (results & 1U << MATRIX_SKIPPED)
			skipped++;
	}
	printf("# rows of the matrix: %u shown, %u contradicted, %u only skipped\n", passed, failed,
	       skipped);
}

static const char *why_out_of_scope(const struct row *row)
{
	for (size_t i = 0; i < sizeof(out_of_scope) / sizeof(out_of_scope[0]); i++)
		if (strncmp(row->id, out_of_scope[i].area, row->area) == 0 &&
		    strlen(out_of_scope[i].area) == row->area)
			return out_of_scope[i].why;
	return NULL;
}

bool matrix_print(const struct matrix *matrix)
{
	unsigned int rows = 0, shown = 0, excused = 0, missing = 0, contradictory = 0;

	printf("%-10s %6s %6s %8s %8s\n", "area", "rows", "shown", "excused", "missing");
	for (size_t i = 0; i < matrix->count;) {
		const struct row *first = &matrix->rows[i];
		unsigned int n[4] = {0};

		for (; i < matrix->count && matrix->rows[i].area == first->area &&
		       strncmp(matrix->rows[i].id, first->id, first->area) == 0;
		     i++) {
			const struct row *row = &matrix->rows[i];

			n[0]++;
			n[row->cases ? 1 : row->excuse ? 2 : 3]++;
		}
		if (why_out_of_scope(first)) {
			printf("%-10.*s %6u out of scope: %s\n", (int)first->area, first->id, n[0],
			       why_out_of_scope(first));
			continue;
		}
		printf("%-10.*s %6u %6u %8u %8u\n", (int)first->area, first->id, n[0], n[1], n[2],
		       n[3]);
		rows += n[0], shown += n[1], excused += n[2], missing += n[3];
	}
	printf("%-10s %6u %6u %8u %8u\n", "all", rows, shown, excused, missing);

	for (size_t i = 0; i < matrix->count; i++) {
		const struct row *row = &matrix->rows[i];

		if (row->excuse && row->cases) {
			contradictory++;
			printf("excused, and yet with a case: %s\n", row->id);
		} else if (row->excuse) {
			printf("excused: %s: %s\n", row->id, row->excuse);
		}
	}
	for (size_t i = 0; i < matrix->count; i++) {
		const struct row *row = &matrix->rows[i];

		if (!row->cases && !row->excuse && !why_out_of_scope(row))
			printf("missing: %s: %s\n", row->id, row->item);
	}
	return !missing && !contradictory && !matrix->foreign;
}
