/* See pump.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pump.h"

/* How a pump exits: its input came to its end, or was still open when the request was over. */
enum { INPUT_ENDED = 0, INPUT_HELD = 1, PUMP_FAILED = 2 };

/* Descriptors of a pump. */
enum { FROM, TO, FINISH };

/*
 * How long the last writers may take after the request's own process has ended: `x > file &` at the end of a script is
 * a child that has yet to open its file.
 */
#define GRACE_MS 1000

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pass_on(const char *data, ssize_t size)
{
	while (size > 0) {
		ssize_t n = write(TO, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) /* the agent has lost interest */
			_exit(INPUT_HELD);
		data += n;
		size -= n;
	}
}

static void __attribute__((noreturn)) run(void)
{
	static char buffer[65536];
	struct pollfd p[] = { { FROM, POLLIN, 0 }, { FINISH, POLLIN, 0 } };
	int flags = fcntl(FROM, F_GETFL);
	int64_t deadline = -1; /* none before FINISH */

	fcntl(FROM, F_SETFL, flags | O_NONBLOCK);
	for (;;) {
		ssize_t n = read(FROM, buffer, sizeof buffer);

		if (n == 0)
			_exit(INPUT_ENDED);
		if (n > 0) {
			pass_on(buffer, n);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			_exit(PUMP_FAILED);
		if (deadline < 0 && p[1].revents) {
			deadline = now_ms() + GRACE_MS;
			p[1].fd = -1;
		}
		if (deadline >= 0 && now_ms() >= deadline)
			_exit(INPUT_HELD);
		if (poll(p, 2, deadline < 0 ? -1 : (int)(deadline - now_ms()) + 1) < 0 && errno != EINTR)
			_exit(PUMP_FAILED);
	}
}

int pump_start(struct pump *pump, int input)
{
	int output[2], finish[2];

	*pump = (struct pump){ -1, -1, -1, 0 };
	if (pipe2(output, O_CLOEXEC))
		return -1;
	if (pipe2(finish, O_CLOEXEC)) {
		close(output[0]);
		close(output[1]);
		return -1;
	}
	pump->pid = fork();
	if (pump->pid == 0) {
		/* None of the three is one of these numbers: the agent keeps 0 to 2 open. */
		dup2(input, FROM);
		dup2(output[1], TO);
		dup2(finish[0], FINISH);
		close_range(FINISH + 1, ~0U, 0);
		signal(SIGPIPE, SIG_IGN);
		pass_on("", 1);
		run();
	}
	close(output[1]);
	close(finish[0]);
	pump->output = output[0];
	pump->finish = finish[1];
	if (pump->pid < 0) {
		int error = errno;

		pump_close(pump);
		errno = error;
		return -1;
	}
	return 0;
}

int pump_ready(struct pump *pump)
{
	char byte;
	ssize_t n;

	do
		n = read(pump->output, &byte, 1);
	while (n < 0 && errno == EINTR);
	fcntl(pump->output, F_SETFL, O_NONBLOCK);
	return n == 1 ? 0 : -1;
}

void pump_finish(struct pump *pump)
{
	if (pump->finish >= 0)
		close(pump->finish);
	pump->finish = -1;
}

int pump_reaped(struct pump *pump, pid_t pid, int status)
{
	if (pump->pid != pid)
		return 0;
	pump->pid = -1;
	pump->holders = !WIFEXITED(status) || WEXITSTATUS(status) != INPUT_ENDED;
	return 1;
}

void pump_close(struct pump *pump)
{
	pump_finish(pump);
	if (pump->output >= 0)
		close(pump->output);
	pump->output = -1;
}
