//! Connections in use that move to another executor.

use std::io::Write;

use glommio::net::{DetachedTcpStream, DetachedUnixStream, Preallocated, RxBuf};

use super::{
    PATIENCE, Result, abandon, aged_pair, at_each_age, io_kind, leaves_no_descriptor, pair,
    pair_with_std, run,
};
use crate::common::prelude::*;

/// What `work` gives of the connection on an executor of its own.
fn elsewhere<B, T, F>(
    stream: DetachedTcpStream<B>,
    work: impl FnOnce(TcpStream<B>) -> F + Send + 'static,
) -> Result<T>
where
    B: RxBuf + Send + 'static,
    T: Send + 'static,
    F: Future<Output = Result<T>> + 'static,
{
    let worker = LocalExecutorBuilder::default().spawn(|| work(stream.attach()))?;
    worker.join()?
}

const _: () = {
    const fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<DetachedTcpStream>();
    is_send_and_sync::<DetachedTcpStream<Preallocated>>();
    is_send_and_sync::<DetachedUnixStream>();
    is_send_and_sync::<DetachedUnixStream<Preallocated>>();
};

#[run_test]
async fn unread_bytes_timeouts_and_options_move_along() {
    let (stream, mut peer) = pair_with_std().await?;
    let mut stream = stream.buffered_with(Preallocated::new(100));
    stream.set_read_timeout(Some(Duration::from_secs(7)))?;
    stream.set_write_timeout(Some(Duration::from_millis(1500)))?;
    stream.set_nodelay(true)?;
    peer.write_all(b"one\ntwo\n")?;
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    assert_eq!(line, "one\n");

    let detached = stream.detach();
    assert_eq!(detached.unread(), b"two\n");
    // In the socket, behind what is in the buffer.
    peer.write_all(b"three\n")?;
    elsewhere(detached, |mut stream| async move {
        assert_eq!(stream.read_timeout(), Some(Duration::from_secs(7)));
        assert_eq!(stream.write_timeout(), Some(Duration::from_millis(1500)));
        assert!(stream.nodelay()?);
        let mut lines = [0; 10];
        stream.read_exact(&mut lines).await?;
        assert_eq!(&lines, b"two\nthree\n");
        Ok(())
    })
}

/// A read timeout that has moved along ends reads there.
#[run_test]
async fn a_timeout_that_has_moved_ends_a_read() {
    let (stream, _peer) = pair_with_std().await?;
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    elsewhere(stream.detach(), |mut stream| async move {
        let error = stream.read(&mut [0]).await.expect_err("the peer is silent");
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        Ok(())
    })
}

/// What an abandoned read has left in flight takes nothing that comes before, during and after.
#[run_test(at_each_age)]
async fn a_read_given_up_before_the_move_swallows_nothing(age: usize) {
    let (mut stream, mut peer) = aged_pair(age).await?;
    abandon(stream.read(&mut [0; 64])).await;
    peer.write_all(b"before ")?;
    let detached = stream.detach();
    peer.write_all(b"during ")?;
    // Whatever is left of the operation completes here, beside the move.
    sleep(Duration::from_millis(1)).await;
    let worker = LocalExecutorBuilder::default().spawn(|| async move {
        let mut stream = detached.attach();
        let mut all = String::new();
        stream.read_to_string(&mut all).await.map(|_| all)
    })?;
    peer.write_all(b"after")?;
    drop(peer);
    assert_eq!(worker.join()??, "before during after");
}

/// Also if there is something already: a connection whose waits the kernel reports once and for all
/// is told nothing new at the place it has gone to.
#[run_test]
async fn a_connection_that_waited_often_is_woken_by_its_new_executor() {
    let (mut stream, mut peer) = aged_pair(20).await?;
    for round in 0..20 {
        let detached = stream.detach();
        stream = detached.attach();
        let mut byte = [0];
        let mut read = stream.read(&mut byte);
        let early = round % 2 == 0;
        if early {
            peer.write_all(&[round])?;
        } else {
            assert!(poll_once(&mut read).await.is_none());
            peer.write_all(&[round])?;
        }
        assert_eq!(read.await?, 1);
        assert_eq!(byte, [round]);
    }
}

/// The kernel reports the error of a connection once: to a peek that had bytes to return.
#[run_test]
async fn an_error_that_a_peek_has_found_moves_along() {
    let (stream, mut peer) = pair_with_std().await?;
    let mut stream = stream.buffered();
    peer.write_all(b"ab")?;
    assert_eq!(stream.read(&mut [0]).await?, 1);
    socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO))?;
    drop(peer);
    while stream.peer_addr().is_ok() {
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(stream.peek(&mut [0; 10]).await?, 1);

    let mut stream = stream.detach().attach();
    let mut left = [0; 10];
    assert_eq!(stream.read(&mut left).await?, 1);
    assert_eq!(left[0], b'b');
    let error = stream.read(&mut left).await.expect_err("it was reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[run_test(leaves_no_descriptor)]
fn a_detached_stream_that_is_dropped_closes_the_connection() {
    run(async {
        let (mut client, server) = pair().await?;
        let (mut here, there) = UnixStream::pair()?;
        drop((server.buffered().detach(), there.detach()));
        assert_eq!(client.read(&mut [0]).await?, 0);
        assert_eq!(here.read(&mut [0]).await?, 0);
        Ok(())
    });
}

/// The executor it was made in is gone, and so is what was in flight there.
#[test]
fn a_connection_outlives_its_executor() {
    let (detached, mut peer) = run(async {
        let (mut stream, peer) = aged_pair(20).await?;
        abandon(stream.read(&mut [0])).await;
        Ok((stream.buffered().detach(), peer))
    });
    peer.write_all(b"hello").expect("it is open");
    drop(peer);
    run(async {
        let mut received = String::new();
        detached.attach().read_to_string(&mut received).await?;
        assert_eq!(received, "hello");
        Ok(())
    });
}

#[run_test]
async fn a_connection_that_was_reset_says_so() {
    let (stream, peer) = pair_with_std().await?;
    let detached = stream.detach();
    assert_eq!(detached.peer_addr()?, peer.local_addr()?);
    socket2::SockRef::from(&peer).set_linger(Some(Duration::ZERO))?;
    drop(peer);
    let mut stream = detached.attach();
    let error = stream.read(&mut [0]).await.expect_err("it was reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let error = stream.detach().peer_addr().expect_err("it is gone");
    assert_eq!(io_kind(&error), std::io::ErrorKind::NotConnected);
}

#[run_test]
async fn a_unix_connection_moves_with_its_unread_bytes() {
    let (mut here, there) = UnixStream::pair()?;
    let mut there = there.buffered();
    there.set_read_timeout(Some(PATIENCE))?;
    here.write_all(b"one\ntwo\n").await?;
    let mut line = String::new();
    there.read_line(&mut line).await?;
    let detached = there.detach();
    assert_eq!(detached.unread(), b"two\n");
    assert_eq!(detached.read_timeout(), Some(PATIENCE));
    assert_eq!(detached.write_timeout(), None);
    here.write_all(b"three\n").await?;
    here.close().await?;
    let worker = LocalExecutorBuilder::default().spawn(|| async move {
        let mut there = detached.attach();
        assert_eq!(there.read_timeout(), Some(PATIENCE));
        let mut rest = String::new();
        there.read_to_string(&mut rest).await.map(|_| rest)
    })?;
    assert_eq!(worker.join()??, "two\nthree\n");
}
