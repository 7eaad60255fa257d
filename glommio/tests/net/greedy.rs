//! Sockets that are always ready: a task that uses one gives the thread back all the same, and
//! loses nothing by it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream as StdUnix;

use futures_lite::AsyncRead;
use futures_lite::io::{copy, split};
use glommio::consume_budget;

use super::unix_listener::Place;
use super::{AGES, Result, aged_pair, run};
use crate::common::prelude::*;

/// As [`run`], ended by a watchdog: a time limit would be among what does not get its turn.
fn run_watched(test: impl AsyncFnOnce() -> Result) {
    with_watchdog(|| run(test()));
}

/// Does an operation that succeeds at once again and again, with its number.
async fn returns_to_the_executor(name: &str, mut succeed: impl AsyncFnMut(u8)) {
    let (done, is_enough) = (Cell::new(0_u64), Cell::new(false));
    let mut loops = pin!(async {
        while !is_enough.get() {
            succeed(done.get() as u8).await;
            done.update(|it| it + 1);
        }
        Result::Ok(())
    });

    let latency = Latency::Matters(Duration::from_millis(1));
    let queue = executor().create_task_queue(Shares::default(), latency, "timers");
    let timers = spawn_local_into(
        async {
            for _ in 0..3 {
                sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        },
        queue,
    );
    let timers = timers.expect("the queue exists");
    or(loops.as_mut(), timers).await.expect("the timers go on");
    assert!(done.get() > 0, "{name}: it was to succeed at once");

    let (before, mut polls) = (done.get(), 0);
    let counted = poll_fn(|cx| {
        polls += 1;
        loops.as_mut().poll(cx)
    });
    let limited = glommio::future::timeout(Duration::from_millis(5), counted).await;
    assert!(limited.is_err(), "{name}: it is endless");
    assert!(done.get() > before, "{name}: it goes on");
    assert!(polls > 1, "{name}: never polled again");
    is_enough.set(true);
    loops.await.expect("it has no errors");
}

/// `fill_buf` of combinators asks twice in one poll, and panics if it is refused in between.
#[run_test(run_watched)]
async fn what_fill_buf_has_shown_is_shown_again() {
    let (stream, mut peer) = StdUnix::pair()?;
    let mut stream = UnixStream::from(stream).buffered();
    let mut received = 0;
    returns_to_the_executor("a buffer", async |_| {
        if received % 64 == 0 {
            peer.write_all(&[7; 64]).expect("the connection stands");
        }
        assert_eq!(stream.fill_buf().await.expect("it was sent")[0], 7);
        stream.consume(1);
        received += 1;
    })
    .await;
    stream.consume(64);
    drop(peer);
    returns_to_the_executor("the end", async |_| {
        assert!(stream.fill_buf().await.expect("it ends").is_empty());
        stream.consume(0);
    })
    .await;
}

/// As long as it lives, no slice is longer than a millisecond.
fn short_slices() -> Task<()> {
    spawn_local(async {
        loop {
            sleep(Duration::from_millis(1)).await;
        }
    })
}

/// Uses up what this poll of the task may still do.
fn exhaust_budget(cx: &mut Context<'_>) {
    spin_until_preempted();
    while pin!(consume_budget()).poll(cx).is_ready() {}
}

/// Polls `future` once, in a poll of the task in which nothing more may be done.
async fn refused<F: Future>(mut future: Pin<&mut F>) {
    poll_fn(|cx| {
        exhaust_budget(cx);
        let polled = future.as_mut().poll(cx);
        assert!(polled.is_pending(), "it was to be refused");
        Poll::Ready(())
    })
    .await;
}

/// Accepts that find a connection: the kernel has accepted many in one turn.
async fn accepts(name: &str, connect: impl Fn() -> io::Result<()>, accept: impl AsyncFn()) {
    const MANY: usize = 100;
    for _ in 0..MANY {
        connect().expect("it listens, with a long backlog");
    }
    let (in_this_poll, most) = (Cell::new(0), Cell::new(0));
    let mut accept_all = pin!(async {
        for _ in 0..MANY {
            accept().await;
            in_this_poll.update(|it| it + 1);
            most.set(in_this_poll.get().max(most.get()));
            spin_until_preempted();
        }
    });
    poll_fn(|cx| {
        in_this_poll.set(0);
        accept_all.as_mut().poll(cx)
    })
    .await;
    assert!(most.get() <= 32, "{name}: {} in one poll", most.get());
}

#[run_test]
fn connections_that_are_there_do_not_keep_the_thread() {
    // Each accept lasts a slice.
    let accepts_all = async {
        let clients = RefCell::new(Vec::new());
        let (listener, address) = bound()?;
        let connect = || {
            let client = std::net::TcpStream::connect(address)?;
            clients.borrow_mut().push(OwnedFd::from(client));
            Ok(())
        };
        accepts("accept", connect, async || {
            listener.accept().await.expect("a client has connected");
        })
        .await;
        accepts("poll_accept", connect, async || {
            let accepted = poll_fn(|cx| listener.poll_accept(cx)).await;
            accepted.expect("a client has connected");
        })
        .await;
        let incoming = RefCell::new(listener.incoming());
        accepts("incoming", connect, async || {
            let next = poll_fn(|cx| incoming.borrow_mut().poll_next(cx)).await;
            let next = next.expect("there is always a next one");
            next.expect("a client has connected");
        })
        .await;

        let place = Place::new();
        let listener = UnixListener::bind(place.path())?;
        let connect = || {
            let client = StdUnix::connect(place.path())?;
            clients.borrow_mut().push(OwnedFd::from(client));
            Ok(())
        };
        accepts("Unix", connect, async || {
            listener.accept().await.expect("a client has connected");
        })
        .await;
        Ok(())
    };
    let result: Result = with_slices_of(Duration::from_millis(1)).run(accepts_all);
    result.expect("it ends in good order");
}

/// An accept that is woken for a connection and refused: it is still the first in line, and passes
/// the connection on if it is dropped.
#[run_test(run_watched)]
async fn an_accept_that_is_refused_keeps_its_connection() {
    let (listener, address) = bound()?;
    for is_dropped in [false, true] {
        let mut first = Box::pin(listener.accept());
        let mut second = Box::pin(listener.accept());
        assert!(poll_once(&mut first).await.is_none());
        assert!(poll_once(&mut second).await.is_none());
        let client = std::net::TcpStream::connect(address)?;
        // Until it is accepted; the wakes of this task are for whichever of the two.
        sleep(Duration::from_millis(2)).await;
        refused(first.as_mut()).await;
        let accepted = if is_dropped {
            drop(first);
            second.await?
        } else {
            first.await?
        };
        assert_eq!(accepted.peer_addr()?, client.local_addr()?);
    }
}

/// A read beside a task that is refused in each poll has its time, whole and no more: being refused
/// as well neither begins it anew nor ends it.
#[run_test(run_watched)]
async fn a_read_that_is_refused_again_and_again_times_out() {
    const LIMIT: Duration = Duration::from_millis(20);
    let _slices = short_slices();
    for age in AGES {
        let (mut stream, _peer) = aged_pair(age).await?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut refusals = 0;
        // The machine may stand still for as long as the limit.
        for _ in 0..100 {
            executor().yield_now().await;
            let began = Instant::now();
            let mut byte = [0];
            let mut read = stream.read(&mut byte);
            assert!(poll_once(&mut read).await.is_none());
            refusals = 0;
            let ended = poll_fn(|cx| {
                exhaust_budget(cx);
                refusals += 1;
                Pin::new(&mut read).poll(cx)
            })
            .await;
            assert_eq!(
                ended.expect_err("nothing is sent").kind(),
                io::ErrorKind::TimedOut
            );
            assert!(began.elapsed() >= LIMIT, "{:?}", began.elapsed());
            if refusals > 1 {
                break;
            }
        }
        assert!(refusals > 1, "it was refused before its time was over");
    }
}

/// Data that came beats the limit, also where only the limit gives leave to look for it.
#[run_test(run_watched)]
async fn a_refused_read_loses_nothing_to_its_limit() {
    for age in AGES {
        let (mut stream, mut peer) = aged_pair(age).await?;
        stream.set_read_timeout(Some(Duration::from_millis(2)))?;
        for number in 0..10 {
            // A poll that may still do something.
            executor().yield_now().await;
            let mut byte = [0];
            let mut read = stream.read(&mut byte);
            assert!(poll_once(&mut read).await.is_none());
            peer.write_all(&[number])?;
            let read = poll_fn(|cx| {
                exhaust_budget(cx);
                Pin::new(&mut read).poll(cx)
            })
            .await;
            assert_eq!(read?, 1);
            assert_eq!(byte[0], number);
        }
    }
}

/// More than the echo asks for at once, and less than a socket holds.
const FLOOD: usize = 32 << 10;

/// A stream whose peer sends what it has got back, before each read.
struct Fed<R> {
    reader: R,
    peer: StdUnix,
}

impl<R: AsyncRead + Unpin> AsyncRead for Fed<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut bytes = vec![0; FLOOD];
        match (&self.peer).read(&mut bytes) {
            Ok(count) => (&self.peer).write_all(&bytes[..count])?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
        Pin::new(&mut self.reader).poll_read(cx, buf)
    }
}

/// The echo server of the README, and a client that floods it.
#[run_test(run_watched)]
async fn an_echo_of_a_flood_ends_with_its_time_limit() {
    let (mut peer, stream) = StdUnix::pair()?;
    let (reader, writer) = split(UnixStream::from(stream));
    peer.set_nonblocking(true)?;
    peer.write_all(&[7; FLOOD])?;
    let echo = copy(Fed { reader, peer }, writer);
    let limited = glommio::future::timeout(Duration::from_millis(5), echo).await;
    assert!(limited.is_err(), "the connection stands");
}
