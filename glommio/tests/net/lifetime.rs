//! Ends: of sockets whose peers wait for it, and of executors with sockets under way.

use std::io::{Read, Write};

use glommio::unconstrained;

use super::unix_listener::{Full, Place};
use super::{AGES, PATIENCE, abandon, aged_pair, at_each_age, pair_with_std, run};
use crate::common::prelude::*;

/// Computes, without ever yielding the thread, until `is_done`.
pub(super) fn compute_until(is_done: &AtomicBool) {
    let started = Instant::now();
    while !is_done.load(Ordering::Acquire) {
        assert!(
            started.elapsed() < PATIENCE,
            "it has to happen while this task computes"
        );
        std::hint::spin_loop();
    }
}

/// Reads to the end of the stream in a thread of its own.
pub(super) fn reads_to_end(mut peer: impl Read + Send + 'static) -> (Arc<AtomicBool>, ReadThread) {
    let has_ended = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&has_ended);
    let thread = std::thread::spawn(move || {
        let mut all = Vec::new();
        let result = peer.read_to_end(&mut all).map(|_| all);
        ended.store(true, Ordering::Release);
        result
    });
    (has_ended, thread)
}

pub(super) type ReadThread = std::thread::JoinHandle<io::Result<Vec<u8>>>;

#[run_test(at_each_age)]
async fn the_peer_sees_the_end_while_the_dropping_task_computes(age: usize) {
    let (mut stream, peer) = aged_pair(age).await?;
    let (has_ended, reader) = reads_to_end(peer);
    stream.write_all(b"last words").await?;
    // Both a read and a peek are in the kernel's hands.
    abandon(stream.read(&mut [0; 8])).await;
    abandon(stream.peek(&mut [0; 8])).await;
    drop(stream);
    compute_until(&has_ended);
    assert_eq!(reader.join().expect("no panic")?, b"last words");
}

/// The end goes out before all that the task gave up earlier, or with it, however much that was.
#[run_test(at_each_age)]
async fn the_peer_sees_the_end_however_much_else_was_given_up(age: usize) {
    const RECEIVES: usize = 2000;
    let (mut stream, peer) = aged_pair(age).await?;
    let (has_ended, reader) = reads_to_end(peer);
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut receives: Vec<_> = (0..RECEIVES)
        .map(|_| Box::pin(async { socket.recv_from(&mut [0; 8]).await }))
        .collect();
    for receive in &mut receives {
        assert!(poll_once(receive).await.is_none());
    }
    abandon(stream.read(&mut [0; 8])).await;
    drop(receives);
    drop(stream);
    compute_until(&has_ended);
    assert_eq!(reader.join().expect("no panic")?, b"");
}

#[run_test]
async fn a_write_that_waits_does_not_hold_the_connection_either() {
    let (mut stream, peer) = pair_with_std().await?;
    let filled = super::stream::fill(&mut stream).await;
    abandon(stream.write(b"more")).await;
    drop(stream);
    let (has_ended, reader) = reads_to_end(peer);
    compute_until(&has_ended);
    assert_eq!(reader.join().expect("no panic")?.len(), filled);
}

/// One connection behind two descriptors ends when the second is closed, not the first.
#[run_test(at_each_age)]
async fn dropping_one_of_two_handles_ends_nothing(age: usize) {
    let (stream, mut peer) = aged_pair(age).await?;
    let mut writer = {
        use std::os::fd::AsFd;
        let fd = stream.as_fd().try_clone_to_owned()?;
        TcpStream::from(socket2::Socket::from(fd))
    };
    let mut reader = stream;
    abandon(reader.read(&mut [0; 8])).await;
    drop(reader);
    writer.write_all(b"still here").await?;
    peer.write_all(b"indeed")?;
    let mut buf = [0; 6];
    writer.read_exact(&mut buf).await?;
    assert_eq!(&buf, b"indeed");
    let mut buf = [0; 10];
    peer.read_exact(&mut buf)?;
    assert_eq!(&buf, b"still here");
}

#[run_test]
async fn an_accepted_stream_that_is_not_bound_is_closed() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
    drop(listener.shared_accept().await?);
    assert_eq!(client.read_to_end(&mut Vec::new())?, 0);
}

/// Sockets outlive their executor as sockets that cannot wait.
#[test]
fn a_socket_without_executor_gives_errors() {
    AGES.into_iter().for_each(is_left_without_executor);
}

fn is_left_without_executor(age: usize) {
    let (place, full) = (Place::new(), Full::new());
    let executor = LocalExecutor::default();
    let (mut stream, mut peer, listener, socket, sends, connects) = executor.run(async {
        let (mut stream, peer) = aged_pair(age).await.expect("they connect");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("that is a timeout");
        abandon(stream.read(&mut [0; 1])).await;
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        abandon(listener.accept()).await;
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a free port");
        abandon(socket.recv_from(&mut [0; 1])).await;
        let receiver = UnixDatagram::bind(place.path()).expect("a free path");
        let sender = UnixDatagram::unbound().expect("sockets can be made");
        let path = place.path().to_owned();
        let mut sends = Box::pin(async move {
            loop {
                sender.send_to(b"more", &path).await?;
            }
        });
        assert!(poll_once(unconstrained(&mut sends)).await.is_none());
        let mut connects = Box::pin(UnixStream::connect(full.path().to_owned()));
        assert!(poll_once(&mut connects).await.is_none());
        let path = full.path().to_owned();
        spawn_local(async move { UnixStream::connect(path).await }).detach();
        sleep(Duration::from_millis(2)).await;
        (stream, peer, listener, socket, (sends, receiver), connects)
    });
    drop(executor);
    stream
        .set_read_timeout(Some(PATIENCE * 2))
        .expect("that is a timeout");
    let _error = poll_now(stream.read(&mut [0; 4])).expect_err("it cannot wait");
    let _error = poll_now(stream.peek(&mut [0; 4])).expect_err("it cannot wait");
    let _error = poll_now(listener.accept()).expect_err("it cannot wait");
    let _error = poll_now(socket.recv_from(&mut [0; 4])).expect_err("it cannot wait");
    let (sends, receiver) = sends;
    let sent: Result<(), GlommioError<()>> = poll_now(sends);
    let _error = sent.expect_err("it cannot wait");
    let _error = poll_now(connects).expect_err("it cannot wait");
    // What needs no waiting works.
    poll_now(stream.write_all(b"done")).expect("the send buffer has space");
    assert_eq!(
        poll_now(receiver.recv(&mut [0; 8])).expect("it is there"),
        4
    );
    drop((stream, listener, socket, receiver));
    let mut all = String::new();
    peer.read_to_string(&mut all).expect("no reset");
    assert_eq!(all, "done");
    peer.write_all(b"?")
        .expect("the first write after the end succeeds");
}

/// The output of a future that does not wait.
pub(super) fn poll_now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// A socket for which a dropped future had waited gives its port back when it is dropped.
#[run_test]
async fn a_dropped_socket_gives_its_port_back_at_once() {
    // An address at which no other test takes the port meanwhile.
    let plain = std::net::UdpSocket::bind("127.0.0.2:0")?;
    let address = plain.local_addr()?;
    let socket = UdpSocket::from(plain);
    abandon(socket.recv_from(&mut [0; 8])).await;
    drop(socket);
    std::net::UdpSocket::bind(address)?;
}
