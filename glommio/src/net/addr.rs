//! From what callers give as an address to socket addresses.
//!
//! Addresses and IP literals cost nothing. A host name has to be looked up by the system's
//! resolver, which blocks its thread for as long as that takes: for an operation that may wait this
//! is a thread of the executor that does nothing else.

#![forbid(unsafe_code)]

use std::iter::Chain;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::BorrowedFd;
use std::rc::Weak;
use std::{io, option, vec};

use socket2::SockAddr;

use super::Result;
use super::host_name::HostName;
use crate::reactor::{Reactor, budget, current, executor_is_gone};
use crate::sys::socket::{self, Socket};

/// Socket addresses, in the order in which they are to be tried. A single one takes no allocation.
pub(super) type Addresses = Chain<option::IntoIter<SocketAddr>, vec::IntoIter<SocketAddr>>;

/// Looks up the addresses of `host`, a name and a port: as
/// [`TcpStream::connect`](super::TcpStream::connect) does, so on a thread of the executor where a
/// name in text has to be resolved.
///
/// # Errors
///
/// What the resolver gives; kind `InvalidInput` for text that is no host and port.
///
/// # Panics
///
/// Panics if no executor runs on this thread.
///
/// # Cancel safety
///
/// A lookup that has begun when this is dropped finishes in the background; its result is discarded.
///
/// # Examples
///
/// ```
/// use glommio::net;
///
/// # glommio::LocalExecutor::default().run(async {
/// for address in net::lookup_host(("localhost", 80)).await? {
///     assert!(address.ip().is_loopback());
/// }
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
pub async fn lookup_host<A: ToSocketAddrs>(
    host: A,
) -> Result<impl Iterator<Item = SocketAddr> + use<A>> {
    budget::consume().await;
    Ok(all(&current::current(), host).await?)
}

/// What `bind` makes of the first address for which it succeeds, or the error of the last. For
/// callers that cannot wait: a host name is looked up on this thread.
pub(super) fn bind_first<T>(
    address: impl ToSocketAddrs,
    mut bind: impl FnMut(SocketAddr) -> io::Result<T>,
) -> io::Result<T> {
    let mut last_error = empty();
    let addresses = match HostName::of(&address) {
        Some(name) if name.literal().is_none() => collect(name.to_owned().look_up()?),
        _ => collect(address.to_socket_addrs()?),
    };
    for address in addresses {
        match bind(address) {
            Ok(bound) => return Ok(bound),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

/// The first address.
pub(super) async fn first(
    reactor: &Weak<Reactor>,
    address: impl ToSocketAddrs,
) -> io::Result<SocketAddr> {
    all(reactor, address).await?.next().ok_or_else(empty)
}

/// All addresses; maybe none.
///
/// What is of no known type may hold a name, too, but cannot be taken to another thread: it is
/// asked here.
pub(super) async fn all(
    reactor: &Weak<Reactor>,
    address: impl ToSocketAddrs,
) -> io::Result<Addresses> {
    match HostName::of(&address) {
        None => Ok(collect(address.to_socket_addrs()?)),
        Some(name) => match name.literal() {
            Some(address) => Ok(collect([address])),
            None => Ok(collect(look_up(reactor, name).await?)),
        },
    }
}

/// What the system's resolver returns for `name`. A lookup that has begun when this is dropped
/// finishes in the background; its result is discarded.
async fn look_up(
    reactor: &Weak<Reactor>,
    name: HostName<'_>,
) -> io::Result<vec::IntoIter<SocketAddr>> {
    let name = name.to_owned();
    let reactor = reactor.upgrade().ok_or_else(executor_is_gone)?;
    let lookup = reactor.lookups().ask(move || name.look_up());
    drop(reactor);
    lookup.await?
}

fn collect(addresses: impl IntoIterator<Item = SocketAddr>) -> Addresses {
    let mut addresses = addresses.into_iter();
    let first = addresses.next();
    let rest: Vec<_> = addresses.collect();
    first.into_iter().chain(rest)
}

/// The error when there is no address at all.
pub(super) fn empty() -> io::Error {
    io::Error::other("empty address")
}

/// Where an internet socket is bound.
pub(super) fn local_addr(socket: &Socket) -> io::Result<SocketAddr> {
    from_kernel(&socket.local_addr()?)
}

/// What an internet socket is connected to.
pub(super) fn peer_addr(socket: &Socket) -> io::Result<SocketAddr> {
    from_kernel(&socket.peer_addr()?)
}

/// What the internet socket `fd` is connected to.
pub(super) fn peer_addr_of(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    from_kernel(&socket::peer_addr(fd)?)
}

fn from_kernel(address: &SockAddr) -> io::Result<SocketAddr> {
    address.as_socket().ok_or_else(no_internet_address)
}

fn no_internet_address() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the socket has no internet address",
    )
}
