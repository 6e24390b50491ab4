//! Whether this is a job of a CI system, where no person reads a warning or a golden that is written.

/// Whether `value`, of the variable `CI`, says so. The systems set it to `true`; a person may set it to say no.
fn says_yes(value: &str) -> bool {
    !["", "0", "false", "no"].contains(&value.to_ascii_lowercase().as_str())
}

/// Whether the variable `CI` says that this is a job of a CI system.
pub(super) fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| says_yes(&value.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_and_nothing_are_no() {
        for no in ["", "0", "false", "False", "no"] {
            assert!(!says_yes(no), "{no}");
        }
        for yes in ["true", "1", "woodpecker"] {
            assert!(says_yes(yes), "{yes}");
        }
    }
}
