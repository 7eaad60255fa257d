//! What is to be started.

use std::ffi::OsStr;
use std::future::Future;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{self, ExitStatus, Output, Stdio};

use super::child::Child;
use super::{Result, orphan};
use crate::reactor::{budget, current};
use crate::sys::door::needs_kernel;

/// A program to be started, with its arguments, environment and standard streams.
///
/// The methods are those of [`std::process::Command`], of which one can be made
/// ([`From`]), changed ([`as_std_mut`](Self::as_std_mut)) and taken out
/// ([`into_std`](Self::into_std)). A `Command` can start any number of children.
///
/// # Examples
///
/// ```
/// use glommio::process::Command;
///
/// # glommio::LocalExecutor::default().run(async {
/// let output = Command::new("sh")
///     .arg("-c")
///     .args(["echo $GREETING from $(pwd)"])
///     .env_clear()
///     .envs([("GREETING", "hello"), ("PATH", "/usr/bin:/bin")])
///     .env("TERM", "dumb")
///     .env_remove("TERM")
///     .current_dir("/")
///     .output()
///     .await?;
/// assert_eq!(output.stdout, b"hello from /\n");
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Command {
    std: process::Command,
    kill_on_drop: bool,
}

impl Command {
    /// The program `program`, looked for in `PATH` if it is a name without slashes. Without
    /// arguments, with the environment, the directory and the standard streams of this process.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        process::Command::new(program).into()
    }

    /// One more argument.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg(arg);
        self
    }

    /// More arguments.
    pub fn args<I, S>(&mut self, args: I) -> &mut Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.std.args(args);
        self
    }

    /// The argument zero, which is the program otherwise.
    pub fn arg0(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.std.arg0(arg);
        self
    }

    /// Sets a variable of the environment.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.std.env(key, value);
        self
    }

    /// Sets variables of the environment.
    pub fn envs<I, K, V>(&mut self, variables: I) -> &mut Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.std.envs(variables);
        self
    }

    /// Leaves out a variable of the environment.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.std.env_remove(key);
        self
    }

    /// Starts from an empty environment.
    pub fn env_clear(&mut self) -> &mut Self {
        self.std.env_clear();
        self
    }

    /// The working directory. Whether a relative path of the program counts from there is left open,
    /// as it is by [`std::process::Command::current_dir`].
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        self.std.current_dir(directory);
        self
    }

    /// The standard input. Default: that of this process.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::process::Command;
    /// use std::process::Stdio;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let child = Command::new("/bin/sh")
    ///     .arg0("shell")
    ///     .args(["-c", "echo $0"])
    ///     .stdin(Stdio::null())
    ///     .stdout(Stdio::piped())
    ///     .stderr(Stdio::null())
    ///     .process_group(0)
    ///     .spawn()?;
    /// assert!(child.stdin.is_none() && child.stdout.is_some());
    /// assert_eq!(child.wait_with_output().await?.stdout, b"shell\n");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Self {
        self.std.stdin(stdin);
        self
    }

    /// The standard output. Default: that of this process. [`output`](Self::output) replaces it by a
    /// pipe, also for later calls.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Self {
        self.std.stdout(stdout);
        self
    }

    /// The standard error. Default: that of this process. [`output`](Self::output) replaces it by a
    /// pipe, also for later calls.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Self {
        self.std.stderr(stderr);
        self
    }

    /// The user that the child runs as. Supplementary groups are dropped if the caller is root, as
    /// by [`std::process::Command`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use glommio::process::Command;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// // Only root may do that.
    /// let status = Command::new("id").uid(65534).gid(65534).status().await?;
    /// assert!(status.success());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn uid(&mut self, id: u32) -> &mut Self {
        self.std.uid(id);
        self
    }

    /// The group that the child runs as.
    pub fn gid(&mut self, id: u32) -> &mut Self {
        self.std.gid(id);
        self
    }

    /// The process group of the child; 0 stands for a new one, which does not get the Ctrl-C of the
    /// terminal.
    pub fn process_group(&mut self, group: i32) -> &mut Self {
        self.std.process_group(group);
        self
    }

    /// Whether a [`Child`] that is dropped before it has ended is killed, by `SIGKILL`. Default
    /// false: it runs on. Also for the futures of [`status`](Self::status) and
    /// [`output`](Self::output).
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{future::timeout, process::Command};
    /// use std::time::Duration;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let mut command = Command::new("sleep");
    /// command.arg("60").kill_on_drop(true);
    /// assert!(command.get_kill_on_drop());
    /// // It is over with the time.
    /// assert!(timeout(Duration::from_millis(1), command.status()).await.is_err());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn kill_on_drop(&mut self, kill_on_drop: bool) -> &mut Self {
        self.kill_on_drop = kill_on_drop;
        self
    }

    /// The value set by [`kill_on_drop`](Self::kill_on_drop).
    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    /// Starts the program. Blocks the thread until it is executed, or cannot be: see
    /// [the module](super#what-blocks).
    ///
    /// # Errors
    ///
    /// What [`std::process::Command::spawn`] gives, for instance kind `NotFound`. If no pidfd can be
    /// opened, what that gives, `EMFILE` for instance: the program may have begun by then, and is killed
    /// and reaped before this returns. Kind `Unsupported` in a simulation.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread, before anything is started.
    pub fn spawn(&mut self) -> Result<Child> {
        let reactor = current::expect();
        reactor.assert_own();
        needs_kernel("a child process")?;
        orphan::reap_left();
        let mut child = self.std.spawn()?;
        let watched = Child::new(&mut child, reactor.origin(), self.kill_on_drop);
        if watched.is_err() {
            // It dies of `SIGKILL` at once, so that waiting does not take long.
            let _ = child.kill().and_then(|()| child.wait());
        }
        watched
    }

    /// Starts the program at once, and waits for its end. Pipes that were asked for are closed, so
    /// that the child does not wait for them.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn) and [`Child::wait`].
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Cancel safety
    ///
    /// The child is dropped with it, and runs on, unless [`kill_on_drop`](Self::kill_on_drop) is
    /// set.
    pub fn status(&mut self) -> impl Future<Output = Result<ExitStatus>> + use<> {
        let child = self.spawn();
        async {
            let mut child = budget::checked(child).await?;
            drop((child.stdin.take(), child.stdout.take(), child.stderr.take()));
            child.wait().await
        }
    }

    /// Starts the program at once, with its standard output and standard error in pipes, and
    /// collects both until it has ended. Settings of these two are replaced. Its standard input is
    /// that of this process, unless set otherwise.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn) and [`Child::wait_with_output`].
    ///
    /// # Panics
    ///
    /// As [`spawn`](Self::spawn).
    ///
    /// # Cancel safety
    ///
    /// As [`status`](Self::status); what was read is lost.
    pub fn output(&mut self) -> impl Future<Output = Result<Output>> + use<> {
        self.std.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn();
        async { (budget::checked(child).await?).wait_with_output().await }
    }

    /// The command of the standard library in it, to be looked at.
    pub fn as_std(&self) -> &process::Command {
        &self.std
    }

    /// The command of the standard library in it, for what this type has no method for, such as
    /// `pre_exec`.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::process::Command;
    ///
    /// let mut command = Command::from(std::process::Command::new("ls"));
    /// command.as_std_mut().arg("-l");
    /// assert_eq!(command.as_std().get_args().count(), 1);
    /// assert_eq!(command.into_std().get_program(), "ls");
    /// ```
    pub fn as_std_mut(&mut self) -> &mut process::Command {
        &mut self.std
    }

    /// The command of the standard library in it. Whether children are killed on drop is lost.
    pub fn into_std(self) -> process::Command {
        self.std
    }
}

impl From<process::Command> for Command {
    fn from(std: process::Command) -> Self {
        Command {
            std,
            kill_on_drop: false,
        }
    }
}
