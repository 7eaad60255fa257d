//! The sockets of every crate with glommio's API.

use std::net::SocketAddr;
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use workloads::{Network, Stream};

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

workloads::sockets!(rt::net::TcpListener, rt::net::TcpStream, rt::net::UdpSocket, socket => socket);
workloads::datagrams!(UdpSocket);

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
