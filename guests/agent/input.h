#ifndef GOLDTRACE_INPUT_H
#define GOLDTRACE_INPUT_H

#include <stdint.h>

#include "protocol.h"

/* The standard input of a request, as the host sends it: a part at a time. */
struct input {
	int fd;                 /* where it goes, non-blocking; -1 once that has ended */
	uint32_t size, written; /* of the part that is being written; `size` is 0 when there is none */
	int ends;               /* no part comes after this one */
	unsigned char part[FRAME_CHUNK];
};

/* Begin with the input that goes to `fd`, which is the input's from now on; -1 for none, where all is dropped. */
void input_open(struct input *in, int fd);

/* Whether a part is being written. */
int input_is_busy(const struct input *in);

/* Take a part of at most FRAME_CHUNK bytes, when none is being written. */
void input_take(struct input *in, const void *part, uint32_t size);

/* Write what fits. Returns whether the part is done with: also when nothing reads it any more. */
int input_write(struct input *in);

/* End it, after the part that is being written. */
void input_end(struct input *in);

/* End it now. */
void input_close(struct input *in);

#endif
