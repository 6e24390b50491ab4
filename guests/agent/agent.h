#ifndef GOLDTRACE_AGENT_H
#define GOLDTRACE_AGENT_H

#include <stdint.h>

/*
 * Greet the host on `port` and serve its requests until it sends END, closes the port or breaks the
 * protocol. Scripts are run by `shell`, which must know `-o pipefail`. Then `end` is called, which must not
 * return; `failure` says why, and is NULL after END. The end of each request is marked in `log`, the kernel's
 * log. When the guest has been restored from a snapshot, `resume` is called with the time, in nanoseconds since 1970, and
 * with random bytes. The caller blocks SIGCHLD, and ignores SIGPIPE.
 */
struct agent_calls {
	void (*end)(const char *failure);
	void (*resume)(uint64_t now, const void *random, uint32_t size);
};

void agent(int port, const char *shell, const char *log, const struct agent_calls *calls) __attribute__((noreturn));

#endif
