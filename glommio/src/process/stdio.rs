//! The pipes to and from a child.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::Result;
use crate::error::GlommioError;
use crate::io::{PollState, PollableFd};
use crate::reactor::budget;

/// This side of a pipe. A read or write that finds it ready is one system call.
#[derive(Debug)]
struct Pipe {
    fd: PollableFd<File>,
    state: PollState,
}

impl Pipe {
    fn new(fd: impl Into<OwnedFd>) -> Result<Self> {
        let fd = File::from(fd.into());
        set_nonblocking(&fd, true)?;
        Ok(Pipe {
            fd: PollableFd::new(fd)?,
            state: PollState::new(),
        })
    }

    fn poll_read<T>(
        &mut self,
        cx: &mut Context<'_>,
        attempt: impl FnMut(&File) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.poll_io(cx, PollableFd::poll_readable, attempt)
    }

    fn poll_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        attempt: impl FnMut(&File) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        self.poll_io(cx, PollableFd::poll_writable, attempt)
    }

    fn poll_io<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll_ready: fn(&PollableFd<File>, &mut Context<'_>, &mut PollState) -> Poll<Result<()>>,
        mut attempt: impl FnMut(&File) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        ready!(budget::poll_leave(cx));
        loop {
            match attempt(self.fd.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(poll_ready(&self.fd, cx, &mut self.state))?;
                }
                done => {
                    budget::spend();
                    return Poll::Ready(done);
                }
            }
        }
    }

    fn into_owned_fd(self) -> Result<OwnedFd> {
        let fd = self.fd.into_inner();
        // As programs expect it that inherit it.
        set_nonblocking(&fd, false)?;
        Ok(fd.into())
    }
}

/// Of this side only: the other one is an open file of its own.
fn set_nonblocking(fd: &File, is_nonblocking: bool) -> io::Result<()> {
    let flags = fcntl(fd, FcntlArg::F_GETFL)?;
    let mut flags = OFlag::from_bits_retain(flags);
    flags.set(OFlag::O_NONBLOCK, is_nonblocking);
    fcntl(fd, FcntlArg::F_SETFL(flags))?;
    Ok(())
}

/// Writes to the standard input of a child.
///
/// `close` closes the pipe, as dropping it does: the child reads the end. Writing to a child that
/// has closed its side fails with kind `BrokenPipe`, as it does after `close`.
///
/// # Cancel safety
///
/// A write that is given up has written nothing.
///
/// # Examples
///
/// ```
/// use futures_lite::AsyncWriteExt;
/// use glommio::process::Command;
/// use std::process::Stdio;
///
/// # glommio::LocalExecutor::default().run(async {
/// let mut child = Command::new("cat")
///     .stdin(Stdio::piped())
///     .stdout(Stdio::piped())
///     .spawn()?;
/// let mut stdin = child.stdin.take().expect("it is piped");
/// stdin.write_all(b"meow").await?;
/// drop(stdin.into_owned_fd()?); // which another child or a thread could have
/// assert_eq!(child.wait_with_output().await?.stdout, b"meow");
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ChildStdin {
    /// `None` once it was closed.
    pipe: Option<Pipe>,
}

/// Reads the standard output of a child.
///
/// # Cancel safety
///
/// Nothing is lost when a read is given up.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncBufReadExt, StreamExt, io::BufReader};
/// use glommio::process::Command;
/// use std::process::Stdio;
///
/// # glommio::LocalExecutor::default().run(async {
/// let mut child = Command::new("seq").arg("3").stdout(Stdio::piped()).spawn()?;
/// let stdout = child.stdout.take().expect("it is piped");
/// let lines: Vec<String> = BufReader::new(stdout).lines().try_collect().await?;
/// assert_eq!(lines, ["1", "2", "3"]);
/// child.wait().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ChildStdout {
    pipe: Pipe,
}

/// Reads the standard error of a child. As [`ChildStdout`].
#[derive(Debug)]
pub struct ChildStderr {
    pipe: Pipe,
}

impl ChildStdin {
    pub(super) fn new(stdin: std::process::ChildStdin) -> Result<Self> {
        let pipe = Some(Pipe::new(stdin)?);
        Ok(ChildStdin { pipe })
    }

    /// The descriptor, in blocking mode: what is in flight for it is given up.
    ///
    /// # Errors
    ///
    /// Kind `BrokenPipe` if it was closed; what `fcntl(2)` gives, of which none is known.
    pub fn into_owned_fd(self) -> Result<OwnedFd> {
        self.pipe.ok_or_else(closed)?.into_owned_fd()
    }
}

impl ChildStdout {
    pub(super) fn new(stdout: std::process::ChildStdout) -> Result<Self> {
        let pipe = Pipe::new(stdout)?;
        Ok(ChildStdout { pipe })
    }

    /// The descriptor, in blocking mode, for instance to be the standard input of another child:
    /// `Stdio::try_from` does that, too.
    ///
    /// # Errors
    ///
    /// What `fcntl(2)` gives; none is known.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::process::Command;
    /// use std::process::Stdio;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let mut seq = Command::new("seq").arg("3").stdout(Stdio::piped()).spawn()?;
    /// let numbers = seq.stdout.take().expect("it is piped");
    /// let sorted = Command::new("sort")
    ///     .arg("-r")
    ///     .stdin(numbers.into_owned_fd()?)
    ///     .output()
    ///     .await?;
    /// assert_eq!(sorted.stdout, b"3\n2\n1\n");
    /// seq.wait().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn into_owned_fd(self) -> Result<OwnedFd> {
        self.pipe.into_owned_fd()
    }
}

impl ChildStderr {
    pub(super) fn new(stderr: std::process::ChildStderr) -> Result<Self> {
        let pipe = Pipe::new(stderr)?;
        Ok(ChildStderr { pipe })
    }

    /// As [`ChildStdout::into_owned_fd`].
    ///
    /// # Errors
    ///
    /// What `fcntl(2)` gives; none is known.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::process::Command;
    /// use std::process::Stdio;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let mut shell = Command::new("sh")
    ///     .args(["-c", "echo oops >&2"])
    ///     .stderr(Stdio::piped())
    ///     .spawn()?;
    /// let errors = shell.stderr.take().expect("it is piped");
    /// let output = Command::new("cat")
    ///     .stdin(errors.into_owned_fd()?)
    ///     .output()
    ///     .await?;
    /// assert_eq!(output.stdout, b"oops\n");
    /// shell.wait().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn into_owned_fd(self) -> Result<OwnedFd> {
        self.pipe.into_owned_fd()
    }
}

impl AsyncWrite for ChildStdin {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(pipe) = &mut self.get_mut().pipe else {
            return budget::poll_consume(cx).map(|()| Err(closed()));
        };
        pipe.poll_write(cx, |mut fd| fd.write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Some(pipe) = &mut self.get_mut().pipe else {
            return budget::poll_consume(cx).map(|()| Err(closed()));
        };
        pipe.poll_write(cx, |mut fd| fd.write_vectored(bufs))
    }

    /// What was written is in the pipe.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        budget::poll_consume(cx).map(Ok)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        drop(self.get_mut().pipe.take());
        budget::poll_consume(cx).map(Ok)
    }
}

/// What both outputs have.
macro_rules! output_impls {
    ($(impl AsyncRead for $Output:ident;)*) => {$(
        impl AsyncRead for $Output {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                let pipe = &mut self.get_mut().pipe;
                pipe.poll_read(cx, |mut fd| fd.read(buf))
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                let pipe = &mut self.get_mut().pipe;
                pipe.poll_read(cx, |mut fd| fd.read_vectored(bufs))
            }
        }

        impl AsFd for $Output {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.pipe.fd.as_fd()
            }
        }

        impl AsRawFd for $Output {
            fn as_raw_fd(&self) -> RawFd {
                self.pipe.fd.as_raw_fd()
            }
        }

        impl TryFrom<$Output> for Stdio {
            type Error = GlommioError<()>;

            fn try_from(output: $Output) -> Result<Stdio> {
                Ok(output.into_owned_fd()?.into())
            }
        }
    )*};
}

output_impls! {
    impl AsyncRead for ChildStdout;
    impl AsyncRead for ChildStderr;
}

fn closed() -> io::Error {
    io::Error::new(
        io::ErrorKind::BrokenPipe,
        "the standard input of the child was closed",
    )
}

impl TryFrom<ChildStdin> for Stdio {
    type Error = GlommioError<()>;

    fn try_from(stdin: ChildStdin) -> Result<Stdio> {
        Ok(stdin.into_owned_fd()?.into())
    }
}
