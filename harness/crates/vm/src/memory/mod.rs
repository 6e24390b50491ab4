//! A guest's memory, shared with QEMU.
//!
//! The one directory with unsafe code: [`Ram`] reads and writes memory that the guest's processors change at any time.
//! [`MemoryImage`] is memory as it was at one moment. This module knows neither QEMU nor what the guest keeps in its
//! memory.

mod image;
#[expect(
    unsafe_code,
    reason = "memory that a guest's processors change is read and written through pointers"
)]
mod ram;

pub(crate) use image::MemoryImage;
pub use ram::NoSuchWord;
pub(crate) use ram::Ram;
