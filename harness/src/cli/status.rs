//! Exit statuses. Their numbers are part of the interface: a script or `git bisect run` distinguishes a kernel that fails from
//! one that does not compile, and both from a mirror that is down.

use vm::process::interrupt;

/// How goldtrace exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// All is well.
    Success,
    /// A trial failed.
    Failed,
    /// The command line or an input file is wrong.
    WrongInput,
    /// The host, a build or a guest did not do its part.
    Infrastructure,
    /// The compiler refused the kernel, a module or perf.
    DoesNotCompile,
    /// The user has interrupted.
    Interrupted,
    /// The exit status of a command in a guest.
    OfCommand(u8),
}

impl Status {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Status::Success => 0,
            Status::Failed => 1,
            Status::WrongInput => 2,
            Status::Infrastructure => 3,
            Status::DoesNotCompile => 4,
            Status::Interrupted => interrupt::EXIT_STATUS,
            Status::OfCommand(status) => status,
        }
    }
}

/// The statuses, for the help of a command.
pub(super) const HELP: &str = "\
Exit status:
  0    every trial passed, or failed as its xfail entry expects, or was skipped
  1    a trial failed, an expected failure did not occur, or a trial was skipped under --deny-skips
  2    the command line or an input file is wrong; a patch does not apply; the kernel does not honour a config fragment
  3    the host, a build or a guest did not do its part: no verdict on the kernel
  4    the kernel, a module or perf does not compile
  130  interrupted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_a_line_for_each_status() {
        let all = [
            Status::Success,
            Status::Failed,
            Status::WrongInput,
            Status::Infrastructure,
            Status::DoesNotCompile,
            Status::Interrupted,
        ];
        let documented: Vec<&str> =
            HELP.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(documented, all.map(|status| status.code().to_string()));
    }
}
