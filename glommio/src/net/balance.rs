//! Accepting where the load is least.
//!
//! ```text
//!                    one listening socket
//!          ┌──────────────────┼──────────────────┐
//!     shard 0 accepts    shard 1 accepts    shard 2 accepts
//!          └────────┬─────────┴──────────────────┘
//!                   ▼ chooses the least loaded
//!        its own: returned        another's: into its inbox, and woken
//! ```
//!
//! Each shard has a descriptor of its own for one and the same socket. Of those that wait the kernel tells one
//! of a connection; if that gives up, or does not come back for the next, the others ask again. The choice and the count that
//! it depends on are under one lock, taken once for each connection. A weight of the user is asked
//! with no lock held.
//!
//! Among equals it is the turn of those that were given less. The turns are virtual times, as in fair
//! queueing: a shard that was not among the equals for long does not get in one go what the others got meanwhile.
//!

#![forbid(unsafe_code)]

mod member;

use std::future::{Future, poll_fn};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak};
use std::task::Poll;

pub use member::{ConnectionGuard, ShardLoad};
use member::{Member, Placed, lock};

use super::accept_queue::Siblings;
use super::tcp::{AcceptedTcpStream, TcpListener, TcpStream, listening_socket};
use super::{Result, addr};
use crate::sys::socket::Socket;

/// A TCP listener of several executors, that gives each connection to the one with the least load.
///
/// With [`TcpListener::bind`] on each executor, the kernel shares connections out by a hash of their
/// addresses: with few connections, one executor gets several times as many as another. Here all
/// executors accept from one socket, and one that accepts a connection hands it to the executor with
/// the fewest open connections; executors with equally many take turns. A [`ConnectionGuard`] that goes with
/// each connection counts it. [`with_weight`](Self::with_weight) replaces the count by any other
/// measure.
///
/// Each executor [joins](Self::join), and accepts from the [`ShardListener`] it gets. The executor
/// that a connection is given to should be waiting in [`accept`](ShardListener::accept), or return
/// to it soon: while it computes, what it was given waits for it. When sixteen connections do, it is given
/// no more for as long as there is an executor for which fewer wait.
///
/// A connection that was accepted and that no executor is left to take waits for the next that joins, as
/// those in the backlog of the socket do, until this is dropped with all its clones.
/// [`into_parts`](Self::into_parts) and [`ShardListener::leave`] return such connections.
///
/// # Examples
///
/// ```
/// use futures_lite::AsyncWriteExt;
/// use glommio::net::BalancedTcpListener;
/// use glommio::{LocalExecutorPoolBuilder, PoolPlacement, executor, spawn_local, timer::sleep};
/// use std::{io::Read, time::Duration};
///
/// let listener = BalancedTcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2)).on_all_shards(move || {
///     let listener = listener.clone();
///     async move {
///         let mut shard = listener.join(executor().id()).unwrap();
///         loop {
///             let Ok((mut stream, guard)) = shard.accept().await else {
///                 sleep(Duration::from_millis(50)).await; // out of descriptors, most likely
///                 continue;
///             };
///             let serving = spawn_local(async move {
///                 let _guard = guard; // counts the connection until the task ends
///                 stream.write_all(b"hello").await
///             });
///             serving.detach();
///         }
///     }
/// })?;
/// for _ in 0..4 {
///     let mut greeting = String::new();
///     std::net::TcpStream::connect(address)?.read_to_string(&mut greeting)?;
///     assert_eq!(greeting, "hello");
/// }
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Clone)]
pub struct BalancedTcpListener {
    shared: Arc<SharedListener>,
}

struct SharedListener {
    socket: Socket,
    weight: Option<Box<Weight>>,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    joined: Vec<Arc<Member>>,
    /// Whose turn it was last. Members with lower turns are taken for equal to it.
    turn: u64,
    /// Accepted, when no member was left.
    left: Vec<AcceptedTcpStream>,
}

type Weight = dyn Fn(ShardLoad) -> u64 + Send + Sync;

impl BalancedTcpListener {
    /// Listens as [`TcpListener::bind`] does. Each connection goes to the executor with the fewest.
    ///
    /// No executor is needed on this thread.
    ///
    /// # Errors
    ///
    /// As [`TcpListener::bind`].
    pub fn bind<A: ToSocketAddrs>(addr: A) -> Result<Self> {
        let socket = addr::bind_first(addr, listening_socket)?;
        Ok(Self::new(socket, None))
    }

    /// Shares `listener`. Each connection goes to the executor for which `weight` is least; among
    /// equals, to the one with the fewest connections.
    ///
    /// `weight` is called for every executor at every connection, on the thread that has accepted it
    /// and while that waits, so it should do no more than read a few atomics: bytes queued, time
    /// spent. A load that a connection causes only later does not stop the next connections from
    /// going the same way; add a term with [`connections`](ShardLoad::connections) against that.
    ///
    /// If `weight` panics, the panic is that of the task that accepts, and the connection is closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutor, net::BalancedTcpListener};
    /// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
    ///
    /// let queued: Arc<[AtomicU64; 2]> = Arc::default(); // bytes, for each shard
    /// let weight = {
    ///     let queued = queued.clone();
    ///     move |load: glommio::net::ShardLoad| {
    ///         queued[load.shard].load(Ordering::Relaxed) + 1024 * load.connections as u64
    ///     }
    /// };
    /// let socket = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let listener = BalancedTcpListener::with_weight(socket, weight);
    ///
    /// LocalExecutor::default().run(async {
    ///     let (mut first, second) = (listener.join(0)?, listener.join(1)?);
    ///     queued[1].store(5000, Ordering::Relaxed);
    ///     let mut served = Vec::new();
    ///     for _ in 0..3 {
    ///         let client = std::net::TcpStream::connect(listener.local_addr()?)?;
    ///         served.push((client, first.accept().await?));
    ///     }
    ///     assert_eq!((first.connections(), second.connections()), (3, 0));
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn with_weight(
        listener: std::net::TcpListener,
        weight: impl Fn(ShardLoad) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self::new(OwnedFd::from(listener).into(), Some(Box::new(weight)))
    }

    fn new(socket: Socket, weight: Option<Box<Weight>>) -> Self {
        let shared = SharedListener {
            socket,
            weight,
            members: Mutex::default(),
        };
        BalancedTcpListener {
            shared: Arc::new(shared),
        }
    }

    /// Joins the executors that accept. From here on this executor is given connections, until the
    /// [`ShardListener`] is dropped. `shard` is passed to the closure of
    /// [`with_weight`](Self::with_weight) and has no other meaning.
    ///
    /// # Errors
    ///
    /// What `fcntl(2)` gives: kind `Uncategorized`, `EMFILE`, if no descriptor is left.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub fn join(&self, shard: usize) -> Result<ShardListener> {
        let listener =
            TcpListener::from(std::net::TcpListener::from(self.shared.socket.try_clone()?));
        let member = Arc::new(Member::new(shard));
        let mut members = lock(&self.shared.members);
        members.joined.push(member.clone());
        for stream in std::mem::take(&mut members.left) {
            let _ = ConnectionGuard::send(ConnectionGuard::new(&member), stream);
        }
        drop(members);
        listener.acceptor().share_with(Others {
            shared: Arc::downgrade(&self.shared),
            own: member.clone(),
        });
        let place = MemberPlace {
            member,
            shared: self.shared.clone(),
        };
        Ok(ShardListener { listener, place })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` gives.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(addr::local_addr(&self.shared.socket)?)
    }

    /// A descriptor of the listening socket, for instance to pass it to another process, and the connections
    /// that executors have accepted and that no executor was left to take. Other clones go on.
    ///
    /// With [epoll](crate::Driver) the socket is in non-blocking mode if an executor has waited for a
    /// connection, also for others that own it.
    ///
    /// # Errors
    ///
    /// What `fcntl(2)` gives: kind `Uncategorized`, `EMFILE`, if no descriptor is left.
    ///
    /// # Examples
    ///
    /// ```
    /// # use glommio::net::BalancedTcpListener;
    /// let listener = BalancedTcpListener::bind("127.0.0.1:0")?;
    /// // When all executors have left:
    /// let (_socket, accepted) = listener.into_parts()?;
    /// assert!(accepted.is_empty());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn into_parts(self) -> Result<(std::net::TcpListener, Vec<AcceptedTcpStream>)> {
        let socket = self.shared.socket.try_clone()?;
        Ok((socket.into(), self.shared.take_left()))
    }
}

/// Shares a socket that is listening already; each connection goes to the executor with the fewest.
impl From<std::net::TcpListener> for BalancedTcpListener {
    fn from(listener: std::net::TcpListener) -> Self {
        Self::new(OwnedFd::from(listener).into(), None)
    }
}

impl_debug! { BalancedTcpListener, it:
    socket: it.shared.socket,
    loads: (lock(&it.shared.members).joined.iter()).map(|it| it.load()).collect::<Vec<_>>(); ..
}

/// One executor's end of a [`BalancedTcpListener`].
///
/// Dropping it gives connections that wait to be returned to the other executors, with those that the
/// kernel is about to return to this one. If no other executor is left, they wait for the next that joins;
/// [`leave`](Self::leave) returns them.
pub struct ShardListener {
    // First, so that nothing comes any more when the connections here are handed on.
    listener: TcpListener,
    place: MemberPlace,
}

/// Leaves when it is dropped.
struct MemberPlace {
    member: Arc<Member>,
    shared: Arc<SharedListener>,
}

impl ShardListener {
    /// The next connection that is given to this executor. Others that are accepted here meanwhile
    /// are handed on.
    ///
    /// The connection counts as open here until the guard is dropped, so keep it with the stream.
    ///
    /// # Errors
    ///
    /// As [`TcpListener::accept`]. The listener remains usable.
    ///
    /// # Panics
    ///
    /// Panics on a thread without an executor, and if the weight of the user does.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped: a connection that was about to be returned is left to
    /// the next call, or given to another executor.
    pub async fn accept(&mut self) -> Result<(TcpStream, ConnectionGuard)> {
        let (stream, guard) = self.next().await?;
        Ok((stream.bind_to_executor(), guard))
    }

    async fn next(&mut self) -> Result<Placed> {
        let MemberPlace { member, shared } = &self.place;
        loop {
            let mut accept = pin!(self.listener.shared_accept());
            let accepted = poll_fn(|cx| {
                if let Poll::Ready(placed) = member.poll_inbox(cx) {
                    return Poll::Ready(Ok(Next::Placed(placed)));
                }
                accept.as_mut().poll(cx).map_ok(Next::Accepted)
            });
            match accepted.await? {
                Next::Placed(placed) => return Ok(placed),
                Next::Accepted(stream) => {
                    if let Some(placed) = shared.place(stream, member) {
                        return Ok(placed);
                    }
                }
            }
        }
    }

    /// Counts one more connection as open on this executor: one that has come by another way, such
    /// as a [`DetachedTcpStream`](super::DetachedTcpStream).
    pub fn count_connection(&self) -> ConnectionGuard {
        ConnectionGuard::new(&self.place.member)
    }

    /// How many connections are open on this executor, or on their way to it: how many
    /// [`ConnectionGuard`]s of it there are.
    pub fn connections(&self) -> usize {
        self.place.member.load().connections
    }

    /// Accepts no more, and hands all connections that have not been returned to the other
    /// executors. If there are none, returns them: to be served, or handed to another process with the
    /// socket. Clients that have not been accepted stay in the backlog of the socket.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, this is as dropping the listener.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutor, net::BalancedTcpListener};
    ///
    /// let listener = BalancedTcpListener::bind("127.0.0.1:0")?;
    /// LocalExecutor::default().run(async {
    ///     let (mut stays, leaves) = (listener.join(0)?, listener.join(1)?);
    ///     let first = std::net::TcpStream::connect(listener.local_addr()?)?;
    ///     let second = std::net::TcpStream::connect(listener.local_addr()?)?;
    ///     let _one = stays.accept().await?;
    ///     let unserved = leaves.leave().await;
    ///     assert!(unserved.is_empty(), "the other executor serves all");
    ///     let _other = stays.accept().await?; // whichever executor it was given to
    ///     let _third = stays.count_connection(); // it has come by another way
    ///     assert_eq!(stays.connections(), 3);
    ///     # drop((first, second));
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use = "connections that are dropped are closed"]
    pub async fn leave(self) -> Vec<AcceptedTcpStream> {
        let ShardListener { listener, place } = self;
        let (shared, member) = (place.shared.clone(), place.member.clone());
        drop(place);
        let (_socket, accepted) = listener.into_parts().await;
        for stream in accepted {
            shared.hand_on(stream, &member);
        }
        shared.take_left()
    }
}

/// What there is for a task that accepts.
enum Next {
    Placed(Placed),
    Accepted(AcceptedTcpStream),
}

impl_debug! { ShardListener, it: listener, load: it.place.member.load() }

impl Drop for MemberPlace {
    fn drop(&mut self) {
        // First of all, so that what is handed on does not come back.
        (lock(&self.shared.members).joined).retain(|it| !Arc::ptr_eq(it, &self.member));
        for (stream, guard) in self.member.close_inbox() {
            drop(guard);
            self.shared.hand_on(stream, &self.member);
        }
    }
}

impl SharedListener {
    /// Gives `stream` to the least loaded member: returns it, if that is `own`.
    fn place(&self, mut stream: AcceptedTcpStream, own: &Arc<Member>) -> Option<Placed> {
        loop {
            self.weigh();
            let is_other = |it: &Arc<Member>| !Arc::ptr_eq(it, own);
            let chosen = Self::choose(&mut lock(&self.members), is_other);
            let guard = chosen.expect("its own member is among them");
            if Arc::ptr_eq(&guard.member, own) {
                return Some((stream, guard));
            }
            // Who has left in the meantime is not there the next time.
            stream = ConnectionGuard::send(guard, stream)?;
        }
    }

    /// Gives `stream`, which `own` does not take, to the least loaded member, or keeps it for the next that
    /// joins. Calls no code of the user, except wakers.
    fn hand_on(&self, mut stream: AcceptedTcpStream, own: &Arc<Member>) {
        loop {
            let mut members = lock(&self.members);
            let Some(guard) = Self::choose(&mut members, |it| Arc::ptr_eq(it, own)) else {
                return members.left.push(stream);
            };
            drop(members);
            match ConnectionGuard::send(guard, stream) {
                Some(back) => stream = back,
                None => return,
            }
        }
    }

    /// What there is only if no member is left.
    fn take_left(&self) -> Vec<AcceptedTcpStream> {
        std::mem::take(&mut lock(&self.members).left)
    }

    /// Asks the user for the weights, if there are any.
    fn weigh(&self) {
        if let Some(weight) = &self.weight {
            let members = lock(&self.members).joined.clone();
            let weigh = |it: &Arc<Member>| it.weight.store(weight(it.load()), Relaxed);
            members.iter().for_each(weigh);
        }
    }

    /// Of the members that take what they are given that with the least weight, of these that with the fewest
    /// connections, of these one whose turn it is, if possible not one that `comes_last`. Counts the connection,
    /// so that two that come at a time do not go the same way.
    fn choose(
        members: &mut Members,
        comes_last: impl Fn(&Arc<Member>) -> bool,
    ) -> Option<ConnectionGuard> {
        let turn = |it: &Arc<Member>| it.turn.load(Relaxed).max(members.turn);
        let rank = |it: &&Arc<Member>| {
            let load = (it.weight.load(Relaxed), it.load().connections);
            (it.is_full(), load, turn(it), comes_last(it))
        };
        let chosen = members.joined.iter().min_by_key(rank)?;
        let turn = turn(chosen);
        chosen.turn.store(turn + 1, Relaxed);
        members.turn = turn;
        Some(ConnectionGuard::new(chosen))
    }
}

/// All members but one, to its listener.
struct Others {
    shared: Weak<SharedListener>,
    own: Arc<Member>,
}

impl Siblings for Others {
    fn adopt(&self, connection: OwnedFd) {
        if let Some(shared) = self.shared.upgrade() {
            shared.hand_on(AcceptedTcpStream { fd: connection }, &self.own);
        }
    }
}
