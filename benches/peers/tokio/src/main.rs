//! tokio with its local runtime: one thread, epoll, timers of 1 ms.

mod channels;
mod files;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net;
use tokio::runtime::{LocalOptions, LocalRuntime};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};
use workloads::cases::{actions, common, cooperative, locks, network, notices};
use workloads::{Actions, Cooperative, Joined, Network, Runtime, Stream, wake_self, within};

fn main() {
    workloads::main(&[
        &common::<Tokio>(),
        &cooperative::<Tokio>(),
        &network::<Tokio>(),
        &actions::<Tokio>(),
        &workloads::cases::channels::<Tokio>(),
        &locks::<Tokio>(),
        &notices::<Tokio>(),
        &workloads::cases::files::<Tokio>(),
        &workloads::cases::lanes::<Tokio>(),
        &workloads::cases::listing::<Tokio>(),
    ]);
}

struct Tokio;

const LOOPBACK: &str = "127.0.0.1:0";

fn runtime() -> LocalRuntime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .expect("the kernel has epoll")
}

impl Runtime for Tokio {
    type Task<T: 'static> = Joined<JoinHandle<T>>;
    type Timer = Sleep;

    fn run<F: Future + 'static>(future: F) -> F::Output
    where
        F::Output: 'static,
    {
        // Spawned, as glommio's `run` does: the future of `block_on` itself is woken in another way than a task.
        runtime().block_on(async {
            tokio::task::spawn_local(future)
                .await
                .expect("workloads do not panic")
        })
    }

    fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Self::Task<T> {
        Joined(tokio::task::spawn_local(future))
    }

    fn spawn_detached(future: impl Future<Output = ()> + 'static) {
        tokio::task::spawn_local(future);
    }

    async fn yield_now() {
        wake_self().await;
    }

    fn timer(delay: Duration) -> Self::Timer {
        tokio::time::sleep(delay)
    }

    async fn timeout<T>(limit: Duration, future: impl Future<Output = T>) -> T {
        tokio::time::timeout(limit, future)
            .await
            .expect("workloads stay within their limits")
    }
}

impl Network for Tokio {
    type Listener = TcpListener;
    type Stream = TcpStream;
    type Datagram = UdpSocket;

    fn listen() -> Self::Listener {
        let listener = std::net::TcpListener::bind(LOOPBACK).expect("loopback is up");
        listener
            .set_nonblocking(true)
            .expect("sockets have the option");
        TcpListener(net::TcpListener::from_std(listener).expect("epoll takes sockets"))
    }

    async fn connect(address: SocketAddr, buffer_bytes: usize) -> Self::Stream {
        TcpStream::new(
            net::TcpStream::connect(address)
                .await
                .expect("the peer listens"),
            buffer_bytes,
        )
    }

    fn bind_datagram(buffer_bytes: usize) -> Self::Datagram {
        let socket = std::net::UdpSocket::bind(LOOPBACK).expect("loopback is up");
        socket
            .set_nonblocking(true)
            .expect("sockets have the option");
        let socket = net::UdpSocket::from_std(socket).expect("epoll takes sockets");
        UdpSocket {
            socket,
            buffer: vec![7; buffer_bytes],
        }
    }
}

/// tokio's own yield puts the task behind the next turn of the driver, so it stands where glommio's
/// `yield_task_queue_now` does; `yield_now` is the self-wake of the trait.
impl Cooperative for Tokio {
    async fn yield_queue() {
        tokio::task::yield_now().await;
    }

    async fn yield_if_needed() {
        tokio::task::coop::consume_budget().await;
    }
}

/// What a user of tokio would write for `TimerActionOnce`: a task that sleeps, its sleep within reach.
struct TimerAction {
    task: JoinHandle<()>,
    sleep: Rc<RefCell<Pin<Box<Sleep>>>>,
}

impl Actions for Tokio {
    type Action = TimerAction;

    fn action(delay: Duration) -> TimerAction {
        let sleep = Rc::new(RefCell::new(Box::pin(tokio::time::sleep(delay))));
        let shared = sleep.clone();
        let task = tokio::task::spawn_local(async move {
            poll_fn(|context| shared.borrow_mut().as_mut().poll(context)).await;
        });
        TimerAction { task, sleep }
    }

    async fn cancel(action: TimerAction) {
        action.task.abort();
        let _cancelled = action.task.await;
    }

    fn destroy(action: TimerAction) {
        action.task.abort();
    }

    fn rearm_in(action: &TimerAction, delay: Duration) {
        let mut sleep = action.sleep.borrow_mut();
        sleep.as_mut().reset(Instant::now() + delay);
    }
}

workloads::sockets!(net::TcpListener, net::TcpStream, net::UdpSocket, (socket, _) => socket);
workloads::datagrams!(UdpSocket);

impl Stream for TcpStream {
    fn set_read_timeout(&mut self, limit: Duration) {
        self.read_timeout = Some(limit);
    }

    async fn send(&mut self, bytes: usize) -> bool {
        self.socket.write_all(&self.buffer[..bytes]).await.is_ok()
    }

    async fn receive(&mut self, bytes: usize) -> bool {
        let read = self.socket.read_exact(&mut self.buffer[..bytes]);
        within::<Tokio, _>(self.read_timeout, read).await.is_ok()
    }

    async fn receive_some(&mut self) -> usize {
        let read = self.socket.read(&mut self.buffer);
        within::<Tokio, _>(self.read_timeout, read)
            .await
            .unwrap_or(0)
    }
}
