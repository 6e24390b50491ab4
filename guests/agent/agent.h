#ifndef GOLDTRACE_AGENT_H
#define GOLDTRACE_AGENT_H

/* The name of the virtio-serial port, as QEMU's `virtserialport,name=` gives it. */
#define AGENT_PORT "goldtrace.agent"

/* Serve the host's requests for ever. */
void agent(void) __attribute__((noreturn));

/* End the guest and with it QEMU. */
void power_off(void) __attribute__((noreturn));

#endif
