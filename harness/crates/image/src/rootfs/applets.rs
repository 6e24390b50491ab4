//! The commands in a guest's `/bin`: applets of busybox, each of which must be in it.

use std::fs;

use crate::error::ImageError;
use guest::Project;

/// The list of them.
const LIST: &str = "images/applets.txt";
/// How busybox's own table of names begins. The names are in order, each ends in a zero byte, and the
/// table in another.
const TABLE: &[u8] = b"[\0[[\0";

/// The names in the project's list.
///
/// # Errors
/// When the list cannot be read.
pub(crate) fn listed(project: &Project) -> Result<Vec<String>, ImageError> {
    let text = fs::read_to_string(project.path(LIST)).map_err(|e| ImageError::file("read", LIST, e))?;
    let names = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(names.map(str::to_owned).collect())
}

/// Whether the program `busybox` has all of `names`: another would be a link that fails in the guest.
/// The program is for another machine, so that it cannot be asked.
///
/// # Errors
/// When a name is missing, or there is no table of names.
pub(crate) fn check(names: &[String], busybox: &[u8]) -> Result<(), ImageError> {
    let table = memchr::memmem::find(busybox, TABLE).map(|at| &busybox[at..]);
    let table = table.and_then(|rest| Some(&rest[..memchr::memmem::find(rest, b"\0\0")?]));
    let table = table.ok_or_else(|| {
        ImageError::Host(
            "failed to read busybox's table of applets: it holds none that begins with `[`".to_owned(),
        )
    })?;
    let has = |name: &&String| table.split(|byte| *byte == 0).any(|known| known == name.as_bytes());
    let missing: Vec<&str> = names.iter().filter(|name| !has(name)).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(ImageError::MissingApplets { file: LIST, names: missing.into_iter().map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(names: &[&str], busybox: &[u8]) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        check(&names, busybox).err().map(|error| error.to_string())
    }

    #[test]
    fn missing_applets_are_named() {
        // `nice` is text of another kind in it.
        let busybox = b"\x7fELF\0nice\0..[\0[[\0cat\0echo\0\0nice\0";
        assert_eq!(error(&["cat", "echo"], busybox), None);
        let text = error(&["cat", "nice", "ech"], busybox).expect("refused");
        assert!(text.ends_with("no applet nice, ech"), "{text}");
        assert!(error(&["cat"], b"\0cat\0echo\0\0").expect("refused").contains("table of applets"));
    }
}
