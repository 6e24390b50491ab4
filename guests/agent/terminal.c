/* See terminal.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "terminal.h"

int terminal_open(uint16_t rows, uint16_t columns, int *master, int *slave)
{
	int unlocked = 0;
	int error;

	*master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master < 0)
		return -1;
	if (ioctl(*master, TIOCSPTLCK, &unlocked) == 0) {
		*slave = ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
		if (*slave >= 0) {
			terminal_resize(*master, rows, columns);
			return 0;
		}
	}
	error = errno;
	close(*master);
	*master = -1;
	errno = error;
	return -1;
}

void terminal_resize(int master, uint16_t rows, uint16_t columns)
{
	struct winsize size = { .ws_row = rows, .ws_col = columns };

	ioctl(master, TIOCSWINSZ, &size);
}

int terminal_control(int slave)
{
	if (setsid() < 0)
		return -1;
	return ioctl(slave, TIOCSCTTY, 0);
}
