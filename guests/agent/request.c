/* See request.h. */
#include <string.h>

#include "frame.h"
#include "protocol.h"
#include "request.h"

static unsigned char payload[FRAME_PAYLOAD_MAX + 1];
static char directory[4096];

/* What follows the body's NUL is `r->content`. */
static void divide(struct request *r, char *end, const char *failure)
{
	r->content = memchr(r->body, 0, end - r->body);
	if (!r->content++)
		give_up(failure);
	r->content_length = end - r->content;
}

static void read_size(struct request *r, const char *bytes, uint32_t length)
{
	const unsigned char *size = (const unsigned char *)bytes;

	if (length != 8)
		give_up("a terminal's size of another length");
	r->rows = get32(size);
	r->columns = get32(size + 4);
}

/* A request that is answered: limit, directory and body. */
static void read_body(struct request *r, uint32_t length)
{
	uint32_t n;

	if (length < 8 || (n = get32(payload + 4)) > length - 8 || n >= sizeof directory)
		give_up("a request that is too short");
	payload[length] = 0;
	r->output_limit = get32(payload);
	memcpy(directory, payload + 8, n);
	directory[n] = 0;
	r->directory = directory;
	r->body = (char *)payload + 8 + n;
	if (r->type == FRAME_WRITE || r->type == FRAME_APPEND) {
		divide(r, (char *)payload + length, "a request to write a file without the end of its path");
	} else if (r->type == FRAME_TERMINAL) {
		divide(r, (char *)payload + length, "a request for a terminal without the end of its script");
		read_size(r, r->content, r->content_length);
	}
}

void request_read(struct request *r)
{
	static unsigned char header[FRAME_HEADER];
	uint32_t length;

	if (!frame_read(header, sizeof header))
		give_up("the host closed the agent's port");
	length = get32(header + 16);
	if (get32(header) != FRAME_MAGIC || length > FRAME_PAYLOAD_MAX)
		give_up("a frame without the protocol's magic, or too long");
	if (length && !frame_read(payload, length))
		give_up("the host closed the agent's port inside a frame");
	r->type = get32(header + 4);
	r->nonce = get64(header + 8);
	r->content = (char *)payload;
	r->content_length = length;
	switch (r->type) {
	case FRAME_END:
	case FRAME_CLOSE:
	case FRAME_QUIESCE:
	case FRAME_KILL:
		break;
	case FRAME_RESUME:
		if (length <= 8 || length > 8 + RESUME_ENTROPY_MAX)
			give_up("a RESUME of another length");
		break;
	case FRAME_INPUT:
		if (length == 0 || length > FRAME_CHUNK)
			give_up("an INPUT of another length");
		break;
	case FRAME_RESIZE:
		read_size(r, r->content, length);
		break;
	default:
		read_body(r, length);
	}
}
