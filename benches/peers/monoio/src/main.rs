//! monoio 0.2 on io_uring: one thread, owned buffers, timers of 1 ms.
//!
//! It has no yield of its own and no way to cancel a task from outside, so it runs the common cases and those with sockets.

mod files;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use monoio::io::{AsyncReadRent, AsyncReadRentExt, AsyncWriteRentExt};
use monoio::net;
use monoio::task::JoinHandle;
use monoio::time::Sleep;
use workloads::cases::{common, network};
use workloads::{Datagram, Network, Runtime, Stream, within};

fn main() {
    workloads::main(&[
        &common::<Monoio>(),
        &network::<Monoio>(),
        &workloads::cases::files::<Monoio>(),
        &workloads::cases::lanes::<Monoio>(),
    ]);
}

struct Monoio;

const LOOPBACK: &str = "127.0.0.1:0";

impl Runtime for Monoio {
    type Task<T: 'static> = JoinHandle<T>;
    type Timer = Sleep;

    fn run<F: Future + 'static>(future: F) -> F::Output
    where
        F::Output: 'static,
    {
        // Spawned, as glommio's `run` does: the future of `block_on` itself is woken in another way than a task.
        monoio::RuntimeBuilder::<monoio::IoUringDriver>::new()
            .enable_timer()
            .build()
            .expect("the kernel has io_uring and lets us use it")
            .block_on(async { monoio::spawn(future).await })
    }

    fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Self::Task<T> {
        monoio::spawn(future)
    }

    fn spawn_detached(future: impl Future<Output = ()> + 'static) {
        drop(monoio::spawn(future));
    }

    async fn yield_now() {
        // A task that wakes itself goes to the front of the line and starves the others. The line is let by if
        // one waits for a task at its end.
        monoio::spawn(async {}).await;
    }

    fn timer(delay: Duration) -> Self::Timer {
        monoio::time::sleep(delay)
    }

    async fn timeout<T>(limit: Duration, future: impl Future<Output = T>) -> T {
        monoio::time::timeout(limit, future)
            .await
            .expect("workloads stay within their limits")
    }
}

impl Network for Monoio {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagram = UdpSocket;

    fn listen() -> Self::Listener {
        TcpListener(net::TcpListener::bind(LOOPBACK).expect("loopback is up"))
    }

    async fn connect(address: SocketAddr, buffer_bytes: usize) -> Self::Stream {
        TcpStream::new(
            net::TcpStream::connect_addr(address)
                .await
                .expect("the peer listens"),
            buffer_bytes,
        )
    }

    fn bind_datagram(buffer_bytes: usize) -> Self::Datagram {
        let socket = net::udp::UdpSocket::bind(LOOPBACK).expect("loopback is up");
        UdpSocket {
            socket,
            buffer: vec![7; buffer_bytes],
        }
    }
}

// Each has its buffer, which travels into each operation and back.
workloads::sockets!(net::TcpListener, net::TcpStream, net::udp::UdpSocket, (socket, _) => socket);

impl Stream for TcpStream {
    fn set_read_timeout(&mut self, limit: Duration) {
        self.read_timeout = Some(limit);
    }

    async fn send(&mut self, bytes: usize) -> bool {
        // The length of the vector says how much is sent: no workload sends less than it received or has.
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(bytes, 7);
        let (result, buffer) = self.socket.write_all(buffer).await;
        self.buffer = buffer;
        result.is_ok()
    }

    async fn receive(&mut self, bytes: usize) -> bool {
        // `read_exact` fills the spare capacity, which is the whole buffer once it is cleared.
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        assert_eq!(
            buffer.capacity(),
            bytes,
            "workloads receive as much as the buffer holds"
        );
        let read = self.socket.read_exact(buffer);
        let (result, buffer) = within::<Monoio, _>(self.read_timeout, read).await;
        self.buffer = buffer;
        result.is_ok()
    }

    async fn receive_some(&mut self) -> usize {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let (result, buffer) =
            within::<Monoio, _>(self.read_timeout, self.socket.read(buffer)).await;
        self.buffer = buffer;
        result.unwrap_or(0)
    }
}

impl Datagram for UdpSocket {
    fn address(&self) -> SocketAddr {
        self.socket
            .local_addr()
            .expect("a bound socket has an address")
    }

    async fn connect(&mut self, peer: SocketAddr) {
        self.socket.connect(peer).await.expect("loopback is up");
    }

    async fn send(&mut self, bytes: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(bytes, 7);
        let (result, buffer) = self.socket.send(buffer).await;
        self.buffer = buffer;
        result.expect("loopback is up");
    }

    async fn receive(&mut self) -> usize {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let (result, buffer) = self.socket.recv(buffer).await;
        self.buffer = buffer;
        result.expect("the peer is bound")
    }

    async fn send_to(&mut self, bytes: usize, peer: SocketAddr) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(bytes, 7);
        let (result, buffer) = self.socket.send_to(buffer, peer).await;
        self.buffer = buffer;
        result.expect("loopback is up");
    }

    async fn receive_from(&mut self) -> (usize, SocketAddr) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let (result, buffer) = self.socket.recv_from(buffer).await;
        self.buffer = buffer;
        result.expect("the socket is bound")
    }
}
