#ifndef GOLDTRACE_FILE_H
#define GOLDTRACE_FILE_H

#include <stddef.h>

/* Both return 0, or -1 with errno. */

/* Write a file's content to standard output. */
int read_file(const char *path);

/* Make a file hold `length` bytes, or add them to its end. It is made when it is not there. */
int write_file(const char *path, int append, const char *content, size_t length);

#endif
