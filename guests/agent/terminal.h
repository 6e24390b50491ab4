#ifndef GOLDTRACE_TERMINAL_H
#define GOLDTRACE_TERMINAL_H

#include <stdint.h>

/* A pseudo terminal: what is written to its master is typed, and what is read from it was printed. */

/* Open one of this size, both ends close-on-exec. Returns 0, or -1 with errno. */
int terminal_open(uint16_t rows, uint16_t columns, int *master, int *slave);

/* Give it another size: its foreground processes get SIGWINCH. */
void terminal_resize(int master, uint16_t rows, uint16_t columns);

/* Make `slave` the controlling terminal of the calling process, in a session of its own. Returns 0, or -1 with errno. */
int terminal_control(int slave);

#endif
