/*
 * Files as requests read and write them, in a child of the agent.
 */
#include <fcntl.h>
#include <unistd.h>

#include "file.h"

static int write_bytes(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t n = write(fd, bytes, length);

		if (n < 0)
			return -1;
		bytes += n;
		length -= n;
	}
	return 0;
}

int read_file(const char *path)
{
	static char buffer[65536];
	int fd = open(path, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, buffer, sizeof buffer)) > 0) {
		if (write_bytes(1, buffer, n))
			return -1;
	}
	return n;
}

int write_file(const char *path, int append, const char *content, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC), 0644);

	if (fd < 0 || write_bytes(fd, content, length))
		return -1;
	return close(fd);
}
