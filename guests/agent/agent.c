/*
 * The agent: answers the host's requests, one at a time, over a port that it is given.
 *
 * Each request runs in a child process in a process group of its own, with stdout and stderr on two
 * pipes, so a request that hangs, floods or dies never takes the agent with it. The port's
 * descriptor is close-on-exec, and the kernel lets a port be opened once only, so no guest command
 * can write to it. Nothing here knows that it is PID 1 of a guest: that is init.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "protocol.h"

#define CHUNK 65536
/* The exit status by which the child of a request says that it could not start; errno follows on
 * the failure pipe. */
#define CHILD_FAILED 127

struct request {
	uint32_t type;
	uint64_t nonce;
	uint32_t timeout_ms;
	uint32_t output_limit;
	char *directory; /* NUL-terminated, inside `payload` copy */
	char *body;      /* script or path, NUL-terminated */
};

struct stream {
	int fd; /* -1 once it ended */
	uint32_t frame;
	uint64_t total;
};

static int port = -1;
static int child_signals = -1;
static void (*end_agent)(const char *failure);

static void put32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = v >> (8 * i);
}

static void put64(unsigned char *p, uint64_t v)
{
	put32(p, v);
	put32(p + 4, v >> 32);
}

static uint32_t get32(const unsigned char *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const unsigned char *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The host is gone or does not speak the protocol: nothing is left to be done here. */
static void __attribute__((noreturn)) give_up(const char *why)
{
	end_agent(why);
	abort();
}

static void write_all(const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(port, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			give_up("the host closed the agent's port");
		p += n;
		size -= n;
	}
}

/* Returns 0 when the host has closed its end before the first byte. */
static int read_all(void *data, size_t size)
{
	char *p = data;
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(port, p + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			give_up("the agent's port cannot be read");
		if (n == 0) {
			if (got)
				give_up("the host closed the agent's port inside a frame");
			return 0;
		}
		got += n;
	}
	return 1;
}

static void send_frame(uint32_t type, uint64_t nonce, const void *payload, uint32_t length)
{
	static unsigned char frame[FRAME_HEADER + CHUNK];

	put32(frame, FRAME_MAGIC);
	put32(frame + 4, type);
	put64(frame + 8, nonce);
	put32(frame + 16, length);
	put32(frame + 20, 0);
	memcpy(frame + FRAME_HEADER, payload, length);
	write_all(frame, FRAME_HEADER + length);
}

static void send_ready(void)
{
	unsigned char payload[8 + sizeof(((struct utsname *)0)->release)];
	struct utsname u;
	size_t n;

	uname(&u);
	n = strlen(u.release);
	put32(payload, PROTOCOL_VERSION);
	put32(payload + 4, sysconf(_SC_NPROCESSORS_ONLN));
	memcpy(payload + 8, u.release, n);
	send_frame(FRAME_READY, 0, payload, 8 + n);
}

static void send_done(const struct request *r, uint32_t kind, uint32_t value,
		      const struct stream *out, const struct stream *err, uint64_t us)
{
	unsigned char payload[32];

	put32(payload, kind);
	put32(payload + 4, value);
	put64(payload + 8, out->total);
	put64(payload + 16, err->total);
	put64(payload + 24, us);
	send_frame(FRAME_DONE, r->nonce, payload, sizeof payload);
}

/* In the child: never returns. `in` is -1 for an input that is empty. */
static void child(const struct request *r, int in, int out, int err, int failure)
{
	static char buffer[CHUNK];
	char *const argv[] = { "sh", "-e", "-c", r->body, NULL };
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
	if (r->type != FRAME_READ) {
		execv("/bin/sh", argv);
		goto fail;
	}
	fd = open(r->body, O_RDONLY);
	if (fd < 0)
		goto fail;
	for (;;) {
		ssize_t n = read(fd, buffer, sizeof buffer);

		if (n == 0)
			_exit(0);
		if (n < 0)
			goto fail;
		for (ssize_t done = 0; done < n;) {
			ssize_t m = write(1, buffer + done, n - done);

			if (m < 0)
				goto fail;
			done += m;
		}
	}
fail:
	e = errno;
	write(failure, &e, sizeof e);
	_exit(CHILD_FAILED);
}

/* Reap whatever ended; true when `pid` did, with its status. As PID 1 the agent is also the parent
 * of every orphan. */
static int reap(pid_t pid, int *status)
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
		}
	}
	return ended;
}

/* Pass on what a pipe holds, at most one chunk. Returns bytes passed on, 0 when nothing was there. */
static size_t pass_on(const struct request *r, struct stream *s, uint64_t room)
{
	static char buffer[CHUNK];
	ssize_t n;

	if (s->fd < 0 || room == 0)
		return 0;
	n = read(s->fd, buffer, room < sizeof buffer ? room : sizeof buffer);
	if (n < 0)
		return 0;
	if (n == 0) {
		close(s->fd);
		s->fd = -1;
		return 0;
	}
	s->total += n;
	send_frame(s->frame, r->nonce, buffer, n);
	return n;
}

static void read_request(struct request *r)
{
	static unsigned char header[FRAME_HEADER];
	static unsigned char payload[FRAME_PAYLOAD_MAX + 1];
	static char directory[4096];
	uint32_t length, n;

	if (!read_all(header, sizeof header))
		give_up("the host closed the agent's port");
	length = get32(header + 16);
	if (get32(header) != FRAME_MAGIC || length > FRAME_PAYLOAD_MAX)
		give_up("a frame without the protocol's magic, or too long");
	if (length && !read_all(payload, length))
		give_up("the host closed the agent's port inside a frame");
	r->type = get32(header + 4);
	r->nonce = get64(header + 8);
	if (r->type == FRAME_END || r->type == FRAME_CLOSE || r->type == FRAME_QUIESCE)
		return;
	if (length < 12 || (n = get32(payload + 8)) > length - 12 || n >= sizeof directory)
		give_up("a request that is too short");
	payload[length] = 0;
	r->timeout_ms = get32(payload);
	r->output_limit = get32(payload + 4);
	memcpy(directory, payload + 12, n);
	directory[n] = 0;
	r->directory = directory;
	r->body = (char *)payload + 12 + n;
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
	send_frame(FRAME_QUIESCED, r->nonce, value, sizeof value);
}

static void close_pipe_end(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Milliseconds until `deadline`, at least one, as poll(2) takes them. */
static int until(uint64_t deadline, uint64_t now)
{
	uint64_t ms = deadline > now ? (deadline - now) / 1000 + 1 : 1;

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void serve(const struct request *r)
{
	struct stream out = { -1, FRAME_STDOUT, 0 };
	struct stream err = { -1, FRAME_STDERR, 0 };
	struct request other;
	uint64_t start = now_us();
	uint64_t deadline = start + (uint64_t)r->timeout_ms * 1000;
	uint32_t kind = DONE_EXITED;
	uint32_t value = 0;
	int o[2] = { -1, -1 }, e[2] = { -1, -1 }, failure[2] = { -1, -1 }, in[2] = { -1, -1 };
	int status = 0;
	int ended = 0;
	int failed_with = 0;
	pid_t pid;

	if (pipe2(o, O_CLOEXEC) || pipe2(e, O_CLOEXEC) || pipe2(failure, O_CLOEXEC) ||
	    (r->type == FRAME_RUNOPEN && pipe2(in, O_CLOEXEC))) {
		failed_with = errno;
	}
	pid = failed_with ? -1 : fork();
	if (pid < 0) {
		send_done(r, DONE_ERRNO, failed_with ? failed_with : errno, &out, &err, 0);
		for (int i = 0; i < 2; i++) {
			close_pipe_end(o[i]);
			close_pipe_end(e[i]);
			close_pipe_end(failure[i]);
			close_pipe_end(in[i]);
		}
		return;
	}
	if (pid == 0)
		child(r, in[0], o[1], e[1], failure[1]);
	setpgid(pid, pid);
	close(o[1]);
	close(e[1]);
	close(failure[1]);
	close_pipe_end(in[0]);
	out.fd = o[0];
	err.fd = e[0];
	fcntl(out.fd, F_SETFL, O_NONBLOCK);
	fcntl(err.fd, F_SETFL, O_NONBLOCK);

	while (!ended) {
		struct pollfd p[4] = {
			{ out.fd, POLLIN, 0 },
			{ err.fd, POLLIN, 0 },
			{ child_signals, POLLIN, 0 },
			{ port, in[1] < 0 ? 0 : POLLIN, 0 }, /* POLLHUP: the host is gone */
		};
		uint64_t t = now_us();
		uint64_t used = out.total + err.total;

		if (kind == DONE_EXITED && t >= deadline) {
			kind = DONE_TIMED_OUT;
			value = r->timeout_ms;
			kill(-pid, SIGKILL);
		}
		if (kind == DONE_EXITED && used >= r->output_limit) {
			kind = DONE_FLOODED;
			value = r->output_limit;
			kill(-pid, SIGKILL);
		}
		if (kind != DONE_EXITED) /* killed: only its end is waited for */
			p[0].fd = p[1].fd = -1;
		if (poll(p, 4, kind == DONE_EXITED ? until(deadline, t) : -1) < 0 && errno != EINTR)
			give_up("poll failed");
		if (p[3].revents & POLLHUP)
			give_up("the host closed the agent's port during a request");
		if (p[3].revents & POLLIN) {
			read_request(&other);
			if (other.type == FRAME_QUIESCE) {
				quiesce(&other);
			} else if (other.type == FRAME_CLOSE && other.nonce == r->nonce) {
				close_pipe_end(in[1]);
				in[1] = -1;
			} else {
				give_up("a request inside another one");
			}
		}
		if (p[0].revents)
			pass_on(r, &out, r->output_limit - used);
		if (p[1].revents)
			pass_on(r, &err, r->output_limit - (out.total + err.total));
		if (p[2].revents)
			ended = reap(pid, &status);
	}
	/* What the process wrote before it ended is in the pipes. A grandchild that lives on may hold
	 * them open: its later output belongs to no step. */
	if (kind == DONE_EXITED) {
		for (;;) {
			size_t n = pass_on(r, &out, r->output_limit - (out.total + err.total));

			n += pass_on(r, &err, r->output_limit - (out.total + err.total));
			if (!n)
				break;
		}
		if (out.total + err.total >= r->output_limit) {
			kind = DONE_FLOODED;
			value = r->output_limit;
		} else if (read(failure[0], &failed_with, sizeof failed_with) == sizeof failed_with) {
			kind = DONE_ERRNO;
			value = failed_with;
		} else if (WIFSIGNALED(status)) {
			kind = DONE_SIGNALLED;
			value = WTERMSIG(status);
		} else {
			value = WEXITSTATUS(status);
		}
	}
	close_pipe_end(out.fd);
	close_pipe_end(err.fd);
	close(failure[0]);
	close_pipe_end(in[1]);
	send_done(r, kind, value, &out, &err, now_us() - start);
}

void agent(int the_port, void (*end)(const char *failure))
{
	struct request request;
	sigset_t children;

	port = the_port;
	end_agent = end;
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	child_signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child_signals < 0)
		give_up("signalfd failed");
	send_ready();
	for (;;) {
		read_request(&request);
		switch (request.type) {
		case FRAME_END:
			end_agent(NULL);
			abort();
		case FRAME_CLOSE:
			break;
		case FRAME_QUIESCE:
			quiesce(&request);
			break;
		case FRAME_RUN:
		case FRAME_RUNOPEN:
		case FRAME_READ:
			serve(&request);
			break;
		default:
			give_up("a request of an unknown type");
		}
	}
}
