//! Streams, datagrams and channels whose tasks never pause.

use glommio::channels::local_channel;
use glommio::channels::oneshot::{SharedReceiver as Meeting, SharedSender as Meet};
use glommio::channels::shared_channel::{SharedReceiver, SharedSender};
use glommio::consume_budget;
use glommio::net::UdpSocket;

use super::turns::{Sizes, Turns};
use crate::workload::prelude::*;

/// Where the sink listens.
#[derive(Debug)]
pub(super) struct Addresses {
    stream: SocketAddr,
    datagrams: SocketAddr,
}

/// The side that sends: round after round, until the run drains.
pub(super) async fn send(
    turns: Rc<Turns>,
    sizes: Sizes,
    address: IpAddr,
    sink: Meeting<Addresses>,
    sender: SharedSender<u64>,
) -> io::Result<()> {
    let sender = sender.connect().await;
    let addresses = sink.await.map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(addresses.stream).await?;
    let socket = UdpSocket::bind((address, 0))?;
    socket.connect(addresses.datagrams).await?;
    let (mut pieces, mut datagrams, mut messages) = (0_u64, 0_u64, 0_u64);
    while !turns.checker.control.is_draining() {
        let streaming = repeat(&turns, sizes.reads, async || {
            stream.write_all(&[pieces as u8; PIECE]).await?;
            pieces += 1;
            Ok(())
        });
        let datagrams = repeat(&turns, sizes.datagrams, async || {
            let mut datagram = [0; DATAGRAM];
            datagram[..8].copy_from_slice(&datagrams.to_le_bytes());
            socket.send(&datagram).await?;
            datagrams += 1;
            Ok(())
        });
        let messages = repeat(&turns, sizes.messages, async || {
            sender.send(messages).await.map_err(io::Error::other)?;
            messages += 1;
            Ok(())
        });
        let (first, (second, third)) = zip(streaming, zip(datagrams, messages)).await;
        first.and(second).and(third)?;
        sleep(sizes.every).await;
    }
    // Datagrams may be lost, also the last one: that it is the end, the stream says.
    stream.close().await
}

/// Does `one` so often, without a pause.
async fn repeat(
    turns: &Turns,
    count: usize,
    mut one: impl AsyncFnMut() -> io::Result<()>,
) -> io::Result<()> {
    for _ in 0..count {
        one().await?;
        turns.operation();
    }
    Ok(())
}

/// The side that receives, with a channel and a leaf of its own.
pub(super) struct Sink {
    turns: Rc<Turns>,
    sizes: Sizes,
    is_over: Cell<bool>,
}

impl Sink {
    pub(super) fn new(turns: Rc<Turns>, sizes: Sizes) -> Rc<Self> {
        Rc::new(Sink {
            turns,
            sizes,
            is_over: Cell::new(false),
        })
    }

    /// Until the source has ended.
    pub(super) async fn run(
        self: Rc<Self>,
        address: IpAddr,
        source: Meet<Addresses>,
        receiver: SharedReceiver<u64>,
    ) -> io::Result<()> {
        let listener = TcpListener::bind((address, 0))?;
        let socket = UdpSocket::bind((address, 0))?;
        let addresses = Addresses {
            stream: listener.local_addr()?,
            datagrams: socket.local_addr()?,
        };
        source.send(addresses).map_err(io::Error::other)?;
        // Each in a task of its own: what one does in a poll is to be its own doing.
        let sink = Rc::clone(&self);
        let messages = self.spawn(async move {
            let receiver = receiver.connect().await;
            let mut next = 0;
            while let Some(message) = receiver.recv().await {
                sink.count("message", message == next, message);
                next = message + 1;
            }
        });
        let sink = Rc::clone(&self);
        let datagrams = self.spawn(async move { sink.datagrams(socket).await });
        let sink = Rc::clone(&self);
        let local = self.spawn(async move { sink.local().await });
        let stream = listener.accept().await?;
        let streamed = self.stream(stream).await;
        self.is_over.set(true);
        messages.await;
        local.await;
        datagrams.cancel().await;
        streamed
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) -> Task<()> {
        spawn_local(Rc::clone(&self.turns).judge(Invariant::Turns, task))
    }

    async fn stream(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut bytes = [0; PIECE];
        let mut received = 0;
        loop {
            let count = stream.read(&mut bytes).await?;
            if count == 0 {
                return Ok(());
            }
            let last = received + count - 1;
            let expected = [received, last].map(|at| (at / PIECE) as u8);
            let found = [bytes[0], bytes[count - 1]];
            self.count("byte", found == expected, received as u64);
            received += count;
        }
    }

    /// Some may be lost.
    async fn datagrams(&self, socket: UdpSocket) {
        let mut next = 0;
        let mut bytes = [0; DATAGRAM];
        while let Ok((DATAGRAM, _)) = socket.recv_from(&mut bytes).await {
            let (number, _) = bytes.split_first_chunk().expect("it is longer");
            let number = u64::from_le_bytes(*number);
            self.count("datagram", number >= next, number);
            next = number + 1;
        }
        self.count("datagram", false, next);
    }

    /// Round after round, one of which is enough to hold the executor for tens of milliseconds.
    async fn local(&self) {
        while !self.is_over.get() && !self.turns.checker.control.is_draining() {
            // They take no memory: whether that comes back is judged at the same time, for the whole
            // process.
            let (sender, receiver) = local_channel::new_unbounded::<()>();
            let producing = async move {
                for number in 0..self.sizes.local {
                    if self.turns.checker.control.is_draining() {
                        break;
                    }
                    let sent = sender.send(()).await;
                    self.count("local message", sent.is_ok(), number as u64);
                }
            };
            let consuming = async {
                let mut count = 0;
                while let Some(()) = receiver.recv().await {
                    count += 1;
                    self.count("local message", count <= self.sizes.local as u64, count);
                }
            };
            zip(producing, consuming).await;
            for _ in 0..self.sizes.local {
                if self.turns.checker.control.is_draining() {
                    break;
                }
                consume_budget().await;
                self.turns.operation();
            }
            let over = async {
                while !self.is_over.get() {
                    sleep(LOOK_EVERY).await;
                }
            };
            or(over, async {
                sleep(self.sizes.every * 3).await;
            })
            .await;
        }
    }

    /// One more, which is the right one or not.
    fn count(&self, what: &str, is_right: bool, number: u64) {
        self.turns.operation();
        self.turns
            .checker
            .holds(Invariant::Deliveries, is_right, || {
                format!("{what} {number} of a flood is wrong")
            });
    }
}

/// Small, so that many of them are there at once.
const PIECE: usize = 512;
const DATAGRAM: usize = 64;
const LOOK_EVERY: Duration = Duration::from_millis(20);
