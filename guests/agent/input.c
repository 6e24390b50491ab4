/* See input.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "input.h"

void input_open(struct input *in, int fd)
{
	in->fd = fd;
	in->size = in->written = 0;
	in->ends = 0;
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int input_is_busy(const struct input *in)
{
	return in->size != 0;
}

void input_take(struct input *in, const void *part, uint32_t size)
{
	memcpy(in->part, part, size);
	in->size = size;
	in->written = 0;
}

int input_write(struct input *in)
{
	while (in->fd >= 0 && in->written < in->size) {
		ssize_t n = write(in->fd, in->part + in->written, in->size - in->written);

		if (n >= 0)
			in->written += n;
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			input_close(in);
	}
	in->size = 0;
	if (in->ends)
		input_close(in);
	return 1;
}

void input_end(struct input *in)
{
	in->ends = 1;
	if (!input_is_busy(in))
		input_close(in);
}

void input_close(struct input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}
