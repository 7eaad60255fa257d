//! Both halves of a stream in tasks of their own, both directions at a time.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_lite::future::{try_zip, yield_now};
use futures_lite::io::split;
use futures_lite::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use glommio::net::{Preallocated, RxBuf, TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{Task, spawn_local};
use proptest::prelude::*;

use super::{PATIENCE, Result, pair, run};

/// What passes in one direction: bytes that tell by their value where they belong.
#[derive(Clone, Debug)]
struct Flow {
    length: usize,
    key: u32,
    /// The sizes of the pieces, over and over.
    writes: Vec<usize>,
    reads: Vec<usize>,
}

impl Flow {
    fn byte_at(&self, position: usize) -> u8 {
        let hash = (position as u32 ^ self.key).wrapping_mul(0x9E37_79B1);
        (hash >> 24) as u8
    }

    fn bytes(&self, from: usize, size: usize) -> Vec<u8> {
        let to = self.length.min(from + size);
        (from..to).map(|position| self.byte_at(position)).collect()
    }
}

/// Writes all of `flow`, and the end of the stream. Gives how often it timed out.
async fn send(mut half: impl AsyncWrite + Unpin, flow: Flow) -> io::Result<usize> {
    let (mut sent, mut timeouts) = (0, 0);
    for &size in flow.writes.iter().cycle() {
        if sent == flow.length {
            break;
        }
        let piece = flow.bytes(sent, size);
        let (left, right) = piece.split_at(piece.len() / 3);
        let outcome = if size % 2 == 0 {
            let slices = [left, &[], right].map(IoSlice::new);
            half.write_vectored(&slices).await
        } else {
            half.write(&piece).await
        };
        match outcome {
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => timeouts += 1,
            Err(error) => return Err(error),
        }
        pause(size).await;
    }
    half.flush().await?;
    half.close().await?;
    Ok(timeouts)
}

/// Reads all of `flow`, to the end of the stream. Calls `at_timeout` for each time that it timed
/// out.
async fn receive(
    mut half: impl AsyncRead + Unpin,
    flow: Flow,
    at_timeout: impl Fn(),
) -> io::Result<()> {
    let mut received = 0;
    for &size in flow.reads.iter().cycle() {
        let mut room = vec![0; size];
        let (left, right) = room.split_at_mut(size / 3);
        let outcome = if size % 2 == 0 {
            let mut slices = [left, &mut [], right].map(IoSliceMut::new);
            half.read_vectored(&mut slices).await
        } else {
            half.read(&mut room).await
        };
        match outcome {
            Ok(0) => break,
            Ok(count) => {
                assert!(
                    room[..count] == flow.bytes(received, count),
                    "at {received}"
                );
                received += count;
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => at_timeout(),
            Err(error) => return Err(error),
        }
        pause(size).await;
    }
    assert_eq!(received, flow.length, "all has come, and then the end");
    Ok(())
}

/// Lets others run, or the other end get ahead: after some of the pieces.
async fn pause(size: usize) {
    match size % 11 {
        0 => sleep(Duration::from_micros(20)).await,
        1..4 => yield_now().await,
        _ => {}
    }
}

/// Halves that hand vectored operations on, both ways.
struct Half<B: RxBuf>(Rc<RefCell<TcpStream<B>>>);

impl<B: RxBuf + Unpin> AsyncRead for Half<B> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, buf)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_read_vectored(cx, bufs)
    }
}

impl<B: RxBuf + Unpin> AsyncWrite for Half<B> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_write_vectored(cx, bufs)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_close(cx)
    }
}

type Transfer = Task<io::Result<(usize, ())>>;

/// Both halves of `stream` in tasks of their own.
fn exchange<B: RxBuf + Unpin + 'static>(
    stream: TcpStream<B>,
    forwards_vectored: bool,
    outgoing: Flow,
    incoming: Flow,
) -> Transfer {
    fn start(
        read: impl AsyncRead + Unpin + 'static,
        write: impl AsyncWrite + Unpin + 'static,
        outgoing: Flow,
        incoming: Flow,
    ) -> Transfer {
        let sender = spawn_local(send(write, outgoing));
        let no_timeout = || panic!("the timeout is far longer than any wait");
        let receiver = spawn_local(receive(read, incoming, no_timeout));
        spawn_local(try_zip(sender, receiver))
    }
    if forwards_vectored {
        let stream = Rc::new(RefCell::new(stream));
        let read = Half(Rc::clone(&stream));
        start(read, Half(stream), outgoing, incoming)
    } else {
        let (read, write) = split(stream);
        start(read, write, outgoing, incoming)
    }
}

/// A connection whose buffers in the kernel are filled soon.
///
/// The receive buffer is made small before there is a connection: afterwards TCP would have to drop
/// what it has promised to take, acknowledgements among it.
async fn narrow_pair() -> Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_recv_buffer_size(64 << 10)?;
    let client = TcpStream::connect(listener.local_addr()?).await?;
    let server = listener.accept().await?;
    for stream in [&client, &server] {
        stream.set_send_buffer_size(4 << 10)?;
        // So little would wait for an acknowledgement that comes late.
        stream.set_nodelay(true)?;
    }
    Ok((client, server))
}

fn flows() -> impl Strategy<Value = Flow> {
    let pieces = || {
        let size = prop_oneof![1..64_usize, 64..5_000_usize, 5_000..70_000_usize];
        proptest::collection::vec(size, 1..20)
    };
    (1..400_000_usize, any::<u32>(), pieces(), pieces()).prop_map(|(most, key, writes, reads)| {
        // So that no case is made of hundreds of thousands of system calls.
        let smallest = writes.iter().chain(&reads).min().copied().unwrap_or(1);
        let length = most.min(smallest * 20_000);
        Flow {
            length,
            key,
            writes,
            reads,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 32,
        failure_persistence: None,
        // A case that hangs is ended by its watchdog after a minute, and so is each simpler one tried.
        max_shrink_time: 30_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn halves_in_two_tasks_carry_both_directions_at_once(
        to_server in flows(),
        to_client in flows(),
        is_narrow: bool,
        has_timeouts: bool,
        forwards_vectored: bool,
        buffer_bytes in prop_oneof![Just(None), (1..20_000_usize).prop_map(Some)],
    ) {
        run(async {
            let (client, server) = if is_narrow {
                narrow_pair().await?
            } else {
                pair().await?
            };
            for stream in [&client, &server] {
                let limit = has_timeouts.then_some(PATIENCE * 2);
                stream.set_read_timeout(limit)?;
                stream.set_write_timeout(limit)?;
            }
            let (outgoing, incoming) = (to_client.clone(), to_server.clone());
            let server = match buffer_bytes {
                None => exchange(server, forwards_vectored, outgoing, incoming),
                Some(size) => {
                    let buffer = Preallocated::new(size);
                    exchange(server.buffered_with(buffer), forwards_vectored, outgoing, incoming)
                }
            };
            let client = exchange(client, forwards_vectored, to_server, to_client);
            let ((client_timeouts, ()), (server_timeouts, ())) = try_zip(client, server).await?;
            assert_eq!((client_timeouts, server_timeouts), (0, 0));
            Ok(())
        });
    }
}

const LIMIT: Duration = Duration::from_millis(5);

fn flow(length: usize, key: u32) -> Flow {
    Flow {
        length,
        key,
        writes: vec![5_000, 333, 12_345],
        reads: vec![1_000, 7_777],
    }
}

#[test]
fn a_read_half_that_times_out_disturbs_neither_direction() {
    run(async {
        let (client, server) = narrow_pair().await?;
        client.set_read_timeout(Some(LIMIT))?;
        let (to_server, to_client) = (flow(600_000, 1), flow(300_000, 2));
        let timeouts = Rc::new(Cell::new(0));

        let (read, write) = split(client);
        let sender = spawn_local(send(write, to_server.clone()));
        let count = Rc::clone(&timeouts);
        let count = move || count.set(count.get() + 1);
        let receiver = spawn_local(receive(read, to_client.clone(), count));

        let (read, write) = split(server);
        let consumer = spawn_local(receive(read, to_server, || panic!("it has no timeout")));
        // Says nothing before the other end has lost patience several times.
        while timeouts.get() < 3 {
            sleep(Duration::from_millis(1)).await;
        }
        send(write, to_client).await?;
        receiver.await?;
        consumer.await?;
        assert_eq!(sender.await?, 0, "writes have no timeout");
        Ok(())
    });
}

#[test]
fn a_write_half_that_times_out_disturbs_neither_direction() {
    run(async {
        let (client, server) = narrow_pair().await?;
        client.set_write_timeout(Some(LIMIT))?;
        let (to_server, to_client) = (flow(2_000_000, 3), flow(300_000, 4));
        let room = client.send_buffer_size()? + server.recv_buffer_size()?;
        assert!(
            to_server.length > 2 * room,
            "it cannot be sent before it is read"
        );

        let (read, write) = split(client);
        let sender = spawn_local(send(write, to_server.clone()));
        let receiver = spawn_local(receive(read, to_client.clone(), || {
            panic!("reads have no timeout")
        }));

        let (read, write) = split(server);
        send(write, to_client).await?;
        receiver.await?;
        // What the client writes has not been read for longer than it waits.
        sleep(LIMIT * 4).await;
        receive(read, to_server, || panic!("it has no timeout")).await?;
        assert!(sender.await? > 0, "it was kept waiting");
        Ok(())
    });
}
