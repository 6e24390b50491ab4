/*
 * PID 1: mounts what tracing needs, then becomes the agent, or, with `goldtrace.mode=shell` on the
 * kernel's command line, starts a shell on the console.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

static void mount_one(const char *type, const char *where)
{
	mkdir(where, 0755);
	if (mount(type, where, type, 0, NULL))
		dprintf(2, "goldtrace init: cannot mount %s on %s: %m\n", type, where);
}

static int shell_mode(void)
{
	char line[4096];
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, line, sizeof line - 1);

	close(fd);
	if (n < 0)
		return 0;
	line[n] = 0;
	return strstr(line, "goldtrace.mode=shell") != NULL;
}

static void shell(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		char *const argv[] = { "-sh", NULL };
		int console;

		setsid();
		console = open("/dev/console", O_RDWR);
		ioctl(console, TIOCSCTTY, 1);
		for (int fd = 0; fd < 3; fd++)
			dup2(console, fd);
		if (chdir("/sys/kernel/tracing"))
			dprintf(2, "goldtrace init: no /sys/kernel/tracing\n");
		/* What the host sends before the console is open is lost: it waits for this line. */
		dprintf(1, "goldtrace shell: `exit` ends the guest\n");
		execv("/bin/sh", argv);
		_exit(127);
	}
	while (waitpid(-1, NULL, 0) != pid)
		;
	power_off();
}

void power_off(void)
{
	sync();
	/* QEMU runs with -no-reboot: a reset ends it, on every machine, with no firmware's help. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

int main(void)
{
	mount_one("devtmpfs", "/dev");
	mount_one("proc", "/proc");
	mount_one("sysfs", "/sys");
	mount_one("debugfs", "/sys/kernel/debug");
	mount_one("tracefs", "/sys/kernel/tracing");
	mount_one("tmpfs", "/tmp");
	setenv("PATH", "/bin:/sbin", 1);
	setenv("HOME", "/", 1);
	setenv("LC_ALL", "C", 1);
	if (shell_mode())
		shell();
	agent();
}
