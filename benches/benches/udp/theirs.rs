//! tokio, with quinn-udp on its sockets, as quinn uses them.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::way::{DATAGRAM, Received, SEGMENTS, Way};

pub struct Theirs {
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    state: UdpSocketState,
    buffers: Vec<Vec<u8>>,
    metas: [RecvMeta; BATCH_SIZE],
}

impl Theirs {
    async fn receive_messages(&mut self) -> io::Result<usize> {
        loop {
            self.socket.readable().await?;
            let mut slices = self.buffers.iter_mut();
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(slices.next().expect("as many")));
            let received = self.socket.try_io(Interest::READABLE, || {
                let socket = (&self.socket).into();
                self.state.recv(socket, &mut slices, &mut self.metas)
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
        }
    }

    async fn transmit(
        &self,
        destination: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size,
            src_ip: None,
        };
        loop {
            self.socket.writable().await?;
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                self.state.try_send((&self.socket).into(), &transmit)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent,
            }
        }
    }
}

impl Way for Theirs {
    fn run<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_io().build()?.block_on(work)
    }

    fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        socket.set_nonblocking(true)?;
        Ok(Theirs {
            peer: socket.peer_addr().ok(),
            socket: UdpSocket::from_std(socket)?,
            state,
            buffers: vec![vec![7; 65_535]; BATCH_SIZE],
            metas: std::array::from_fn(|_| RecvMeta::default()),
        })
    }

    async fn wait(&mut self) -> io::Result<()> {
        self.socket.peek_from(&mut [0; 1]).await?;
        Ok(())
    }

    async fn receive(&mut self) -> io::Result<Received> {
        let messages = self.receive_messages().await?;
        let mut received = Received::default();
        for meta in &self.metas[..messages] {
            received.count(meta.len, meta.stride);
        }
        Ok(received)
    }

    async fn send(&mut self) -> io::Result<()> {
        let contents = &self.buffers[0][..DATAGRAM * SEGMENTS];
        let to = self.peer.ok_or(io::ErrorKind::NotConnected)?;
        self.transmit(to, contents, Some(DATAGRAM)).await
    }

    async fn answer(&mut self) -> io::Result<Received> {
        let messages = self.receive_messages().await?;
        let mut received = Received::default();
        for (meta, buffer) in self.metas[..messages].iter().zip(&self.buffers) {
            received.count(meta.len, meta.stride);
            if received.is_over {
                break;
            }
            for question in buffer[..meta.len].chunks(meta.stride) {
                self.transmit(meta.addr, question, None).await?;
            }
        }
        Ok(received)
    }
}
