//! `glommio::net::UdpSocket`.

use std::io;
use std::time::Duration;

use glommio::LocalExecutor;
use glommio::net::{DatagramPool, ReceivedDatagrams, Segments, UdpSocket};
use glommio::timer::sleep;

use crate::way::{DATAGRAM, Received, SEGMENTS, Way};

/// `recv_many`, `send_segments` and `send_many`, or a way that differs from it.
pub struct Ours<const HOW: u8 = 0> {
    socket: UdpSocket,
    pool: DatagramPool,
    received: Vec<ReceivedDatagrams>,
    bytes: Vec<u8>,
}

/// Lets datagrams wait for 50 µs at most, and takes them together.
pub const TOGETHER: u8 = 1;
/// One datagram by each call, `recv_from`, without GRO.
pub const SINGLY: u8 = 2;
/// The socket is told nothing of what it receives.
pub const UNTOLD: u8 = 3;

impl<const HOW: u8> Ours<HOW> {
    async fn receive_messages(&mut self) -> io::Result<Received> {
        let received = &mut self.received;
        self.socket.recv_many(&self.pool, received).await?;
        let mut counted = Received::default();
        for buffer in received {
            counted.count(buffer.bytes().len(), buffer.segment_size());
        }
        Ok(counted)
    }
}

impl<const HOW: u8> Way for Ours<HOW> {
    fn run<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        LocalExecutor::default().run(work)
    }

    fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let socket = UdpSocket::from(socket);
        socket.set_gro(HOW != UNTOLD && HOW != SINGLY)?;
        socket.set_receive_ecn(HOW != UNTOLD)?;
        socket.set_receive_destination(HOW != UNTOLD)?;
        socket.set_receive_timestamps(HOW != UNTOLD)?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Ours {
            socket,
            // Of the same size as the others have.
            pool: DatagramPool::new(64, DatagramPool::MAX_BYTES),
            received: Vec::new(),
            bytes: vec![7; DATAGRAM * SEGMENTS],
        })
    }

    async fn wait(&mut self) -> io::Result<()> {
        self.socket.peek_from(&mut [0; 1]).await?;
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<Received> {
        if HOW == SINGLY {
            let (length, _) = self.socket.recv_from(&mut self.bytes[..DATAGRAM]).await?;
            let mut received = Received::default();
            received.count(length, DATAGRAM);
            return Ok(received);
        }
        let received = self.receive_messages().await?;
        self.received.clear();
        if HOW == TOGETHER && !received.is_over {
            sleep(Duration::from_micros(50)).await;
        }
        Ok(received)
    }

    async fn send(&mut self) -> io::Result<()> {
        let segments = Segments::new(&self.bytes, DATAGRAM);
        self.socket.send_segments(&segments).await?;
        Ok(())
    }

    async fn answer(&mut self) -> io::Result<Received> {
        let received = self.receive_messages().await?;
        if !received.is_over {
            let answers: Vec<_> = (self.received.iter())
                .map(|it| Segments::new(it.bytes(), it.segment_size()).to(it.from()))
                .collect();
            let mut left = &answers[..];
            while !left.is_empty() {
                left = &left[self.socket.send_many(left).await?..];
            }
        }
        self.received.clear();
        Ok(received)
    }
}
