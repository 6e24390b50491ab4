#ifndef GOLDTRACE_TIMERS_H
#define GOLDTRACE_TIMERS_H

/*
 * Make every CPU of a guest that was restored program its timer again, where QEMU has not restored it. Returns 0, or -1
 * or 1 when that failed. The clock is wrong afterwards.
 */
int restart_timers(void);

#endif
