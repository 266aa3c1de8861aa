/* SPDX-License-Identifier: MIT */
/*
 * Lists of what this machine has, which are made when they are first asked for, by whichever thread
 * that is.
 */
#ifndef PFM_LIST_H
#define PFM_LIST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct list {
	pthread_mutex_t lock;
	bool known;
};

/* Sees to it that @load has been called since the beginning or the last time it was forgotten. */
void tly_pfm_list_know(struct list *list, void (*load)(void));

/* Calls @unload, which frees what there is. Nobody may use the list meanwhile. */
void tly_pfm_list_forget(struct list *list, void (*unload)(void));

/*
 * The names in the folder @path that an event string can hold, sorted; with @folders those of
 * folders alone. NULL if there are none.
 */
char **tly_pfm_list_names(const char *path, bool folders, size_t *n);
void tly_pfm_list_free(char **names, size_t n);

#endif
