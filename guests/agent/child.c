/* See child.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "child.h"
#include "file.h"
#include "protocol.h"
#include "terminal.h"

/* The exit status by which the child of a request says that it could not start. */
#define CHILD_FAILED 127

/* The child's ends. `in` is -1 for an input that is empty. */
struct ends {
	int in, out, err, failure;
};

/* In the child: never returns. */
static void __attribute__((noreturn)) run(const struct request *r, const char *shell, const struct ends *ends)
{
	char *const argv[] = { "sh", "-e", "-o", "pipefail", "-c", r->body, NULL };
	sigset_t none;
	int e;

	if (r->type == FRAME_TERMINAL) {
		if (terminal_control(ends->in))
			goto fail;
	} else {
		setpgid(0, 0);
	}
	dup2(ends->in < 0 ? open("/dev/null", O_RDONLY) : ends->in, 0);
	dup2(ends->out, 1);
	dup2(ends->err, 2);
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
	write(ends->failure, &e, sizeof e);
	_exit(CHILD_FAILED);
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Whether processes that the agent does not know get a request's streams. */
static int runs_script(const struct request *r)
{
	return r->type == FRAME_RUN || r->type == FRAME_RUNOPEN;
}

/* Read a pipe without a pump: only the agent's own child writes to it, and splices nothing. */
static void read_directly(struct pump *pump, int *end)
{
	pump->output = *end;
	*end = -1;
	fcntl(pump->output, F_SETFL, O_NONBLOCK);
}

/* The pipes of a request's streams, with a pump for each that a script writes to. */
static int open_pipes(struct child *child, const struct request *r, struct ends *ends, struct pump *out,
		      struct pump *err)
{
	int o[2] = { -1, -1 }, e[2] = { -1, -1 }, in[2] = { -1, -1 };
	int failed = pipe2(o, O_CLOEXEC) || pipe2(e, O_CLOEXEC) ||
		     (r->type == FRAME_RUNOPEN && pipe2(in, O_CLOEXEC)) ||
		     (runs_script(r) && (pump_start(out, o[0]) || pump_start(err, e[0]) || pump_ready(out) ||
					 pump_ready(err)));
	int error = errno;

	if (!failed && !runs_script(r)) {
		read_directly(out, &o[0]);
		read_directly(err, &e[0]);
	}
	close_end(&o[0]);
	close_end(&e[0]);
	ends->in = in[0];
	ends->out = o[1];
	ends->err = e[1];
	child->input = in[1];
	errno = error;
	return failed ? -1 : 0;
}

/* The terminal is all three of the child's streams, and read without blocking. */
static int open_terminal(struct child *child, const struct request *r, struct ends *ends, struct pump *out)
{
	if (terminal_open(r->rows, r->columns, &child->terminal, &ends->in))
		return -1;
	fcntl(child->terminal, F_SETFL, fcntl(child->terminal, F_GETFL) | O_NONBLOCK);
	ends->out = fcntl(ends->in, F_DUPFD_CLOEXEC, 0);
	ends->err = fcntl(ends->in, F_DUPFD_CLOEXEC, 0);
	out->output = fcntl(child->terminal, F_DUPFD_CLOEXEC, 0);
	child->input = fcntl(child->terminal, F_DUPFD_CLOEXEC, 0);
	return ends->out < 0 || ends->err < 0 || out->output < 0 || child->input < 0 ? -1 : 0;
}

int child_start(struct child *child, const struct request *r, const char *shell, struct pump *out, struct pump *err)
{
	struct ends ends = { -1, -1, -1, -1 };
	int failure[2] = { -1, -1 };
	int error;

	*child = (struct child){ -1, -1, -1, -1 };
	*out = *err = (struct pump){ -1, -1, -1, 0 };
	if (!pipe2(failure, O_CLOEXEC) && !(r->type == FRAME_TERMINAL ? open_terminal(child, r, &ends, out)
								      : open_pipes(child, r, &ends, out, err))) {
		ends.failure = failure[1];
		child->pid = fork();
	}
	error = errno;
	if (child->pid == 0)
		run(r, shell, &ends);
	close_end(&ends.in);
	close_end(&ends.out);
	close_end(&ends.err);
	close_end(&failure[1]);
	if (child->pid < 0) {
		close_end(&failure[0]);
		close_end(&child->input);
		close_end(&child->terminal);
		pump_close(out);
		pump_close(err);
		errno = error;
		return -1;
	}
	/* A leader of a session has a group already. */
	if (r->type != FRAME_TERMINAL)
		setpgid(child->pid, child->pid);
	child->failure = failure[0];
	return 0;
}

void child_kill(const struct child *child)
{
	/* It has no group yet when it has still to begin its session. */
	if (kill(-child->pid, SIGKILL))
		kill(child->pid, SIGKILL);
}

int child_failed(const struct child *child, int *error)
{
	return read(child->failure, error, sizeof *error) == sizeof *error;
}

void child_close(struct child *child)
{
	close_end(&child->failure);
	close_end(&child->terminal);
}
