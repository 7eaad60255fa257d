//! Many datagrams of one buffer, sent by one call.

#![forbid(unsafe_code)]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Instant;

use super::UdpSocket;
use crate::clock;
use crate::net::Result;
use crate::reactor::budget;
use crate::sys::datagrams::{self, Sending};
use crate::timer::sleep_until;

/// The mark of explicit congestion notification that a datagram carries (RFC 3168).
///
/// # Examples
///
/// ```
/// use glommio::net::Ecn;
///
/// assert_eq!(Ecn::from_bits(0b10), Some(Ecn::Ect0));
/// assert_eq!(Ecn::Ce.bits(), 0b11);
/// assert_eq!(Ecn::from_bits(0b100), None); // the other bits have another meaning
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// ECN-capable transport, `ECT(0)`.
    Ect0,
    /// ECN-capable transport, `ECT(1)`: low latency, low loss (RFC 9331).
    Ect1,
    /// Congestion was experienced on the way.
    Ce,
}

impl Ecn {
    /// The mark in the lowest two bits of a traffic class; none if the transport is not capable of
    /// ECN.
    pub fn from_bits(bits: u8) -> Option<Ecn> {
        match bits & 3 {
            1 => Some(Ecn::Ect1),
            2 => Some(Ecn::Ect0),
            3 => Some(Ecn::Ce),
            _ => None,
        }
    }

    /// The two bits that stand for it in the header.
    pub fn bits(self) -> u8 {
        match self {
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }
}

/// Datagrams to one receiver, one behind the other in a buffer, for
/// [`UdpSocket::send_segments`].
///
/// # Examples
///
/// ```
/// use glommio::net::{Ecn, Segments, UdpSocket};
/// use std::net::SocketAddr;
///
/// # glommio::LocalExecutor::default().run(async {
/// let socket = UdpSocket::bind("0.0.0.0:0")?;
/// let to: SocketAddr = "127.0.0.1:9".parse().expect("an address");
/// let from = "127.0.0.7".parse().expect("an address of this host");
/// let segments = Segments::new(&[7; 3_000], 1_200)
///     .to(to)
///     .ecn(Some(Ecn::Ect0))
///     .source(Some(from));
/// socket.send_segments(&segments).await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "it does nothing until it is sent"]
pub struct Segments<'a> {
    bytes: &'a [u8],
    segment_size: usize,
    to: Option<SocketAddr>,
    ecn: Option<Ecn>,
    source: Option<IpAddr>,
}

impl<'a> Segments<'a> {
    /// Datagrams of `segment_size` bytes each, the last of what is left of `bytes`, to the peer of
    /// the socket. Without bytes it is one empty datagram.
    pub fn new(bytes: &'a [u8], segment_size: usize) -> Segments<'a> {
        Segments {
            bytes,
            segment_size,
            to: None,
            ecn: None,
            source: None,
        }
    }

    /// Sends to `address`, also if the socket has a peer.
    pub fn to(self, address: SocketAddr) -> Segments<'a> {
        let to = Some(address);
        Segments { to, ..self }
    }

    /// Marks the datagrams. Without, they carry what the socket is set to, by default no mark.
    pub fn ecn(self, ecn: Option<Ecn>) -> Segments<'a> {
        Segments { ecn, ..self }
    }

    /// Sends from this address of the host, of the same family as the receiver's. Without, the
    /// system chooses, unless the socket is bound to an address. To answer from the address that
    /// was asked, pass on [`ReceivedDatagrams::destination`](super::ReceivedDatagrams::destination).
    pub fn source(self, address: Option<IpAddr>) -> Segments<'a> {
        let source = address;
        Segments { source, ..self }
    }

    /// How many datagrams it is.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` for several datagrams of no size.
    fn count(&self) -> io::Result<usize> {
        if self.bytes.len() <= self.segment_size {
            return Ok(1);
        }
        if self.segment_size == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a segment size of 0 for a buffer that is not empty: it has to be 1 or more",
            ));
        }
        Ok(self.bytes.len().div_ceil(self.segment_size))
    }
}

/// Sending in numbers.
impl UdpSocket {
    /// Sends the datagrams in `segments` by one call: the kernel or the device cuts the buffer up
    /// (generic segmentation offload, `UDP_SEGMENT`, Linux 4.18). Waits while the socket's send
    /// queue is full. All are sent or none.
    ///
    /// A segment has to fit into a packet of the path: its size with the headers of UDP and IP is at
    /// most the MTU. A buffer of one segment is sent as an ordinary datagram, which may be of any
    /// length.
    ///
    /// Where there is no offload, [`max_segments`](Self::max_segments) is 1: send the
    /// datagrams one by one, as in the example. In a simulation they always
    /// are, and marks and sources are not carried.
    ///
    /// Each datagram counts in the [budget](crate::consume_budget) of the task.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` for more segments than `max_segments`, and for a segment size of 0. Kind
    /// `Unsupported` if the kernel or the device cannot cut buffers up; `max_segments` is 1
    /// from then on. `EINVAL` or `EMSGSIZE` for segments that are larger than the MTU, `EMSGSIZE` for
    /// more than 65,507 bytes in all over IPv4. Else as [`send_to`](Self::send_to).
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, nothing has been sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::GlommioError;
    /// use glommio::net::{Segments, UdpSocket};
    /// use std::{io::ErrorKind, net::SocketAddr, time::Instant};
    ///
    /// /// Sends datagrams of `size` bytes, with as few calls as the machine allows.
    /// async fn send_all(
    ///     socket: &UdpSocket,
    ///     mut bytes: &[u8],
    ///     size: usize,
    ///     to: SocketAddr,
    /// ) -> Result<(), GlommioError<()>> {
    ///     while !bytes.is_empty() {
    ///         let most = socket.max_segments().min(65_000 / size).max(1) * size;
    ///         let (now, later) = bytes.split_at(most.min(bytes.len()));
    ///         match socket.send_segments(&Segments::new(now, size).to(to)).await {
    ///             Ok(()) => bytes = later,
    ///             // Once: `max_segments` is 1 now.
    ///             Err(GlommioError::IoError(error)) if error.kind() == ErrorKind::Unsupported => {}
    ///             Err(error) => return Err(error),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # glommio::LocalExecutor::default().run(async {
    /// let receiver = UdpSocket::bind("127.0.0.1:0")?;
    /// let sender = UdpSocket::bind("127.0.0.1:0")?;
    /// send_all(&sender, &[7; 3000], 1200, receiver.local_addr()?).await?;
    ///
    /// let mut buffer = [0; 1500];
    /// for length in [1200, 1200, 600] {
    ///     assert_eq!(receiver.recv_from(&mut buffer).await?.0, length);
    /// }
    ///
    /// // Without waiting, and no earlier than at a given time:
    /// let segments = Segments::new(&[7; 100], 100).to(receiver.local_addr()?);
    /// sender.try_send_segments(&segments)?;
    /// sender.send_segments_at(&segments, Instant::now()).await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn send_segments(&self, segments: &Segments<'_>) -> Result<()> {
        let sending = budget::checked(self.sending(segments)).await?;
        let sent = self.datagram.write(|fd| datagrams::send(fd, &sending));
        self.explained(&sending, sent.await)?;
        spend_rest(std::slice::from_ref(segments));
        Ok(())
    }

    /// Sends several buffers by one call of `sendmmsg(2)`, each as
    /// [`send_segments`](Self::send_segments) does: those at the front of `many`, as many as the
    /// send queue takes, and up to 32. Returns how many, at least one unless `many` is empty. Waits
    /// while the queue is full.
    ///
    /// # Errors
    ///
    /// As [`send_segments`](Self::send_segments) for the first of `many`. If it is a later one that
    /// cannot be sent, those before it are, and it fails in the call that begins with it.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, nothing has been sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::GlommioError;
    /// use glommio::net::{DatagramPool, Segments, UdpSocket};
    ///
    /// /// Sends all datagrams back.
    /// async fn echo(socket: &UdpSocket) -> Result<(), GlommioError<()>> {
    ///     let pool = DatagramPool::new(64, 1_500);
    ///     let mut received = Vec::new();
    ///     loop {
    ///         socket.recv_many(&pool, &mut received).await?;
    ///         let answers: Vec<_> = (received.iter())
    ///             .map(|it| Segments::new(it.bytes(), it.segment_size()).to(it.from()))
    ///             .collect();
    ///         let mut left = &answers[..];
    ///         while !left.is_empty() {
    ///             left = &left[socket.send_many(left).await?..];
    ///         }
    ///         received.clear();
    ///     }
    /// }
    /// # glommio::LocalExecutor::default().run(async {
    /// # let (server, client) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    /// # client.connect(server.local_addr()?).await?;
    /// # let ask = async {
    /// #     for number in 0..100 {
    /// #         client.send(&[number]).await?;
    /// #     }
    /// #     for _ in 0..100 {
    /// #         client.recv(&mut [0]).await?;
    /// #     }
    /// #     Ok(())
    /// # };
    /// # futures_lite::future::or(echo(&server), ask).await
    /// # }).unwrap();
    /// ```
    pub async fn send_many(&self, many: &[Segments<'_>]) -> Result<usize> {
        let Some(first) = many.first() else {
            budget::consume().await;
            return Ok(0);
        };
        let first = budget::checked(self.sending(first)).await?;
        let sendings = || many.iter().map_while(|it| self.sending(it).ok());
        let sent = self
            .datagram
            .write(|fd| datagrams::send_many(fd, sendings()));
        let count = self.explained(&first, sent.await)?;
        spend_rest(&many[..count]);
        Ok(count)
    }

    /// As [`send_segments`](Self::send_segments), without waiting.
    ///
    /// # Errors
    ///
    /// Kind `WouldBlock` if the send queue is full: nothing has been sent. Else as
    /// [`send_segments`](Self::send_segments).
    pub fn try_send_segments(&self, segments: &Segments<'_>) -> Result<()> {
        let sending = self.sending(segments)?;
        let sent = datagrams::send(self.socket().as_raw_fd(), &sending);
        Ok(self.explained(&sending, sent)?)
    }

    /// As [`send_segments`](Self::send_segments), no earlier than `at`.
    ///
    /// With [`set_transmit_times`](Self::set_transmit_times) the kernel is given the datagrams at
    /// once and holds them until then. Without, this waits, on a timer of the executor.
    /// [`Pacer`](super::Pacer) tells when to send at a given rate.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, nothing has been sent.
    pub async fn send_segments_at(&self, segments: &Segments<'_>, at: Instant) -> Result<()> {
        let mut sending = budget::checked(self.sending(segments)).await?;
        if self.holds_until.get() {
            sending.transmit_at = Some(monotonic(at));
        } else if at > clock::now() {
            sleep_until(at).await;
        }
        let sent = self.datagram.write(|fd| datagrams::send(fd, &sending));
        self.explained(&sending, sent.await)?;
        spend_rest(std::slice::from_ref(segments));
        Ok(())
    }

    /// The most datagrams that one [`send_segments`](Self::send_segments) can send: 1 where the
    /// kernel has no segmentation offload, or a device has refused it. Together they may have no
    /// more than 65,507 bytes over IPv4.
    pub fn max_segments(&self) -> usize {
        self.max_segments.get().unwrap_or_else(|| {
            let is_known = datagrams::has_segments(self.socket());
            let most = if is_known { MAX_SEGMENTS } else { 1 };
            self.max_segments.set(Some(most));
            most
        })
    }

    fn sending<'a>(&self, segments: &Segments<'a>) -> io::Result<Sending<'a>> {
        let count = segments.count()?;
        let most = self.max_segments();
        if count > most {
            return Err(too_many(count, most));
        }
        Ok(Sending {
            bytes: segments.bytes,
            to: segments.to,
            // Several segments are of no more than 65,535 bytes in all, or the kernel refuses them.
            segment_bytes: (count > 1).then_some(segments.segment_size.min(u16::MAX.into()) as u16),
            ecn: segments.ecn.map(Ecn::bits),
            source: segments.source,
            transmit_at: None,
        })
    }

    /// A device that cannot cut buffers up says `EIO`, since it computes no checksums.
    fn explained<T>(&self, sending: &Sending<'_>, sent: io::Result<T>) -> io::Result<T> {
        match sent {
            Err(error)
                if sending.segment_bytes.is_some() && error.raw_os_error() == Some(libc::EIO) =>
            {
                self.max_segments.set(Some(1));
                Err(no_segments())
            }
            sent => sent,
        }
    }
}

/// `sent` was counted as one operation, or waited for.
fn spend_rest(sent: &[Segments<'_>]) {
    let datagrams: usize = sent.iter().map(|it| it.count().unwrap_or(1)).sum();
    budget::spend_many(datagrams - 1);
}

/// What every kernel with the offload takes (`UDP_MAX_SEGMENTS`); later ones take more.
const MAX_SEGMENTS: usize = 64;

fn too_many(count: usize, most: usize) -> io::Error {
    if most == 1 {
        return no_segments();
    }
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{count} segments in one call: it takes up to {most}"),
    )
}

fn no_segments() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "neither the kernel nor the device cuts a buffer into datagrams (UDP_SEGMENT): \
         send them one by one, as max_segments() says from now on",
    )
}

/// The reading of `CLOCK_MONOTONIC` at `instant`, in nanoseconds.
fn monotonic(instant: Instant) -> u64 {
    let left = instant.saturating_duration_since(clock::now());
    let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    datagrams::monotonic_ns().saturating_add(left)
}
