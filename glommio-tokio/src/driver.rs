//! The tokio runtime of the process, and the thread that drives it.
//!
//! The users own the driver by an `Arc`, and the process knows it by a `Weak`. So there is no
//! protocol of our own between the last user, who leaves, and the next one: either the `Weak` can be
//! upgraded, or the driver is ending and the next user starts another. For a moment there may be
//! two threads, of which the older one only drops what is left on its runtime.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::{fmt, thread};

use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};
use tokio::sync::oneshot;

use crate::{InTokio, WithTokio};

/// A user of the tokio runtime of the process, which lives for as long as it has one.
///
/// Clones are users of the same runtime. See the [crate](crate#how-long-the-runtime-lives).
#[derive(Clone)]
pub struct Tokio {
    driver: Arc<Driver>,
}

impl Tokio {
    /// Joins the users of the runtime, and starts it if there are none.
    ///
    /// The background thread is named `glommio-tokio`. It runs on the CPUs of the process's main
    /// thread, not on those that the caller is bound to.
    ///
    /// # Errors
    ///
    /// If there are no descriptors for tokio's driver, or no thread can be created. The error says
    /// which, and its source is that of the system. Kind `Unsupported` in a simulation.
    pub fn start() -> io::Result<Tokio> {
        if glommio::__is_simulated() {
            let text =
                "tokio, which has sockets and time of its own, cannot be had in a simulation";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        // In a forked process there is no thread to what was inherited.
        let running = shared
            .upgrade()
            .filter(|driver| driver.process == process::id());
        let driver = match running {
            Some(driver) => driver,
            None => {
                let driver = Arc::new(Driver::start()?);
                *shared = Arc::downgrade(&driver);
                driver
            }
        };
        Ok(Tokio { driver })
    }

    /// Polls `future` in the context of the runtime: [`with_tokio`](crate::with_tokio) for a runtime
    /// that is known to run.
    pub fn with<F: Future>(&self, future: F) -> WithTokio<F> {
        WithTokio::new(self.clone(), future, true)
    }

    /// Polls `future` in the context of the runtime, as [`with`](Tokio::with) does: for handlers of
    /// requests, connections, and tasks that run for long, as a whole.
    ///
    /// All that `future` holds is dropped in the context, also where it returns early by `?`, panics or
    /// is dropped while it waits. A [paused clock](glommio::time#paused-clocks) goes on while it waits, so
    /// it may wait for timers of glommio; calls inside of it that are to be waited for are made by
    /// [`with`](Tokio::with).
    ///
    /// # Cancel safety
    ///
    /// As of [`with_tokio`](crate::with_tokio).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{io, time::Duration};
    ///
    /// use glommio::{LocalExecutor, spawn_local, timer};
    /// use glommio_tokio::Tokio;
    ///
    /// /// Its destructor spawns, as that of a pooled connection of sqlx does.
    /// struct Connection;
    ///
    /// impl Drop for Connection {
    ///     fn drop(&mut self) {
    ///         tokio::spawn(async { /* goes back to its pool */ });
    ///     }
    /// }
    ///
    /// async fn handler() -> io::Result<()> {
    ///     let connection = Connection;
    ///     timer::sleep(Duration::from_millis(1)).await;
    ///     Err(io::ErrorKind::InvalidData)?;
    ///     drop(connection);
    ///     Ok(())
    /// }
    ///
    /// LocalExecutor::default().run(async {
    ///     let tokio = Tokio::start()?;
    ///     let answer = spawn_local(tokio.scope(handler())).await;
    ///     assert!(answer.is_err(), "and nothing has panicked");
    ///     io::Result::Ok(())
    /// })?;
    /// # io::Result::Ok(())
    /// ```
    pub fn scope<F: Future>(&self, future: F) -> WithTokio<F> {
        WithTokio::new(self.clone(), future, false)
    }

    /// Keeps `value`, so that it is dropped in the context of the runtime wherever that happens: for
    /// transactions, pooled connections and whatever else tokio's crates give out whose destructor
    /// spawns.
    pub fn keep<T>(&self, value: T) -> InTokio<T> {
        InTokio::new(self.clone(), value)
    }

    /// The runtime, to spawn tasks on the background thread, or to enter its context.
    ///
    /// A clone of the handle is no user, and does not keep the runtime alive.
    pub fn handle(&self) -> &Handle {
        &self.driver.handle
    }

    /// The context, for a destructor. None if the locals of a thread that ends are gone, and with them
    /// the context.
    pub(crate) fn enter_to_drop(&self) -> Option<EnterGuard<'_>> {
        let is_gone = Handle::try_current().is_err_and(|it| it.is_thread_local_destroyed());
        (!is_gone).then(|| self.handle().enter())
    }
}

impl fmt::Debug for Tokio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokio")
            .field("runtime", &self.driver.handle.id())
            .finish_non_exhaustive()
    }
}

/// The runtime that has users.
static SHARED: Mutex<Weak<Driver>> = Mutex::new(Weak::new());

/// A runtime whose thread runs until this is dropped.
struct Driver {
    handle: Handle,
    /// The process that the thread is one of.
    process: u32,
    /// Nothing is sent: it is dropped.
    _users: oneshot::Sender<Infallible>,
}

impl Driver {
    fn start() -> io::Result<Driver> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_name(THREAD_NAME) // of the blocking pool
            .build();
        let runtime = OwnedRuntime(Some(runtime.map_err(failed("create tokio's driver"))?));
        let handle = runtime.get().handle().clone();
        let (users, last_has_left) = oneshot::channel();
        thread::Builder::new()
            .name(THREAD_NAME.to_owned())
            .spawn(move || runtime.drive(last_has_left))
            .map_err(failed("start the thread of tokio's driver"))?;
        Ok(Driver {
            handle,
            process: process::id(),
            _users: users,
        })
    }
}

/// A runtime that may be dropped anywhere. tokio's own panics if it is dropped inside of another,
/// where it must not wait for its blocking calls.
struct OwnedRuntime(Option<Runtime>);

impl OwnedRuntime {
    fn get(&self) -> &Runtime {
        self.0.as_ref().expect("it is taken by the drop only")
    }

    /// Runs I/O, timers and tasks until the last user has left.
    fn drive(self, last_has_left: oneshot::Receiver<Infallible>) {
        leave_cpus_of_starter();
        let driven = catch_unwind(AssertUnwindSafe(|| {
            let _ = self.get().block_on(last_has_left);
        }));
        if driven.is_err() {
            // tokio contains panics of tasks, so this is a waker's, or a failure of epoll. Its driver
            // is lost, and what waits for it would wait forever.
            let _ = writeln!(
                io::stderr(),
                "glommio-tokio: the thread of tokio's driver has panicked, and the process ends"
            );
            process::abort();
        }
    }
}

impl Drop for OwnedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Calls of the blocking pool that still run end by themselves.
            runtime.shutdown_background();
        }
    }
}

/// A thread inherits the CPUs of the one that creates it, which may be an executor's alone.
fn leave_cpus_of_starter() {
    // It is a matter of speed only, and fails where the main thread has ended.
    let _ =
        sched_getaffinity(Pid::this()).and_then(|cpus| sched_setaffinity(CALLING_THREAD, &cpus));
}

const CALLING_THREAD: Pid = Pid::from_raw(0);
const THREAD_NAME: &str = "glommio-tokio";

/// What could not be done, with the reason as its source.
#[derive(Debug)]
struct StartError {
    step: &'static str,
    source: io::Error,
}

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |source| io::Error::new(source.kind(), StartError { step, source })
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.step, self.source)
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
