//! Peers that do not keep to the rules, or only just: that reset, say nothing, never read, never stop.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use glommio::net::{Preallocated, TcpListener, TcpStream, UdpSocket};
use glommio::spawn_local;
use glommio::timer::sleep;
use socket2::SockRef;

use super::deaf::Deaf;
use super::{PATIENCE, Result, abandon, io_kind, pair, pair_with_std, run};
use crate::common::Numbers;

const LIMIT: Duration = Duration::from_millis(30);

/// Closes a connection without the courtesies.
fn reset(peer: std::net::TcpStream) {
    SockRef::from(&peer)
        .set_linger(Some(Duration::ZERO))
        .expect("any socket can");
    drop(peer);
}

/// Bytes of which each tells where in the stream it stands, as far as 251 can.
fn pattern(start: usize, length: usize) -> Vec<u8> {
    (start..start + length)
        .map(|position| (position.wrapping_mul(31) % 251) as u8)
        .collect()
}

/// The ways to read from a connection.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    Vectored,
    Filled,
    Peeked,
}

const WAYS: [Way; 4] = [Way::Plain, Way::Vectored, Way::Filled, Way::Peeked];

/// What a read finds, which it takes (or looks at) whole.
async fn read_in_a(way: Way, stream: &mut TcpStream<Preallocated>) -> io::Result<Vec<u8>> {
    let mut all = [0; 64];
    let count = match way {
        Way::Plain => stream.read(&mut all).await?,
        Way::Vectored => {
            let (left, right) = all.split_at_mut(3);
            let mut slices = [IoSliceMut::new(left), IoSliceMut::new(right)];
            stream.read_vectored(&mut slices).await?
        }
        Way::Filled => {
            let filled = stream.fill_buf().await?.to_vec();
            stream.consume(filled.len());
            return Ok(filled);
        }
        Way::Peeked => stream.peek(&mut all).await.map_err(io::Error::from)?,
    };
    Ok(all[..count].to_vec())
}

#[test]
fn a_reset_ends_a_read_of_any_kind() {
    run(async {
        for way in WAYS {
            let (stream, peer) = pair_with_std().await?;
            let mut stream = stream.buffered_with(Preallocated::new(16));
            let waits = spawn_local(async move {
                let read = read_in_a(way, &mut stream).await;
                (stream, read)
            });
            sleep(Duration::from_millis(2)).await;
            reset(peer);
            let (mut stream, read) = waits.await;
            let error = read.expect_err("the connection is gone");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{way:?}");
            // Reported once, and over for good.
            assert_eq!(read_in_a(way, &mut stream).await?, b"", "{way:?}");
        }
        Ok(())
    });
}

#[test]
fn what_came_before_a_reset_is_read_before_it_is_reported() {
    const LENGTH: usize = 1000;
    run(async {
        for waits_from_the_start in [false, true] {
            for room in [1, 7, 8192] {
                let (stream, mut peer) = pair_with_std().await?;
                let mut stream = stream.buffered_with(Preallocated::new(room));
                if waits_from_the_start {
                    abandon(stream.read(&mut [0; 8])).await;
                }
                peer.write_all(&pattern(0, LENGTH))?;
                reset(peer);
                sleep(Duration::from_millis(5)).await;
                let mut all = Vec::new();
                let error = loop {
                    match stream.fill_buf().await {
                        Ok(filled) => {
                            assert!(!filled.is_empty(), "a reset is no orderly end");
                            all.extend_from_slice(filled);
                            stream.consume(room);
                        }
                        Err(error) => break error,
                    }
                };
                assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
                assert!(all == pattern(0, LENGTH), "{} bytes came", all.len());
            }
        }
        Ok(())
    });
}

#[test]
fn a_reset_ends_a_write_that_waits() {
    run(async {
        for vectored in [false, true] {
            let (mut stream, peer) = pair_with_std().await?;
            super::stream::fill(&mut stream).await;
            let waits = spawn_local(async move {
                let written = loop {
                    let written = if vectored {
                        stream.write_vectored(&[IoSlice::new(&[0; 4096])]).await
                    } else {
                        stream.write(&[0; 4096]).await
                    };
                    if written.is_err() {
                        break written;
                    }
                };
                (stream, written)
            });
            sleep(Duration::from_millis(2)).await;
            reset(peer);
            let (mut stream, written) = waits.await;
            let error = written.expect_err("the connection is gone");
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            let error = stream.write(b"?").await.expect_err("and stays gone");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
        Ok(())
    });
}

#[test]
fn a_reset_of_an_idle_connection_is_told_to_whoever_comes_next() {
    run(async {
        for waited_before in [false, true] {
            for comes_first in 0..4 {
                let (mut stream, peer) = pair_with_std().await?;
                if waited_before {
                    abandon(stream.read(&mut [0; 8])).await;
                }
                reset(peer);
                sleep(Duration::from_millis(5)).await;
                let kind = match comes_first {
                    0 => stream.read(&mut [0; 8]).await.map_err(|error| error.kind()),
                    1 => stream.write(b"?").await.map_err(|error| error.kind()),
                    2 => stream
                        .peek(&mut [0; 8])
                        .await
                        .map_err(|error| io_kind(&error)),
                    _ => {
                        let error = stream.shutdown(Shutdown::Both).await;
                        let error = error.expect_err("there is nothing to shut down");
                        assert_eq!(io_kind(&error), io::ErrorKind::NotConnected);
                        Err(io::ErrorKind::ConnectionReset)
                    }
                };
                assert_eq!(kind, Err(io::ErrorKind::ConnectionReset), "{comes_first}");
            }
        }
        Ok(())
    });
}

/// Connections that end while they wait to be accepted do not keep the others from being served.
#[test]
fn connections_reset_in_the_queue_cost_nobody_else_his() {
    const CLIENTS: u32 = 30;
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut good = Vec::new();
        for number in 0..CLIENTS {
            let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
            match number % 3 {
                0 => {
                    client.write_all(&number.to_be_bytes())?;
                    good.push(client);
                }
                1 => reset(client),
                _ => {
                    client.write_all(b"late")?;
                    reset(client);
                }
            }
        }
        let mut served = Vec::new();
        while served.len() < good.len() {
            // As a system may say of a connection that has ended.
            let mut stream = match listener.accept().await {
                Err(error) if io_kind(&error) == io::ErrorKind::ConnectionAborted => continue,
                accepted => accepted?,
            };
            let mut message = Vec::new();
            while message.len() < 4 {
                let mut bytes = [0; 4];
                match stream.read(&mut bytes).await {
                    Ok(count) => message.extend_from_slice(&bytes[..count]),
                    Err(error) => {
                        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
                        break;
                    }
                }
            }
            match <[u8; 4]>::try_from(&message[..]) {
                Ok(bytes) if &bytes != b"late" => served.push(u32::from_be_bytes(bytes)),
                _ => {}
            }
        }
        assert!(served.into_iter().eq((0..CLIENTS).step_by(3)));
        Ok(())
    });
}

/// Reads to the end in a thread of its own.
fn drain(mut peer: std::net::TcpStream) -> JoinHandle<io::Result<Vec<u8>>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).map(|_| all)
    })
}

/// Writes `bytes` in a thread of its own, and ends its direction.
fn pour(mut peer: std::net::TcpStream, bytes: Vec<u8>) -> JoinHandle<io::Result<()>> {
    std::thread::spawn(move || {
        peer.write_all(&bytes)?;
        peer.shutdown(Shutdown::Write)
    })
}

/// One direction ends at once, while megabytes flow in the other.
#[test]
fn either_end_of_a_connection_may_end_its_half_first() {
    const LENGTH: usize = 3 << 20;
    run(async {
        for peer_is_first in [false, true] {
            let (mut stream, peer) = pair_with_std().await?;
            abandon(stream.read(&mut [0; 8])).await;
            let all = pattern(0, LENGTH);
            if peer_is_first {
                peer.shutdown(Shutdown::Write)?;
                assert_eq!(stream.read(&mut [0; 8]).await?, 0);
                let drained = drain(peer);
                stream.write_all(&all).await?;
                assert_eq!(stream.read(&mut [0; 8]).await?, 0, "it stays ended");
                stream.close().await?;
                assert!(drained.join().expect("no panic")? == all);
            } else {
                stream.close().await?;
                let mut reader = peer.try_clone()?;
                let poured = pour(peer, all.clone());
                let mut received = Vec::new();
                stream.read_to_end(&mut received).await?;
                assert!(received == all);
                assert_eq!(reader.read(&mut [0; 8])?, 0);
                poured.join().expect("no panic")?;
            }
        }
        Ok(())
    });
}

#[test]
fn a_peer_that_says_nothing_times_out_reads_of_all_kinds_and_is_heard_later() {
    run(async {
        for way in [Way::Plain, Way::Vectored, Way::Filled] {
            let (stream, mut peer) = pair_with_std().await?;
            let mut stream = stream.buffered_with(Preallocated::new(16));
            stream.set_read_timeout(Some(LIMIT))?;
            for round in 0..3_u8 {
                let started = Instant::now();
                let error = read_in_a(way, &mut stream).await.expect_err("silence");
                assert!(started.elapsed() >= LIMIT, "{way:?}");
                assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                assert_eq!(error.to_string(), "Operation timed out");
                assert_eq!(error.raw_os_error(), None);
                // Comes while nobody reads.
                peer.write_all(&[round; 5])?;
                assert_eq!(read_in_a(way, &mut stream).await?, [round; 5]);
                // Comes while somebody does.
                let mut late = peer.try_clone()?;
                let late = spawn_local(async move {
                    sleep(LIMIT / 10).await;
                    late.write_all(b"late")
                });
                assert_eq!(read_in_a(way, &mut stream).await?, b"late");
                late.await?;
            }
            drop(peer);
            assert_eq!(read_in_a(way, &mut stream).await?, b"");
        }
        Ok(())
    });
}

/// Counts who keeps it.
struct Kept;

impl Wake for Kept {
    fn wake(self: Arc<Self>) {}
}

/// Whoever waits, in whatever way, is forgotten when his socket goes: neither a timer nor anything in
/// flight keeps his waker.
#[test]
fn no_timer_outlives_its_socket() {
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
    run(async {
        let kept = Arc::new(Kept);
        let (mut stream, _peer) = pair_with_std().await?;
        super::stream::fill(&mut stream).await;
        stream.set_read_timeout(Some(PATIENCE * 60))?;
        stream.set_write_timeout(Some(PATIENCE * 60))?;
        wait_with(&kept, pin!(stream.read(&mut [0; 8]))).await;
        wait_with(&kept, pin!(stream.write(&[0; 8]))).await;
        drop(stream);
        is_forgotten(&kept, "a dropped stream").await;

        let (mut stream, _peer) = pair_with_std().await?;
        stream.set_read_timeout(Some(PATIENCE * 60))?;
        wait_with(&kept, pin!(stream.read(&mut [0; 8]))).await;
        drop(stream.into_accepted());
        is_forgotten(&kept, "a stream taken from its executor").await;

        let (mut stream, mut peer) = pair_with_std().await?;
        stream.set_read_timeout(Some(PATIENCE * 60))?;
        wait_with(&kept, pin!(stream.read(&mut [0; 8]))).await;
        peer.write_all(b"x")?;
        assert_eq!(stream.read(&mut [0; 8]).await?, 1);
        is_forgotten(&kept, "a read that another one replaced").await;

        let (stream, _peer) = pair_with_std().await?;
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
        Ok(())
    });
}

/// A byte now and then is progress: the timeout of a read bounds each of its waits, not their sum.
#[test]
fn a_peer_that_dribbles_is_waited_for() {
    const PAUSE: Duration = Duration::from_millis(20);
    const BYTES: usize = 15;
    let limit = PAUSE * 10;
    run(async {
        for room in [None, Some(7)] {
            let (mut stream, mut peer) = pair().await?;
            stream.set_read_timeout(Some(limit))?;
            // On the same thread: where that is held up, both clocks are, and the byte comes first.
            let dribble = spawn_local(async move {
                for byte in pattern(0, BYTES) {
                    sleep(PAUSE).await;
                    peer.write_all(&[byte]).await?;
                }
                Ok::<_, io::Error>(peer)
            });
            let started = Instant::now();
            let mut all = [0; BYTES];
            match room {
                None => stream.read_exact(&mut all).await?,
                Some(room) => {
                    let mut stream = stream.buffered_with(Preallocated::new(room));
                    stream.read_exact(&mut all).await?;
                }
            }
            assert!(started.elapsed() > limit, "or it has shown nothing");
            assert_eq!(all[..], pattern(0, BYTES));
            drop(dribble.await?);
        }
        Ok(())
    });
}

/// The same for a reader that takes a little at a time from a writer with a timeout.
#[test]
fn a_peer_that_sips_is_waited_for() {
    const LENGTH: usize = 3 << 20;
    const SIP: usize = 64 << 10;
    const PAUSE: Duration = Duration::from_millis(20);
    let limit = PAUSE * 25;
    run(async {
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
                sleep(PAUSE).await;
            }
        });
        let started = Instant::now();
        stream.write_all(&pattern(0, LENGTH)).await?;
        stream.close().await?;
        assert!(started.elapsed() > limit, "or it has shown nothing");
        assert!(sips.await? == pattern(0, LENGTH));
        Ok(())
    });
}

/// Far more than the kernel's buffers and ours hold, read in every way there is.
#[test]
fn a_peer_that_never_stops_fills_no_buffer_beyond_its_room() {
    run(async {
        for (room, length) in [(1, 200_000), (7, 1 << 20), (8192, 8 << 20)] {
            let (stream, peer) = pair_with_std().await?;
            let sent = pattern(0, length);
            let poured = pour(peer, sent.clone());
            let mut stream = stream.buffered_with(Preallocated::new(room));
            let mut numbers = Numbers::new(length as u64);
            let mut received = Vec::new();
            loop {
                let size = 1 + numbers.below(3 * room as u64) as usize;
                let mut buf = vec![0; size];
                let count = match numbers.below(4) {
                    0 => {
                        let filled = stream.fill_buf().await?;
                        assert!(filled.len() <= room);
                        // More than there is, now and then.
                        let count = size.min(filled.len());
                        buf[..count].copy_from_slice(&filled[..count]);
                        stream.consume(size);
                        count
                    }
                    1 => {
                        let (left, right) = buf.split_at_mut(size / 3);
                        let mut slices = [IoSliceMut::new(left), IoSliceMut::new(right)];
                        stream.read_vectored(&mut slices).await?
                    }
                    2 => {
                        let count = stream.peek(&mut buf).await?;
                        assert!(sent[received.len()..].starts_with(&buf[..count]));
                        let mut again = vec![0; count];
                        stream.read_exact(&mut again).await?;
                        assert!(again == buf[..count]);
                        count
                    }
                    _ => stream.read(&mut buf).await?,
                };
                if count == 0 {
                    break;
                }
                received.extend_from_slice(&buf[..count]);
            }
            assert!(received == sent, "{} bytes of {length}", received.len());
            poured.join().expect("no panic")?;
        }
        Ok(())
    });
}

/// A peer that takes nothing: what was reported as written is in the kernel, what timed out is not.
#[test]
fn a_peer_that_never_reads_gets_what_was_reported_as_written_and_no_more() {
    run(async {
        let (mut stream, mut peer) = pair_with_std().await?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut numbers = Numbers::new(7);
        let mut written = 0;
        let mut received = Vec::new();
        for round in 0..4 {
            let mut refusals = 0;
            while refusals < 2 {
                let piece = pattern(written, 1 + numbers.below(300_000) as usize);
                let (left, right) = piece.split_at(piece.len() / 3);
                let slices = [IoSlice::new(left), IoSlice::new(right)];
                let started = Instant::now();
                let result = match numbers.below(2) {
                    0 => stream.write(&piece).await,
                    _ => stream.write_vectored(&slices).await,
                };
                match result {
                    Ok(count) => {
                        assert!(0 < count && count <= piece.len());
                        written += count;
                    }
                    Err(error) => {
                        assert!(started.elapsed() >= LIMIT);
                        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                        refusals += 1;
                    }
                }
            }
            // Given up before its time; a moment after that, nobody takes the next for the same wait.
            abandon(stream.write(b"never")).await;
            sleep(LIMIT * 2).await;
            let start = received.len();
            received.resize(start.max(written * round / 4), 0);
            peer.read_exact(&mut received[start..])?;
        }
        stream.close().await?;
        peer.read_to_end(&mut received)?;
        assert_eq!(received.len(), written);
        assert!(received == pattern(0, written));
        Ok(())
    });
}

/// A write to a peer that has closed is an error sooner or later, of the kinds that say so.
#[test]
fn a_peer_that_has_closed_is_an_error_to_writers() {
    run(async {
        for leaves_bytes_unread in [false, true] {
            let (mut stream, mut peer) = pair_with_std().await?;
            stream.write_all(b"hello").await?;
            if !leaves_bytes_unread {
                peer.read_exact(&mut [0; 5])?;
            }
            drop(peer);
            let error = loop {
                match stream.write(b"anybody there?").await {
                    Ok(_) => sleep(Duration::from_millis(1)).await,
                    Err(error) => break error,
                }
            };
            let kind = error.kind();
            assert!(
                matches!(
                    kind,
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ),
                "{error}"
            );
            let error = stream.write(b"?").await.expect_err("it stays so");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
        Ok(())
    });
}

/// The listener goes while a connection to it is on its way. The kernel tries again after a second,
/// and hears that nobody is there.
#[test]
fn a_listener_that_ends_refuses_those_under_way() {
    run(async {
        let deaf = Deaf::new();
        let address = deaf.address;
        let plain = spawn_local(async move { TcpStream::connect(address).await });
        let limited =
            spawn_local(async move { TcpStream::connect_timeout(address, PATIENCE).await });
        sleep(Duration::from_millis(5)).await;
        drop(deaf);
        for connecting in [plain, limited] {
            let error = connecting.await.expect_err("nobody listens");
            assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
        }
        Ok(())
    });
}

/// A connection closed with bytes that nobody asked for is reset, as the kernel has it, and what was
/// read into a buffer does not count as unread.
#[test]
fn a_close_beside_unread_bytes_ends_the_connection_at_once() {
    run(async {
        let (stream, mut peer) = pair_with_std().await?;
        peer.write_all(b"unheard")?;
        sleep(Duration::from_millis(2)).await;
        drop(stream);
        let error = peer.read(&mut [0; 1]).expect_err("bytes were not read");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

        let (stream, mut peer) = pair_with_std().await?;
        let mut stream = stream.buffered();
        peer.write_all(b"heard")?;
        assert_eq!(stream.fill_buf().await?, b"heard");
        stream.write_all(b"bye").await?;
        drop(stream);
        let mut all = String::new();
        peer.read_to_string(&mut all)?;
        assert_eq!(all, "bye");
        Ok(())
    });
}

/// What a bad client does to a server.
#[derive(Clone, Copy, Debug)]
enum Mischief {
    ResetsInTheQueue,
    ResetsInTheMiddle,
    SaysNothing,
    NeverReads,
    Dribbles,
    EndsItsHalf,
}

impl Mischief {
    fn start(self, server: SocketAddr) -> io::Result<()> {
        use std::net::TcpStream;
        let mut client = TcpStream::connect(server)?;
        match self {
            Mischief::ResetsInTheQueue => reset(client),
            Mischief::ResetsInTheMiddle => {
                client.write_all(&[1; 7])?;
                client.read_exact(&mut [0; 3])?;
                reset(client);
            }
            Mischief::SaysNothing => {
                let _end = client.read(&mut [0; 1]);
            }
            Mischief::NeverReads => while client.write(&[2; 10_000]).is_ok() {},
            Mischief::Dribbles => {
                while client.write(&[3]).is_ok() {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            Mischief::EndsItsHalf => {
                client.write_all(&[4; 100])?;
                client.shutdown(Shutdown::Write)?;
                let mut all = Vec::new();
                client.read_to_end(&mut all)?;
                assert_eq!(all, [4; 100]);
            }
        }
        Ok(())
    }
}

/// Each bad client has a thread; fifty good ones come at the same time, and all of them are served.
#[test]
fn bad_clients_keep_no_good_one_from_being_served() {
    const GOOD: usize = 50;
    const ROUNDS: usize = 20;
    let bad = [
        Mischief::ResetsInTheQueue,
        Mischief::ResetsInTheMiddle,
        Mischief::SaysNothing,
        Mischief::NeverReads,
        Mischief::Dribbles,
        Mischief::EndsItsHalf,
    ];
    let bad_clients = run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = spawn_local(async move {
            loop {
                if let Ok(stream) = listener.accept().await {
                    spawn_local(echo(stream)).detach();
                }
            }
        });
        let bad_clients: Vec<_> = bad
            .into_iter()
            .map(|mischief| {
                (
                    mischief,
                    std::thread::spawn(move || mischief.start(address)),
                )
            })
            .collect();
        let good_clients: Vec<_> = (0..GOOD)
            .map(|number| {
                spawn_local(async move {
                    let mut client = TcpStream::connect(address).await?;
                    for round in 0..ROUNDS {
                        let message = pattern(number * ROUNDS + round, 1 + number);
                        client.write_all(&message).await?;
                        let mut answer = vec![0; message.len()];
                        client.read_exact(&mut answer).await?;
                        assert_eq!(answer, message);
                    }
                    client.close().await?;
                    assert_eq!(client.read(&mut [0; 1]).await?, 0);
                    Result::Ok(())
                })
            })
            .collect();
        for client in good_clients {
            client.await?;
        }
        server.cancel().await;
        Ok(bad_clients)
    });
    // The server is gone, and with it what kept them busy.
    for (mischief, client) in bad_clients {
        let done = client.join().expect("no panic");
        if let Mischief::EndsItsHalf = mischief {
            done.expect("it has done nothing wrong");
        }
    }
}

/// Says back what it hears, to the end.
async fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE / 2))?;
    let mut buf = [0; 4096];
    loop {
        match stream.read(&mut buf).await? {
            0 => return stream.close().await,
            count => stream.write_all(&buf[..count]).await?,
        }
    }
}
