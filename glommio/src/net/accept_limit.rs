//! How many connections a server has at a time.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use super::accept_queue::Acceptor;
use crate::future::timeout;
use crate::reactor::budget;
use crate::sync::{Semaphore, StaticPermit};

/// The maximum number of open connections of a server; for
/// [`TcpListener::accept_within`](super::TcpListener::accept_within) and that of
/// [`UnixListener`](super::UnixListener::accept_within).
///
/// At the limit no more are accepted: new clients wait in the backlog of the kernel. Clones share one
/// limit, which several listeners of an executor may use.
///
/// # Examples
///
/// ```
/// use glommio::net::{ConnectionLimit, TcpListener};
/// use glommio::spawn_local;
///
/// # glommio::LocalExecutor::default().run(async {
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// # let _client = std::net::TcpStream::connect(listener.local_addr()?);
/// let limit = ConnectionLimit::new(1000);
/// # for _ in 0..1 {
/// // For each connection:
/// let (stream, place) = listener.accept_within(&limit).await?;
/// assert_eq!(limit.taken(), 1);
/// spawn_local(async move {
///     // Here it is served.
///     drop(stream);
///     drop(place);
/// })
/// .await;
/// # }
/// assert_eq!(limit.taken(), 0);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionLimit {
    places: Rc<Semaphore>,
    max: usize,
}

/// A place for one connection, given back when it is dropped; see [`ConnectionLimit`].
#[derive(Debug)]
#[must_use = "a place that is dropped is given back"]
pub struct ConnectionPermit {
    _permit: StaticPermit,
}

impl ConnectionLimit {
    /// At most `max` connections at a time. With 0, none is ever accepted.
    pub fn new(max: usize) -> ConnectionLimit {
        ConnectionLimit {
            places: Rc::new(Semaphore::new(max as u64)),
            max,
        }
    }

    /// How many places are taken.
    pub fn taken(&self) -> usize {
        self.max - self.places.available() as usize
    }

    /// The next place that is free. For streams that come from elsewhere than from a listener.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it loses its place in the order, and gives back what it was given.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// let limit = glommio::net::ConnectionLimit::new(2);
    /// let place = limit.place().await;
    /// assert_eq!(limit.taken(), 1);
    /// drop(place);
    /// assert_eq!(limit.taken(), 0);
    /// # });
    /// ```
    pub async fn place(&self) -> ConnectionPermit {
        let permit = self.places.acquire_static_permit(1).await;
        ConnectionPermit {
            _permit: permit.expect("it is never closed"),
        }
    }

    /// The next connection, with a place that is not taken before a client is there.
    pub(super) async fn accept(
        &self,
        acceptor: &Acceptor,
    ) -> io::Result<(OwnedFd, ConnectionPermit)> {
        budget::consume().await;
        loop {
            poll_fn(|cx| acceptor.poll_client(cx)).await?;
            let place = self.place().await;
            // Others may have been faster, or be: the place is not kept for the next client.
            if acceptor.has_client()
                && let Ok(accepted) = timeout(MOMENT, acceptor.accept()).await
            {
                return Ok((accepted?, place));
            }
        }
    }
}

/// How long a place is held for a client that was there.
const MOMENT: Duration = Duration::from_millis(5);
