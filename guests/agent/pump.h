#ifndef GOLDTRACE_PUMP_H
#define GOLDTRACE_PUMP_H

#include <sys/types.h>

/*
 * Passes on what a request's processes write to a pipe, in a process of its own.
 *
 * A splice(2) into a pipe holds the pipe's mutex while it waits for data (splice_file_to_pipe, fs/splice.c), and then a
 * read of the pipe blocks, whatever its flags and whatever poll(2) said: `cat trace_pipe` does that for as long as
 * nothing is traced. It is the pump that blocks then, and never the agent.
 */
struct pump {
	pid_t pid;   /* -1 once it has been reaped, or where there is none */
	int output;  /* what it passes on, non-blocking once it is ready; -1 once that has ended */
	int finish;  /* closed to tell the pump that the request is over; -1 then */
	int holders; /* once reaped: some process still holds the pipe open */
};

/* Start a pump from `input`, which stays the caller's. Returns 0, or -1 with errno. */
int pump_start(struct pump *pump, int input);

/*
 * Wait until a pump has closed all that it has inherited: until then it holds the other pipes open, as a process that
 * the request left behind would. Returns 0, or -1.
 */
int pump_ready(struct pump *pump);

/* The request is over: pass on what comes until the pipe is closed, or for a second, and end. */
void pump_finish(struct pump *pump);

/* Note that the process `pid` has ended with `status`; returns whether it was the pump. */
int pump_reaped(struct pump *pump, pid_t pid, int status);

/* Close what is left of it. */
void pump_close(struct pump *pump);

#endif
