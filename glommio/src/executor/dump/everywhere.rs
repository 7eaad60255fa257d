//! Dumps of all executors, and dumps on a signal.

#![forbid(unsafe_code)]

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;
use std::{io, thread};

use super::super::current;
use super::super::dumps::{Desk, Dump, NoDump, desks};
use crate::clock;
use crate::error::Result;
use crate::sys::signal;

/// What all tasks of all executors of this process wait for, in the order in which the executors were
/// made.
///
/// Each executor makes its own dump, as [`dump`](super::dump) does, as soon as its running task has
/// returned. The call blocks until all have answered, for `limit` at most. In a task it also blocks the
/// executor of the calling thread, whose dump is made at once: use
/// [`spawn_blocking`](crate::ExecutorProxy::spawn_blocking) there. A child of `fork(2)` has none of its
/// parent's executors.
///
/// # Errors
///
/// [`NoDump`] in the place of an executor that was dropped or has not answered in time: because a
/// task keeps its thread, or because it is not in [`run`](crate::LocalExecutor::run).
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, debugging};
/// use std::time::Duration;
///
/// let local = LocalExecutor::default();
/// let limit = Duration::from_secs(10);
/// local.run(async {
///     let dumps = glommio::executor().spawn_blocking(move || debugging::dump_all(limit)).await;
///     let of_local = dumps.iter().flatten().find(|it| it.executor == local.id());
///     assert_eq!(of_local.expect("it was waiting").tasks.len(), 1);
/// });
/// assert!(debugging::dump_all(Duration::ZERO)[0].is_err(), "it is not running");
/// ```
pub fn dump_all(limit: Duration) -> Vec<std::result::Result<Dump, NoDump>> {
    let here = current::with(|core| core.map(|core| core.dump()));
    let here_id = here.as_ref().map(|it| it.executor);
    let asked: Vec<_> = (desks().into_iter())
        .map(|desk| {
            let is_other = Some(desk.id) != here_id;
            let answer = is_other.then(|| desk.ask());
            (desk, answer)
        })
        .collect();
    let deadline = clock::real().checked_add(limit);
    let answer = |(desk, answer): (Arc<Desk>, Option<Receiver<Dump>>)| {
        let Some(answer) = answer else {
            return here.clone().ok_or_else(|| desk.silent());
        };
        let left = deadline.map_or(limit, |it| it.saturating_duration_since(clock::real()));
        answer.recv_timeout(left).map_err(|_| desk.silent())
    };
    asked.into_iter().map(answer).collect()
}

/// Has `signal` write what [`dump_all`] returns to the standard error, once for all: a hanging program
/// is asked by `kill -USR2 PID`. Executors have a second to answer.
///
/// A thread waits for the signal from now on. Handlers that were there before are called as well, the
/// default action is not taken any more. Threads that [block](crate::signal::block) the signal do not
/// receive it: one that does not is needed.
///
/// # Errors
///
/// Kind `InvalidInput` for a number that is no signal, or one that cannot or must not be handled
/// (`SIGKILL`, `SIGSTOP`, `SIGILL`, `SIGFPE`, `SIGSEGV`); what making an eventfd or a thread gives.
///
/// # Examples
///
/// ```
/// glommio::debugging::dump_on_signal(libc::SIGUSR2)?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub fn dump_on_signal(signal: libc::c_int) -> Result<(), ()> {
    let count = signal::count(signal)?;
    let dumps = move || {
        let mut eight = [0; 8];
        loop {
            match nix::unistd::read(count.as_fd(), &mut eight) {
                Ok(_) => print(&dump_all(Duration::from_secs(1))),
                Err(nix::errno::Errno::EINTR) => {}
                Err(_) => return,
            }
        }
    };
    let thread = thread::Builder::new().name("glommio-dumps".into());
    thread.spawn(dumps)?;
    Ok(())
}

fn print(dumps: &[std::result::Result<Dump, NoDump>]) {
    let line = |it: &_| match it {
        Ok(dump) => format!("{dump}"),
        Err(none) => format!("{none}\n"),
    };
    let text: String = dumps.iter().map(line).collect();
    // In one piece. An error could not be written either.
    let _ = io::Write::write_all(&mut io::stderr(), text.as_bytes());
}
