/* PID 1: mounts what tracing needs, then becomes the agent. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"
#include "resume.h"

/* The name of the virtio-serial port, as QEMU's `virtserialport,name=` gives it. */
#define AGENT_PORT "goldtrace.agent"

static void mount_one(const char *type, const char *where)
{
	mkdir(where, 0755);
	if (mount(type, where, type, 0, NULL))
		dprintf(2, "goldtrace init: cannot mount %s on %s: %m\n", type, where);
}

/* The links that devtmpfs leaves to user space: Documentation/admin-guide/devices.rst, "Compulsory links". */
static void link_descriptors(void)
{
	static const char *const links[][2] = {
		{ "/proc/self/fd", "/dev/fd" },
		{ "/proc/self/fd/0", "/dev/stdin" },
		{ "/proc/self/fd/1", "/dev/stdout" },
		{ "/proc/self/fd/2", "/dev/stderr" },
	};

	for (unsigned int i = 0; i < sizeof links / sizeof links[0]; i++)
		if (symlink(links[i][0], links[i][1]))
			dprintf(2, "goldtrace init: cannot make %s: %m\n", links[i][1]);
}

static void __attribute__((noreturn)) power_off(void)
{
	sync();
	/* QEMU runs with -no-reboot: a reset ends it, on every machine, with no firmware's help. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void end_guest(const char *failure)
{
	if (failure)
		dprintf(2, "goldtrace agent: %s\n", failure);
	power_off();
}

static void resume(uint64_t now, const void *random, uint32_t size)
{
	const char *failure = resume_guest(now, random, size);

	if (failure)
		end_guest(failure);
}

/* The port's device node, found by the name that the host gave it, not by its number. */
static int open_port(void)
{
	static const char class[] = "/sys/class/virtio-ports";
	char path[300], name[64];
	struct dirent *d;
	DIR *dir = opendir(class);

	if (!dir)
		return -1;
	while ((d = readdir(dir))) {
		int fd, n;

		if (d->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s/name", class, d->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
		close(fd);
		if (n <= 0)
			continue;
		name[n] = 0;
		if (strcmp(name, AGENT_PORT "\n"))
			continue;
		snprintf(path, sizeof path, "/dev/%s", d->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0) {
			closedir(dir);
			return fd;
		}
	}
	closedir(dir);
	return -1;
}

static void __attribute__((noreturn)) serve_host(void)
{
	static const struct agent_calls calls = { end_guest, resume };
	sigset_t children;
	int port;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	for (int tries = 0; (port = open_port()) < 0; tries++) {
		if (tries == 1000)
			end_guest("there is no virtio-serial port named " AGENT_PORT);
		usleep(5000);
	}
	agent(port, "/bin/sh", "/dev/kmsg", &calls);
}

int main(void)
{
	mount_one("devtmpfs", "/dev");
	mount_one("devpts", "/dev/pts");
	mount_one("proc", "/proc");
	mount_one("sysfs", "/sys");
	mount_one("debugfs", "/sys/kernel/debug");
	mount_one("tracefs", "/sys/kernel/tracing");
	mount_one("tmpfs", "/tmp");
	link_descriptors();
	setenv("PATH", "/bin:/sbin", 1);
	setenv("HOME", "/", 1);
	setenv("LC_ALL", "C", 1);
	serve_host();
}
