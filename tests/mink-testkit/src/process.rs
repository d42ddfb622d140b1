//! A child process whose output goes to files, that can be killed, paused and waited for within a bound.
//! Lives on: the test's tokio runtime (waits); children are started by a thread of their own.
//! Owns: its child: it is killed when the [`Process`] is dropped, and by the kernel when the test process dies.
//! Invariants: no wait is without a bound; a failed test shows the end of the logs.
//!
//! Output goes to files and not through pipes, so that a paused or killed test never blocks the child, and nothing is lost.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal};
use tempfile::TempDir;

use crate::loud::unexpected_lines;
use crate::{Error, ErrorKind, Result};

/// How often a condition is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(5);
/// Lines of each log that a failure shows.
const SHOWN_LINES: usize = 60;
/// A killed child is gone within this, or something is wrong with the machine.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// Log files of one name in one folder.
const LOGS_MAX: usize = 10_000;

/// Which output of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Results.
    Stdout,
    /// Logs.
    Stderr,
}

/// A child that is about to be started.
#[derive(Debug)]
pub struct Launch {
    name: String,
    command: Command,
    log_dir: Option<PathBuf>,
    /// `None`: the log is not looked at.
    allowed: Option<Vec<String>>,
}

impl Launch {
    /// A child named `name` (in messages and log files) that runs `program`.
    pub fn new(name: impl Into<String>, program: impl AsRef<Path>) -> Self {
        Self { name: name.into(), command: Command::new(program.as_ref()), log_dir: None, allowed: None }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.command.arg(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: Into<OsString>>(mut self, args: I) -> Self {
        self.command.args(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable; all others are those of the test.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.command.env(name.into(), value.into());
        self
    }

    /// Where `<name>-<n>.stdout` and `.stderr` go (`n` counts up, nothing is overwritten). Default: a temporary folder.
    #[must_use]
    pub fn log_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.log_dir = Some(folder.into());
        self
    }

    /// Dropping the process fails the test if its stderr holds a WARN or ERROR line, or a panic, with none of `allowed` in it.
    #[must_use]
    pub fn fail_on_loud_lines(mut self, allowed: Vec<String>) -> Self {
        self.allowed = Some(allowed);
        self
    }

    /// Starts the child in a process group of its own, with nothing on stdin.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the log files or the child can't be made.
    pub fn start(mut self) -> Result<Process> {
        let program = self.command.get_program().to_string_lossy().into_owned();
        let doing = format!("starting {} ({program})", self.name);
        let failed = |error: io::Error| Error::io(&doing, &error);
        let mut own_dir = None;
        let folder = match &self.log_dir {
            Some(folder) => {
                fs::create_dir_all(folder).map_err(failed)?;
                folder.clone()
            }
            None => own_dir.insert(tempfile::tempdir().map_err(failed)?).path().to_path_buf(),
        };
        let (base, stdout) = next_log(&folder, &self.name).map_err(failed)?;
        let stderr_path = base.with_extension("stderr");
        let stderr = File::create(&stderr_path).map_err(failed)?;
        self.command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        let child = start_on_lasting_thread(self.command).map_err(failed)?;
        Ok(Process {
            pid: pid_of(&child)?,
            child,
            name: self.name,
            stdout: Log::new(base.with_extension("stdout")),
            stderr: Log::new(stderr_path),
            allowed: self.allowed,
            _own_dir: own_dir,
        })
    }
}

/// Makes the first `<name>-<n>.stdout` that is not there yet; gives its path without the extension.
fn next_log(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    for number in 0..LOGS_MAX {
        let base = folder.join(format!("{name}-{number}"));
        match OpenOptions::new().write(true).create_new(true).open(base.with_extension("stdout")) {
            Ok(file) => return Ok((base, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many log files"))
}

fn pid_of(child: &Child) -> Result<Pid> {
    let raw = i32::try_from(child.id()).ok();
    raw.and_then(Pid::from_raw).ok_or_else(|| Error::new(ErrorKind::Io, "the child has no process id"))
}

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts children on one thread that lives as long as the process does: the kernel's parent-death signal is sent when the
/// *thread* that started the child ends, and a test's thread ends long before the servers that tests share.
fn start_on_lasting_thread(command: Command) -> io::Result<Child> {
    static ORDERS: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let orders = ORDERS.get_or_init(|| {
        let (orders, work) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (command, answer) in work {
                // Whoever ordered waits for the answer; if it is gone, so is the wish, and the child is dropped unheard.
                drop(answer.send(start_now(command)));
            }
        });
        orders
    });
    let (answer, answered) = mpsc::channel();
    orders.send((command, answer)).map_err(|_| io::Error::other("the starting thread ended"))?;
    answered.recv().map_err(|_| io::Error::other("the starting thread ended"))?
}

fn start_now(mut command: Command) -> io::Result<Child> {
    // SAFETY: between fork and exec the closure makes one prctl system call; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    command.spawn()
}

/// A file that a child writes, and how far waits have read it.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    read_to: u64,
}

impl Log {
    fn new(path: PathBuf) -> Self {
        Self { path, read_to: 0 }
    }

    /// All of it; bytes that are not UTF-8 are replaced.
    fn text(&self) -> Result<String> {
        let bytes = fs::read(&self.path)
            .map_err(|error| Error::io(format_args!("reading {}", self.path.display()), &error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Hands whole lines that were not handed out yet to `wanted`, until it takes one.
    fn find<T>(&mut self, wanted: &mut impl FnMut(&str) -> Option<T>) -> Result<Option<T>> {
        let mut fresh = Vec::new();
        let mut read = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(self.read_to))?;
            file.read_to_end(&mut fresh)
        };
        read().map_err(|error| Error::io(format_args!("reading {}", self.path.display()), &error))?;
        for line in fresh.split_inclusive(|byte| *byte == b'\n') {
            let Some(whole) = line.strip_suffix(b"\n") else {
                break;
            };
            self.read_to += line.len() as u64;
            if let Some(found) = wanted(&String::from_utf8_lossy(whole)) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn last_lines(&self) -> String {
        let text = self.text().unwrap_or_else(|error| error.to_string());
        let lines: Vec<&str> = text.lines().collect();
        let skipped = lines.len().saturating_sub(SHOWN_LINES);
        let mut shown = String::new();
        // Writing to a String can't fail.
        let _ = writeln!(shown, "--- {} ({skipped} lines before)", self.path.display());
        for line in lines.iter().skip(skipped) {
            let _ = writeln!(shown, "{line}");
        }
        shown
    }
}

/// A running or ended child.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    stdout: Log,
    stderr: Log,
    allowed: Option<Vec<String>>,
    _own_dir: Option<TempDir>,
}

impl Process {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The name it was launched under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything that was written so far.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file can't be read.
    pub fn text(&self, output: Output) -> Result<String> {
        match output {
            Output::Stdout => self.stdout.text(),
            Output::Stderr => self.stderr.text(),
        }
    }

    /// Waits until `wanted` takes a line of `output`; each line is offered once over all waits.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] after `within`, [`ErrorKind::Failed`] if the child ended without such a line; both show the logs.
    pub async fn wait_for_line<T>(
        &mut self,
        output: Output,
        within: Duration,
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + within;
        loop {
            // The end is looked at before the log: what a child wrote before it ended is then there to be read.
            let ended = self.exit_status()?;
            let log = match output {
                Output::Stdout => &mut self.stdout,
                Output::Stderr => &mut self.stderr,
            };
            if let Some(found) = log.find(&mut wanted)? {
                return Ok(found);
            }
            if let Some(status) = ended {
                return Err(self.report(
                    ErrorKind::Failed,
                    &format!("ended ({status}) without the line that was waited for"),
                ));
            }
            if Instant::now() >= deadline {
                return Err(
                    self.report(ErrorKind::TimedOut, &format!("did not write the line within {within:?}"))
                );
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits for a line that contains `text`, and gives it.
    ///
    /// # Errors
    /// As [`Process::wait_for_line`].
    pub async fn wait_for_text(&mut self, output: Output, within: Duration, text: &str) -> Result<String> {
        let line =
            self.wait_for_line(output, within, |line| line.contains(text).then(|| line.to_owned())).await;
        line.map_err(|error| error.during(format_args!("waiting for {text:?}")))
    }

    /// How it ended, or `None` while it lives.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the kernel won't tell.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(|error| Error::io(format_args!("waiting for {}", self.name), &error))
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] after `within`, with the logs.
    pub async fn wait(&mut self, within: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.exit_status()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err(self.report(ErrorKind::TimedOut, &format!("did not end within {within:?}")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until it stands still: it was paused from outside, or stopped itself at a fail point.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] after `within`, [`ErrorKind::Failed`] if it ends; both show the logs.
    pub async fn wait_until_paused(&mut self, within: Duration) -> Result<()> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.exit_status()? {
                return Err(self.report(ErrorKind::Failed, &format!("ended ({status}) instead of pausing")));
            }
            if self.is_paused()? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(self.report(ErrorKind::TimedOut, &format!("did not pause within {within:?}")));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Whether it stands still.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the kernel won't tell.
    pub fn is_paused(&self) -> Result<bool> {
        let path = format!("/proc/{}/stat", self.id());
        let stat =
            fs::read_to_string(&path).map_err(|error| Error::io(format_args!("reading {path}"), &error))?;
        // The state follows the command's name, which stands in parentheses.
        Ok(stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T')))
    }

    /// SIGTERM.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if it has ended already.
    pub fn terminate(&mut self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// SIGINT, as Ctrl-C sends it.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if it has ended already.
    pub fn interrupt(&mut self) -> Result<()> {
        self.signal(Signal::INT)
    }

    /// SIGSTOP: the process stands still, its sockets stay open.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if it has ended already.
    pub fn pause(&mut self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if it has ended already.
    pub fn resume(&mut self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// SIGKILL, also to a paused process and to what it has started in its group; gives back when it is gone.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if it has ended already, [`ErrorKind::TimedOut`] if it does not go.
    pub async fn kill9(&mut self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.wait(GONE_WITHIN).await.map(drop)
    }

    fn signal(&mut self, signal: Signal) -> Result<()> {
        // The status is asked for first: until then an ended child keeps its number, afterwards it could be another's.
        if let Some(status) = self.exit_status()? {
            return Err(self.report(ErrorKind::Failed, &format!("ended ({status}) before it got {signal:?}")));
        }
        let sent = if signal == Signal::KILL {
            kill_process_group(self.pid, signal)
        } else {
            kill_process(self.pid, signal)
        };
        sent.map_err(|error| Error::io(format_args!("sending {signal:?} to {}", self.name), &error.into()))
    }

    /// WARN, ERROR and panic lines of stderr that were not allowed.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the log can't be read.
    pub fn loud_lines(&self) -> Result<Vec<String>> {
        Ok(unexpected_lines(&self.stderr.text()?, self.allowed.as_deref().unwrap_or_default()))
    }

    /// An error about this process that shows the end of both its logs.
    pub fn report(&self, kind: ErrorKind, what: &str) -> Error {
        Error::new(
            kind,
            format!("{} {what}\n{}{}", self.name, self.stdout.last_lines(), self.stderr.last_lines()),
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // A group that is gone in this moment is what we want; the wait reaps the child in either case.
            let _ = kill_process_group(self.pid, Signal::KILL);
            drop(self.child.wait());
        }
        if std::thread::panicking() {
            eprintln!("{}{}", self.stdout.last_lines(), self.stderr.last_lines());
        } else if self.allowed.is_some() {
            let loud = self.loud_lines().unwrap_or_else(|error| vec![error.to_string()]);
            assert!(
                loud.is_empty(),
                "{} wrote lines that the test does not allow:\n{}",
                self.name,
                loud.join("\n")
            );
        }
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
