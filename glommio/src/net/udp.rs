//! UDP.

mod many;
mod offloads;
mod options;
mod pacer;
mod pool;
mod segments;

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

pub use pacer::Pacer;
pub use pool::{DatagramPool, DatagramSegments, Destination, ReceivedDatagrams};
pub use segments::{Ecn, Segments};
use socket2::{Domain, Protocol, SockAddr, Type};

use super::datagram::{DEFAULT_BUFFER_BYTES, Datagram, send_to};
use super::methods::{address_methods, datagram_methods, descriptor_impls};
use super::{Result, addr};
use crate::reactor::budget;
use crate::sys::socket::{self, Socket};

/// A UDP socket.
///
/// One call sends or receives one datagram. Any number of tasks may use a socket at a time, each
/// datagram going to one of them. Sends and receives that find the socket ready do not suspend,
/// unless the task's slice is over.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, net::UdpSocket};
///
/// LocalExecutor::default().run(async {
///     let receiver = UdpSocket::bind("127.0.0.1:0")?;
///     let sender = UdpSocket::bind("127.0.0.1:0")?;
///     sender.send_to(b"hello", receiver.local_addr()?).await?;
///
///     let mut buf = [0; 16];
///     let (length, from) = receiver.recv_from(&mut buf).await?;
///     assert_eq!(&buf[..length], b"hello");
///     assert_eq!(from, sender.local_addr()?);
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct UdpSocket {
    datagram: Datagram,
    /// Known to have a peer. There is no way back from it.
    is_connected: Cell<bool>,
    buffer_size: usize,
    /// See [`max_segments`](Self::max_segments), once it is known.
    max_segments: Cell<Option<usize>>,
    /// See [`set_gro`](Self::set_gro).
    receives_coalesced: Cell<bool>,
    /// See [`set_transmit_times`](Self::set_transmit_times).
    holds_until: Cell<bool>,
    /// Was so when [`recv_many`](Self::recv_many) last looked.
    is_empty: Cell<bool>,
}

impl UdpSocket {
    /// A socket bound to the first resolved address of `addr` that can be bound. Port 0 stands for a
    /// free one.
    ///
    /// `SO_REUSEPORT` is set: several executors may bind the same address, and the kernel shares
    /// the senders out among them. With port 0, it is set after the kernel has chosen a port, so that
    /// no other socket has that port.
    ///
    /// A host name is resolved on the spot, which blocks the thread.
    ///
    /// # Errors
    ///
    /// What resolving or, for the last address, `bind(2)` gives; kind `Other`, `empty address`, if
    /// there is no address.
    pub fn bind<A: ToSocketAddrs>(addr: A) -> Result<UdpSocket> {
        let socket = addr::bind_first(addr, |address| {
            let domain = Domain::for_address(address);
            let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
            // Not SO_REUSEADDR: with UDP that lets the last socket bound take all datagrams.
            // With SO_REUSEPORT, the kernel may choose a port that another such socket has.
            let chooses_port = address.port() == 0;
            socket.set_reuse_port(!chooses_port)?;
            socket.bind(&address.into())?;
            socket.set_reuse_port(true)?;
            Ok(socket)
        })?;
        Ok(UdpSocket::new(socket))
    }

    /// Makes `addr` the peer, or the first of its addresses that will do: [`send`](Self::send) goes
    /// there, and only datagrams from there are received. No packet is sent by this, and it
    /// suspends only to have a host name resolved, in the same way as
    /// [`TcpStream::connect`](super::TcpStream::connect).
    ///
    /// # Errors
    ///
    /// What resolving or, for the last address, `connect(2)` gives; kind `Other`,
    /// `No Valid addresses`, if there is none.
    ///
    /// # Cancel safety
    ///
    /// Without a name to resolve, the poll that does it is ready. Dropped while one is being resolved,
    /// it has changed nothing; a lookup that has begun finishes in the background, and its
    /// result is discarded.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::net::UdpSocket;
    ///
    /// let (here, there) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    /// here.connect(there.local_addr()?).await?;
    /// there.connect(here.local_addr()?).await?;
    ///
    /// here.send(b"ping").await?;
    /// let mut buffer = [0; 16];
    /// assert_eq!(there.peek(&mut buffer).await?, 4); // leaves it there
    /// assert_eq!(there.recv(&mut buffer).await?, 4);
    /// assert_eq!(&buffer[..4], b"ping");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> Result<()> {
        budget::consume().await;
        let mut last_error = io::Error::other("No Valid addresses");
        for address in addr::all(self.datagram.reactor(), addr).await? {
            match self.socket().connect(&address.into()) {
                Ok(()) => {
                    self.is_connected.set(true);
                    return Ok(());
                }
                Err(error) => last_error = error,
            }
        }
        Err(last_error.into())
    }

    /// Receives a datagram from the peer and leaves it in the socket: the same one is received
    /// next. Waits for as long as it takes.
    ///
    /// # Errors
    ///
    /// Kind `NotConnected`, at once, if there is no peer; what `recv(2)` gives.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn peek(&self, buf: &mut [u8]) -> Result<usize> {
        budget::checked(self.check_connected()).await?;
        let peek = |fd| socket::peek(fd, buf);
        Ok(self.datagram.read_without_limit(peek).await?)
    }

    /// Receives a datagram from the peer. Returns its length, or that of `buf` if it is longer: the
    /// rest of it is gone then. Zero stands for an empty datagram, not for an end.
    ///
    /// # Errors
    ///
    /// Kind `NotConnected`, at once, if there is no peer. Kind `ConnectionRefused` if an earlier
    /// datagram was refused at the peer's port. Kind `TimedOut`, see
    /// [`set_read_timeout`](Self::set_read_timeout). What else `recv(2)` gives.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn recv(&self, buf: &mut [u8]) -> Result<usize> {
        budget::checked(self.check_connected()).await?;
        let receive = |fd| socket::receive(fd, buf);
        Ok(self.datagram.read(receive).await?)
    }

    /// Sends `buf` as one datagram to the first resolved address of `addr`, and returns its length.
    /// Waits while the socket's send queue is full, and while a host name is resolved, in the
    /// same way as by [`TcpStream::connect`](super::TcpStream::connect). Each call resolves it
    /// anew: to send often, resolve once, or connect.
    ///
    /// # Errors
    ///
    /// What resolving or `sendto(2)` give, for instance `EMSGSIZE` for more than 65,507 bytes over
    /// IPv4; kind `Other`, `empty address`, if there is no address. Kind `TimedOut`, see
    /// [`set_write_timeout`](Self::set_write_timeout).
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, nothing has been sent. A lookup that has begun finishes in the
    /// background; its result is discarded.
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], addr: A) -> Result<usize> {
        let address = addr::first(self.datagram.reactor(), addr).await;
        let address = budget::checked(address).await?;
        let address = SockAddr::from(address);
        let send = |_| send_to(self.socket(), buf, &address);
        Ok(self.datagram.write(send).await?)
    }

    /// Sends `buf` as one datagram to the peer. As [`send_to`](Self::send_to) otherwise.
    ///
    /// # Errors
    ///
    /// `EDESTADDRREQ` if there is no peer. Kind `ConnectionRefused` if an earlier datagram was
    /// refused at the peer's port. Else as [`send_to`](Self::send_to).
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, nothing has been sent.
    pub async fn send(&self, buf: &[u8]) -> Result<usize> {
        let send = |fd| socket::send(fd, buf);
        Ok(self.datagram.write(send).await?)
    }

    fn check_connected(&self) -> io::Result<()> {
        if !self.is_connected.get() {
            // It may have been connected as a raw descriptor; if not, this is the error to give.
            self.socket().peer_addr()?;
            self.is_connected.set(true);
        }
        Ok(())
    }

    fn new(socket: Socket) -> Self {
        UdpSocket {
            datagram: Datagram::new(socket),
            is_connected: Cell::new(false),
            buffer_size: DEFAULT_BUFFER_BYTES,
            max_segments: Cell::new(None),
            receives_coalesced: Cell::new(false),
            holds_until: Cell::new(false),
            is_empty: Cell::new(false),
        }
    }

    datagram_methods!(Sender: SocketAddr);
    address_methods!(addr, SocketAddr);
}

impl_debug! { UdpSocket, it, debug => it.datagram.describe(debug) }

descriptor_impls! {
    /// Takes a UDP socket, blocking or not.
    impl From<Socket> for UdpSocket;
    /// Outside of an executor, the socket belongs to that in which it is first used on this thread.
    impl From<std::net::UdpSocket> for UdpSocket;
    impl FromRawFd for UdpSocket;
    impl AsRawFd for UdpSocket;
    impl AsFd for UdpSocket;
    /// Takes the socket from this executor: nothing is in flight for it any more, and it stays open.
    impl IntoRawFd for UdpSocket;
}
