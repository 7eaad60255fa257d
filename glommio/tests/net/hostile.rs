//! Peers that go without notice, or before their time.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::thread::JoinHandle;

use glommio::net::Preallocated;
use socket2::SockRef;

use super::deaf::Deaf;
use super::{AGES, PATIENCE, abandon, aged_pair, at_each_age, io_kind, run};
use crate::common::prelude::*;

/// Closes a connection without the courtesies.
pub(super) fn reset(peer: std::net::TcpStream) {
    SockRef::from(&peer)
        .set_linger(Some(Duration::ZERO))
        .expect("any socket can");
    drop(peer);
}

/// Bytes of which each tells where in the stream it stands, as far as 251 can.
pub(super) fn pattern(start: usize, length: usize) -> Vec<u8> {
    (start..start + length)
        .map(|position| (position.wrapping_mul(31) % 251) as u8)
        .collect()
}

/// The ways to read from a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Plain,
    Vectored,
    Filled,
    Peeked,
}

const WAYS: [Way; 4] = [Way::Plain, Way::Vectored, Way::Filled, Way::Peeked];

/// What a read finds, which it takes (or looks at) whole.
pub(super) async fn read_in_a(
    way: Way,
    stream: &mut TcpStream<Preallocated>,
) -> io::Result<Vec<u8>> {
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

#[run_test(at_each_age)]
async fn a_reset_ends_a_read_of_any_kind(age: usize) {
    for way in WAYS {
        let (stream, peer) = aged_pair(age).await?;
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
        assert_eq!(error.raw_os_error(), Some(libc::ECONNRESET));
        // Reported once, and over for good.
        assert_eq!(read_in_a(way, &mut stream).await?, b"", "{way:?}");
    }
}

/// A peek that has bytes returns them; the reset, of which the kernel tells once, is for the read
/// that follows.
#[run_test(at_each_age)]
async fn a_peek_at_received_bytes_does_not_fail_for_a_reset_and_does_not_hide_it(age: usize) {
    for way in WAYS {
        let (stream, mut peer) = aged_pair(age).await?;
        let mut stream = stream.buffered_with(Preallocated::new(16));
        peer.write_all(b"abcd")?;
        stream.read_exact(&mut [0]).await?;
        reset(peer);
        sleep(Duration::from_millis(5)).await;
        let mut buf = [0; 32];
        for _ in 0..3 {
            assert_eq!(stream.peek(&mut buf).await?, 3);
            assert_eq!(&buf[..3], b"bcd");
        }
        stream.read_exact(&mut buf[..3]).await?;
        assert_eq!(&buf[..3], b"bcd");
        let read = read_in_a(way, &mut stream).await;
        let error = read.expect_err("the connection is gone");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{way:?}");
        assert_eq!(read_in_a(way, &mut stream).await?, b"", "{way:?}");
    }
}

#[run_test(at_each_age)]
async fn what_came_before_a_reset_is_read_before_it_is_reported(age: usize) {
    const LENGTH: usize = 1000;
    for (waits_from_the_start, settles) in [(false, false), (false, true), (true, false)] {
        for room in [1, 7, 8192] {
            let (stream, mut peer) = aged_pair(age).await?;
            let mut stream = stream.buffered_with(Preallocated::new(room));
            if waits_from_the_start {
                abandon(stream.read(&mut [0; 8])).await;
            }
            peer.write_all(&pattern(0, LENGTH))?;
            if settles {
                sleep(Duration::from_millis(1)).await;
            }
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
}

#[run_test(at_each_age)]
async fn a_reset_ends_a_write_that_waits(age: usize) {
    for vectored in [false, true] {
        let (mut stream, peer) = aged_pair(age).await?;
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
}

#[run_test(at_each_age)]
async fn a_reset_of_an_idle_connection_is_reported_to_the_next_call(age: usize) {
    for waited_before in [false, true] {
        for comes_first in 0..4 {
            let (mut stream, peer) = aged_pair(age).await?;
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
}

/// Connections that end while they wait to be accepted do not keep the others from being served.
#[run_test]
async fn connections_reset_in_the_queue_cost_no_other_connection() {
    const CLIENTS: u32 = 30;
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
#[run_test(at_each_age)]
async fn either_end_of_a_connection_may_end_its_half_first(age: usize) {
    const LENGTH: usize = 3 << 20;
    for peer_is_first in [false, true] {
        let (mut stream, peer) = aged_pair(age).await?;
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
}

/// An end, from either side, is seen after the last bytes, in whatever order the reads and the events come.
#[test]
fn what_came_before_an_end_is_read_before_it_is_seen() {
    let settle = async || sleep(Duration::from_millis(1)).await;
    for age in AGES {
        for (waits, settles, reads_first) in [
            (true, true, false),
            (true, false, false),
            (false, true, false),
            (false, false, false),
            (false, false, true),
        ] {
            run(async move {
                for ends_here in [false, true] {
                    for last in [&b""[..], b"1", b"12345678", b"123456789"] {
                        let (stream, mut peer) = aged_pair(age).await?;
                        let mut stream = stream.buffered_with(Preallocated::new(8));
                        if waits {
                            abandon(stream.read(&mut [0; 8])).await;
                        }
                        peer.write_all(last)?;
                        // A machine that is short of time may deliver it later, though over loopback.
                        let mut byte = [MaybeUninit::uninit()];
                        while !last.is_empty() && SockRef::from(&stream).peek(&mut byte).is_err() {
                            std::thread::yield_now();
                        }
                        let mut all = vec![0; if reads_first { last.len() } else { 0 }];
                        stream.read_exact(&mut all).await?;
                        if settles {
                            settle().await;
                        }
                        if ends_here {
                            stream.shutdown(Shutdown::Read).await?;
                        } else {
                            peer.shutdown(Shutdown::Write)?;
                        }
                        settle().await;
                        stream.read_to_end(&mut all).await?;
                        assert_eq!(all, last);
                        assert_eq!(stream.read(&mut [0; 8]).await?, 0, "the end stays");
                    }
                }
                Ok(())
            });
        }
    }
}

/// The listener goes while a connection to it is on its way. The kernel tries again after a second,
/// and is refused.
#[run_test]
async fn a_listener_that_ends_refuses_those_under_way() {
    let deaf = Deaf::new();
    let address = deaf.address;
    let plain = spawn_local(async move { TcpStream::connect(address).await });
    let limited = spawn_local(async move { TcpStream::connect_timeout(address, PATIENCE).await });
    sleep(Duration::from_millis(5)).await;
    drop(deaf);
    for connecting in [plain, limited] {
        let error = connecting.await.expect_err("no socket listens");
        assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
    }
    Ok(())
}

/// A connection closed with unread bytes is reset, as the kernel has it, and what was
/// read into a buffer does not count as unread.
#[run_test(at_each_age)]
async fn a_close_beside_unread_bytes_ends_the_connection_at_once(age: usize) {
    let (stream, mut peer) = aged_pair(age).await?;
    peer.write_all(b"unread.")?;
    sleep(Duration::from_millis(2)).await;
    drop(stream);
    let error = peer.read(&mut [0; 1]).expect_err("bytes were not read");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

    let (stream, mut peer) = aged_pair(age).await?;
    let mut stream = stream.buffered();
    peer.write_all(b"heard")?;
    assert_eq!(stream.fill_buf().await?, b"heard");
    stream.write_all(b"bye").await?;
    drop(stream);
    let mut all = String::new();
    peer.read_to_string(&mut all)?;
    assert_eq!(all, "bye");
}
