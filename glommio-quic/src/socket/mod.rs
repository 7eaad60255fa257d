//! The UDP socket of an endpoint: datagrams are sent by segmentation offload and received by the
//! batch, with their marks of congestion.

mod outgoing;
mod path_mtu;

pub(crate) use outgoing::Outgoing;

use crate::shards::Placed;
use bytes::BytesMut;
use glommio::GlommioError;
use glommio::net::{DatagramPool, Ecn, ReceivedDatagrams, Segments, UdpSocket};
use outgoing::Prepared;
use quinn_proto::{ConnectError, EcnCodepoint, Transmit};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};

/// A datagram that was received.
pub(crate) struct Datagram {
    pub(crate) remote: SocketAddr,
    /// The address that it was sent to, if known.
    pub(crate) local_ip: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) payload: BytesMut,
}

impl Datagram {
    /// Whether its packet is one that begins a connection, in version 1 and its drafts.
    pub(crate) fn is_initial(&self) -> bool {
        const LONG_AND_TYPE: u8 = 0xb0;
        let first = self.payload.first();
        first.is_some_and(|first| first & LONG_AND_TYPE == 0x80)
    }
}

pub(crate) struct Socket {
    socket: Placed<UdpSocket>,
    is_ipv6: bool,
    never_fragments: bool,
    buffers: Rc<Buffers>,
}

/// Buffers of all sockets of a thread. What was received is copied soon, and few sockets send at a
/// time, so that buffers of their own would only take memory: up to 4 MiB each.
struct Buffers {
    pool: DatagramPool,
    /// Empty ones to send from, kept for their memory.
    spare: RefCell<Vec<Vec<u8>>>,
}

thread_local! {
    /// As long as there is a socket.
    static BUFFERS: RefCell<Weak<Buffers>> = const { RefCell::new(Weak::new()) };
}

/// That are received into in one go. They are made when they are needed.
const RECEIVED: usize = 32;
/// What may be sent by one call in all, in bytes.
const LONGEST: usize = 65_507;

impl Socket {
    pub(crate) fn new(socket: Placed<UdpSocket>) -> io::Result<Socket> {
        let address = socket.local_addr()?;
        let never_fragments = path_mtu::probe(&socket, address.is_ipv6()).is_ok();
        socket.set_receive_ecn(true)?;
        if address.ip().is_unspecified() {
            // Answers are to come from the address that was asked.
            socket.set_receive_destination(true)?;
        }
        // Older kernels give datagrams one by one.
        let _ = socket.set_gro(true);
        Ok(Socket {
            socket,
            is_ipv6: address.is_ipv6(),
            never_fragments,
            buffers: Buffers::of_thread(),
        })
    }

    /// Whether what is too long for the path is dropped and not cut, as the discovery of the
    /// longest datagram demands.
    pub(crate) fn never_fragments(&self) -> bool {
        self.never_fragments
    }

    /// The address by which this socket reaches `addr`.
    pub(crate) fn reachable(&self, addr: SocketAddr) -> Result<SocketAddr, ConnectError> {
        match (self.is_ipv6, addr) {
            (true, SocketAddr::V4(v4)) => {
                Ok(SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()))
            }
            (false, SocketAddr::V6(_)) => Err(ConnectError::InvalidRemoteAddress(addr)),
            (true, SocketAddr::V6(_)) | (false, SocketAddr::V4(_)) => Ok(addr),
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    /// How many datagrams of one size, at most `mtu` bytes, may be sent by one call.
    pub(crate) fn max_segments(&self, mtu: u16) -> usize {
        let fit = LONGEST / usize::from(mtu).max(1);
        fit.clamp(1, self.most_segments())
    }

    fn most_segments(&self) -> usize {
        self.socket.max_segments()
    }

    /// Waits for a datagram and takes all that there are, up to a limit, into `batch`.
    ///
    /// None is lost when it is dropped.
    pub(crate) async fn receive(&self, batch: &mut Vec<ReceivedDatagrams>) -> io::Result<()> {
        let receive = self.socket.recv_many(&self.buffers.pool, batch);
        as_one_operation(receive).await?;
        Ok(())
    }

    /// Sends all that was collected, and empties it. Waits while the send queue is full.
    ///
    /// What cannot be sent is lost, as the network might lose it: the protocol makes up for that.
    /// Returns how many were.
    pub(crate) async fn send(&self, outgoing: &mut Outgoing) -> u64 {
        let (mut left, mut failed) = (outgoing.sends(), 0);
        while let Some(first) = left.first() {
            let sent = match left {
                [one] => {
                    let segments = one.segments();
                    let sent = as_one_operation(self.socket.send_segments(&segments)).await;
                    sent.map(|()| 1)
                }
                several => {
                    let several: Vec<_> = several.iter().map(Prepared::segments).collect();
                    as_one_operation(self.socket.send_many(&several)).await
                }
            };
            let count = match sent {
                Ok(count) => count,
                Err(error) => {
                    failed += u64::from(!self.send_singly(first, error).await);
                    1
                }
            };
            left = &left[count..];
        }
        outgoing.clear(self);
        failed
    }

    /// Sends what has failed with `error` without the offload, if that is what has failed. False if it
    /// is lost.
    async fn send_singly(&self, prepared: &Prepared, error: GlommioError<()>) -> bool {
        let mut error = io::Error::from(error);
        if error.kind() == io::ErrorKind::Unsupported {
            match self.send_segments_singly(prepared).await {
                Ok(()) => return true,
                Err(of_one) => error = of_one,
            }
        }
        let to = prepared.transmit.destination;
        tracing::debug!(%error, %to, "a datagram was not sent");
        false
    }

    /// Sends one datagram without waiting: an error of kind `WouldBlock` if the send queue is full.
    pub(crate) fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        let segments = segments(transmit, payload, transmit.size);
        Ok(self.socket.try_send_segments(&segments)?)
    }

    async fn send_segments_singly(&self, prepared: &Prepared) -> io::Result<()> {
        let Prepared { transmit, payload } = prepared;
        let size = transmit.segment_size.unwrap_or(transmit.size);
        for datagram in payload.chunks(size) {
            let one = segments(transmit, datagram, datagram.len());
            self.socket.send_segments(&one).await?;
        }
        Ok(())
    }
}

/// A call that counts once in the budget, and not for each datagram. The driver asks between datagrams whether
/// other tasks are to run; asked after each call, bulk data would be acknowledged in smaller pieces.
async fn as_one_operation<T>(call: impl Future<Output = T>) -> T {
    glommio::consume_budget().await;
    glommio::unconstrained(call).await
}

impl Buffers {
    fn of_thread() -> Rc<Buffers> {
        BUFFERS.with_borrow_mut(|shared| {
            shared.upgrade().unwrap_or_else(|| {
                let buffers = Rc::new(Buffers {
                    pool: DatagramPool::new(RECEIVED, DatagramPool::MAX_BYTES),
                    spare: RefCell::default(),
                });
                *shared = Rc::downgrade(&buffers);
                buffers
            })
        })
    }
}

impl Prepared {
    fn segments(&self) -> Segments<'_> {
        let size = self.transmit.segment_size.unwrap_or(self.transmit.size);
        segments(&self.transmit, &self.payload, size)
    }
}

fn segments<'a>(transmit: &Transmit, payload: &'a [u8], size: usize) -> Segments<'a> {
    let to = transmit.destination;
    let source = transmit
        .src_ip
        .filter(|source| source.is_ipv6() == to.is_ipv6());
    let ecn = transmit.ecn.and_then(|ecn| Ecn::from_bits(ecn as u8));
    Segments::new(payload, size).to(to).ecn(ecn).source(source)
}

/// Each datagram of a buffer, copied on its own: what the protocol keeps of one, until it is read,
/// does not keep the others, and is as much as the protocol counts.
pub(crate) fn datagrams(received: ReceivedDatagrams) -> impl Iterator<Item = Datagram> {
    let (remote, ecn) = (received.from(), received.ecn());
    let ecn = ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn.bits()));
    let local_ip = received
        .destination()
        .map(|destination| destination.address);
    let mut begin = 0;
    std::iter::from_fn(move || {
        let rest = &received.bytes()[begin..];
        let payload = BytesMut::from(&rest[..rest.len().min(received.segment_size())]);
        begin += payload.len();
        (!payload.is_empty()).then_some(Datagram {
            remote,
            local_ip,
            ecn,
            payload,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glommio::LocalExecutor;
    use std::net::Ipv4Addr;

    /// Four MiB for each would be much for a client that moves, or has many endpoints.
    #[test]
    fn sockets_of_a_thread_share_their_buffers_and_the_last_drops_them() {
        LocalExecutor::default().run(async {
            let socket =
                || Socket::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().into()).unwrap();
            let (one, two) = (socket(), socket());
            assert!(Rc::ptr_eq(&one.buffers, &two.buffers));
            let buffers = Rc::downgrade(&one.buffers);
            drop((one, two));
            assert!(buffers.upgrade().is_none(), "kept without a socket");
            assert_eq!(socket().buffers.pool.available(), RECEIVED);
        });
    }

    /// The kernel joins what was sent by one call.
    #[test]
    fn a_datagram_that_is_kept_does_not_keep_the_others_of_its_train() {
        LocalExecutor::default().run(async {
            let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let to = receiver.local_addr().unwrap();
            let receiver = Socket::new(receiver.into()).unwrap();
            let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let train = Segments::new(&[7; 12_000], 1200).to(to);
            sender.send_segments(&train).await.unwrap();
            let (mut batch, mut kept) = (Vec::new(), Vec::new());
            while kept.len() < 10 {
                receiver.receive(&mut batch).await.unwrap();
                kept.extend(batch.drain(..).flat_map(datagrams));
            }
            let begins: Vec<_> = kept.iter().map(|it| it.payload.as_ptr()).collect();
            for datagram in &kept {
                assert_eq!(datagram.payload.len(), 1200);
                let end = datagram.payload.as_ptr_range().end;
                assert!(!begins.contains(&end), "two share an allocation");
            }
        });
    }
}
