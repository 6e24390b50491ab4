/* See resume.h. */
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "protocol.h"
#include "resume.h"
#include "timers.h"

const char *resume_guest(uint64_t now, const void *random, uint32_t size)
{
	struct timespec time = { now / 1000000000, now % 1000000000 };
	struct {
		struct rand_pool_info info;
		unsigned char bytes[RESUME_ENTROPY_MAX];
	} pool = { .info = { .entropy_count = 8 * size, .buf_size = size } };
	int fd = open("/dev/urandom", O_WRONLY | O_CLOEXEC);
	int failed;

	memcpy(pool.bytes, random, size);
	/* The second makes the kernel's generator start again from what the first has added. */
	failed = fd < 0 || ioctl(fd, RNDADDENTROPY, &pool) || ioctl(fd, RNDRESEEDCRNG);
	close(fd);
	if (failed)
		return "the kernel takes no random numbers";
	if (restart_timers())
		return "the CPUs' timers cannot be started again";
	if (clock_settime(CLOCK_REALTIME, &time))
		return "the clock cannot be set";
	return NULL;
}
