//! Kernel versions, as far as they are compared.

/// `7.2.13-1` as (7, 2).
pub(super) fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_and_minor_are_read_from_versions() {
        assert_eq!(major_minor("7.2.13-1"), Some((7, 2)));
        assert_eq!(major_minor("6.18~rc1"), Some((6, 18)));
        assert_eq!(major_minor("7"), None);
    }
}
