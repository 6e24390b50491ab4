//! What a guest boots with its kernel: an initramfs with the agent, busybox, modules and perf.

mod applets;
pub(crate) mod initramfs;
pub(crate) mod programs;
