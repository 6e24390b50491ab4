//! A guest's memory as it was at one moment, for any number of guests to begin with.
//!
//! A file of it has the pages that are not all zero, as runs: the first byte's offset in the guest's memory and the
//! number of bytes, both u64, little-endian, then the bytes. Offsets and sizes are multiples of [`PAGE`], and runs come
//! in order.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// What is kept or left out as a whole, in bytes.
const PAGE: usize = 4096;
/// How much is read at once, in bytes.
const CHUNK: usize = 1 << 20;

/// Memory that nobody can change any more: a guest maps it privately, so that what it writes is a copy of its own.
#[derive(Debug)]
pub(crate) struct MemoryImage {
    file: File,
    size: u64,
    /// Where it is not all zero: offset and length.
    runs: Vec<(u64, u64)>,
}

impl MemoryImage {
    /// Read a file of `size` bytes of memory.
    ///
    /// # Errors
    /// When it is not such a file, or there is no room for it.
    pub(crate) fn unpack(from: &mut impl Read, size: u64) -> io::Result<MemoryImage> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("goldtrace-snapshot", flags)?);
        ftruncate(&file, size)?;
        let mut runs = Vec::new();
        let mut buffer = vec![0; CHUNK];
        let mut end = 0;
        while let Some((offset, length)) = run(from)? {
            let page = PAGE as u64;
            let is_valid = offset >= end && length > 0 && offset % page == 0 && length % page == 0;
            end = offset.checked_add(length).filter(|end| is_valid && *end <= size).ok_or_else(|| {
                let what =
                    format!("{length} bytes at {offset:#x} are no run of pages of a memory of {size:#x}");
                io::Error::new(io::ErrorKind::InvalidData, what)
            })?;
            let mut at = offset;
            while at < end {
                let part = &mut buffer[..(end - at).min(CHUNK as u64) as usize];
                from.read_exact(part)?;
                file.write_all_at(part, at)?;
                at += part.len() as u64;
            }
            runs.push((offset, length));
        }
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
        Ok(MemoryImage { file, size, runs })
    }

    /// A descriptor of it, for a child process.
    ///
    /// # Errors
    /// When there are too many.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.file.try_clone()?.into())
    }

    /// How many bytes the guest's memory has.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Write the same memory into a file that is all zero.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn copy_to(&self, to: &File) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        for (offset, length) in &self.runs {
            let (mut at, end) = (*offset, offset + length);
            while at < end {
                let part = &mut buffer[..(end - at).min(CHUNK as u64) as usize];
                self.file.read_exact_at(part, at)?;
                to.write_all_at(part, at)?;
                at += part.len() as u64;
            }
        }
        Ok(())
    }
}

/// The next run's offset and length; `None` at the end.
fn run(from: &mut impl Read) -> io::Result<Option<(u64, u64)>> {
    let mut head = [0; 16];
    let mut got = 0;
    while got < head.len() {
        match from.read(&mut head[got..]) {
            Ok(0) if got == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    Ok(Some((word(0), word(8))))
}

/// Write the file of a memory of `size` bytes that is in `from`, and that nobody changes meanwhile.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) fn pack(from: &File, size: u64, to: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut at = 0;
    while at < size {
        let length = (size - at).min(CHUNK as u64) as usize;
        let chunk = &mut chunk[..length];
        from.read_exact_at(chunk, at)?;
        let mut pages = chunk.chunks(PAGE).enumerate().peekable();
        while let Some((first, page)) = pages.next() {
            if is_zero(page) {
                continue;
            }
            let mut last = first;
            while pages.next_if(|(_, page)| !is_zero(page)).is_some() {
                last += 1;
            }
            let bytes = &chunk[first * PAGE..((last + 1) * PAGE).min(length)];
            to.write_all(&(at + (first * PAGE) as u64).to_le_bytes())?;
            to.write_all(&(bytes.len() as u64).to_le_bytes())?;
            to.write_all(bytes)?;
        }
        at += length as u64;
    }
    Ok(())
}

fn is_zero(page: &[u8]) -> bool {
    page.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A memory of `pages` pages, of which each named one holds its own number.
    fn memory(pages: usize, named: &[usize]) -> Vec<u8> {
        let mut bytes = vec![0; pages * PAGE];
        for page in named {
            bytes[page * PAGE..(page + 1) * PAGE].fill((page % 250 + 1) as u8);
        }
        bytes
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(bytes, 0).expect("written");
        let mut packed = Vec::new();
        pack(&file, bytes.len() as u64, &mut packed).expect("packed");
        packed
    }

    #[test]
    fn memory_that_was_packed_is_unpacked_and_copied() {
        for (pages, named, runs) in [
            (8, &[][..], 0),
            (8, &[0, 1, 7], 2),
            // A chunk has 256 pages, and no run more than one.
            (600, &[1, 255, 256, 300, 599], 5),
        ] {
            let bytes = memory(pages, named);
            let packed = packed(&bytes);
            assert_eq!(packed.len(), named.len() * PAGE + runs * 16);
            let image = MemoryImage::unpack(&mut packed.as_slice(), bytes.len() as u64).expect("whole");
            let copy = tempfile::tempfile().expect("a file");
            image.copy_to(&copy).expect("copied");
            copy.set_len(image.size()).expect("set");
            for file in [&image.file, &copy] {
                let mut found = vec![0; bytes.len()];
                file.read_exact_at(&mut found, 0).expect("readable");
                assert!(found == bytes, "{pages} {named:?}");
            }
        }
    }

    #[test]
    fn nobody_can_change_it() {
        let image = MemoryImage::unpack(&mut packed(&memory(2, &[0])).as_slice(), 8192).expect("whole");
        let theirs = File::from(image.descriptor().expect("a descriptor"));
        assert!(theirs.write_all_at(b"x", 0).is_err());
        assert!(theirs.set_len(0).is_err());
    }

    #[test]
    fn file_that_is_cut_or_names_other_pages_is_refused() {
        let whole = packed(&memory(4, &[1, 3]));
        for cut in [1, 15, 16, 17, PAGE + 15, whole.len() - 1] {
            assert!(MemoryImage::unpack(&mut &whole[..cut], 4 * 4096).is_err(), "cut at {cut}");
        }
        let run = |offset: u64, length: u64| {
            [&offset.to_le_bytes()[..], &length.to_le_bytes(), &[1; 2 * PAGE]].concat()
        };
        let twice = [run(4096, 8192), run(8192, 8192)].concat();
        let outside =
            [run(8192, 8192), run(1, 4096), run(0, 1), run(0, 0), run(u64::MAX - 4095, 4096), twice];
        for bytes in outside {
            let error = MemoryImage::unpack(&mut bytes.as_slice(), 3 * 4096).expect_err("refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
