/* See timers.h. */
#include <sched.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "timers.h"

#ifdef __powerpc64__
#define HOUR 3600

/* Call `work` on each CPU, one after the other. */
static int on_each_cpu(int (*work)(int turn, time_t begin), time_t begin)
{
	cpu_set_t all, one;
	int turn = 0, failed = sched_getaffinity(0, sizeof all, &all);

	for (int cpu = 0; cpu < CPU_SETSIZE && !failed; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		failed = sched_setaffinity(0, sizeof one, &one) || work(turn++, begin);
	}
	return sched_setaffinity(0, sizeof all, &all) || failed;
}

static int timers[CPU_SETSIZE];

/* Start a timer on this CPU, for an hour after `begin`. */
static int start_timer(int turn, time_t begin)
{
	struct itimerspec hour = { .it_value = { .tv_sec = begin + HOUR } };

	timers[turn] = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
	return timers[turn] < 0 || timerfd_settime(timers[turn], TFD_TIMER_ABSTIME, &hour, NULL);
}

/* Set the clock to a time after that, another one in each turn. */
static int pass_hour(int turn, time_t begin)
{
	struct timespec later = { .tv_sec = begin + 2 * HOUR + turn };

	return clock_settime(CLOCK_REALTIME, &later);
}

/*
 * QEMU 7.2 restores no timer of a pseries guest's decrementers: a CPU for whose next timer the decrementer was set
 * waits for ever, and the kernel sets it only for an earlier one. A timer of the real-time clock becomes that when the
 * clock is set to a time after it: the other CPUs are then interrupted to set theirs (clock_was_set,
 * kernel/time/hrtimer.c), so that it takes a turn on each CPU.
 */
int restart_timers(void)
{
	time_t begin = time(NULL);
	int failed = on_each_cpu(start_timer, begin) || on_each_cpu(pass_hour, begin);

	for (int turn = 0; turn < CPU_SETSIZE && timers[turn] > 0; turn++)
		close(timers[turn]);
	return failed;
}
#else
int restart_timers(void)
{
	return 0;
}
#endif
