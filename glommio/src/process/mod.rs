//! Child processes: started, waited for, killed, with their standard streams as pipes.
//!
//! The names are those of `tokio::process`, and so is what they do; the pipes have the traits of
//! `futures-io`.
//!
//! ```
//! use futures_lite::{AsyncReadExt, AsyncWriteExt};
//! use glommio::process::Command;
//! use std::process::Stdio;
//!
//! glommio::LocalExecutor::default().run(async {
//!     let mut child = Command::new("tr")
//!         .args(["a-z", "A-Z"])
//!         .stdin(Stdio::piped())
//!         .stdout(Stdio::piped())
//!         .spawn()?;
//!
//!     let mut stdin = child.stdin.take().expect("it is piped");
//!     stdin.write_all(b"hello").await?;
//!     stdin.close().await?; // the child reads the end
//!
//!     let mut text = String::new();
//!     let mut stdout = child.stdout.take().expect("it is piped");
//!     stdout.read_to_string(&mut text).await?;
//!     assert_eq!(text, "HELLO");
//!     assert!(child.wait().await?.success());
//!     Ok::<_, glommio::GlommioError<()>>(())
//! })?;
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! # What blocks
//!
//! [`Command::spawn`] blocks the thread until the program is executed, or cannot be: typically less
//! than a millisecond, longer where the program comes from a slow disk or network. Where that
//! matters, start programs in an executor of their own. All other waits are asynchronous. Each child has
//! a pidfd until its end was awaited; where pidfds are missing or forbidden, it has a pipe and a
//! thread instead.
//!
//! # Children that are dropped
//!
//! A [`Child`] that is dropped runs on, unless [`kill_on_drop`](Command::kill_on_drop) is set.
//! Either way the executor waits for it in the background, so that no zombie remains. Children that
//! the executor has not reaped when it ends are reaped when the process next starts or drops a child,
//! in any executor.
//!
//! # Signals
//!
//! Children inherit the blocked signals of the thread that starts them, and with them those of
//! [`signal::block`](crate::signal::block). A program that ignores `SIGCHLD`, or waits for all
//! children by itself (`waitpid(-1)`), takes away their statuses: waiting then fails with `ECHILD`.

#![forbid(unsafe_code)]

mod child;
mod command;
mod orphan;
mod stdio;

pub use child::Child;
pub use command::Command;
pub use stdio::{ChildStderr, ChildStdin, ChildStdout};

/// What operations of this module return.
type Result<T> = crate::error::Result<T, ()>;
