#ifndef GOLDTRACE_RESUME_H
#define GOLDTRACE_RESUME_H

#include <stdint.h>

/*
 * What a guest needs that was restored from a snapshot: timers that expire, a clock that is right, in nanoseconds since
 * 1970, and random numbers that no other guest has. Returns NULL, or what failed.
 */
const char *resume_guest(uint64_t now, const void *random, uint32_t size);

#endif
