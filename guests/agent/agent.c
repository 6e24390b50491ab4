/*
 * The agent: answers the host's requests, one at a time, over a port that it is given.
 *
 * Each request runs in a child process in a process group of its own, with stdout and stderr on two
 * pipes that are read by a pump each (pump.h), or on a terminal, so a request that hangs, floods or dies
 * never takes the agent with it. When a request has taken long enough is the host's to say, by its own clock: the
 * guest's may be wrong. The port's descriptor is close-on-exec, and the kernel lets a port be opened
 * once only, so no guest command can write to it. Nothing here knows that it is PID 1 of a guest: that
 * is init.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "child.h"
#include "frame.h"
#include "input.h"
#include "protocol.h"
#include "pump.h"
#include "request.h"
#include "terminal.h"

struct stream {
	struct pump pump;
	uint32_t frame;
	uint64_t total;
};

/* How long what a terminal has is read, once its process has ended: others may go on writing to it. */
#define TERMINAL_REST_US 1000000

static int child_signals = -1;
static const char *shell;
static const char *kernel_log;
/* Open from the start: whatever is mounted over /proc, they are the kernel's. */
static int tainted = -1, levels = -1;

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Where the kernel's messages are divided: those before the mark came before the end of the request, 0
 * being the greeting. The host reads it on the console, which shows messages of warning level and above.
 * Each open has its own limit of ten lines in five seconds (devkmsg_open, kernel/printk/printk.c). A mark
 * that cannot be written is missed by the host. */
static void mark(uint64_t nonce)
{
	char line[64];
	int n = snprintf(line, sizeof line, "<4>goldtrace: end of request %016llx\n", (unsigned long long)nonce);
	int fd = open(kernel_log, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return;
	write(fd, line, n);
	close(fd);
}

static void send_ready(uint64_t nonce)
{
	unsigned char payload[8 + sizeof(((struct utsname *)0)->release)];
	struct utsname u;
	size_t n;

	uname(&u);
	n = strlen(u.release);
	put32(payload, PROTOCOL_VERSION);
	put32(payload + 4, sysconf(_SC_NPROCESSORS_ONLN));
	memcpy(payload + 8, u.release, n);
	frame_send(FRAME_READY, nonce, payload, 8 + n);
}

/* The first `n` numbers in a file below /proc/sys/kernel. */
static void read_numbers(int fd, uint64_t *numbers, int n)
{
	char text[64];
	char *p = text, *end;
	ssize_t size = pread(fd, text, sizeof text - 1, 0);

	if (size < 0)
		give_up("the kernel's state cannot be read");
	text[size] = 0;
	for (int i = 0; i < n; i++, p = end) {
		numbers[i] = strtoull(p, &end, 10);
		if (end == p)
			give_up("the kernel's state is not a number");
	}
}

static void send_done(const struct request *r, uint32_t kind, uint32_t value,
		      const struct stream *out, const struct stream *err, uint64_t us)
{
	unsigned char payload[56];
	uint64_t taint, level[2];

	read_numbers(tainted, &taint, 1);
	read_numbers(levels, level, 2);
	put32(payload, kind);
	put32(payload + 4, value);
	put64(payload + 8, out->total);
	put64(payload + 16, err->total);
	put64(payload + 24, us);
	put32(payload + 32, out->pump.holders);
	put32(payload + 36, err->pump.holders);
	put64(payload + 40, taint);
	put32(payload + 48, level[0]);
	put32(payload + 52, level[1]);
	mark(r->nonce);
	frame_send(FRAME_DONE, r->nonce, payload, sizeof payload);
}

/* Reap whatever ended; true when `pid` did, with its status. As PID 1 the agent is also the parent
 * of every orphan. */
static int reap(pid_t pid, int *status, struct pump *out, struct pump *err)
{
	struct signalfd_siginfo drained;
	int ended = 0;
	int s;
	pid_t p;

	while (read(child_signals, &drained, sizeof drained) > 0)
		;
	while ((p = waitpid(-1, &s, WNOHANG)) > 0) {
		if (p == pid) {
			*status = s;
			ended = 1;
		} else if (!pump_reaped(out, p, s)) {
			pump_reaped(err, p, s);
		}
	}
	return ended;
}

/* Send on what has come of a stream, at most one chunk. Returns whether there was something, or its end. */
static int pass_on(const struct request *r, struct stream *s, uint64_t room)
{
	static char buffer[FRAME_CHUNK];
	ssize_t n;

	if (s->pump.output < 0 || room == 0)
		return 0;
	n = read(s->pump.output, buffer, room < sizeof buffer ? room : sizeof buffer);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) { /* a terminal's end is EIO */
		close(s->pump.output);
		s->pump.output = -1;
		return 1;
	}
	s->total += n;
	frame_send(s->frame, r->nonce, buffer, n);
	return 1;
}

/*
 * What a terminal has when its process has ended. What is written to it later is not waited for: a read finds all that
 * was written before (n_tty_read, drivers/tty/n_tty.c, flushes the buffer first).
 */
static void pass_on_rest(const struct request *r, struct stream *s)
{
	uint64_t end = now_us() + TERMINAL_REST_US;

	while (s->pump.output >= 0 && s->total < r->output_limit && now_us() < end)
		if (!pass_on(r, s, r->output_limit - s->total))
			break;
	s->pump.holders = s->pump.output >= 0;
	pump_close(&s->pump);
}

/* It counts at a fixed rate from the machine's start; the kernel's clocks are made of it. Only powerpc
 * has one: 0 elsewhere. */
static uint64_t timebase(void)
{
#ifdef __powerpc64__
	return __builtin_ppc_get_timebase();
#else
	return 0;
#endif
}

/* A process runs on a CPU only when no interrupt is being handled there: once the agent has run on
 * each, every handler that had begun has ended. */
static void quiesce(const struct request *r)
{
	cpu_set_t all, one;
	unsigned char value[8];

	if (sched_getaffinity(0, sizeof all, &all))
		give_up("no CPU to run on");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof one, &one);
	}
	sched_setaffinity(0, sizeof all, &all);
	put64(value, timebase());
	frame_send(FRAME_QUIESCED, r->nonce, value, sizeof value);
}

/* Write what fits of the input, and ask for more when nothing is left. */
static void pass_input(const struct request *r, struct input *in)
{
	if (input_is_busy(in) && input_write(in))
		frame_send(FRAME_TAKEN, r->nonce, NULL, 0);
}

/* A frame of the host's that comes while a request is served. Returns whether it asks for the request's end. */
static int interrupt(const struct request *r, const struct child *child, struct input *in)
{
	struct request other;

	request_read(&other);
	if (other.type == FRAME_QUIESCE) {
		quiesce(&other);
		return 0;
	}
	if (other.nonce != r->nonce)
		give_up("a request inside another one");
	switch (other.type) {
	case FRAME_KILL:
		return 1;
	case FRAME_CLOSE:
		input_end(in);
		break;
	case FRAME_INPUT:
		if (input_is_busy(in))
			give_up("an INPUT before the last one was taken");
		input_take(in, other.content, other.content_length);
		pass_input(r, in);
		break;
	case FRAME_RESIZE:
		if (child->terminal >= 0)
			terminal_resize(child->terminal, other.rows, other.columns);
		break;
	default:
		give_up("a request inside another one");
	}
	return 0;
}

static void serve(const struct request *r)
{
	static struct input in;
	struct stream out = { { -1, -1, -1, 0 }, FRAME_STDOUT, 0 };
	struct stream err = { { -1, -1, -1, 0 }, FRAME_STDERR, 0 };
	struct child child;
	uint64_t begin = now_us();
	uint32_t kind = DONE_EXITED;
	uint32_t value = 0;
	int status = 0;
	int ended = 0;
	int failed_with = 0;

	if (child_start(&child, r, shell, &out.pump, &err.pump)) {
		send_done(r, DONE_ERRNO, errno, &out, &err, 0);
		return;
	}
	input_open(&in, child.input);
	/* A process that lives on may hold the output open: the pumps end all the same, once the child has. */
	while (!ended || (kind == DONE_EXITED && (out.pump.pid >= 0 || err.pump.pid >= 0 ||
						  out.pump.output >= 0 || err.pump.output >= 0))) {
		uint64_t room = r->output_limit - (out.total + err.total);
		struct pollfd p[] = {
			{ out.pump.output, POLLIN, 0 },
			{ err.pump.output, POLLIN, 0 },
			{ child_signals, POLLIN, 0 },
			{ frame_port(), POLLIN, 0 }, /* POLLHUP: the host is gone */
			{ input_is_busy(&in) ? in.fd : -1, POLLOUT, 0 },
		};

		if (kind == DONE_EXITED && room == 0) {
			kind = DONE_FLOODED;
			value = r->output_limit;
			child_kill(&child);
			continue;
		}
		if (kind != DONE_EXITED) /* killed: only its end is waited for */
			p[0].fd = p[1].fd = -1;
		if (poll(p, sizeof p / sizeof p[0], -1) < 0 && errno != EINTR)
			give_up("poll failed");
		if (p[3].revents & POLLHUP)
			give_up("the host closed the agent's port during a request");
		if ((p[3].revents & POLLIN) && interrupt(r, &child, &in) && kind == DONE_EXITED) {
			kind = DONE_TIMED_OUT;
			child_kill(&child);
		}
		if (p[4].revents)
			pass_input(r, &in);
		if (p[0].revents)
			pass_on(r, &out, room);
		if (p[1].revents)
			pass_on(r, &err, r->output_limit - (out.total + err.total));
		if (p[2].revents && reap(child.pid, &status, &out.pump, &err.pump)) {
			ended = 1;
			pump_finish(&out.pump);
			pump_finish(&err.pump);
			if (child.terminal >= 0 && kind == DONE_EXITED)
				pass_on_rest(r, &out);
		}
	}
	if (kind == DONE_EXITED) {
		if (out.total + err.total >= r->output_limit) {
			kind = DONE_FLOODED;
			value = r->output_limit;
		} else if (child_failed(&child, &failed_with)) {
			kind = DONE_ERRNO;
			value = failed_with;
		} else if (WIFSIGNALED(status)) {
			kind = DONE_SIGNALLED;
			value = WTERMSIG(status);
		} else {
			value = WEXITSTATUS(status);
		}
	}
	pump_close(&out.pump);
	pump_close(&err.pump);
	input_close(&in);
	child_close(&child);
	send_done(r, kind, value, &out, &err, now_us() - begin);
}

/* A guest that goes on from a snapshot has its time and its random numbers. */
static void resume(const struct request *r, const struct agent_calls *calls)
{
	const unsigned char *payload = (const unsigned char *)r->content;

	calls->resume(get64(payload), payload + 8, r->content_length - 8);
	send_ready(r->nonce);
}

void agent(int the_port, const char *the_shell, const char *log, const struct agent_calls *calls)
{
	struct request request;
	sigset_t children;

	frame_open(the_port, calls->end);
	shell = the_shell;
	kernel_log = log;
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	child_signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child_signals < 0)
		give_up("signalfd failed");
	tainted = open("/proc/sys/kernel/tainted", O_RDONLY | O_CLOEXEC);
	levels = open("/proc/sys/kernel/printk", O_RDONLY | O_CLOEXEC);
	if (tainted < 0 || levels < 0)
		give_up("the kernel's state cannot be opened");
	mark(0);
	send_ready(0);
	for (;;) {
		request_read(&request);
		switch (request.type) {
		case FRAME_END:
			frame_end();
		case FRAME_CLOSE:
		case FRAME_KILL:
		case FRAME_INPUT:
		case FRAME_RESIZE:
			break;
		case FRAME_QUIESCE:
			quiesce(&request);
			break;
		case FRAME_RESUME:
			resume(&request, calls);
			break;
		case FRAME_RUN:
		case FRAME_RUNOPEN:
		case FRAME_TERMINAL:
		case FRAME_READ:
		case FRAME_WRITE:
		case FRAME_APPEND:
			serve(&request);
			break;
		default:
			give_up("a request of an unknown type");
		}
	}
}
