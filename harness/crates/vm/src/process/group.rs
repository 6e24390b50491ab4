//! A child process with its own process group.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use duct::Handle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, pidfd_open, waitid,
};

use super::interrupt;

/// The group's leader: a shell that starts the real command, waits for it, and kills the group when we end.
///
/// Its descriptor 3 is a pipe that nothing is ever written to and whose other end only we have: it ends when we do,
/// however that happens, and a process of the group that waits for that end then kills the group. It is there before
/// the command is, so no moment is unguarded, and it covers the command's children too. Descriptor 4 is the command's
/// standard input: a shell gives a background command /dev/null where it names no other. What the command inherits
/// besides is closed everywhere else, so that its other end sees when the command closes it.
const GUARD: &str = r#"
exec 4<&0 0</dev/null
{ read -r _ <&3; kill -KILL 0; } 4<&- 5<&- 6<&- 7<&- 8<&- 9<&- >/dev/null 2>&1 &
watch=$!
"$@" <&4 3<&- 4<&- &
exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-
wait "$!"
status=$?
kill -KILL "$watch"
exit "$status"
"#;

/// The descriptor of the pipe in the guard.
const LIFE: i32 = 3;
/// The descriptors that a command can inherit: those that the guard does not use and the shell can name.
pub const INHERITED: RangeInclusive<i32> = 5..=9;

/// How the descriptors of a command are connected. It has no other.
#[derive(Debug, Default)]
pub struct Streams {
    /// Where standard input comes from; /dev/null when `None`.
    pub stdin: Option<File>,
    /// Where standard output goes; /dev/null when `None`.
    pub stdout: Option<File>,
    /// Where standard error goes; /dev/null when `None`.
    pub stderr: Option<File>,
    /// Further ones, by the numbers that they have in the command, which are in [`INHERITED`].
    pub inherited: Vec<(i32, OwnedFd)>,
}

/// A running command and all its descendants. Dropping it kills them, and so does the end of this process.
///
/// The leader's process id, which is the group's too, stays ours until then: the leader is not reaped before the last
/// signal was sent.
#[derive(Debug)]
pub struct ProcessGroup {
    handle: Handle,
    leader: Pid,
    /// The group is killed when this is closed.
    life: Option<File>,
}

impl ProcessGroup {
    /// Start `command`, whose program, arguments, environment changes and working directory are used.
    ///
    /// # Errors
    /// When the guard cannot be started, an inherited descriptor has another number, or the user has interrupted. A program that does not
    /// exist ends the group at once, with status 127 and a message on its standard error.
    pub fn start(command: &Command, streams: Streams) -> io::Result<ProcessGroup> {
        interrupt::check()?;
        let (guards, life) = pipe()?;
        let mut descriptors = vec![(LIFE, OwnedFd::from(guards))];
        for (number, descriptor) in streams.inherited {
            if !INHERITED.contains(&number) {
                return Err(io::Error::other(format!("descriptor {number} cannot be inherited")));
            }
            descriptors.push((number, descriptor));
        }
        // Ours are closed in children as they are. This closes those that whoever started us has left open.
        close_fds::set_fds_cloexec(LIFE, &[]);
        let mut words = vec!["-c".into(), GUARD.into(), "goldtrace-guard".into()];
        words.push(command.get_program().to_owned());
        words.extend(command.get_args().map(ToOwned::to_owned));
        let mut guard = duct::cmd("sh", words).unchecked();
        for (name, value) in command.get_envs() {
            guard = match value {
                Some(value) => guard.env(name, value),
                None => guard.env_remove(name),
            };
        }
        if let Some(dir) = command.get_current_dir() {
            guard = guard.dir(dir);
        }
        guard = match streams.stdin {
            Some(file) => guard.stdin_file(file),
            None => guard.stdin_null(),
        };
        guard = match streams.stdout {
            Some(file) => guard.stdout_file(file),
            None => guard.stdout_null(),
        };
        guard = match streams.stderr {
            Some(file) => guard.stderr_file(file),
            None => guard.stderr_null(),
        };
        let handle = guard
            .before_spawn(move |command| {
                command.process_group(0);
                let mapping = |(number, descriptor): &(i32, OwnedFd)| {
                    Ok(FdMapping { parent_fd: descriptor.try_clone()?, child_fd: *number })
                };
                let mappings = descriptors.iter().map(mapping).collect::<io::Result<_>>()?;
                command.fd_mappings(mappings).map_err(io::Error::other)?;
                Ok(())
            })
            .start()
            .map_err(|e| io::Error::new(e.kind(), format!("failed to start a shell: {e}")))?;
        let leader = handle.pids().first().and_then(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
        let leader = leader.ok_or_else(|| io::Error::other("the started process has no id"))?;
        interrupt::register(leader);
        Ok(ProcessGroup { handle, leader, life: Some(life) })
    }

    /// Start `command` with its standard output and standard error on two pipes.
    ///
    /// # Errors
    /// As [`ProcessGroup::start`].
    pub fn start_piped(command: Command) -> io::Result<(ProcessGroup, File, File)> {
        let (out, out_end) = pipe()?;
        let (err, err_end) = pipe()?;
        let streams = Streams { stdout: Some(out_end), stderr: Some(err_end), ..Streams::default() };
        let group = ProcessGroup::start(&command, streams)?;
        Ok((group, out, err))
    }

    /// Wait for the command's end. A command ended by signal N has the status 128 + N, as in a shell.
    ///
    /// # Errors
    /// When the system cannot determine how the command ended.
    pub fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            // The leader stays a zombie, so its id is not given to another process.
            match waitid(WaitId::Pid(self.leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Ok(status) => return Ok(exit_status(status.as_ref())),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Wait at most `timeout`; `None` when the command still runs then.
    ///
    /// # Errors
    /// As [`ProcessGroup::wait`].
    pub fn wait_timeout(&self, timeout: Duration) -> io::Result<Option<ExitStatus>> {
        let leader = pidfd_open(self.leader, PidfdFlags::empty())?;
        let deadline = std::time::Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&leader, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Ok(None),
                Ok(_) => return self.wait().map(Some),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether a signal has suspended a process of the group: state `T` in /proc/PID/stat, proc_pid_stat(5).
    pub fn is_suspended(&self) -> bool {
        let group = self.leader.as_raw_nonzero().to_string();
        let is_of_group = |stat: &str| {
            // The command's name may hold anything, parentheses included; state, parent and group follow.
            let mut fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
            fields.next() == Some("T") && fields.nth(1) == Some(&group)
        };
        let Ok(processes) = std::fs::read_dir("/proc") else { return false };
        processes.flatten().any(|process| {
            std::fs::read_to_string(process.path().join("stat")).is_ok_and(|s| is_of_group(&s))
        })
    }

    /// How long the command has been ready to run in all while no CPU was free for it: the most of any of its threads.
    /// Zero where the system does not count it (/proc/PID/schedstat, Documentation/scheduler/sched-stats.rst).
    pub fn waited_for_cpu(&self) -> Duration {
        let leader = self.leader.as_raw_nonzero();
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        // The command and the guard's own watcher, which sleeps.
        let children = read(&format!("/proc/{leader}/task/{leader}/children"));
        let threads = children.split_whitespace().filter_map(|process| {
            let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
            Some(threads.flatten().map(|thread| thread.path().join("schedstat")))
        });
        let waited = threads.flatten().filter_map(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            text.split_whitespace().nth(1)?.parse().ok()
        });
        Duration::from_nanos(waited.max().unwrap_or_default())
    }

    /// Kill every process of the group.
    pub fn kill(&self) {
        // The group has a member until it is dropped, if only the leader that was not reaped.
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        self.life = None;
        // Only after this may the id be another process's.
        interrupt::forget(self.leader);
        let _ = self.handle.wait();
    }
}

fn exit_status(status: Option<&WaitIdStatus>) -> ExitStatus {
    let code = status.and_then(WaitIdStatus::exit_status).map(|code| code << 8);
    let signal = status.and_then(WaitIdStatus::terminating_signal);
    ExitStatus::from_raw(code.or(signal).unwrap_or_default())
}

/// A pipe whose ends are closed in children: its reading end, then its writing end.
///
/// # Errors
/// When the system has no more.
pub fn pipe() -> io::Result<(File, File)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((File::from(read), File::from(write)))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixStream;
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

    #[track_caller]
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
        assert_eq!(group.wait_timeout(Duration::ZERO).expect("ended").and_then(|s| s.code()), Some(7));
    }

    #[test]
    fn signal_of_the_command_is_a_status_as_in_a_shell() {
        let (group, _out, _err) = ProcessGroup::start_piped(sh("kill -TERM $$")).expect("starts");
        assert_eq!(group.wait().expect("ended").code(), Some(128 + 15));
        let (group, _out, _err) =
            ProcessGroup::start_piped(Command::new("goldtrace-absent")).expect("starts");
        assert_eq!(group.wait().expect("ended").code(), Some(127));
    }

    #[test]
    fn wait_for_a_cpu_that_another_process_keeps_busy_is_counted() {
        let busy = "while :; do :; done";
        // Both on the first CPU that they may have.
        let first = "taskset -p -c $$ | sed 's/.*: //; s/[-,].*//'";
        let script = format!("taskset -p -c $({first}) $$ >/dev/null; ({busy}) & {busy}");
        let (group, _out, _err) = ProcessGroup::start_piped(sh(&script)).expect("starts");
        let start = Instant::now();
        while group.waited_for_cpu() < Duration::from_millis(50) {
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}", group.waited_for_cpu());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn running_command_has_no_status_until_it_is_killed() {
        let (group, _out, _err) = ProcessGroup::start_piped(sh("sleep 60")).expect("starts");
        assert_eq!(group.wait_timeout(Duration::from_millis(50)).expect("runs"), None);
        group.kill();
        assert_eq!(group.wait().expect("ended").signal(), Some(9));
    }

    #[test]
    fn dropped_group_ends_with_its_grandchildren() {
        let (group, out, _err) =
            ProcessGroup::start_piped(sh("sh -c 'sleep 60 & echo $!; wait'; true")).expect("starts");
        let grandchild = first_pid(out);
        assert!(alive(grandchild));
        drop(group);
        wait_for_end(grandchild);
    }

    #[test]
    fn group_ends_when_our_end_of_its_pipe_does() {
        // To the guard, the end of this process is the end of the pipe, and nothing else is.
        let (mut group, out, _err) =
            ProcessGroup::start_piped(sh("sleep 60 & echo $!; wait")).expect("starts");
        let grandchild = first_pid(out);
        group.life = None;
        wait_for_end(grandchild);
        assert_eq!(group.wait().expect("ended").signal(), Some(9));
    }

    #[test]
    fn group_outlives_the_thread_that_started_it() {
        let (group, out) = std::thread::spawn(|| {
            let (group, out, _err) =
                ProcessGroup::start_piped(sh("echo $$; sleep 0.3; exit 7")).expect("starts");
            (group, out)
        })
        .join()
        .expect("no panic");
        assert!(alive(first_pid(out)));
        assert_eq!(group.wait().expect("ended").code(), Some(7));
    }

    #[test]
    fn id_of_the_leader_is_kept_until_the_last_kill() {
        let (group, _out, _err) = ProcessGroup::start_piped(sh("true")).expect("starts");
        group.wait().expect("ended");
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", group.leader)).expect("still there");
        assert!(stat.contains(") Z "), "{stat}");
    }

    #[test]
    fn guard_leaves_no_process_after_the_command() {
        let (group, _out, _err) = ProcessGroup::start_piped(sh("true")).expect("starts");
        group.wait().expect("ended");
        let members = || {
            let of_group = |stat: &str| stat.rsplit(") ").next()?.split(' ').nth(2)?.parse::<i32>().ok();
            let processes = std::fs::read_dir("/proc").expect("mounted").flatten();
            processes
                .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
                .filter(|stat| {
                    of_group(stat) == Some(group.leader.as_raw_nonzero().get()) && !stat.contains(") Z ")
                })
                .count()
        };
        let start = Instant::now();
        while members() > 0 {
            assert!(start.elapsed() < Duration::from_secs(5), "{} processes are left", members());
        }
    }

    #[test]
    fn suspended_process_is_noticed() {
        let (group, out, _err) = ProcessGroup::start_piped(sh("sleep 60 & echo $!; wait")).expect("starts");
        let pid = Pid::from_raw(first_pid(out)).expect("a process id");
        assert!(!group.is_suspended());
        rustix::process::kill_process(pid, Signal::STOP).expect("its process");
        let deadline = Instant::now() + Duration::from_secs(10);
        while !group.is_suspended() {
            assert!(Instant::now() < deadline, "not noticed");
        }
        rustix::process::kill_process(pid, Signal::CONT).expect("its process");
        while group.is_suspended() {
            assert!(Instant::now() < deadline, "still suspended");
        }
    }

    #[test]
    fn panic_ends_the_group() {
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
        let streams = Streams { stdin: Some(input), stdout: Some(out_end), ..Streams::default() };
        let _group = ProcessGroup::start(&Command::new("cat"), streams).expect("starts");
        writer.write_all(b"through").expect("written");
        drop(writer);
        let mut text = String::new();
        out.read_to_string(&mut text).expect("readable");
        assert_eq!(text, "through");
    }

    #[test]
    fn inherited_descriptor_reaches_the_command_alone_and_ends_with_it() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (mut out, out_end) = pipe().expect("a pipe");
        let streams =
            Streams { stdout: Some(out_end), inherited: vec![(7, theirs.into())], ..Streams::default() };
        let group = ProcessGroup::start(&sh("echo begun; read -r line <&7; echo $line >&7"), streams);
        let group = group.expect("starts");
        out.read_exact(&mut [0; 6]).expect("begun");
        (&ours).write_all(b"through\n").expect("written");
        let mut answer = String::new();
        // It ends although the group has not been dropped.
        (&ours).read_to_string(&mut answer).expect("readable");
        assert_eq!(answer, "through\n");
        assert_eq!(group.wait().expect("ended").code(), Some(0));
    }

    #[test]
    fn command_has_no_other_descriptors_than_it_was_given() {
        // One of ours that is not closed on exec, as whoever started us may have left one.
        let left = File::open("/dev/null").expect("there");
        rustix::io::fcntl_setfd(&left, rustix::io::FdFlags::empty()).expect("set");
        let streams = |out| Streams {
            stdout: Some(out),
            inherited: vec![(5, File::open("/dev/zero").expect("there").into())],
            ..Streams::default()
        };
        let (mut out, out_end) = pipe().expect("a pipe");
        let mut command = Command::new("ls");
        command.args(["-l", "/proc/self/fd"]);
        let _group = ProcessGroup::start(&command, streams(out_end)).expect("starts");
        let mut text = String::new();
        out.read_to_string(&mut text).expect("readable");
        let words = |line: &str| -> Option<(String, String)> {
            let (head, target) = line.split_once(" -> ")?;
            Some((head.rsplit(' ').next()?.to_owned(), target.to_owned()))
        };
        let found: Vec<(String, String)> = text.lines().filter_map(words).collect();
        let numbers: Vec<&str> = found.iter().map(|(number, _)| number.as_str()).collect();
        // 3 is the directory that ls reads.
        assert_eq!(numbers, ["0", "1", "2", "3", "5"], "{text}");
        assert!(found[0].1 == "/dev/null" && found[4].1 == "/dev/zero", "{text}");
        let refused = Streams { inherited: vec![(4, left.into())], ..Streams::default() };
        assert!(ProcessGroup::start(&command, refused).is_err());
    }
}
