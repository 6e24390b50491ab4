/* See frame.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"
#include "protocol.h"

static int port = -1;
static void (*end_agent)(const char *failure);

void put32(unsigned char *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = v >> (8 * i);
}

void put64(unsigned char *p, uint64_t v)
{
	put32(p, v);
	put32(p + 4, v >> 32);
}

uint32_t get32(const unsigned char *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t get64(const unsigned char *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

void frame_open(int the_port, void (*end)(const char *failure))
{
	port = the_port;
	end_agent = end;
}

int frame_port(void)
{
	return port;
}

void frame_end(void)
{
	end_agent(NULL);
	abort();
}

/* The host is gone or does not speak the protocol: nothing is left to be done here. */
void give_up(const char *why)
{
	end_agent(why);
	abort();
}

static void write_all(const void *data, size_t size)
{
	const char *p = data;

	while (size) {
		ssize_t n = write(port, p, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			give_up("the host closed the agent's port");
		p += n;
		size -= n;
	}
}

int frame_read(void *data, size_t size)
{
	char *p = data;
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(port, p + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			give_up("the agent's port cannot be read");
		if (n == 0) {
			if (got)
				give_up("the host closed the agent's port inside a frame");
			return 0;
		}
		got += n;
	}
	return 1;
}

void frame_send(uint32_t type, uint64_t nonce, const void *payload, uint32_t length)
{
	static unsigned char frame[FRAME_HEADER + FRAME_CHUNK];

	if (length > FRAME_CHUNK)
		give_up("a frame that is too long to send");
	put32(frame, FRAME_MAGIC);
	put32(frame + 4, type);
	put64(frame + 8, nonce);
	put32(frame + 16, length);
	put32(frame + 20, 0);
	if (length)
		memcpy(frame + FRAME_HEADER, payload, length);
	write_all(frame, FRAME_HEADER + length);
}
