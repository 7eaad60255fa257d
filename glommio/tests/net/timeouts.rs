//! Read and write timeouts of streams. Whose time it is that passes is in `time_limits.rs`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_lite::future::poll_once;
use futures_lite::io::AsyncRead;
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{executor, spawn_local};

use super::{PATIENCE, io_kind, pair, pair_with_std, run};

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

#[test]
fn there_is_none_unless_set_and_zero_is_refused() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn a_timeout_set_after_one_has_passed_starts_with_the_next_wait() {
    run(async {
        let (mut stream, _peer) = pair().await?;
        stream.set_read_timeout(Some(LIMIT))?;
        times_out(&mut stream, LIMIT).await;
        stream.set_read_timeout(Some(2 * LIMIT))?;
        // No wait, and no turn of the executor either.
        std::thread::sleep(LIMIT);
        times_out(&mut stream, 2 * LIMIT).await;
        Ok(())
    });
}

#[test]
fn another_executor_knows_nothing_of_them() {
    run(async {
        let (stream, _peer) = pair().await?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let stream = stream.into_accepted().bind_to_executor();
        assert_eq!(stream.read_timeout(), None);
        assert_eq!(stream.write_timeout(), None);
        Ok(())
    });
}

#[test]
fn a_read_waits_so_long_and_each_anew() {
    run(async {
        let (mut stream, mut peer) = pair().await?;
        stream.set_read_timeout(Some(LIMIT))?;
        times_out(&mut stream, LIMIT).await;
        times_out(&mut stream, LIMIT).await;
        // The connection is unharmed.
        peer.write_all(b"late").await?;
        let mut buf = [0; 8];
        assert_eq!(stream.read(&mut buf).await?, 4);
        times_out(&mut stream, LIMIT).await;
        let mut stream = stream.buffered();
        let error = stream.fill_buf().await.expect_err("nothing is sent");
        assert_timed_out(&error);
        peer.write_all(b"line\n").await?;
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        assert_eq!(line, "line\n");
        Ok(())
    });
}

#[test]
fn what_came_before_the_limit_is_read() {
    run(async {
        let (mut stream, mut peer) = pair_with_std().await?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let late = spawn_local(async move {
            sleep(Duration::from_millis(5)).await;
            peer.write_all(b"in time").map(|()| peer)
        });
        let mut buf = [0; 7];
        stream.read_exact(&mut buf).await?;
        assert_eq!(&buf, b"in time");
        drop(late.await?);
        Ok(())
    });
}

/// Data that is there beats a limit that has passed.
#[test]
fn a_ready_socket_beats_an_expired_timer() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn a_write_waits_so_long() {
    run(async {
        let (mut stream, peer) = pair().await?;
        super::stream::fill(&mut stream).await;
        stream.set_write_timeout(Some(LIMIT))?;
        for _ in 0..2 {
            let error = loop {
                // A few bytes still fit now and then, where the kernel says that there is no room.
                let started = Instant::now();
                if let Err(error) = stream.write(&[0; 4096]).await {
                    assert!(started.elapsed() >= LIMIT);
                    break error;
                }
            };
            assert_timed_out(&error);
        }
        // Reading has no limit: the directions do not share a clock.
        assert!(poll_once(stream.read(&mut [0; 1])).await.is_none());
        drop(peer);
        Ok(())
    });
}

#[test]
fn progress_ends_a_period() {
    run(async {
        let (mut stream, mut peer) = pair().await?;
        stream.set_read_timeout(Some(LIMIT))?;
        for _ in 0..5 {
            assert!(poll_once(stream.read(&mut [0; 1])).await.is_none());
            sleep(LIMIT / 10).await;
            peer.write_all(b"x").await?;
            stream.read_exact(&mut [0; 1]).await?;
        }
        times_out(&mut stream, LIMIT).await;
        Ok(())
    });
}

/// An executor that is never idle times out all the same.
#[test]
fn limits_hold_beside_a_task_that_never_rests() {
    run(async {
        let (mut stream, _peer) = pair().await?;
        stream.set_read_timeout(Some(LIMIT))?;
        let is_done = Rc::new(Cell::new(false));
        let stop = Rc::clone(&is_done);
        let restless = spawn_local(async move {
            while !stop.get() {
                executor().yield_task_queue_now().await;
            }
        });
        for _ in 0..3 {
            times_out(&mut stream, LIMIT).await;
        }
        is_done.set(true);
        restless.await;
        Ok(())
    });
}

/// A stream that one task reads while another changes its timeout.
type Shared = Rc<RefCell<TcpStream>>;

async fn read_shared(stream: Shared) -> io::Result<usize> {
    poll_fn(|cx| Pin::new(&mut *stream.borrow_mut()).poll_read(cx, &mut [0; 8])).await
}

#[test]
fn a_shorter_timeout_ends_a_read_under_way() {
    run(async {
        let (stream, _peer) = pair().await?;
        for before in [None, Some(PATIENCE * 60)] {
            let stream = Rc::new(RefCell::new(stream_again(&stream)?));
            stream.borrow().set_read_timeout(before)?;
            let reader = spawn_local(read_shared(Rc::clone(&stream)));
            sleep(Duration::from_millis(5)).await;
            let changed = Instant::now();
            stream.borrow().set_read_timeout(Some(LIMIT))?;
            let error = reader.await.expect_err("nothing is sent");
            assert!(changed.elapsed() >= LIMIT);
            assert_timed_out(&error);
        }
        Ok(())
    });
}

/// Another stream on the same connection.
fn stream_again(stream: &TcpStream) -> io::Result<TcpStream> {
    use std::os::fd::AsFd;
    let fd = stream.as_fd().try_clone_to_owned()?;
    Ok(TcpStream::from(socket2::Socket::from(fd)))
}

#[test]
fn without_a_timeout_a_read_under_way_waits_on() {
    run(async {
        let (stream, mut peer) = pair_with_std().await?;
        stream.set_read_timeout(Some(LIMIT))?;
        let stream = Rc::new(RefCell::new(stream));
        let reader = spawn_local(read_shared(Rc::clone(&stream)));
        sleep(Duration::from_millis(2)).await;
        stream.borrow().set_read_timeout(None)?;
        sleep(LIMIT * 3).await;
        peer.write_all(b"finally")?;
        assert_eq!(reader.await?, 7);
        Ok(())
    });
}

#[test]
fn a_longer_timeout_prolongs_a_read_under_way() {
    run(async {
        let (stream, mut peer) = pair_with_std().await?;
        stream.set_read_timeout(Some(LIMIT))?;
        let stream = Rc::new(RefCell::new(stream));
        let reader = spawn_local(read_shared(Rc::clone(&stream)));
        sleep(Duration::from_millis(2)).await;
        stream.borrow().set_read_timeout(Some(PATIENCE))?;
        sleep(LIMIT * 3).await;
        peer.write_all(b"finally")?;
        assert_eq!(reader.await?, 7);
        Ok(())
    });
}

#[test]
fn a_peek_has_no_limit() {
    run(async {
        let (stream, mut peer) = pair_with_std().await?;
        stream.set_read_timeout(Some(LIMIT))?;
        let late = spawn_local(async move {
            sleep(LIMIT * 3).await;
            peer.write_all(b"late").map(|()| peer)
        });
        assert_eq!(stream.peek(&mut [0; 8]).await?, 4);
        drop(late.await?);
        Ok(())
    });
}

/// Many connections that say nothing: each read ends by its own clock, and all still work then.
#[test]
fn a_thousand_idle_connections_time_out_and_live_on() {
    const CONNECTIONS: usize = 1000;
    raise_descriptor_limit(2 * CONNECTIONS as u64 + 200);
    run(async {
        let listener = Rc::new(TcpListener::bind("127.0.0.1:0")?);
        let address = listener.local_addr()?;
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(TcpStream::connect(address).await?);
            let mut server = listener.accept().await?;
            server.set_read_timeout(Some(LIMIT * 3))?;
            servers.push(spawn_local(async move {
                times_out(&mut server, LIMIT * 3).await;
                server.set_read_timeout(Some(PATIENCE))?;
                let mut byte = [0];
                server.read_exact(&mut byte).await?;
                server.write_all(&byte).await?;
                Ok::<_, glommio::GlommioError<()>>(())
            }));
        }
        sleep(LIMIT * 6).await;
        for client in &mut clients {
            client.write_all(b"!").await?;
        }
        for client in &mut clients {
            let mut byte = [0];
            client.read_exact(&mut byte).await?;
            assert_eq!(&byte, b"!");
        }
        for server in servers {
            server.await?;
        }
        Ok(())
    });
}

fn raise_descriptor_limit(wanted: u64) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("every process has a limit");
    assert!(wanted <= hard, "the test needs {wanted} descriptors");
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).expect("up to the hard limit");
    }
}
