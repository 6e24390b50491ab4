/*
 * The agent as a process of the host, with a socket as standard input for its port: for
 * harness/crates/vm/tests/agent.rs. It exits with 0 after END and with 3 when it gives up, with the reason on
 * standard error.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent.h"

static void end(const char *failure)
{
	if (failure)
		fprintf(stderr, "%s\n", failure);
	exit(failure ? 3 : 0);
}

int main(void)
{
	int port = fcntl(0, F_DUPFD_CLOEXEC, 10);
	sigset_t children;

	close(0);
	open("/dev/null", O_RDONLY);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	agent(port, end);
}
