/*
 * The agent as a process of the host, with a socket as standard input for its port: for
 * harness/crates/vm/tests/agent/. It exits with 0 after END and with 3 when it gives up, with the reason on
 * standard error, and with 128 and the signal's number when a signal ended it.
 *
 * In a guest the machine ends with the agent. Here a parent stays, to which the scripts of an agent that has ended
 * fall (prctl(2), PR_SET_CHILD_SUBREAPER), and kills them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

static void end(const char *failure)
{
	if (failure)
		fprintf(stderr, "%s\n", failure);
	exit(failure ? 3 : 0);
}

/* The host's clock and random numbers are left alone: what they would be set to goes to the log. */
static void resume(uint64_t now, const void *random, uint32_t size)
{
	const unsigned char *bytes = random;
	FILE *log = fopen(getenv("GOLDTRACE_KERNEL_LOG"), "a");

	fprintf(log, "resume at %llu with", (unsigned long long)now);
	for (uint32_t i = 0; i < size; i++)
		fprintf(log, " %02x", bytes[i]);
	fprintf(log, "\n");
	fclose(log);
}

/* As a kernel starts its PID 1. What starts tests may ignore signals: nohup, a shell that runs them with `&`. */
static void take_every_signal(void)
{
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
}

static void run_agent(void)
{
	static const struct agent_calls calls = { end, resume };
	int port = fcntl(0, F_DUPFD_CLOEXEC, 10);
	const char *log = getenv("GOLDTRACE_KERNEL_LOG");
	sigset_t children;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	take_every_signal();
	close(0);
	open("/dev/null", O_RDONLY);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	agent(port, "/bin/bash", log ? log : "/dev/null", &calls);
}

/* Kill every child and its children, which fall to us as theirs end, until there is none. */
static void kill_what_is_left(void)
{
	char path[64];
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	for (;;) {
		FILE *children = fopen(path, "r");

		if (!children) {
			perror(path);
			exit(4);
		}
		while (fscanf(children, "%d", &pid) == 1)
			kill(pid, SIGKILL);
		fclose(children);
		if (wait(NULL) < 0 && errno == ECHILD)
			return;
	}
}

int main(void)
{
	int status;
	pid_t agent;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	agent = fork();
	if (agent == 0)
		run_agent();
	close(0);
	if (agent < 0 || waitpid(agent, &status, 0) != agent) {
		perror("agent_on_host");
		exit(4);
	}
	kill_what_is_left();
	_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}
