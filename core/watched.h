/* SPDX-License-Identifier: MIT */
/*
 * What epoll(7) watches. An epoll instance is a file: descriptors of it are duplicated, inherited,
 * kept through exec and sent, and each gives back the words that it was given. So the kernel gets a
 * word that stands for all that there is to know, here, where every process of the tree finds it.
 */
#ifndef CORE_WATCHED_H
#define CORE_WATCHED_H

#include <stdbool.h>
#include <stdint.h>

/* Of a whole tree, at a time. */
#define CORE_WATCHED 16384

/* At CORE_WATCHED_AT. */
struct core_watched {
	uint64_t event;	 /* its name; unused when that is closed */
	uint64_t data;	 /* the program's word, */
	uint32_t wanted; /* the events it waits for, */
	int32_t fd;	 /* and the number that the event had where it was given */
	uint32_t turn;	 /* how often this place has been taken */
};

/* The word for that, the same one for the same; 0: there is no more room. */
uint64_t core_watch(const struct core_watched *what);

/* What @word stands for; false if it is a word of the program's. */
bool core_watched(uint64_t word, struct core_watched *what);

#endif
