/*
 * The agent: answers the host's requests, one at a time, over a port that it is given.
 *
 * Each request runs in a child process in a process group of its own, with stdout and stderr on two
 * pipes that are read by a pump each (pump.h), so a request that hangs, floods or dies never takes the
 * agent with it. When a request has taken long enough is the host's to say, by its own clock: the
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
#include "file.h"
#include "frame.h"
#include "protocol.h"
#include "pump.h"

/* The exit status by which the child of a request says that it could not start; errno follows on
 * the failure pipe. */
#define CHILD_FAILED 127

struct request {
	uint32_t type;
	uint64_t nonce;
	uint32_t output_limit;
	char *directory; /* NUL-terminated, inside `payload` copy */
	char *body;      /* script or path, NUL-terminated */
	char *content;   /* of WRITE and APPEND; the whole payload of RESUME */
	uint32_t content_length;
};

struct stream {
	struct pump pump;
	uint32_t frame;
	uint64_t total;
};

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

/* In the child: never returns. `in` is -1 for an input that is empty. */
static void child(const struct request *r, int in, int out, int err, int failure)
{
	char *const argv[] = { "sh", "-e", "-o", "pipefail", "-c", r->body, NULL };
	int fd = in < 0 ? open("/dev/null", O_RDONLY) : in;
	sigset_t none;
	int e;

	setpgid(0, 0);
	dup2(fd, 0);
	dup2(out, 1);
	dup2(err, 2);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (r->directory[0] && chdir(r->directory) < 0)
		goto fail;
	switch (r->type) {
	case FRAME_READ:
		if (read_file(r->body) == 0)
			_exit(0);
		break;
	case FRAME_WRITE:
	case FRAME_APPEND:
		if (write_file(r->body, r->type == FRAME_APPEND, r->content, r->content_length) == 0)
			_exit(0);
		break;
	default:
		execv(shell, argv);
	}
fail:
	e = errno;
	write(failure, &e, sizeof e);
	_exit(CHILD_FAILED);
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

/* Send on what a pump has passed on, at most one chunk. */
static void pass_on(const struct request *r, struct stream *s, uint64_t room)
{
	static char buffer[FRAME_CHUNK];
	ssize_t n;

	if (s->pump.output < 0 || room == 0)
		return;
	n = read(s->pump.output, buffer, room < sizeof buffer ? room : sizeof buffer);
	if (n < 0)
		return;
	if (n == 0) {
		close(s->pump.output);
		s->pump.output = -1;
		return;
	}
	s->total += n;
	frame_send(s->frame, r->nonce, buffer, n);
}

static void read_request(struct request *r)
{
	static unsigned char header[FRAME_HEADER];
	static unsigned char payload[FRAME_PAYLOAD_MAX + 1];
	static char directory[4096];
	uint32_t length, n;

	if (!frame_read(header, sizeof header))
		give_up("the host closed the agent's port");
	length = get32(header + 16);
	if (get32(header) != FRAME_MAGIC || length > FRAME_PAYLOAD_MAX)
		give_up("a frame without the protocol's magic, or too long");
	if (length && !frame_read(payload, length))
		give_up("the host closed the agent's port inside a frame");
	r->type = get32(header + 4);
	r->nonce = get64(header + 8);
	if (r->type == FRAME_END || r->type == FRAME_CLOSE || r->type == FRAME_QUIESCE ||
	    r->type == FRAME_KILL)
		return;
	if (r->type == FRAME_RESUME) {
		if (length <= 8 || length > 8 + RESUME_ENTROPY_MAX)
			give_up("a RESUME of another length");
		r->content = (char *)payload;
		r->content_length = length;
		return;
	}
	if (length < 8 || (n = get32(payload + 4)) > length - 8 || n >= sizeof directory)
		give_up("a request that is too short");
	payload[length] = 0;
	r->output_limit = get32(payload);
	memcpy(directory, payload + 8, n);
	directory[n] = 0;
	r->directory = directory;
	r->body = (char *)payload + 8 + n;
	if (r->type == FRAME_WRITE || r->type == FRAME_APPEND) {
		char *end = (char *)payload + length;

		r->content = memchr(r->body, 0, end - r->body);
		if (!r->content++)
			give_up("a request to write a file without the end of its path");
		r->content_length = end - r->content;
	}
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

static void close_pipe_end(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Start the child of a request and the pumps of its output. Returns the child, or -1 with errno. */
static pid_t start(const struct request *r, struct stream *out, struct stream *err, int *input, int *failure)
{
	int o[2] = { -1, -1 }, e[2] = { -1, -1 }, f[2] = { -1, -1 }, in[2] = { -1, -1 };
	pid_t pid = -1;
	int error;

	if (!pipe2(o, O_CLOEXEC) && !pipe2(e, O_CLOEXEC) && !pipe2(f, O_CLOEXEC) &&
	    (r->type != FRAME_RUNOPEN || !pipe2(in, O_CLOEXEC)) && !pump_start(&out->pump, o[0]) &&
	    !pump_start(&err->pump, e[0]) && !pump_ready(&out->pump) && !pump_ready(&err->pump))
		pid = fork();
	error = errno;
	if (pid == 0)
		child(r, in[0], o[1], e[1], f[1]);
	close_pipe_end(o[0]);
	close_pipe_end(o[1]);
	close_pipe_end(e[0]);
	close_pipe_end(e[1]);
	close_pipe_end(f[1]);
	close_pipe_end(in[0]);
	if (pid < 0) {
		close_pipe_end(f[0]);
		close_pipe_end(in[1]);
		pump_close(&out->pump);
		pump_close(&err->pump);
		errno = error;
		return -1;
	}
	setpgid(pid, pid);
	*failure = f[0];
	*input = in[1];
	return pid;
}

static void serve(const struct request *r)
{
	struct stream out = { { -1, -1, -1, 0 }, FRAME_STDOUT, 0 };
	struct stream err = { { -1, -1, -1, 0 }, FRAME_STDERR, 0 };
	struct request other;
	uint64_t begin = now_us();
	uint32_t kind = DONE_EXITED;
	uint32_t value = 0;
	int input = -1, failure = -1;
	int status = 0;
	int ended = 0;
	int failed_with = 0;
	pid_t pid = start(r, &out, &err, &input, &failure);

	if (pid < 0) {
		send_done(r, DONE_ERRNO, errno, &out, &err, 0);
		return;
	}
	/* A process that lives on may hold the output open: the pumps end all the same, once the child has. */
	while (!ended || (kind == DONE_EXITED && (out.pump.pid >= 0 || err.pump.pid >= 0 ||
						  out.pump.output >= 0 || err.pump.output >= 0))) {
		uint64_t room = r->output_limit - (out.total + err.total);
		struct pollfd p[4] = {
			{ out.pump.output, POLLIN, 0 },
			{ err.pump.output, POLLIN, 0 },
			{ child_signals, POLLIN, 0 },
			{ frame_port(), POLLIN, 0 }, /* POLLHUP: the host is gone */
		};

		if (kind == DONE_EXITED && room == 0) {
			kind = DONE_FLOODED;
			value = r->output_limit;
			kill(-pid, SIGKILL);
			continue;
		}
		if (kind != DONE_EXITED) /* killed: only its end is waited for */
			p[0].fd = p[1].fd = -1;
		if (poll(p, 4, -1) < 0 && errno != EINTR)
			give_up("poll failed");
		if (p[3].revents & POLLHUP)
			give_up("the host closed the agent's port during a request");
		if (p[3].revents & POLLIN) {
			read_request(&other);
			if (other.type == FRAME_QUIESCE) {
				quiesce(&other);
			} else if (other.type == FRAME_KILL && other.nonce == r->nonce) {
				if (kind == DONE_EXITED) {
					kind = DONE_TIMED_OUT;
					kill(-pid, SIGKILL);
				}
			} else if (other.type == FRAME_CLOSE && other.nonce == r->nonce) {
				close_pipe_end(input);
				input = -1;
			} else {
				give_up("a request inside another one");
			}
		}
		if (p[0].revents)
			pass_on(r, &out, room);
		if (p[1].revents)
			pass_on(r, &err, r->output_limit - (out.total + err.total));
		if (p[2].revents && reap(pid, &status, &out.pump, &err.pump)) {
			ended = 1;
			pump_finish(&out.pump);
			pump_finish(&err.pump);
		}
	}
	if (kind == DONE_EXITED) {
		if (out.total + err.total >= r->output_limit) {
			kind = DONE_FLOODED;
			value = r->output_limit;
		} else if (read(failure, &failed_with, sizeof failed_with) == sizeof failed_with) {
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
	close(failure);
	close_pipe_end(input);
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
		read_request(&request);
		switch (request.type) {
		case FRAME_END:
			frame_end();
		case FRAME_CLOSE:
		case FRAME_KILL:
			break;
		case FRAME_QUIESCE:
			quiesce(&request);
			break;
		case FRAME_RESUME:
			resume(&request, calls);
			break;
		case FRAME_RUN:
		case FRAME_RUNOPEN:
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
