//! A guest's memory, shared with QEMU.
//!
//! QEMU maps the same file (`memory-backend-file` with `share=on`), and for a pseries machine the
//! guest's physical address is the offset in it. The guest's processors change it at any time, so
//! every access is atomic: a byte, a 32-bit or a 64-bit word. Of what uses
//! unsafe code, this is the one module with pointers.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::image::{MemoryImage, pack};

/// A guest's memory. Addresses are guest-physical.
#[derive(Debug)]
pub struct Ram {
    file: File,
    map: MmapRaw,
}

/// An address that cannot be accessed: outside of the guest's memory, or not aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no aligned word of {size} bytes at guest-physical {at:#x}: the guest's memory has {ram:#x} bytes")]
pub struct NoSuchWord {
    at: u64,
    size: usize,
    ram: usize,
}

impl Ram {
    /// Memory of `bytes` bytes, all zero, for a guest that is to be started. It has no name in any
    /// directory, and ends with the last process that has it open. Nobody can change its size: an access of ours behind
    /// its end would be a SIGBUS (memfd_create(2)).
    ///
    /// # Errors
    /// When the system has no room for it.
    pub fn new(bytes: u64) -> io::Result<Ram> {
        let file =
            File::from(memfd_create("goldtrace-ram", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        ftruncate(&file, bytes)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = MmapOptions::new().map_raw(&file)?;
        Ok(Ram { file, map })
    }

    /// Memory that begins as `image` does, and is the guest's own.
    ///
    /// # Errors
    /// As [`Ram::new`].
    pub fn copy_of(image: &MemoryImage) -> io::Result<Ram> {
        let ram = Ram::new(image.size())?;
        image.copy_to(&ram.file)?;
        Ok(ram)
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.map.len() as u64
    }

    /// Write what it holds as a [`MemoryImage`]'s file. The guest's processors have to stand still.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn pack(&self, to: &mut impl Write) -> io::Result<()> {
        pack(&self.file, self.size(), to)
    }

    /// The same memory, mapped once more.
    #[cfg(test)]
    pub(crate) fn again(&self) -> Ram {
        let file = self.file.try_clone().expect("a descriptor");
        let map = MmapOptions::new().map_raw(&file).expect("mapped");
        Ram { file, map }
    }

    /// A descriptor of it, for a child process.
    ///
    /// # Errors
    /// When there are too many.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    /// The byte at an address.
    ///
    /// # Errors
    /// See [`NoSuchWord`].
    pub fn byte(&self, at: u64) -> Result<u8, NoSuchWord> {
        // SAFETY: `word` gives a pointer into the mapping, which lives as long as `self`. All
        // accesses in this process are atomic.
        Ok(unsafe { AtomicU8::from_ptr(self.word(at)?) }.load(Ordering::Acquire))
    }

    /// The big-endian 32-bit word at an address.
    ///
    /// # Errors
    /// See [`NoSuchWord`].
    pub fn be32(&self, at: u64) -> Result<u32, NoSuchWord> {
        // SAFETY: as in `byte`; `word` has checked the alignment.
        let word = unsafe { AtomicU32::from_ptr(self.word(at)?) };
        Ok(u32::from_be(word.load(Ordering::Acquire)))
    }

    /// The big-endian 64-bit word at an address.
    ///
    /// # Errors
    /// See [`NoSuchWord`].
    pub fn be64(&self, at: u64) -> Result<u64, NoSuchWord> {
        Ok(u64::from_be(self.word64(at)?.load(Ordering::Acquire)))
    }

    /// The little-endian 64-bit word at an address.
    ///
    /// # Errors
    /// See [`NoSuchWord`].
    pub fn le64(&self, at: u64) -> Result<u64, NoSuchWord> {
        Ok(u64::from_le(self.word64(at)?.load(Ordering::Acquire)))
    }

    /// Store a little-endian 64-bit word, after all earlier stores.
    ///
    /// # Errors
    /// See [`NoSuchWord`].
    #[cfg(test)]
    pub fn set_le64(&self, at: u64, value: u64) -> Result<(), NoSuchWord> {
        self.word64(at)?.store(value.to_le(), Ordering::Release);
        Ok(())
    }

    /// Store a big-endian 64-bit word, after all earlier stores: a processor that sees it sees them.
    ///
    /// # Errors
    /// See [`NoSuchWord`].
    pub fn set_be64(&self, at: u64, value: u64) -> Result<(), NoSuchWord> {
        self.word64(at)?.store(value.to_be(), Ordering::Release);
        Ok(())
    }

    /// Store bytes, in words of eight. Nothing is stored when one of them cannot be.
    ///
    /// # Errors
    /// See [`NoSuchWord`].
    pub fn set_bytes<const N: usize>(&self, at: u64, bytes: &[u8; N]) -> Result<(), NoSuchWord> {
        const { assert!(N % 8 == 0 && N > 0, "bytes are stored in words of eight") };
        self.word64(at + N as u64 - 8)?;
        for (word, at) in bytes.chunks_exact(8).zip((at..).step_by(8)) {
            let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
            self.word64(at)?.store(word, Ordering::Relaxed);
        }
        Ok(())
    }

    fn word64(&self, at: u64) -> Result<&AtomicU64, NoSuchWord> {
        // SAFETY: as in `byte`; `word` has checked the alignment.
        Ok(unsafe { AtomicU64::from_ptr(self.word(at)?) })
    }

    /// A pointer to a word inside of the mapping, aligned as its type asks for.
    fn word<T>(&self, at: u64) -> Result<*mut T, NoSuchWord> {
        let (size, ram) = (size_of::<T>(), self.map.len());
        let offset = usize::try_from(at).ok().filter(|at| at.checked_add(size).is_some_and(|end| end <= ram));
        let offset = offset.filter(|at| at % size == 0).ok_or(NoSuchWord { at, size, ram })?;
        Ok(self.map.as_mut_ptr().wrapping_add(offset).cast())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn words_have_a_byte_order_and_two_mappings_are_one_memory() {
        let ram = Ram::new(4096).expect("room");
        ram.set_be64(8, 0x0102_0304_0506_0708).expect("inside");
        assert_eq!(
            (ram.byte(8), ram.be32(12), ram.be64(8)),
            (Ok(1), Ok(0x0506_0708), Ok(0x0102_0304_0506_0708))
        );
        assert_eq!(ram.le64(8), Ok(0x0807_0605_0403_0201));
        ram.set_le64(16, 5).expect("inside");
        ram.set_bytes(24, &[7; 16]).expect("inside");
        let path = format!("/proc/self/fd/{}", ram.file.as_raw_fd());
        let bytes = std::fs::read(path).expect("another way to it");
        assert_eq!(bytes.len(), 4096);
        assert_eq!(
            bytes[8..41],
            [&[1, 2, 3, 4, 5, 6, 7, 8, 5, 0, 0, 0, 0, 0, 0, 0][..], &[7; 16], &[0]].concat()
        );
    }

    #[test]
    fn size_cannot_be_changed() {
        let ram = Ram::new(4096).expect("room");
        let theirs = File::from(ram.descriptor().expect("a descriptor"));
        for size in [0, 4095, 8192] {
            assert!(theirs.set_len(size).is_err(), "{size}");
        }
        assert!(fcntl_add_seals(&theirs, SealFlags::WRITE).is_err());
        assert_eq!(ram.byte(4095), Ok(0));
    }

    #[test]
    fn access_outside_is_refused() {
        let ram = Ram::new(4096).expect("room");
        for at in [4096, 4089, u64::MAX, u64::MAX - 7, 4] {
            assert!(ram.be64(at).is_err() && ram.set_be64(at, 1).is_err(), "{at}");
        }
        assert!(ram.set_bytes(4088, &[1; 16]).is_err());
        assert_eq!(ram.be64(4088), Ok(0));
        let message = ram.be64(0xc000_0000_0000_1000).expect_err("outside").to_string();
        assert!(message.contains("0xc000000000001000") && message.contains("0x1000 bytes"), "{message}");
    }
}
