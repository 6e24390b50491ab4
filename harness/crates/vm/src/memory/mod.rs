//! A guest's memory, shared with QEMU.
//!
//! The one directory with unsafe code: [`Ram`] reads and writes memory that the guest's processors change at any time.
//! It knows neither QEMU nor what the guest keeps in its memory.

#[expect(
    unsafe_code,
    reason = "memory that a guest's processors change is read and written through pointers"
)]
mod ram;

pub use ram::NoSuchWord;
pub(crate) use ram::Ram;
