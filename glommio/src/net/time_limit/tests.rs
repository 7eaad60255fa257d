//! How long the timer of a wait is armed: from outside that shows in nothing but the cost.

use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream as StdStream;
use std::pin::{Pin, pin};
use std::task::Poll;

use futures_lite::future::poll_once;
use futures_lite::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::executor::{LocalExecutor, consume_budget, executor, unconstrained};
use crate::net::{TcpListener, TcpStream, UdpSocket, UnixStream};
use crate::reactor::current;

const LONG: Duration = Duration::from_secs(3600);

fn run(test: impl Future<Output = std::io::Result<()>>) {
    let done = LocalExecutor::default().run(test);
    done.expect("sockets of this host work");
}

fn timers() -> usize {
    let reactor = current::current().upgrade();
    reactor.expect("the executor runs").live_timers()
}

/// Each end of `stream` waits and gets on `times` times, and no timer stays behind.
async fn goes_back_and_forth(mut stream: TcpStream, mut peer: std::net::TcpStream, times: usize) {
    for _ in 0..times {
        let mut byte = [0];
        let mut read = stream.read(&mut byte);
        assert!(poll_once(&mut read).await.is_none());
        assert_eq!(timers(), 1, "it is told when its time is over");
        peer.write_all(b"x").expect("the connection stands");
        assert_eq!(read.await.expect("a byte was sent"), 1);
        assert_eq!(timers(), 0, "nothing waits any more");
    }
}

#[run_test]
async fn no_timer_outlives_a_read() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let peer = std::net::TcpStream::connect(listener.local_addr()?)?;
    let stream = listener.accept().await?;
    stream.set_read_timeout(Some(LONG))?;
    // Until it has a multishot poll, and beyond.
    goes_back_and_forth(stream, peer, 20).await;
}

/// A read that may not look for data does not wait either.
#[run_test]
async fn a_read_that_is_refused_arms_no_timer() {
    let (mut stream, mut peer) = UnixStream::pair()?;
    stream.set_read_timeout(Some(LONG))?;
    peer.write_all(b"x").await?;
    poll_fn(|cx| {
        while !executor().need_preempt() {
            std::hint::spin_loop();
        }
        while pin!(consume_budget()).poll(cx).is_ready() {}
        assert!(Pin::new(&mut stream.read(&mut [0])).poll(cx).is_pending());
        assert_eq!(timers(), 0);
        Poll::Ready(())
    })
    .await;
    assert_eq!(stream.read(&mut [0]).await?, 1);
}

#[run_test]
async fn no_timer_outlives_a_write() {
    let (stream, mut peer) = StdStream::pair()?;
    let mut stream = UnixStream::from(stream);
    stream.set_write_timeout(Some(LONG))?;
    for _ in 0..3 {
        let mut filled = 0;
        while let Some(count) = poll_once(unconstrained(stream.write(&[0; 4096]))).await {
            filled += count?;
        }
        assert_eq!(timers(), 1, "it is told when its time is over");
        peer.read_exact(&mut vec![0; filled])?;
        stream.write_all(b"x").await?;
        assert_eq!(timers(), 0, "nothing waits any more");
        peer.read_exact(&mut [0])?;
    }
}

#[run_test]
async fn no_timer_outlives_a_datagram_that_was_waited_for() {
    let (receiver, sender) = (
        UdpSocket::bind("127.0.0.1:0")?,
        UdpSocket::bind("127.0.0.1:0")?,
    );
    receiver.set_read_timeout(Some(LONG))?;
    let mut byte = [0];
    let mut receive = Box::pin(receiver.recv_from(&mut byte));
    assert!(poll_once(&mut receive).await.is_none());
    assert_eq!(timers(), 1, "it is told when its time is over");
    sender.send_to(b"x", receiver.local_addr()?).await?;
    assert_eq!(receive.as_mut().await?.0, 1);
    assert_eq!(timers(), 0, "nothing waits any more");
}

#[run_test]
async fn no_timer_outlives_its_limit_or_its_stream() {
    let (mut stream, _peer) = UnixStream::pair()?;
    stream.set_read_timeout(Some(LONG))?;
    assert!(poll_once(stream.read(&mut [0])).await.is_none());
    stream.set_read_timeout(None)?;
    assert_eq!(timers(), 0, "there is no limit any more");
    stream.set_read_timeout(Some(LONG))?;
    assert_eq!(timers(), 1, "the limit is also that of a wait under way");
    stream.set_read_timeout(Some(Duration::from_millis(1)))?;
    stream.read(&mut [0]).await.expect_err("nothing is sent");
    assert_eq!(timers(), 0, "the wait is over");
    stream.set_read_timeout(Some(LONG))?;
    assert_eq!(timers(), 0, "nothing waits");
    assert!(poll_once(stream.read(&mut [0])).await.is_none());
    assert_eq!(timers(), 1);
    drop(stream);
    assert_eq!(timers(), 0);
}
