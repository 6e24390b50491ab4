#ifndef GOLDTRACE_FRAME_H
#define GOLDTRACE_FRAME_H

#include <stddef.h>
#include <stdint.h>

/* The agent's port, as frames of protocol.h. */

/* Little-endian numbers, whatever the processor's own byte order. */
void put32(unsigned char *p, uint32_t v);
void put64(unsigned char *p, uint64_t v);
uint32_t get32(const unsigned char *p);
uint64_t get64(const unsigned char *p);

/* Use `port`. `end` must not return: it is called with the reason when the port fails, and NULL by frame_end(). */
void frame_open(int port, void (*end)(const char *failure));

/* The port's descriptor, for poll(2). */
int frame_port(void);

/* Send a frame, of at most FRAME_CHUNK bytes (protocol.h). */
void frame_send(uint32_t type, uint64_t nonce, const void *payload, uint32_t length);

/* Read just so many bytes. Returns 0 when the host has closed its end before the first one. */
int frame_read(void *data, size_t size);

/* The host has asked for the end. */
void __attribute__((noreturn)) frame_end(void);

/* The host is gone or does not speak the protocol. */
void __attribute__((noreturn)) give_up(const char *why);

#endif
