//! Read and write timeouts of streams, and peers that say nothing or take little. Whose time it is that passes is in
//! `time_limits.rs`.

use std::io::Write;

use futures_lite::io::AsyncRead;
use glommio::net::Preallocated;
use socket2::SockRef;

use super::deaf::Deaf;
use super::hostile::{Way, pattern, read_in_a};
use super::{PATIENCE, aged_pair, at_each_age, io_kind, pair, pair_with_std, run};
use crate::common::Kept;
use crate::common::prelude::*;

pub(super) const LIMIT: Duration = Duration::from_millis(30);

/// A read that must time out, and not before its time.
pub(super) async fn times_out(stream: &mut (impl AsyncRead + Unpin), limit: Duration) {
    let started = Instant::now();
    let error = stream.read(&mut [0; 8]).await.expect_err("nothing is sent");
    assert!(
        started.elapsed() >= limit,
        "a wait of {limit:?} ended after {:?}",
        started.elapsed()
    );
    assert_timed_out(&error);
}

pub(super) fn assert_timed_out(error: &io::Error) {
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "Operation timed out");
    assert_eq!(error.raw_os_error(), None);
}

#[run_test]
async fn there_is_none_unless_set_and_zero_is_refused() {
    let (stream, _peer) = pair().await?;
    assert_eq!(stream.read_timeout(), None);
    assert_eq!(stream.write_timeout(), None);
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT * 2))?;
    for error in [
        stream.set_read_timeout(Some(Duration::ZERO)),
        stream.set_write_timeout(Some(Duration::ZERO)),
    ] {
        let error = error.expect_err("zero is no timeout");
        assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
    assert_eq!(stream.read_timeout(), Some(LIMIT), "the old value stays");
    assert_eq!(stream.write_timeout(), Some(LIMIT * 2));
    let stream = stream.buffered();
    assert_eq!(
        stream.read_timeout(),
        Some(LIMIT),
        "a buffer changes nothing"
    );
    stream.set_read_timeout(None)?;
    assert_eq!(stream.read_timeout(), None);
}

#[run_test]
async fn a_timeout_set_after_one_has_passed_starts_with_the_next_wait() {
    let (mut stream, _peer) = pair().await?;
    stream.set_read_timeout(Some(LIMIT))?;
    times_out(&mut stream, LIMIT).await;
    stream.set_read_timeout(Some(2 * LIMIT))?;
    // No wait, and no turn of the executor either.
    std::thread::sleep(LIMIT);
    times_out(&mut stream, 2 * LIMIT).await;
}

#[run_test]
async fn another_executor_knows_nothing_of_them() {
    let (stream, _peer) = pair().await?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    let stream = stream.into_accepted().bind_to_executor();
    assert_eq!(stream.read_timeout(), None);
    assert_eq!(stream.write_timeout(), None);
}

/// Data that is there beats a limit that has passed.
#[run_test]
async fn a_ready_socket_beats_an_expired_timer() {
    let (mut stream, mut peer) = pair_with_std().await?;
    stream.set_read_timeout(Some(LIMIT))?;
    let mut buf = [0; 8];
    {
        let mut read = Box::pin(stream.read(&mut buf));
        assert!(poll_once(&mut read).await.is_none());
        peer.write_all(b"here")?;
        // The reactor has no chance to say that it is there.
        std::thread::sleep(LIMIT * 2);
        assert_eq!(poll_once(&mut read).await.expect("it is there")?, 4);
    }
    assert_eq!(&buf[..4], b"here");
}

/// A stream that one task reads while another changes its timeout.
type Shared = Rc<RefCell<TcpStream>>;

async fn read_shared(stream: Shared) -> io::Result<usize> {
    poll_fn(|cx| Pin::new(&mut *stream.borrow_mut()).poll_read(cx, &mut [0; 8])).await
}

#[run_test(at_each_age)]
async fn a_shorter_timeout_ends_a_read_under_way(age: usize) {
    for before in [None, Some(PATIENCE * 60)] {
        let (stream, _peer) = aged_pair(age).await?;
        stream.set_read_timeout(before)?;
        let stream = Rc::new(RefCell::new(stream));
        let reader = spawn_local(read_shared(Rc::clone(&stream)));
        sleep(Duration::from_millis(5)).await;
        let changed = Instant::now();
        stream.borrow().set_read_timeout(Some(LIMIT))?;
        let error = reader.await.expect_err("nothing is sent");
        assert!(changed.elapsed() >= LIMIT);
        assert_timed_out(&error);
    }
}

#[run_test]
async fn a_longer_timeout_or_none_prolongs_a_read_under_way() {
    let limit = patient(LIMIT);
    for after in [None, Some(PATIENCE)] {
        let (stream, mut peer) = pair_with_std().await?;
        stream.set_read_timeout(Some(limit))?;
        let stream = Rc::new(RefCell::new(stream));
        let reader = spawn_local(read_shared(Rc::clone(&stream)));
        sleep(Duration::from_millis(2)).await;
        stream.borrow().set_read_timeout(after)?;
        sleep(limit * 3).await;
        peer.write_all(b"finally")?;
        assert_eq!(reader.await?, 7);
    }
}

#[run_test]
async fn a_peek_has_no_limit() {
    let (stream, mut peer) = pair_with_std().await?;
    stream.set_read_timeout(Some(LIMIT))?;
    let late = spawn_local(async move {
        sleep(LIMIT * 3).await;
        peer.write_all(b"late").map(|()| peer)
    });
    assert_eq!(stream.peek(&mut [0; 8]).await?, 4);
    drop(late.await?);
}

#[run_test(at_each_age)]
async fn a_peer_that_says_nothing_times_out_reads_of_all_kinds_and_is_heard_later(age: usize) {
    let limit = patient(LIMIT);
    for way in [Way::Plain, Way::Vectored, Way::Filled] {
        let (stream, mut peer) = aged_pair(age).await?;
        let mut stream = stream.buffered_with(Preallocated::new(16));
        stream.set_read_timeout(Some(limit))?;
        for round in 0..3_u8 {
            let started = Instant::now();
            let error = read_in_a(way, &mut stream).await.expect_err("silence");
            assert!(started.elapsed() >= limit, "{way:?}");
            assert_timed_out(&error);
            // Comes while no task reads.
            peer.write_all(&[round; 5])?;
            assert_eq!(read_in_a(way, &mut stream).await?, [round; 5]);
            // Comes while a task reads.
            let mut late = peer.try_clone()?;
            let late = spawn_local(async move {
                sleep(limit / 10).await;
                late.write_all(b"late")
            });
            assert_eq!(read_in_a(way, &mut stream).await?, b"late");
            late.await?;
        }
        drop(peer);
        assert_eq!(read_in_a(way, &mut stream).await?, b"");
    }
}

/// A waiting task, whatever it waits for, is forgotten when its socket is dropped: neither a timer
/// nor anything in flight keeps its waker.
#[run_test(at_each_age)]
async fn no_timer_outlives_its_socket(age: usize) {
    /// Polls `future` with a waker that is counted, twice, and a turn of the reactor after each.
    async fn wait_with<F: Future>(kept: &Arc<Kept>, mut future: Pin<&mut F>) {
        let waker = Waker::from(Arc::clone(kept));
        for _ in 0..2 {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            sleep(Duration::from_millis(1)).await;
        }
        drop(waker);
        assert!(Arc::strong_count(kept) > 1, "it waits");
    }
    async fn is_forgotten(kept: &Arc<Kept>, what: &str) {
        sleep(Duration::from_millis(1)).await;
        assert_eq!(Arc::strong_count(kept), 1, "{what}");
    }
    let kept = Arc::new(Kept);
    let (mut stream, _peer) = aged_pair(age).await?;
    super::stream::fill(&mut stream).await;
    stream.set_read_timeout(Some(PATIENCE * 60))?;
    stream.set_write_timeout(Some(PATIENCE * 60))?;
    wait_with(&kept, pin!(stream.read(&mut [0; 8]))).await;
    wait_with(&kept, pin!(stream.write(&[0; 8]))).await;
    drop(stream);
    is_forgotten(&kept, "a dropped stream").await;

    let (mut stream, _peer) = aged_pair(age).await?;
    stream.set_read_timeout(Some(PATIENCE * 60))?;
    wait_with(&kept, pin!(stream.read(&mut [0; 8]))).await;
    drop(stream.into_accepted());
    is_forgotten(&kept, "a stream taken from its executor").await;

    let (mut stream, mut peer) = aged_pair(age).await?;
    stream.set_read_timeout(Some(PATIENCE * 60))?;
    wait_with(&kept, pin!(stream.read(&mut [0; 8]))).await;
    peer.write_all(b"x")?;
    assert_eq!(stream.read(&mut [0; 8]).await?, 1);
    drop(stream);
    is_forgotten(&kept, "a stream whose read another one has replaced").await;

    let (stream, _peer) = aged_pair(age).await?;
    wait_with(&kept, pin!(stream.peek(&mut [0; 8]))).await;
    is_forgotten(&kept, "a dropped peek").await;

    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(PATIENCE * 60))?;
    wait_with(&kept, pin!(socket.recv_from(&mut [0; 8]))).await;
    is_forgotten(&kept, "a dropped receive").await;

    let listener = TcpListener::bind("127.0.0.1:0")?;
    wait_with(&kept, pin!(listener.accept())).await;
    is_forgotten(&kept, "a dropped accept").await;
    wait_with(&kept, pin!(poll_fn(|cx| listener.poll_accept(cx)))).await;
    drop(listener);
    is_forgotten(&kept, "a dropped listener").await;

    let deaf = Deaf::new();
    let connecting = TcpStream::connect_timeout(deaf.address, PATIENCE * 60);
    wait_with(&kept, pin!(connecting)).await;
    is_forgotten(&kept, "a dropped connect").await;
}

/// A reader that takes a little at a time is progress: the timeout of a write bounds each of its waits, not their sum.
#[run_test]
async fn a_peer_that_sips_is_waited_for() {
    const LENGTH: usize = 3 << 20;
    const SIP: usize = 64 << 10;
    let pause = patient(Duration::from_millis(20));
    let limit = pause * 25;
    let (mut stream, mut peer) = pair().await?;
    // No more than this is on its way, or the kernel would swallow all at once.
    SockRef::from(&stream).set_send_buffer_size(128 << 10)?;
    SockRef::from(&peer).set_recv_buffer_size(128 << 10)?;
    stream.set_write_timeout(Some(limit))?;
    let sips = spawn_local(async move {
        let mut all = Vec::new();
        let mut buf = vec![0; SIP];
        loop {
            match peer.read(&mut buf).await? {
                0 => return Ok::<_, io::Error>(all),
                count => all.extend_from_slice(&buf[..count]),
            }
            sleep(pause).await;
        }
    });
    let started = Instant::now();
    stream.write_all(&pattern(0, LENGTH)).await?;
    stream.close().await?;
    assert!(started.elapsed() > limit, "or it has shown nothing");
    assert!(sips.await? == pattern(0, LENGTH));
}
