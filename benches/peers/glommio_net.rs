//! The sockets of every crate with glommio's API.

use std::net::SocketAddr;
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use workloads::{Listener, Network, Stream};

use super::adapter::Glommio;
use crate::rt;

const LOOPBACK: &str = "127.0.0.1:0";

impl Network for Glommio {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagram = UdpSocket;

    fn listen() -> Self::Listener {
        TcpListener(rt::net::TcpListener::bind(LOOPBACK).expect("loopback is up"))
    }

    async fn connect(address: SocketAddr, buffer_bytes: usize) -> Self::Stream {
        TcpStream::new(
            rt::net::TcpStream::connect(address)
                .await
                .expect("the peer listens"),
            buffer_bytes,
        )
    }

    fn bind_datagram(buffer_bytes: usize) -> Self::Datagram {
        let socket = rt::net::UdpSocket::bind(LOOPBACK).expect("loopback is up");
        UdpSocket {
            socket,
            buffer: vec![7; buffer_bytes],
        }
    }
}

/// A listener, wrapped for want of a local type.
pub struct TcpListener(rt::net::TcpListener);

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a bound socket has an address")
    }

    async fn accept(&self, buffer_bytes: usize) -> TcpStream {
        TcpStream::new(
            self.0.accept().await.expect("a client connects"),
            buffer_bytes,
        )
    }
}

/// A connection and its buffer.
pub struct TcpStream {
    socket: rt::net::TcpStream,
    buffer: Vec<u8>,
}

impl TcpStream {
    fn new(socket: rt::net::TcpStream, buffer_bytes: usize) -> Self {
        socket.set_nodelay(true).expect("TCP has the option");
        Self {
            socket,
            buffer: vec![7; buffer_bytes],
        }
    }
}

impl Stream for TcpStream {
    fn set_read_timeout(&mut self, limit: Duration) {
        self.socket
            .set_read_timeout(Some(limit))
            .expect("the limit is not zero");
    }

    async fn send(&mut self, bytes: usize) -> bool {
        self.socket.write_all(&self.buffer[..bytes]).await.is_ok()
    }

    async fn receive(&mut self, bytes: usize) -> bool {
        self.socket
            .read_exact(&mut self.buffer[..bytes])
            .await
            .is_ok()
    }

    async fn receive_some(&mut self) -> usize {
        self.socket.read(&mut self.buffer).await.unwrap_or(0)
    }
}

/// A UDP socket and its buffer.
pub struct UdpSocket {
    socket: rt::net::UdpSocket,
    buffer: Vec<u8>,
}

workloads::datagrams!(UdpSocket);
