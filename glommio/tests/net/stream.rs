//! Reading, writing, peeking, closing.

use std::io::{IoSlice, Read, Write};
use std::net::Shutdown;

use futures_lite::AsyncWrite;
use glommio::net::{Buffered, Preallocated, RxBuf};

use super::{Result, io_kind, pair, pair_with_std, run};
use crate::common::prelude::*;

#[run_test]
async fn messages_go_back_and_forth() {
    let (client, server) = pair().await?;
    go_back_and_forth(client, server, 1000).await
}

/// `times` messages to `server`, which sends them back.
pub(super) async fn go_back_and_forth(
    mut client: TcpStream,
    mut server: TcpStream,
    times: u32,
) -> Result {
    let echo = spawn_local(async move {
        let mut buf = [0; 64];
        loop {
            match server.read(&mut buf).await? {
                0 => return Ok::<_, io::Error>(()),
                count => server.write_all(&buf[..count]).await?,
            }
        }
    });
    for round in 0..times {
        client.write_all(&round.to_be_bytes()).await?;
        let mut answer = [0; 4];
        client.read_exact(&mut answer).await?;
        assert_eq!(u32::from_be_bytes(answer), round);
    }
    client.close().await?;
    echo.await?;
    Ok(())
}

/// Few bytes and many go different ways.
#[run_test]
async fn a_vectored_write_sends_all_slices_in_order_whatever_their_sizes() {
    let (mut client, mut server) = pair().await?;
    let ones = vec![1; 600];
    let sizes: [&[usize]; 9] = [
        &[1],
        &[0, 0, 3],
        &[511, 1],
        &[511, 0, 1],
        &[512, 1],
        &[1, 512],
        &[300, 300, 300],
        &ones,
        &ones[..512],
    ];
    let mut next = 0_u8;
    for sizes in sizes {
        let mut filled = |&size: &usize| -> Vec<u8> {
            std::iter::repeat_with(|| {
                next = next.wrapping_add(1);
                next
            })
            .take(size)
            .collect()
        };
        let pieces: Vec<_> = sizes.iter().map(&mut filled).collect();
        let slices: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let all = pieces.concat();
        assert_eq!(client.write_vectored(&slices).await?, all.len());
        let mut received = vec![0; all.len()];
        server.read_exact(&mut received).await?;
        assert_eq!(received, all, "{sizes:?}");
    }
}

#[run_test]
async fn empty_buffers_never_wait() {
    let (client, _server) = pair().await?;
    let mut client = client.buffered();
    assert_eq!(client.read(&mut []).await?, 0);
    assert_eq!(client.read_vectored(&mut []).await?, 0);
    assert_eq!(client.write(&[]).await?, 0);
    assert_eq!(client.write_vectored(&[IoSlice::new(&[])]).await?, 0);
    assert_eq!(client.peek(&mut []).await?, 0);
}

#[run_test]
async fn a_buffer_is_filled_once_and_consumed_at_will() {
    let (server, mut peer) = pair_with_std().await?;
    let mut server = server.buffered_with(Preallocated::new(4));
    peer.write_all(b"123456")?;
    sleep(Duration::from_millis(10)).await;
    assert_eq!(server.fill_buf().await?, b"1234");
    assert_eq!(server.fill_buf().await?, b"1234", "nothing was consumed");
    server.consume(1);
    assert_eq!(
        server.fill_buf().await?,
        b"234",
        "not empty, so not refilled"
    );
    let mut buf = [0; 100];
    assert_eq!(
        server.read(&mut buf).await?,
        3,
        "only what the buffer holds"
    );
    assert_eq!(server.fill_buf().await?, b"56");
    server.consume(1000);
    drop(peer);
    assert_eq!(server.fill_buf().await?, b"");
    assert_eq!(server.fill_buf().await?, b"", "the kernel is asked again");
}

#[run_test]
async fn a_buffer_without_room_is_given_some() {
    let (server, mut peer) = pair_with_std().await?;
    let mut server = server.buffered_with(Preallocated::new(0));
    peer.write_all(b"ab")?;
    assert_eq!(server.fill_buf().await?, b"a");
    server.consume(1);
    assert_eq!(server.fill_buf().await?, b"b");
}

/// A receive buffer written outside the crate, whose capacity varies.
#[derive(Debug, Default)]
struct Growing {
    bytes: Vec<u8>,
    filled: usize,
}

impl RxBuf for Growing {
    fn read(&mut self, buf: &mut [u8]) -> usize {
        let count = self.peek(buf);
        self.consume(count);
        count
    }
    fn peek(&self, mut buf: &mut [u8]) -> usize {
        buf.write(self.as_bytes()).expect("writing to memory works")
    }
    fn is_empty(&self) -> bool {
        self.filled == 0
    }
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
    fn consume(&mut self, amt: usize) {
        let amt = amt.min(self.filled);
        self.bytes.copy_within(amt..self.filled, 0);
        self.filled -= amt;
    }
    fn buffer_size(&self) -> usize {
        self.bytes.len().max(1)
    }
    fn handle_result(&mut self, result: usize) {
        self.filled += result;
    }
    fn unfilled(&mut self) -> &mut [u8] {
        let size = self.bytes.len() * 2 + 1;
        self.bytes.resize(size, 0);
        &mut self.bytes[self.filled..]
    }
}

impl Buffered for Growing {}

#[run_test]
async fn buffers_of_users_work() {
    let (server, mut peer) = pair_with_std().await?;
    peer.write_all(b"0123456789")?;
    drop(peer);
    let mut server: TcpStream<Growing> = server.buffered_with(Growing::default());
    let mut all = Vec::new();
    server.read_until(b'8', &mut all).await?;
    assert_eq!(all, b"012345678");
    let mut rest = String::new();
    server.read_to_string(&mut rest).await?;
    assert_eq!(rest, "9");
}

#[run_test]
async fn peeking_looks_into_the_buffer_first_and_the_kernel_second() {
    let (server, mut peer) = pair_with_std().await?;
    let mut server = server.buffered_with(Preallocated::new(4));
    peer.write_all(b"abcdefgh")?;
    sleep(Duration::from_millis(10)).await;
    let mut one = [0];
    server.read_exact(&mut one).await?;
    let mut buf = [0; 16];
    assert_eq!(server.peek(&mut buf).await?, 7, "3 here and 4 there");
    assert_eq!(&buf[..7], b"bcdefgh");
    assert_eq!(server.peek(&mut buf[..2]).await?, 2);
    let mut all = [0; 7];
    server.read_exact(&mut all).await?;
    assert_eq!(&all, b"bcdefgh");
    // With something in the buffer it does not wait for more.
    peer.write_all(b"xy")?;
    server.read_exact(&mut one).await?;
    assert_eq!(server.peek(&mut buf).await?, 1);
}

#[run_test]
async fn a_peek_waits_for_data_beside_others() {
    let (server, mut peer) = pair_with_std().await?;
    let server = Rc::new(server);
    let peeks: Vec<_> = (0..10)
        .map(|_| {
            let server = Rc::clone(&server);
            spawn_local(async move {
                let mut buf = [0; 8];
                let count = server.peek(&mut buf).await?;
                Ok::<_, glommio::GlommioError<()>>(buf[..count].to_vec())
            })
        })
        .collect();
    sleep(Duration::from_millis(5)).await;
    peer.write_all(b"all")?;
    for peek in peeks {
        assert_eq!(peek.await?, b"all");
    }
}

#[run_test]
async fn shutdown_ends_what_it_is_told_to() {
    let (client, mut server) = pair().await?;
    let client = Rc::new(client);
    let peeking = Rc::clone(&client);
    let waits = spawn_local(async move { peeking.peek(&mut [0; 1]).await });
    sleep(Duration::from_millis(5)).await;
    client.shutdown(Shutdown::Read).await?;
    assert_eq!(waits.await?, 0, "a local shutdown ends the wait");
    std::future::poll_fn(|cx| client.poll_shutdown(cx, Shutdown::Both)).await?;
    assert_eq!(server.read(&mut [0; 1]).await?, 0);
}

#[run_test]
async fn a_socket_without_connection_says_so() {
    let plain = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    let stream = TcpStream::from(plain);
    let error = stream
        .shutdown(Shutdown::Both)
        .await
        .expect_err("no connection");
    assert_eq!(io_kind(&error), io::ErrorKind::NotConnected);
    let error = stream.peer_addr().expect_err("no peer");
    assert_eq!(io_kind(&error), io::ErrorKind::NotConnected);
}

/// Writes until nothing more fits; returns how many bytes did.
pub(super) async fn fill(stream: &mut (impl AsyncWrite + Unpin)) -> usize {
    let mut filled = 0;
    let mut refusals = 0;
    // The kernel moves what was written to the peer in its own time, which makes room again.
    while refusals < 5 {
        match poll_once(stream.write(&[b'x'; 16 << 10])).await {
            Some(written) => {
                filled += written.expect("the peer is there");
                refusals = 0;
            }
            None => {
                refusals += 1;
                sleep(Duration::from_millis(2)).await;
            }
        }
    }
    filled
}

#[test]
fn streams_from_elsewhere_work_and_go_back() {
    for nonblocking in [false, true] {
        run(async move {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            let client = std::net::TcpStream::connect(listener.local_addr()?)?;
            let (mut peer, _) = listener.accept()?;
            client.set_nonblocking(nonblocking)?;
            let mut stream = TcpStream::from(client);
            assert_eq!(stream.as_fd().as_raw_fd(), stream.as_raw_fd());
            let reader = spawn_local(async move {
                let mut buf = [0; 4];
                stream.read_exact(&mut buf).await.map(|()| (stream, buf))
            });
            sleep(Duration::from_millis(2)).await;
            peer.write_all(b"ping")?;
            let (mut stream, buf) = reader.await?;
            assert_eq!(&buf, b"ping");
            super::abandon(stream.read(&mut [0; 1])).await;
            // SAFETY: the descriptor has just been given up by its owner.
            let mut plain = unsafe { std::net::TcpStream::from_raw_fd(stream.into_raw_fd()) };
            plain.set_nonblocking(false)?;
            peer.write_all(b"pong")?;
            let mut buf = [0; 4];
            plain.read_exact(&mut buf)?;
            assert_eq!(&buf, b"pong");
            Ok(())
        });
    }
}

#[run_test]
async fn any_number_of_pending_polls_is_one_wait() {
    let (mut stream, mut peer) = pair_with_std().await?;
    let mut buf = [0; 8];
    for _ in 0..64_000 {
        assert!(poll_once(stream.read(&mut buf)).await.is_none());
    }
    peer.write_all(b"at last")?;
    assert_eq!(stream.read(&mut buf).await?, 7);
    assert_eq!(&buf[..7], b"at last");
}
