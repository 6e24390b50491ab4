//! A child process with its own process group.

use std::fs::File;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use duct::{Expression, Handle};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal, kill_process_group};

use super::interrupt;

/// The group's leader: a shell that starts the real command and waits for it.
///
/// `setpriv` asks the kernel to send the shell SIGTERM when the thread that started it ends, and
/// the shell then kills its whole group. That covers a goldtrace that dies by SIGKILL, and children
/// of the command too, which inherit no such request. The command keeps the caller's standard
/// input: a shell gives a background command /dev/null otherwise.
const GUARD: &str =
    r#"trap 'trap "" TERM; kill -KILL 0' TERM; exec 3<&0; "$@" <&3 3<&- & exec 3<&-; wait "$!""#;

/// How the standard streams of a command are connected.
#[derive(Debug, Default)]
pub struct Streams {
    /// Where standard input comes from; /dev/null when `None`.
    pub stdin: Option<File>,
    /// Where standard output goes; /dev/null when `None`.
    pub stdout: Option<File>,
    /// Where standard error goes; /dev/null when `None`.
    pub stderr: Option<File>,
}

/// A running command and all its descendants. Dropping it kills them.
///
/// The thread that starts a group must live as long as the group: the kernel ties the group's
/// life to that thread.
#[derive(Debug)]
pub struct ProcessGroup {
    handle: Handle,
    leader: Pid,
}

impl ProcessGroup {
    /// Start `command`, whose program, arguments, environment changes and folder are used.
    ///
    /// # Errors
    /// When the guard cannot be started, or the user has interrupted. A program that does not
    /// exist ends the group at once, with status 127 and a message on its standard error.
    pub fn start(command: &Command, output: Streams) -> io::Result<ProcessGroup> {
        interrupt::check()?;
        let mut words = vec!["--pdeathsig".into(), "TERM".into(), "sh".into(), "-c".into(), GUARD.into()];
        words.push("goldtrace-guard".into());
        words.push(command.get_program().to_owned());
        words.extend(command.get_args().map(ToOwned::to_owned));
        let mut expression: Expression = duct::cmd("setpriv", words).unchecked();
        for (name, value) in command.get_envs() {
            expression = match value {
                Some(value) => expression.env(name, value),
                None => expression.env_remove(name),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            expression = expression.dir(dir);
        }
        expression = match output.stdin {
            Some(file) => expression.stdin_file(file),
            None => expression.stdin_null(),
        };
        expression = match output.stdout {
            Some(file) => expression.stdout_file(file),
            None => expression.stdout_null(),
        };
        expression = match output.stderr {
            Some(file) => expression.stderr_file(file),
            None => expression.stderr_null(),
        };
        let handle = expression
            .before_spawn(|command| {
                std::os::unix::process::CommandExt::process_group(command, 0);
                Ok(())
            })
            .start()
            .map_err(|e| {
                io::Error::new(e.kind(), format!("cannot start setpriv (package util-linux): {e}"))
            })?;
        let leader = handle.pids().first().and_then(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
        let leader = leader.ok_or_else(|| io::Error::other("the started process has no id"))?;
        interrupt::register(leader);
        Ok(ProcessGroup { handle, leader })
    }

    /// Start `command` with its standard output and standard error on two pipes.
    ///
    /// # Errors
    /// As [`ProcessGroup::start`].
    pub fn start_piped(command: Command) -> io::Result<(ProcessGroup, File, File)> {
        let (out, out_end) = pipe()?;
        let (err, err_end) = pipe()?;
        let output = Streams { stdin: None, stdout: Some(out_end), stderr: Some(err_end) };
        let group = ProcessGroup::start(&command, output)?;
        Ok((group, out, err))
    }

    /// Wait for the command's end. A command ended by signal N has the status 128 + N, as in a shell.
    ///
    /// # Errors
    /// When the system cannot say how the command ended.
    pub fn wait(&self) -> io::Result<ExitStatus> {
        Ok(self.handle.wait()?.status)
    }

    /// Wait at most `limit`; `None` when the command still runs then.
    ///
    /// # Errors
    /// As [`ProcessGroup::wait`].
    pub fn wait_timeout(&self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        Ok(self.handle.wait_timeout(limit)?.map(|output| output.status))
    }

    /// Kill every process of the group.
    pub fn kill(&self) {
        // An error says that no process of the group is left.
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        interrupt::forget(self.leader);
        let _ = self.handle.wait();
    }
}

/// A pipe whose ends are closed in children: its reading end, then its writing end.
pub(super) fn pipe() -> io::Result<(File, File)> {
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((File::from(read), File::from(write)))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::time::Instant;

    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn alive(pid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }

    fn wait_for_end(pid: i32) {
        let start = Instant::now();
        while alive(pid) {
            assert!(start.elapsed() < Duration::from_secs(5), "process {pid} is still there");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn first_pid(out: File) -> i32 {
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("a line");
        line.trim().parse().expect("a process id")
    }

    #[test]
    fn streams_and_status_are_the_commands_own() {
        let (group, mut out, mut err) =
            ProcessGroup::start_piped(sh("echo out; echo err >&2; exit 7")).expect("starts");
        let (mut o, mut e) = (String::new(), String::new());
        out.read_to_string(&mut o).expect("readable");
        err.read_to_string(&mut e).expect("readable");
        assert_eq!((o.as_str(), e.as_str()), ("out\n", "err\n"));
        assert_eq!(group.wait().expect("ended").code(), Some(7));
    }

    #[test]
    fn a_dropped_group_ends_with_its_grandchildren() {
        let (group, out, _err) =
            ProcessGroup::start_piped(sh("sh -c 'sleep 60 & echo $!; wait'; true")).expect("starts");
        let grandchild = first_pid(out);
        assert!(alive(grandchild));
        drop(group);
        wait_for_end(grandchild);
    }

    #[test]
    fn a_group_ends_with_the_thread_that_started_it() {
        // A thread's end is to the kernel what a killed goldtrace is: no destructor runs.
        let grandchild = std::thread::spawn(|| {
            let (group, out, _err) =
                ProcessGroup::start_piped(sh("sleep 60 & echo $!; wait")).expect("starts");
            std::mem::forget(group);
            first_pid(out)
        })
        .join()
        .expect("no panic");
        wait_for_end(grandchild);
    }

    #[test]
    fn a_panic_ends_the_group() {
        let (send, receive) = std::sync::mpsc::channel();
        let outcome = std::thread::spawn(move || {
            let (_group, out, _err) =
                ProcessGroup::start_piped(sh("sleep 60 & echo $!; wait")).expect("starts");
            send.send(first_pid(out)).expect("received");
            panic!("on purpose");
        })
        .join();
        assert!(outcome.is_err());
        wait_for_end(receive.recv().expect("sent"));
    }

    #[test]
    fn standard_input_reaches_the_command() {
        let (input, mut writer) = pipe().expect("a pipe");
        let (mut out, out_end) = pipe().expect("a pipe");
        let output = Streams { stdin: Some(input), stdout: Some(out_end), stderr: None };
        let _group = ProcessGroup::start(&Command::new("cat"), output).expect("starts");
        std::io::Write::write_all(&mut writer, b"through").expect("written");
        drop(writer);
        let mut text = String::new();
        out.read_to_string(&mut text).expect("readable");
        assert_eq!(text, "through");
    }
}
