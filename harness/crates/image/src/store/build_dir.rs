//! Where the maker of a product works, and how it runs the commands of a build.

use std::time::Duration;

use camino::Utf8PathBuf;
use vm::process::{LoggedCommand, LoggedError, run_logged};
use xshell::{Cmd, Shell};

use crate::environment::{Network, clean};
use crate::error::ImageError;
use crate::progress::ProgressSink;
use crate::store::make_dir;
use crate::toolchain;

/// How many lines of a compiler's errors are shown; the log has all.
const ERROR_LINES: usize = 20;

/// Where the maker of a product works.
pub struct BuildDir<'s> {
    /// The product's files go here, and nothing else.
    pub out: Utf8PathBuf,
    /// For anything else; removed afterwards.
    pub scratch: Utf8PathBuf,
    /// Output of commands is appended to this file; it is kept.
    pub log: Utf8PathBuf,
    /// The recipe's label, for progress.
    pub label: String,
    /// Who hears of progress.
    pub progress: &'s dyn ProgressSink,
    /// What commands are made with.
    pub sh: Shell,
}

impl BuildDir<'_> {
    /// Run a command of a build, in a clean environment and with a directory of its own for temporary files. Its output goes to the log.
    ///
    /// # Errors
    /// A missing program, an exit status other than 0, a timeout, an interrupt.
    pub(crate) fn run(&self, command: Cmd<'_>, timeout: Duration) -> Result<(), ImageError> {
        self.run_showing(command, timeout, |_| ())
    }

    /// Run a compiler or make. Its output goes to the log, and its lines to the progress.
    ///
    /// # Errors
    /// [`ImageError::DoesNotCompile`] for an exit status of the command's own; else as [`BuildDir::run`].
    pub(crate) fn compile(&self, command: Cmd<'_>, timeout: Duration) -> Result<(), ImageError> {
        let before = std::fs::metadata(&self.log).map_or(0, |m| m.len());
        match self.run_showing(command, timeout, |line| self.progress.line(&self.label, line)) {
            // 126 and more: the command was not run, or was killed.
            Err(ImageError::Command(LoggedError::Failed { status, tail, log, .. }))
                if status.code().is_some_and(|code| code < 126) =>
            {
                let text = std::fs::read(&log).unwrap_or_default();
                let text = text.get(usize::try_from(before).unwrap_or(0)..).unwrap_or_default();
                let mut errors = error_lines(&String::from_utf8_lossy(text));
                if errors.is_empty() {
                    errors = tail.lines().map(|line| line.trim_start().to_owned()).collect();
                }
                Err(ImageError::DoesNotCompile { label: self.label.clone(), status, errors, log })
            }
            other => other,
        }
    }

    fn run_showing(
        &self,
        command: Cmd<'_>,
        timeout: Duration,
        on_line: impl FnMut(&str),
    ) -> Result<(), ImageError> {
        let program = command.to_string().split(' ').next().unwrap_or_default().to_owned();
        let sh = toolchain::shell()?;
        // The cache is known to have room, /tmp may be small; and what a killed compiler leaves is removed with the rest.
        let temporary = self.scratch.join("tmp");
        make_dir(&temporary)?;
        let command = clean(command.env("TMPDIR", temporary), &sh, Network::Unused);
        match run_logged(LoggedCommand { command, log: &self.log, timeout }, on_line) {
            Err(LoggedError::Failed { status, .. }) if status.code() == Some(127) => {
                toolchain::require(&program)?;
                Err(ImageError::Host(format!(
                    "failed to run `{program}` for {}: a program that it calls is missing (see {})",
                    self.label, self.log
                )))
            }
            other => Ok(other?),
        }
    }
}

/// The last lines that name errors, of the compiler, the linker and make.
fn error_lines(output: &str) -> Vec<String> {
    let is_error = |line: &&str| {
        [
            " error: ",
            "fatal error:",
            "undefined reference",
            "multiple definition",
            "ERROR: ",
            " *** ",
            "Error 1",
        ]
        .iter()
        .any(|mark| line.contains(mark))
            || line.starts_with("error: ")
    };
    // The log repeats each command line after a `$`.
    let lines = output.lines().filter(|line| !line.starts_with("$ "));
    let lines: Vec<&str> = lines.filter(is_error).collect();
    lines[lines.len().saturating_sub(ERROR_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use camino::Utf8Path;
    use xshell::cmd;

    use super::*;
    use crate::error::ErrorKind;
    use crate::progress::Silent;

    fn in_build_dir<T>(check: impl FnOnce(&BuildDir<'_>) -> T) -> T {
        let dir = tempfile::tempdir().expect("a directory");
        let path = Utf8Path::from_path(dir.path()).expect("UTF-8");
        check(&BuildDir {
            out: path.join("out"),
            scratch: path.join("scratch"),
            log: path.join("log"),
            label: "thing one".to_owned(),
            progress: &Silent,
            sh: Shell::new().expect("a shell"),
        })
    }

    fn compile(script: &str, timeout: Duration) -> ImageError {
        in_build_dir(|dir| dir.compile(cmd!(dir.sh, "sh -c {script}"), timeout).expect_err("fails"))
    }

    #[test]
    fn compiler_error_is_shown_with_its_line_and_the_log() {
        let script = "echo 'CC a.o'; echo \"a.c:4:2: error: 'zero' undeclared\"; echo note; exit 2";
        let error = compile(script, Duration::from_secs(10));
        assert_eq!(error.kind(), ErrorKind::DoesNotCompile);
        let text = error.to_string();
        assert!(
            text.starts_with(
                "failed to compile thing one: exit status: 2\n    a.c:4:2: error: 'zero' undeclared\nthe whole output: /"
            ),
            "{text}"
        );
    }

    #[test]
    fn failure_without_error_lines_shows_the_last_lines() {
        let text = compile("echo the end; exit 1", Duration::from_secs(10)).to_string();
        assert!(text.contains("\n    the end\n"), "{text}");
    }

    #[test]
    fn killed_or_slow_compiler_is_not_a_compile_error() {
        assert_eq!(compile("kill -KILL $$", Duration::from_secs(10)).kind(), ErrorKind::Host);
        assert_eq!(compile("sleep 60", Duration::from_millis(100)).kind(), ErrorKind::Host);
    }

    #[test]
    fn missing_program_is_named_with_its_package() {
        let error = in_build_dir(|dir| {
            let command = cmd!(dir.sh, "powerpc-no-such-gcc -c a.c");
            dir.compile(command, Duration::from_secs(10)).expect_err("fails")
        });
        assert_eq!(error.kind(), ErrorKind::MissingProgram);
        assert_eq!(
            error.to_string(),
            "program `powerpc-no-such-gcc` is missing\nhelp: install package gcc-powerpc-no-such, or run `ci/bootstrap`"
        );
    }

    const CHILD: &str = "GOLDTRACE_TEST_HOSTILE";

    /// Builds in a process whose environment is hostile; the test's own is that of other tests too.
    #[test]
    fn hostile_environment_does_not_reach_a_build() {
        if let Some(dir) = std::env::var_os(CHILD) {
            return build_below(Utf8Path::from_path(dir.as_ref()).expect("UTF-8"));
        }
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("limits.h"), "#error reached by CPATH\n").expect("written");
        let makefile = "all:\n\t@echo [$(KBUILD_OUTPUT)$(KCFLAGS)$(LLVM)$(LOCALVERSION)$(MAKEFLAGS)]\n\
                        \tgcc -c a.c\n\tccache --get-config sloppiness\n";
        std::fs::write(dir.path().join("Makefile"), makefile).expect("written");
        std::fs::write(dir.path().join("a.c"), "#include <limits.h>\nint a = INT_MAX;\n").expect("written");
        let test = "store::build_dir::tests::hostile_environment_does_not_reach_a_build";
        let output = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, dir.path())
            .envs([("CPATH", dir.path()), ("C_INCLUDE_PATH", dir.path()), ("KBUILD_OUTPUT", dir.path())])
            .envs([("KCFLAGS", "-DX"), ("LLVM", "1"), ("LOCALVERSION", "-x"), ("MAKEFLAGS", "-n")])
            .envs([("GCC_EXEC_PREFIX", "/nowhere/"), ("CCACHE_SLOPPINESS", "time_macros")])
            .output()
            .expect("runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(dir.path().join("a.o").is_file(), "nothing was compiled");
        let log = std::fs::read_to_string(dir.path().join("log")).expect("a log");
        let printed: Vec<&str> = log.lines().filter(|line| !line.starts_with(['$', 'm', 'g'])).collect();
        assert_eq!(printed, ["[w]", "ccache --get-config sloppiness", ""], "{log}");
    }

    fn build_below(dir: &Utf8Path) {
        let build_dir = BuildDir {
            out: dir.join("out"),
            scratch: dir.to_owned(),
            log: dir.join("log"),
            label: "thing one".to_owned(),
            progress: &Silent,
            sh: Shell::new().expect("a shell"),
        };
        let command = cmd!(build_dir.sh, "make -C {dir}");
        build_dir.compile(command, Duration::from_secs(30)).expect("compiles");
    }
}
