//! Signals of the system, received by tasks: `SIGTERM` that asks a server to finish, Ctrl-C,
//! `SIGHUP` that asks it to read its configuration again.
//!
//! A signal that is blocked for all threads of a process waits until it is received. [`Signals`]
//! receives it as data, from a descriptor that the executor watches, so that no handler runs in the
//! middle of other code.
//!
//! Which signals are blocked belongs to each thread, and new threads inherit it from the one that
//! starts them. The kernel gives a signal of the process to any thread that does not block it, and
//! there it does what it does by default: most end the process. So **call [`block`] in `main`,
//! before any other thread exists**; executors and their blocking threads then inherit it.
//!
//! ```
//! use glommio::signal::{self, Signals};
//!
//! // First of all, while there is only this thread.
//! signal::block(&[libc::SIGTERM, libc::SIGHUP])?;
//!
//! glommio::LocalExecutor::default().run(async {
//!     let signals = Signals::new(&[libc::SIGTERM, libc::SIGHUP])?;
//!     # // SAFETY: the call takes two numbers.
//!     # assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGTERM) }, 0);
//!     loop {
//!         match signals.recv().await? {
//!             libc::SIGHUP => { /* read the configuration again */ }
//!             _ => break, // finish what was begun
//!         }
//!     }
//!     Ok(())
//! })
//! # .map_err(|error: glommio::GlommioError<()>| error)?;
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! # What the kernel does with signals
//!
//! - A signal goes to one reader, also if several [`Signals`] have its number, in one executor or in
//!   several.
//! - Signals of one number that come before the first of them is received are one signal; only
//!   real-time signals queue.
//! - A signal that is sent to a thread (`pthread_kill`) is received on that thread only.
//! - A signal stays blocked when the [`Signals`] is gone, and child processes inherit that, those
//!   of [`std::process::Command`] too.
//! - `SIGSEGV` and the like, when the processor raises them, end the process although they are
//!   blocked.
//! - [Stall detection](crate::StallDetectionHandler::signal) that uses a blocked signal reports
//!   without stacks.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;

use crate::io::PollableFd;
use crate::reactor::budget;
use crate::sys::door::needs_kernel;
use crate::sys::signal::{self, SignalSet};

type Result<T> = crate::error::Result<T, ()>;

/// Blocks `signals` for the calling thread, and for the threads that it starts from then on, so
/// that they wait for a [`Signals`] instead of interrupting anything. To be called in `main`, first
/// of all.
///
/// # Errors
///
/// Kind `InvalidInput` for a number that is no signal, and for `SIGKILL` and `SIGSTOP`, which
/// cannot be blocked. Nothing has changed then.
pub fn block(signals: &[libc::c_int]) -> Result<()> {
    Ok(SignalSet::of(signals)?.block()?)
}

/// Receives signals, without a handler. See the [module](self).
#[derive(Debug)]
pub struct Signals {
    fd: PollableFd<OwnedFd>,
}

impl Signals {
    /// Receives `signals`, which it blocks for the calling thread. That this thread blocks them is
    /// enough only if it is the only one: see [`block`]. Signals that have come since they were
    /// blocked are received.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if `signals` is empty, or as for [`block`]; what `signalfd(2)` gives,
    /// for instance `EMFILE`. Kind `Unsupported` in a simulation. Nothing is blocked then that was not
    /// before.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub fn new(signals: &[libc::c_int]) -> Result<Self> {
        if signals.is_empty() {
            let text = "no signal to receive was named";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
        }
        let set = SignalSet::of(signals)?;
        needs_kernel("signals")?;
        let fd = PollableFd::new(set.open()?)?;
        set.block()?;
        Ok(Signals { fd })
    }

    /// The number of the next signal. If several are pending, for the process and for this thread, the
    /// kernel chooses. Any number of tasks may wait, and each signal goes to one.
    ///
    /// # Errors
    ///
    /// Kind `NotConnected` if the executor is gone.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped: the signal stays pending.
    pub async fn recv(&self) -> Result<libc::c_int> {
        loop {
            budget::consume().await;
            if let Some(signal) = self.try_recv()? {
                return Ok(signal);
            }
            self.fd.readable().await?;
        }
    }

    /// The number of a signal that is pending, or `None`. Does not wait.
    ///
    /// # Errors
    ///
    /// What `read(2)` gives; none is known.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::signal::Signals;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let signals = Signals::new(&[libc::SIGUSR2])?;
    /// assert_eq!(signals.try_recv()?, None);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn try_recv(&self) -> Result<Option<libc::c_int>> {
        Ok(signal::read(self.fd.get_ref())?)
    }
}

/// Waits for `SIGINT`, which a terminal sends for Ctrl-C.
///
/// From its first poll on `SIGINT` is blocked for this thread, and stays so. Before that, and on
/// threads that do not block it, it ends the process: call [`block`] in `main`.
///
/// # Errors
///
/// As [`Signals::new`].
///
/// # Panics
///
/// Panics if no executor runs on this thread.
///
/// # Cancel safety
///
/// Nothing is lost when it is dropped: the signal stays pending, for the next call.
///
/// # Examples
///
/// ```no_run
/// glommio::signal::block(&[libc::SIGINT])?;
/// glommio::LocalExecutor::default().run(async {
///     glommio::signal::ctrl_c().await?;
///     println!("good bye");
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub async fn ctrl_c() -> Result<()> {
    let signals = budget::checked(Signals::new(&[libc::SIGINT])).await?;
    signals.recv().await?;
    Ok(())
}
