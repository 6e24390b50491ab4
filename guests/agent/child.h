#ifndef GOLDTRACE_CHILD_H
#define GOLDTRACE_CHILD_H

#include <sys/types.h>

#include "pump.h"
#include "request.h"

/* The process that does what a request asks for, in a process group of its own. */
struct child {
	pid_t pid;
	int failure;  /* errno of what it could not start, open, read or write follows on it, with status 127 */
	int input;    /* its standard input: -1 when that is empty */
	int terminal; /* the master of its terminal: -1 when it has none */
};

/*
 * Start the process of a request, whose scripts `shell` runs. Its output comes from `out` and `err`, which have pumps
 * for scripts alone; a terminal has `out` only (pump.h). Returns 0, or -1 with errno, and nothing is left then.
 */
int child_start(struct child *child, const struct request *r, const char *shell, struct pump *out, struct pump *err);

/* Kill all its processes. */
void child_kill(const struct child *child);

/* Whether it has said that it could not start: then errno is in `error`. */
int child_failed(const struct child *child, int *error);

/* Close what is left of it, but for its input. */
void child_close(struct child *child);

#endif
