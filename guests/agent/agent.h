#ifndef GOLDTRACE_AGENT_H
#define GOLDTRACE_AGENT_H

/*
 * Greet the host on `port` and serve its requests until it sends END, closes the port or breaks the
 * protocol. Scripts are run by `shell`, which must know `-o pipefail`. Then `end` is called, which must not
 * return; `failure` says why, and is NULL after END. The end of each request is marked in `log`, the kernel's
 * log. The caller blocks SIGCHLD, and ignores SIGPIPE.
 */
void agent(int port, const char *shell, const char *log, void (*end)(const char *failure))
	__attribute__((noreturn));

#endif
