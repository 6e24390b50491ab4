/*
 * The framed protocol between goldtrace on the host and the agent in the guest.
 *
 * It runs over a virtio-serial port of its own; the kernel console never carries it. All integers
 * are little-endian, whatever the guest's own byte order. A frame is a header of FRAME_HEADER bytes
 * and `length` bytes of payload:
 *
 *   offset 0  u32  magic   FRAME_MAGIC
 *   offset 4  u32  type    one of enum frame_type
 *   offset 8  u64  nonce   chosen by the host for each request; each answer repeats it
 *   offset 16 u32  length  bytes of payload, at most FRAME_PAYLOAD_MAX
 *   offset 20 u32  zero
 *
 * A request is answered by any number of STDOUT and STDERR frames, then by exactly one DONE. The
 * guest sends READY once, unasked, with nonce 0, before it reads the first request, and as the answer to
 * each RESUME.
 * The host's half is harness/crates/vm/src/protocol.rs.
 *
 * Before the first READY and before each DONE the guest writes the line `goldtrace: end of request NONCE`, with 16
 * hexadecimal digits, to the kernel's log at warning level: on the console it divides the kernel's
 * messages. Nothing in the guest knows the nonce before its request has ended.
 */
#ifndef GOLDTRACE_PROTOCOL_H
#define GOLDTRACE_PROTOCOL_H

#define FRAME_MAGIC 0x31415447u /* "GTA1" */
#define FRAME_HEADER 24
#define FRAME_PAYLOAD_MAX (1u << 20)
#define PROTOCOL_VERSION 7

/* The largest payload of STDOUT, STDERR and INPUT. */
#define FRAME_CHUNK 65536
#define RESUME_ENTROPY_MAX 64

enum frame_type {
	/* host to guest */
	FRAME_RUN = 1,  /* output limit, then a shell script, for `sh -e -o pipefail` */
	FRAME_READ = 2, /* the same, then the path of a file to read */
	FRAME_END = 3,  /* power the guest off; no answer */
	FRAME_RUNOPEN = 4, /* as RUN, with a standard input that comes by INPUT, until CLOSE */
	FRAME_CLOSE = 5,   /* end the standard input of the RUNOPEN with this nonce; no answer */
	FRAME_QUIESCE = 6, /* run on every CPU once, then QUIESCED; also while a request is served */
	FRAME_KILL = 7,    /* kill the process group of the request with this nonce; no other answer */
	FRAME_WRITE = 8,   /* output limit, the path of a file, NUL, then all that it is to hold */
	FRAME_APPEND = 9,  /* the same, for bytes that are added to its end */
	FRAME_RESUME = 10, /* the guest has been restored from a snapshot: answered by READY */
	FRAME_INPUT = 11,  /* bytes for the standard input of the request with this nonce; then TAKEN */
	FRAME_TERMINAL = 12, /* as RUN, with a terminal for all three streams, and the terminal's size */
	FRAME_RESIZE = 13,   /* the new size of the terminal of the request with this nonce; no answer */
	/* guest to host */
	FRAME_READY = 0x81, /* u32 protocol version, u32 CPUs online, then `uname -r` */
	FRAME_STDOUT = 0x82,
	FRAME_STDERR = 0x83,
	FRAME_DONE = 0x84, /* see enum done_kind */
	FRAME_QUIESCED = 0x85, /* with the nonce of its QUIESCE: u64 timebase, 0 where there is none */
	FRAME_TAKEN = 0x86,    /* with the nonce of its request: the last INPUT was written, or nothing reads it */
};

/*
 * RUN, RUNOPEN, TERMINAL, READ, WRITE and APPEND payload: u32 output limit in bytes (stdout and stderr together),
 * u32 length of the working directory, the directory, then script or path to the end; for WRITE and APPEND the
 * path, NUL and the content to the end; for TERMINAL the script, NUL and a terminal's size: u32 rows, u32 columns.
 *
 * RESIZE payload: the size. INPUT payload: 1 to FRAME_CHUNK bytes, for a RUNOPEN or a TERMINAL; the next one is sent
 * when the last was taken, or never when the request has ended.
 *
 * RESUME payload: u64 nanoseconds since 1970 (the host's clock), then 1 to RESUME_ENTROPY_MAX random bytes.
 *
 * END, CLOSE, QUIESCE, KILL and TAKEN have none. A CLOSE, INPUT, RESIZE or KILL may come when its request has
 * ended already: it is then ignored. Timeouts are the host's, by its own clock.
 *
 * DONE payload: u32 kind, u32 value, u64 bytes of stdout, u64 bytes of stderr, u64 microseconds,
 * u32 1 when a process that lives on holds stdout open, u32 the same of stderr, and of the kernel's
 * state now u64 /proc/sys/kernel/tainted, u32 the console's level and u32 the level of messages that
 * name none, the first two numbers in /proc/sys/kernel/printk.
 */
enum done_kind {
	DONE_EXITED = 0,    /* value: exit status; for READ, WRITE and APPEND always 0 */
	DONE_SIGNALLED = 1, /* value: signal number */
	DONE_TIMED_OUT = 2, /* value: 0; the process group was killed by a KILL */
	DONE_FLOODED = 3,   /* value: the limit in bytes; the process group was killed */
	DONE_ERRNO = 4,     /* value: errno of what could not be started, opened, read or written */
};

#endif
