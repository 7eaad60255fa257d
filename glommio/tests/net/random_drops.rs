//! Futures given up at random, beside bytes, datagrams and connections that must all arrive, once
//! and in order.
//!
//! Each case is made of a seed, which is printed when it fails. More of them, or another first one:
//! `GLOMMIO_DROPS_CASES=1000 GLOMMIO_DROPS_SEED=7 cargo test -p glommio --test net random`.

use futures_lite::io::{ReadHalf, WriteHalf, split};
use glommio::net::Preallocated;
use socket2::{Domain, SockRef, Socket, Type};

use super::{Result, io_kind, pair, run};

mod endpoint;

pub(super) use endpoint::any_limit;
use endpoint::{Endpoint, Kind, Transfer, Waits};

use crate::common::prelude::*;

/// Runs `case` with as many seeds as wanted.
pub(super) fn for_each_seed(cases: u64, case: impl Fn(u64)) {
    /// Says which case it was.
    struct Failed(u64);
    impl Drop for Failed {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("GLOMMIO_DROPS_SEED={} GLOMMIO_DROPS_CASES=1", self.0);
            }
        }
    }
    let number = |name: &str, otherwise| {
        std::env::var(name).map_or(otherwise, |it| it.parse().expect("a number"))
    };
    let first = number("GLOMMIO_DROPS_SEED", 1);
    for seed in first..first + number("GLOMMIO_DROPS_CASES", cases) {
        let _failed = Failed(seed);
        case(seed);
    }
}

/// How a future is driven, and when it is given up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// For so many polls, with the other tasks in between.
    Polls(u64),
    /// For so many polls, with a turn of the reactor in between.
    Turns(u64),
    /// For so long.
    Time(Duration),
    /// Beside something that is ready.
    Raced,
    /// Polled before by another task, which never polls again.
    Inherited,
}

impl Patience {
    pub(super) fn any(numbers: &mut Numbers) -> Self {
        match numbers.below(10) {
            0..2 => Patience::Polls(1 + numbers.below(3)),
            2..4 => Patience::Turns(1 + numbers.below(3)),
            4..8 => Patience::Time(Duration::from_micros(numbers.below(2000))),
            8 => Patience::Raced,
            _ => Patience::Inherited,
        }
    }

    /// What comes of `future` in that time.
    pub(super) async fn drive<F: Future>(self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        match self {
            Patience::Polls(count) => {
                for _ in 0..count {
                    if let Some(output) = poll_once(&mut future).await {
                        return Some(output);
                    }
                    executor().yield_task_queue_now().await;
                }
                None
            }
            Patience::Turns(count) => {
                for _ in 0..count {
                    if let Some(output) = poll_once(&mut future).await {
                        return Some(output);
                    }
                    sleep(Duration::from_nanos(1)).await;
                }
                None
            }
            Patience::Time(time) => {
                or(async { Some(future.await) }, async {
                    sleep(time).await;
                    None
                })
                .await
            }
            Patience::Raced => or(async { Some(future.await) }, async { None }).await,
            Patience::Inherited => {
                let polled = future
                    .as_mut()
                    .poll(&mut Context::from_waker(Waker::noop()));
                if let Poll::Ready(output) = polled {
                    return Some(output);
                }
                sleep(Duration::from_nanos(1)).await;
                poll_once(future).await
            }
        }
    }
}

/// The byte at `position` of the stream that `seed` stands for.
fn byte_at(seed: u64, position: usize) -> u8 {
    let mixed = (position as u64 ^ seed << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed.to_be_bytes()[0]
}

fn bytes_at(seed: u64, start: usize, length: usize) -> Vec<u8> {
    (start..start + length)
        .map(|position| byte_at(seed, position))
        .collect()
}

/// Exchanges what `here` and `there` stand for, with or without a receive buffer.
async fn play(stream: TcpStream, seed: u64, here: Transfer, there: Transfer) -> Result {
    async fn end<B: Kind>(
        stream: TcpStream<B>,
        seed: u64,
        here: Transfer,
        there: Transfer,
    ) -> Result {
        Endpoint::new(stream, seed, here, there).exchange().await
    }
    let mut numbers = Numbers::new(seed);
    let socket = SockRef::from(&stream);
    socket.set_nonblocking(numbers.below(2) == 0)?;
    if numbers.below(2) == 0 {
        socket.set_send_buffer_size(4096 << numbers.below(4))?;
    }
    match numbers.below(4) {
        0 => end(stream, seed, here, there).await,
        1 => end(stream.buffered(), seed, here, there).await,
        _ => {
            let room = 1 + numbers.below(20) * numbers.below(700);
            let buffer = Preallocated::new(room as usize);
            end(stream.buffered_with(buffer), seed, here, there).await
        }
    }
}

#[test]
fn a_stream_brings_every_byte_once_and_in_order() {
    for_each_seed(100, |seed| {
        let mut numbers = Numbers::new(seed);
        let mut transfer = || {
            let magnitude = 1 << numbers.below(21);
            Transfer::new(seed, numbers.below(magnitude) as usize)
        };
        let (one_way, other_way) = (transfer(), transfer());
        let is_apart = numbers.below(4) == 0;
        run(async move {
            let (client, server) = pair().await?;
            let there = if is_apart {
                let server = server.into_accepted();
                let other = LocalExecutorBuilder::default().spawn(move || async move {
                    play(server.bind_to_executor(), !seed, other_way, one_way).await
                })?;
                spawn_local(async move {
                    let joined = executor().spawn_blocking(|| other.join()).await;
                    joined.expect("it ends in good order")
                })
            } else {
                spawn_local(play(server, !seed, other_way, one_way))
            };
            play(client, seed, one_way, other_way).await?;
            there.await
        });
    });
}

/// Sends what `transfer` stands for through one half of a connection, and ends that.
async fn send_all(
    mut half: WriteHalf<TcpStream>,
    mut transfer: Transfer,
    limit: Option<Duration>,
) -> Result {
    let mut numbers = Numbers::new(transfer.seed);
    let mut waits = Waits::new(limit);
    while transfer.done < transfer.length {
        let size = 1 + numbers.below(20_000) as usize;
        let bytes = transfer.next(size);
        waits.begin();
        let tried = Patience::any(&mut numbers).drive(half.write(&bytes)).await;
        match waits.end(tried) {
            Some(count) => transfer.done += count,
            None => executor().yield_task_queue_now().await,
        }
    }
    Ok(half.close().await?)
}

/// Receives what `transfer` stands for through the other half.
async fn receive_all(
    mut half: ReadHalf<TcpStream>,
    mut transfer: Transfer,
    limit: Option<Duration>,
) -> Result {
    let mut numbers = Numbers::new(!transfer.seed);
    let mut waits = Waits::new(limit);
    loop {
        let mut bytes = vec![0; 1 + numbers.below(20_000) as usize];
        waits.begin();
        let tried = Patience::any(&mut numbers)
            .drive(half.read(&mut bytes))
            .await;
        match waits.end(tried) {
            Some(0) => break,
            Some(count) => {
                assert!(transfer.is_next(&bytes[..count]));
                transfer.done += count;
            }
            None => executor().yield_task_queue_now().await,
        }
    }
    assert_eq!(transfer.done, transfer.length);
    Ok(())
}

#[test]
fn two_tasks_use_the_halves_of_a_stream_side_by_side() {
    for_each_seed(40, |seed| {
        run(async move {
            let mut numbers = Numbers::new(seed);
            let (client, server) = pair().await?;
            let there = Transfer::new(seed, numbers.below(1 << 18) as usize);
            let back = Transfer::new(!seed, numbers.below(1 << 18) as usize);
            let mut tasks = Vec::new();
            for (stream, outgoing, incoming) in [(client, there, back), (server, back, there)] {
                let (read, write) = (any_limit(&mut numbers), any_limit(&mut numbers));
                stream.set_read_timeout(read)?;
                stream.set_write_timeout(write)?;
                let (reader, writer) = split(stream);
                tasks.push(spawn_local(receive_all(reader, incoming, read)));
                tasks.push(spawn_local(send_all(writer, outgoing, write)));
            }
            for task in tasks {
                task.await?;
            }
            Ok(())
        });
    });
}

/// Datagram `number` of a case: none is like the next, and some are empty.
fn datagram(seed: u64, number: usize) -> Vec<u8> {
    let mut numbers = Numbers::new(seed ^ number as u64);
    let length = numbers.below(4) * numbers.below(300);
    bytes_at(seed, number * 1000, length as usize)
}

/// Two sockets, each the other's peer, and how many datagrams may be under way.
async fn datagram_pair(is_local: bool) -> Result<(UdpSocket, UdpSocket, usize)> {
    if is_local {
        // Their queue fills up, which makes senders wait, and nothing is lost.
        let (one, two) = Socket::pair(Domain::UNIX, Type::DGRAM, None)?;
        return Ok((UdpSocket::from(one), UdpSocket::from(two), usize::MAX));
    }
    let one = UdpSocket::bind("127.0.0.1:0")?;
    let two = UdpSocket::bind("127.0.0.1:0")?;
    one.connect(two.local_addr()?).await?;
    two.connect(one.local_addr()?).await?;
    Ok((one, two, 40))
}

/// Whether something has timed out, and not before its time; other errors end the case.
fn is_over<T>(done: Result<T>, started: Instant, limit: Option<Duration>) -> Result<Option<T>> {
    match done {
        Err(error) if io_kind(&error) == io::ErrorKind::TimedOut => {
            let limit = limit.expect("without a limit nothing lasts too long");
            assert!(started.elapsed() >= limit);
            Ok(None)
        }
        done => done.map(Some),
    }
}

#[test]
fn a_socket_brings_every_datagram_once_and_in_order() {
    const DATAGRAMS: usize = 200;
    for_each_seed(60, |seed| {
        run(async move {
            let mut numbers = Numbers::new(seed);
            let is_local = numbers.below(2) == 0;
            let (sender, receiver, room) = datagram_pair(is_local).await?;
            let under_way = Rc::new(Cell::new(0));
            let sent = Rc::clone(&under_way);
            let sending = spawn_local(async move {
                let mut numbers = Numbers::new(!seed);
                let mut number = 0;
                while number < DATAGRAMS {
                    if sent.get() >= room {
                        executor().yield_task_queue_now().await;
                        continue;
                    }
                    let limit = any_limit(&mut numbers);
                    sender.set_write_timeout(limit)?;
                    let payload = datagram(seed, number);
                    let patience = Patience::any(&mut numbers);
                    let started = Instant::now();
                    let done = if is_local || numbers.below(2) == 0 {
                        patience.drive(sender.send(&payload)).await
                    } else {
                        let address = sender.peer_addr()?;
                        patience.drive(sender.send_to(&payload, address)).await
                    };
                    let Some(done) = done else { continue };
                    if let Some(count) = is_over(done, started, limit)? {
                        assert_eq!(count, payload.len());
                        number += 1;
                        sent.set(sent.get() + 1);
                    }
                    if numbers.below(20) == 0 {
                        sleep(Duration::from_micros(numbers.below(2000))).await;
                    }
                }
                Result::Ok(sender)
            });
            for number in 0..DATAGRAMS {
                let expected = datagram(seed, number);
                loop {
                    let limit = any_limit(&mut numbers);
                    receiver.set_read_timeout(limit)?;
                    let patience = Patience::any(&mut numbers);
                    // A buffer that is too short, or empty, cuts the datagram.
                    let mut bytes = vec![0; numbers.below(1500) as usize];
                    let (is_taken, is_limited) = (numbers.below(2) == 0, numbers.below(2) == 0);
                    let started = Instant::now();
                    let done = match (is_taken, is_limited && !is_local) {
                        (true, false) => patience.drive(receiver.recv(&mut bytes)).await,
                        (true, true) => {
                            let received = receiver.recv_from(&mut bytes);
                            count_of(patience.drive(received).await)
                        }
                        (false, false) => patience.drive(receiver.peek(&mut bytes)).await,
                        (false, true) => {
                            let peeked = receiver.peek_from(&mut bytes);
                            count_of(patience.drive(peeked).await)
                        }
                    };
                    let Some(done) = done else { continue };
                    let Some(count) = is_over(done, started, limit)? else {
                        continue;
                    };
                    assert_eq!(count, expected.len().min(bytes.len()));
                    assert!(expected.starts_with(&bytes[..count]), "of {number}");
                    if is_taken {
                        break;
                    }
                }
                under_way.set(under_way.get() - 1);
            }
            let sender = sending.await?;
            receiver.set_read_timeout(None)?;
            super::abandon(receiver.recv(&mut [0; 8])).await;
            drop(sender);
            Ok(())
        });
    });
}

type Received<T> = Option<Result<T>>;

fn count_of<A>(received: Received<(usize, A)>) -> Received<usize> {
    received.map(|received| received.map(|(count, _)| count))
}

/// A client that tries until a connect is done in the time it gives it, sends its number, and waits
/// for it to come back.
async fn connect_somehow(address: std::net::SocketAddr, number: u32) -> Result {
    let mut numbers = Numbers::new(u64::from(number));
    let mut client = loop {
        let patience = Patience::any(&mut numbers);
        let limit = Duration::from_micros(1 + numbers.below(5000));
        let started = Instant::now();
        let connected = if numbers.below(2) == 0 {
            patience.drive(TcpStream::connect(address)).await
        } else {
            patience
                .drive(TcpStream::connect_timeout(address, limit))
                .await
        };
        if let Some(connected) = connected
            && let Some(client) = is_over(connected, started, Some(limit))?
        {
            break client;
        }
        sleep(Duration::from_micros(numbers.below(500))).await;
    };
    client.write_all(&number.to_be_bytes()).await?;
    let mut answer = [0; 4];
    client.read_exact(&mut answer).await?;
    assert_eq!(u32::from_be_bytes(answer), number);
    Ok(())
}

/// What a connection says it is. Those whose clients gave up end without a word: a client that is
/// gone and whose connection stays would never end.
async fn number_of(mut server: TcpStream) -> Result<Option<u32>> {
    let mut bytes = [0; 4];
    match server.read_exact(&mut bytes).await {
        Ok(()) => {
            server.write_all(&bytes).await?;
            Ok(Some(u32::from_be_bytes(bytes)))
        }
        Err(error) => {
            let kind = error.kind();
            assert!(
                matches!(
                    kind,
                    io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
                ),
                "{error}"
            );
            Ok(None)
        }
    }
}

/// Accepts until `is_done`, giving up all the time.
async fn accept_somehow(
    listener: &TcpListener,
    seed: u64,
    is_done: impl Fn() -> bool,
    mut accepted: impl FnMut(TcpStream),
) -> Result {
    let mut numbers = Numbers::new(seed);
    let mut incoming = listener.incoming();
    while !is_done() {
        let patience = Patience::any(&mut numbers);
        let stream = match numbers.below(5) {
            0 => patience.drive(listener.accept()).await,
            1 => {
                let shared = patience.drive(listener.shared_accept()).await;
                shared.map(|shared| shared.map(|shared| shared.bind_to_executor()))
            }
            2 => {
                let polled = poll_fn(|cx| listener.poll_accept(cx));
                patience.drive(polled).await
            }
            3 => patience.drive(incoming.next()).await.flatten(),
            _ => {
                // Its place in line goes with it.
                incoming = listener.incoming();
                None
            }
        };
        match stream {
            Some(stream) => accepted(stream?),
            None => executor().yield_task_queue_now().await,
        }
    }
    Ok(())
}

#[test]
fn a_listener_brings_every_connection_once() {
    const CLIENTS: u32 = 40;
    for_each_seed(150, |seed| {
        run(async move {
            let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
            SockRef::from(&*listener).set_nonblocking(seed % 2 == 0)?;
            let address = listener.local_addr()?;
            let served = Rc::new(RefCell::new(BTreeSet::new()));
            let handlers = Rc::new(RefCell::new(Vec::new()));
            let acceptors: Vec<_> = (0..3)
                .map(|acceptor| {
                    let listener = Rc::clone(&listener);
                    let served = Rc::clone(&served);
                    let handlers = Rc::clone(&handlers);
                    spawn_local(async move {
                        let is_done = || served.borrow().len() == CLIENTS as usize;
                        let accepted = |stream| {
                            let served = Rc::clone(&served);
                            handlers.borrow_mut().push(spawn_local(async move {
                                if let Some(number) = number_of(stream).await? {
                                    assert!(served.borrow_mut().insert(number), "{number} twice");
                                }
                                Result::Ok(())
                            }));
                        };
                        accept_somehow(&listener, seed * 3 + acceptor, is_done, accepted).await
                    })
                })
                .collect();
            let first = seed as u32 * 1000;
            let clients: Vec<_> = (first..first + CLIENTS)
                .map(|number| spawn_local(connect_somehow(address, number)))
                .collect();
            for task in clients.into_iter().chain(acceptors) {
                task.await?;
            }
            for handler in handlers.take() {
                handler.await?;
            }
            assert!(served.take().into_iter().eq(first..first + CLIENTS));
            Ok(())
        });
    });
}
