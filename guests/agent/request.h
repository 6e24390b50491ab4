#ifndef GOLDTRACE_REQUEST_H
#define GOLDTRACE_REQUEST_H

#include <stdint.h>

/* A frame of the host's. What its type does not carry is not set. */
struct request {
	uint32_t type;
	uint64_t nonce;
	uint32_t output_limit;
	char *directory;
	char *body;    /* script or path, NUL-terminated */
	char *content; /* of WRITE and APPEND; the whole payload of RESUME and INPUT */
	uint32_t content_length;
	uint16_t rows, columns; /* of TERMINAL and RESIZE */
};

/*
 * Wait for the next frame. What `r` points to is kept until the next call. Does not return when the host has
 * closed the port or sends what the protocol does not allow.
 */
void request_read(struct request *r);

#endif
