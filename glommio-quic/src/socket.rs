//! The UDP socket of an endpoint.

use bytes::BytesMut;
use glommio::net::UdpSocket;
use quinn_proto::{ConnectError, EcnCodepoint, Transmit};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::Poll;

/// A datagram that was received.
pub(crate) struct Datagram {
    pub(crate) remote: SocketAddr,
    /// The address that it was sent to, if known.
    pub(crate) local_ip: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) payload: BytesMut,
}

pub(crate) struct Socket {
    socket: UdpSocket,
    is_ipv6: bool,
    buffer: RefCell<Vec<u8>>,
}

/// Datagrams that are received in one go.
const BATCH: usize = 32;
const LARGEST: usize = 65_535;

impl Socket {
    pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Socket> {
        let is_ipv6 = socket.local_addr()?.is_ipv6();
        Ok(Socket {
            socket: socket.into(),
            is_ipv6,
            buffer: RefCell::new(vec![0; LARGEST]),
        })
    }

    /// Whether what is too long for the path is dropped and not cut, as the discovery of the
    /// longest datagram demands.
    pub(crate) fn never_fragments(&self) -> bool {
        false
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

    /// How many datagrams of one size may be sent by one call.
    pub(crate) fn max_segments(&self) -> usize {
        1
    }

    /// Waits for a datagram and takes all that there are, up to a limit, into `batch`.
    ///
    /// None is lost when it is dropped.
    pub(crate) async fn receive(&self, batch: &mut Vec<Datagram>) -> io::Result<()> {
        poll_fn(|cx| {
            let mut buffer = self.buffer.borrow_mut();
            while batch.len() < BATCH {
                let received = pin!(self.socket.recv_from(&mut buffer)).poll(cx);
                match received {
                    Poll::Ready(Ok((length, remote))) => batch.push(Datagram {
                        remote,
                        local_ip: None,
                        ecn: None,
                        payload: BytesMut::from(&buffer[..length]),
                    }),
                    Poll::Ready(Err(error)) if batch.is_empty() => {
                        return Poll::Ready(Err(error.into()));
                    }
                    Poll::Pending if batch.is_empty() => return Poll::Pending,
                    Poll::Ready(Err(_)) | Poll::Pending => break,
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Sends what `transmit` describes.
    pub(crate) async fn send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
        for segment in payload[..transmit.size].chunks(size) {
            self.socket.send_to(segment, transmit.destination).await?;
        }
        Ok(())
    }
}
