//! Unix datagram sockets.

use std::os::unix::net::SocketAddr;
use std::path::Path;

use nix::sys::socket::UnixAddr;
use socket2::{Domain, Type};

use super::{address, full_receiver};
use crate::net::Result;
use crate::net::datagram::{DEFAULT_BUFFER_BYTES, Datagram};
use crate::net::methods::{address_methods, datagram_methods, descriptor_impls};
use crate::reactor::budget;
use crate::sys::socket::{self, Socket};

/// A Unix datagram socket.
///
/// One call sends or receives one datagram. None is lost or reordered on the way: a sender waits
/// while the receiver's queue is full (`net.unix.max_dgram_qlen`, often 10 datagrams). Any number
/// of tasks may use a socket at a time, each datagram going to one of them. Sends and receives that
/// find the socket ready do not suspend, unless the task's slice is over.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, net::UnixDatagram};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("socket");
/// LocalExecutor::default().run(async {
///     let receiver = UnixDatagram::bind(&path)?;
///     let sender = UnixDatagram::unbound()?;
///     sender.send_to(b"hello", &path).await?;
///
///     let mut buf = [0; 16];
///     let (length, from) = receiver.recv_from(&mut buf).await?;
///     assert_eq!(&buf[..length], b"hello");
///     assert_eq!(from.path(), None, "the sender has no address");
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct UnixDatagram {
    datagram: Datagram,
    buffer_size: usize,
}

impl UnixDatagram {
    /// Two sockets, each the other's peer, without addresses.
    ///
    /// # Errors
    ///
    /// What `socketpair(2)` gives.
    pub fn pair() -> Result<(UnixDatagram, UnixDatagram)> {
        let (one, other) = Socket::pair(Domain::UNIX, Type::DGRAM, None)?;
        Ok((UnixDatagram::new(one), UnixDatagram::new(other)))
    }

    /// A socket bound to the path `addr`.
    ///
    /// This creates a file. Nothing removes it, neither before nor when the socket is dropped. A
    /// path that begins with a NUL byte is an abstract name and no file; for an empty one the
    /// kernel chooses such a name.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if the path is longer than 107 bytes, or contains a NUL byte elsewhere;
    /// kind `AddrInUse` if it exists, whatever it is; what else `bind(2)` gives.
    pub fn bind<A: AsRef<Path>>(addr: A) -> Result<UnixDatagram> {
        let address = address::of(addr)?;
        let socket = Socket::new(Domain::UNIX, Type::DGRAM, None)?;
        socket.bind(&address)?;
        Ok(UnixDatagram::new(socket))
    }

    /// A socket without an address: it can send, and receive if it has a peer that is connected to
    /// it.
    ///
    /// # Errors
    ///
    /// What `socket(2)` gives.
    pub fn unbound() -> Result<UnixDatagram> {
        Ok(UnixDatagram::new(Socket::new(
            Domain::UNIX,
            Type::DGRAM,
            None,
        )?))
    }

    /// Makes the socket at the path `addr` the peer: [`send`](Self::send) goes there, and only
    /// datagrams from there are received. Does not suspend.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if the path is longer than 107 bytes, or contains a NUL byte behind its
    /// first; what `connect(2)` gives, such as kind `NotFound`, or `ConnectionRefused` if there is
    /// a file and no socket.
    ///
    /// # Cancel safety
    ///
    /// Nothing has happened: the poll that does it is ready.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::net::UnixDatagram;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("socket");
    /// let server = UnixDatagram::bind(&path)?;
    /// let client = UnixDatagram::unbound()?;
    /// client.connect(&path).await?;
    /// client.send(b"ping").await?;
    /// assert_eq!(server.recv_from(&mut [0; 16]).await?.0, 4);
    ///
    /// let (here, there) = UnixDatagram::pair()?;
    /// here.send(b"ping").await?;
    /// let mut buffer = [0; 16];
    /// assert_eq!(there.peek(&mut buffer).await?, 4); // leaves it there
    /// assert_eq!(there.recv(&mut buffer).await?, 4);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn connect<A: AsRef<Path>>(&self, addr: A) -> Result<()> {
        budget::consume().await;
        Ok(self.socket().connect(&address::of(addr)?)?)
    }

    /// As [`UdpSocket::peek`](crate::net::UdpSocket::peek). A send that finds the peer gone ends the
    /// connection.
    pub async fn peek(&self, buf: &mut [u8]) -> Result<usize> {
        // Asked each time: a send that finds the peer gone ends the connection.
        budget::checked(self.socket().peer_addr()).await?;
        let peek = |fd| socket::peek(fd, buf);
        Ok(self.datagram.read_without_limit(peek).await?)
    }

    /// Receives a datagram, with or without a peer. Returns its length, or that of `buf` if it is
    /// longer: the rest of it is gone then. Zero stands for an empty datagram, not for an end.
    ///
    /// # Errors
    ///
    /// Kind `ConnectionReset` if the peer was closed before it had read all that was sent to it.
    /// Kind `TimedOut`, see [`set_read_timeout`](Self::set_read_timeout). What else `recv(2)`
    /// gives.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn recv(&self, buf: &mut [u8]) -> Result<usize> {
        let receive = |fd| socket::receive(fd, buf);
        Ok(self.datagram.read(receive).await?)
    }

    /// Sends `buf` as one datagram to the socket at the path `addr`, and returns its length. Waits
    /// while the receiver's queue is full, with the help of a second descriptor; if none is left,
    /// it tries every 10 ms.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if the path is longer than 107 bytes, or contains a NUL byte behind its
    /// first; what `sendto(2)` gives, such as `ConnectionRefused` if the receiver is gone,
    /// `PermissionDenied` if it is connected to another socket, `EMSGSIZE` if `buf` is longer than
    /// the send buffer. Kind `TimedOut`, see [`set_write_timeout`](Self::set_write_timeout).
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, nothing has been sent.
    pub async fn send_to<A: AsRef<Path>>(&self, buf: &[u8], addr: A) -> Result<usize> {
        let address = budget::checked(address::of(addr)).await?;
        Ok(full_receiver::send_to(&self.datagram, buf, &address).await?)
    }

    /// Sends `buf` as one datagram to the peer, and returns its length. Waits while the peer's
    /// queue is full.
    ///
    /// # Errors
    ///
    /// Kind `NotConnected` if there is no peer, `ConnectionRefused` if it is gone; `EMSGSIZE` if
    /// `buf` is longer than the send buffer. Kind `TimedOut`, see
    /// [`set_write_timeout`](Self::set_write_timeout).
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, nothing has been sent.
    pub async fn send(&self, buf: &[u8]) -> Result<usize> {
        let send = |fd| socket::send(fd, buf);
        Ok(self.datagram.write(send).await?)
    }

    fn new(socket: Socket) -> Self {
        UnixDatagram {
            datagram: Datagram::new(socket),
            buffer_size: DEFAULT_BUFFER_BYTES,
        }
    }

    datagram_methods!(Sender: UnixAddr);
    address_methods!(address, SocketAddr);
}

impl_debug! { UnixDatagram, it, debug => it.datagram.describe(debug) }

descriptor_impls! {
    /// Takes a Unix datagram socket, blocking or not.
    impl From<Socket> for UnixDatagram;
    /// Outside of an executor, the socket belongs to that in which it is first used on this thread.
    impl From<std::os::unix::net::UnixDatagram> for UnixDatagram;
    impl FromRawFd for UnixDatagram;
    impl AsRawFd for UnixDatagram;
    impl AsFd for UnixDatagram;
    /// Takes the socket from this executor: nothing is in flight for it any more, and it stays open.
    impl IntoRawFd for UnixDatagram;
}
