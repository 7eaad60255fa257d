//! Where a run takes place: its connections, its threads, and its end.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{io, process, thread};

use benches::thread::bind_to;
use nix::libc;

/// What a run came to.
pub enum Run<T> {
    Done(T),
    /// The kernel lacks what it needs.
    Lacking(io::Error),
}

impl<T> Run<T> {
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Run<U> {
        match self {
            Run::Done(done) => Run::Done(f(done)),
            Run::Lacking(error) => Run::Lacking(error),
        }
    }
}

/// Connections over loopback, both ends, without Nagle's delay.
pub fn connections(count: usize) -> io::Result<(Vec<TcpStream>, Vec<TcpStream>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut ends = (Vec::new(), Vec::new());
    for _ in 0..count {
        // Established as soon as the listener has it in its backlog.
        let near = TcpStream::connect(address)?;
        let (far, _) = listener.accept()?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        ends.0.push(near);
        ends.1.push(far);
    }
    Ok(ends)
}

/// Runs both on CPUs of their choice until both have ended. When one fails, its connections are
/// closed, which ends the other; `measured` is the one that is asked first for what went wrong.
pub fn run<M: Send, O: Send>(
    (cpu, measured): (usize, impl FnOnce() -> io::Result<M> + Send),
    (other_cpu, other): (usize, impl FnOnce() -> io::Result<O> + Send),
) -> io::Result<Run<(M, O)>> {
    let (measured, other) = thread::scope(|scope| {
        let measured = scope.spawn(move || bind_to(cpu).and_then(|()| measured()));
        let other = scope.spawn(move || bind_to(other_cpu).and_then(|()| other()));
        (measured.join(), other.join())
    });
    let panicked = "a thread panicked, and has said why";
    match measured.expect(panicked) {
        Ok(measured) => Ok(Run::Done((measured, other.expect(panicked)?))),
        // Flags, operations and registrations that it does not know.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
            Ok(Run::Lacking(error))
        }
        Err(error) => Err(error),
    }
}

/// Ends the process if it lives for longer than a limit: a run that hangs is an error, and no
/// reason to wait.
pub struct Watchdog {
    // Dropped, it tells the thread that all is well.
    _is_over: Sender<()>,
}

impl Watchdog {
    /// Starts a watchdog for `what`.
    pub fn start(what: String, limit: Duration) -> Self {
        let (is_over, told) = channel();
        thread::spawn(move || {
            if told.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{what}: nothing came of it in {} s", limit.as_secs());
                process::exit(1);
            }
        });
        Self { _is_over: is_over }
    }
}
