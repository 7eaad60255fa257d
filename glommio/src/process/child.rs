//! A child process that runs, or has ended.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::process::{ExitStatus, Output};
use std::task::{Context, Poll, ready};

use futures_io::AsyncRead;

use super::stdio::{ChildStderr, ChildStdin, ChildStdout};
use super::{Result, orphan};
use crate::io::PollableFd;
use crate::reactor::budget;
use crate::sys::fork_detect::Origin;
use crate::sys::pidfd::ChildFd;

/// A child process, made by [`Command::spawn`](super::Command::spawn).
///
/// It belongs to the executor in which it was started. Dropped, the child runs on, unless
/// [`kill_on_drop`](super::Command::kill_on_drop) is set; it is reaped in the background, see
/// [the module](super#children-that-are-dropped).
///
/// # Examples
///
/// ```
/// use glommio::process::Command;
/// use std::os::unix::process::ExitStatusExt;
///
/// # glommio::LocalExecutor::default().run(async {
/// let mut child = Command::new("sleep").arg("60").spawn()?;
/// assert!(child.id().is_some());
/// assert_eq!(child.try_wait()?, None); // it is still running
///
/// child.start_kill()?; // `kill` does that, and waits
/// let status = child.wait().await?;
/// assert_eq!(status.signal(), Some(libc::SIGKILL));
/// assert_eq!(child.id(), None);
/// child.kill().await?; // it has ended: nothing happens
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Child {
    /// The child's standard input, if it is piped. Take it out to close it, or close it, for the
    /// child to read the end.
    pub stdin: Option<ChildStdin>,
    /// The child's standard output, if it is piped.
    pub stdout: Option<ChildStdout>,
    /// The child's standard error, if it is piped.
    pub stderr: Option<ChildStderr>,
    process: Process,
}

impl Child {
    /// Takes a child that was just started, with its pipes.
    ///
    /// # Errors
    ///
    /// As [`ChildFd::open`]. The caller then still has to end the child.
    pub(super) fn new(
        child: &mut std::process::Child,
        origin: Origin,
        kill_on_drop: bool,
    ) -> Result<Self> {
        let descriptor = ChildFd::open(child.id())?;
        Ok(Child {
            stdin: child.stdin.take().map(ChildStdin::new).transpose()?,
            stdout: child.stdout.take().map(ChildStdout::new).transpose()?,
            stderr: child.stderr.take().map(ChildStderr::new).transpose()?,
            process: Process {
                id: child.id(),
                state: ChildState::Running(PollableFd::new(descriptor)?),
                origin,
                kill_on_drop,
            },
        })
    }

    /// The number of the process; `None` once it was waited for, as it may be that of another
    /// process then.
    pub fn id(&self) -> Option<u32> {
        match self.process.state {
            ChildState::Running(_) => Some(self.process.id),
            ChildState::Ended(_) => None,
        }
    }

    /// Waits until the child has ended, and says how. Closes [`stdin`](Self::stdin) first, if it is
    /// still there: a child that reads all of its input would not end.
    ///
    /// A child that fills a pipe does not end before the pipe is read: read
    /// [`stdout`](Self::stdout) and [`stderr`](Self::stderr) meanwhile if they are piped, or use
    /// [`wait_with_output`](Self::wait_with_output). Called again, it returns the same status.
    ///
    /// # Errors
    ///
    /// `ECHILD` if other code of the process has reaped the child; kind `NotConnected` if the
    /// executor is gone and the child runs.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped, apart from `stdin`, which is closed: call it again.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        drop(self.stdin.take());
        loop {
            budget::consume().await;
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            if let ChildState::Running(running) = &self.process.state {
                running.readable().await?;
            }
        }
    }

    /// How the child has ended, or `None` if it runs. Does not wait, and leaves
    /// [`stdin`](Self::stdin) open.
    ///
    /// # Errors
    ///
    /// `ECHILD` if other code of the process has reaped the child.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.process.try_wait()?)
    }

    /// Sends `SIGKILL` to the child, and does not wait for its end. Nothing happens if it was waited
    /// for before.
    ///
    /// # Errors
    ///
    /// `EPERM` if the child runs as another user by now; `ESRCH` if other code of the process has
    /// reaped it.
    pub fn start_kill(&mut self) -> Result<()> {
        Ok(self.process.kill()?)
    }

    /// Sends `SIGKILL` to the child, and waits until it has ended.
    ///
    /// # Errors
    ///
    /// As [`start_kill`](Self::start_kill) and [`wait`](Self::wait).
    ///
    /// # Cancel safety
    ///
    /// Once polled, the signal was sent. Waiting goes on with another call, or with
    /// [`wait`](Self::wait).
    pub async fn kill(&mut self) -> Result<()> {
        budget::checked(self.start_kill()).await?;
        self.wait().await?;
        Ok(())
    }

    /// Reads [`stdout`](Self::stdout) and [`stderr`](Self::stderr) to their ends, as far as they are
    /// piped, both at a time, and waits until the child has ended. Closes [`stdin`](Self::stdin)
    /// first.
    ///
    /// The ends come when all processes have closed their sides, also those that the child has
    /// started.
    ///
    /// # Errors
    ///
    /// What reading gives; as [`wait`](Self::wait). The child is then dropped.
    ///
    /// # Cancel safety
    ///
    /// The child is dropped with it, and what was read is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::process::Command;
    /// use std::process::Stdio;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let child = Command::new("echo")
    ///     .arg("hello")
    ///     .stdout(Stdio::piped())
    ///     .spawn()?;
    /// let output = child.wait_with_output().await?;
    /// assert_eq!(output.stdout, b"hello\n");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn wait_with_output(mut self) -> Result<Output> {
        drop(self.stdin.take());
        let mut stdout = Rest::of(self.stdout.take());
        let mut stderr = Rest::of(self.stderr.take());
        poll_fn(|cx| {
            // Both each time: the child may wait for space in either.
            let polled = [stdout.poll(cx)?, stderr.poll(cx)?];
            if polled.iter().all(Poll::is_ready) {
                Poll::Ready(io::Result::Ok(()))
            } else {
                Poll::Pending
            }
        })
        .await?;
        Ok(Output {
            status: self.wait().await?,
            stdout: stdout.bytes,
            stderr: stderr.bytes,
        })
    }
}

/// The process, without its pipes: those may be moved out of a [`Child`], which thus has no
/// destructor of its own.
#[derive(Debug)]
struct Process {
    id: u32,
    state: ChildState,
    /// The process whose child it is. One that is forked from that leaves the child alone.
    origin: Origin,
    kill_on_drop: bool,
}

#[derive(Debug)]
enum ChildState {
    /// Not reaped, so there is something to signal, and to wait for.
    Running(PollableFd<ChildFd>),
    Ended(ExitStatus),
}

impl Process {
    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match &self.state {
            ChildState::Running(running) => {
                let status = running.get_ref().try_wait()?;
                if let Some(status) = status {
                    self.state = ChildState::Ended(status);
                }
                Ok(status)
            }
            ChildState::Ended(status) => Ok(Some(*status)),
        }
    }

    fn kill(&self) -> io::Result<()> {
        match &self.state {
            ChildState::Running(running) => running.get_ref().send_signal(libc::SIGKILL),
            ChildState::Ended(_) => Ok(()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.origin.is_here() {
            return;
        }
        if self.kill_on_drop {
            // What cannot be killed is not killed: there is no way to report it.
            let _ = self.kill();
        }
        let ended = ChildState::Ended(ExitStatus::default());
        if let ChildState::Running(running) = mem::replace(&mut self.state, ended) {
            orphan::reap(running.into_inner(), self.origin);
        }
    }
}

/// What is left in a pipe, up to its end.
struct Rest<R> {
    /// `None` at the end.
    pipe: Option<R>,
    bytes: Vec<u8>,
}

/// A quarter of what a pipe holds.
const READ_BYTES: usize = 16 << 10;

impl<R: AsyncRead + Unpin> Rest<R> {
    fn of(pipe: Option<R>) -> Self {
        Rest {
            pipe,
            bytes: Vec::new(),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(pipe) = &mut self.pipe {
            let filled = self.bytes.len();
            self.bytes.resize(filled + READ_BYTES, 0);
            let polled = Pin::new(pipe).poll_read(cx, &mut self.bytes[filled..]);
            let read = match &polled {
                Poll::Ready(Ok(read)) => *read,
                _ => 0,
            };
            self.bytes.truncate(filled + read);
            if ready!(polled)? == 0 {
                self.pipe = None;
            }
        }
        Poll::Ready(Ok(()))
    }
}
