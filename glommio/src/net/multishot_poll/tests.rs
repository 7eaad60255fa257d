//! When a multishot poll is in flight and when it ends: from outside only the cost shows it.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::task::Poll;
use std::time::Duration;

use super::*;
use crate::executor::LocalExecutor;
use crate::reactor::current;
use crate::timer::{sleep, timeout};

fn run(test: impl AsyncFnOnce(&MultishotPoll, UnixStream, UnixStream)) {
    let patience = Duration::from_secs(60);
    let in_time = LocalExecutor::default().run(timeout(patience, async {
        let poll = MultishotPoll::new(current::current());
        let (socket, peer) = UnixStream::pair().expect("descriptors are free");
        test(&poll, socket, peer).await;
        Ok(())
    }));
    in_time.expect("it does not hang");
}

/// Waits until there are events, and clears them.
async fn next_event(poll: &MultishotPoll, fd: RawFd) {
    poll_fn(|cx| {
        if poll.has_events() {
            return Poll::Ready(());
        }
        poll.wait(fd, cx.waker()).expect("the executor is there");
        Poll::Pending
    })
    .await;
    poll.clear_events();
}

/// The operation in flight, if there is one: no two are the same.
fn sink_of(poll: &MultishotPoll) -> Option<Rc<EventSink>> {
    poll.events.in_flight.borrow().clone()
}

fn is_in_flight(poll: &MultishotPoll, before: &Rc<EventSink>) -> bool {
    sink_of(poll).is_some_and(|now| Rc::ptr_eq(&now, before))
}

#[run_test(run)]
async fn one_operation_serves_many_waits(
    poll: &MultishotPoll,
    mut socket: UnixStream,
    mut peer: UnixStream,
) {
    let fd = socket.as_raw_fd();
    assert!(sink_of(poll).is_none(), "no task waits yet");
    let mut first = None;
    for _ in 0..100 {
        peer.write_all(b"x").expect("the socket buffer is not full");
        next_event(poll, fd).await;
        socket.read_exact(&mut [0]).expect("there was an event");
        let first = first.get_or_insert_with(|| sink_of(poll).expect("it was waited for"));
        assert!(is_in_flight(poll, first));
    }
}

#[run_test(run)]
async fn unread_events_end_it_until_a_task_waits(
    poll: &MultishotPoll,
    mut socket: UnixStream,
    mut peer: UnixStream,
) {
    let fd = socket.as_raw_fd();
    peer.write_all(b"x").expect("the socket buffer is not full");
    next_event(poll, fd).await;
    let first = sink_of(poll).expect("it was waited for");
    while is_in_flight(poll, &first) {
        peer.write_all(b"x").expect("the socket buffer is not full");
        sleep(Duration::from_micros(10)).await;
    }
    assert!(sink_of(poll).is_none());
    assert!(poll.has_events());
    socket.set_nonblocking(true).expect("it is a socket");
    while socket.read(&mut [0; 64]).is_ok() {}
    poll.clear_events();
    peer.write_all(b"x").expect("the socket buffer is not full");
    next_event(poll, fd).await;
    assert!(sink_of(poll).is_some());
}

/// As after a full completion queue, which ends an operation with a success.
#[run_test(run)]
async fn an_operation_that_is_over_is_followed_by_another(
    poll: &MultishotPoll,
    socket: UnixStream,
    mut peer: UnixStream,
) {
    let fd = socket.as_raw_fd();
    poll_fn(|cx| {
        poll.wait(fd, cx.waker()).expect("the executor is there");
        Poll::Ready(())
    })
    .await;
    let first = sink_of(poll).expect("a task waits");
    first.complete(Ok(0), false);
    assert!(poll.has_events() && sink_of(poll).is_none());
    // Its later completions are ignored.
    poll.clear_events();
    first.complete(Ok(0), false);
    assert!(!poll.has_events());
    peer.write_all(b"x").expect("the socket buffer is not full");
    next_event(poll, fd).await;
    assert!(!is_in_flight(poll, &first));
}

#[run_test(run)]
async fn a_poll_that_fails_is_an_error(
    poll: &MultishotPoll,
    socket: UnixStream,
    _peer: UnixStream,
) {
    // An open file that cannot be polled is always ready; a number that is no file is an error.
    let nothing = socket.as_raw_fd() + 10_000;
    let error = poll_fn(|cx| match poll.wait(nothing, cx.waker()) {
        Err(error) => Poll::Ready(error),
        Ok(()) => Poll::Pending,
    })
    .await;
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    ready_again(poll, &socket).await;
}

/// A multishot poll goes on after an error, as the socket may have recovered.
async fn ready_again(poll: &MultishotPoll, socket: &UnixStream) {
    poll.clear_events();
    poll_fn(|cx| Poll::Ready(poll.wait(socket.as_raw_fd(), cx.waker())))
        .await
        .expect("it has told of its error");
    assert!(sink_of(poll).is_some());
}

/// `POLLIN`, `POLLPRI`, `POLLRDNORM` and `POLLRDBAND`, as far as they are asked for: one wake of data.
const ONE_WAKE: u32 = libc::POLLIN as u32 | URGENT | WAKE_OF_DATA;

/// A connection whose poll is in flight, and what it reports to.
async fn tcp_pair(poll: &MultishotPoll) -> (TcpStream, TcpStream, Rc<EventSink>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    let mut peer = TcpStream::connect(address).expect("it listens");
    peer.set_nodelay(true).expect("it is TCP");
    let (socket, _) = listener.accept().expect("a client came");
    peer.write_all(b"x").expect("the socket buffer is not full");
    next_event(poll, socket.as_raw_fd()).await;
    poll.note_data();
    assert!(poll.note_end_of_data(socket.as_raw_fd()));
    let sink = sink_of(poll).expect("it was waited for");
    (socket, peer, sink)
}

/// The socket has urgent data, and what the kernel will report of that itself is left out.
fn send_urgent(socket: &TcpStream, peer: &TcpStream) {
    let sent = socket2::SockRef::from(peer).send_out_of_band(b"!");
    sent.expect("there is space");
    while !has_urgent_data(socket.as_raw_fd()) {}
}

#[run_test(run)]
async fn the_events_of_data_are_not_taken_for_urgent(
    poll: &MultishotPoll,
    _: UnixStream,
    _: UnixStream,
) {
    let (mut socket, mut peer, _sink) = tcp_pair(poll).await;
    for _ in 0..100 {
        peer.write_all(b"x").expect("the socket buffer is not full");
        next_event(poll, socket.as_raw_fd()).await;
        socket.read_exact(&mut [0]).expect("there was an event");
        poll.note_data();
        assert!(poll.note_end_of_data(socket.as_raw_fd()));
        assert!(poll.is_quiet());
    }
}

#[test]
fn an_event_that_data_does_not_explain_may_be_one_of_urgent_data() {
    for (events, has_received) in [(1, false), (2, true), (5, true)] {
        for is_urgent in [false, true] {
            run(async |poll, _, _| {
                let (socket, peer, sink) = tcp_pair(poll).await;
                if is_urgent {
                    send_urgent(&socket, &peer);
                }
                for _ in 0..events {
                    sink.complete(Ok(ONE_WAKE), true);
                }
                poll.clear_events();
                if has_received {
                    poll.note_data();
                }
                let is_empty = poll.note_end_of_data(socket.as_raw_fd());
                assert_eq!(is_empty, !is_urgent, "{events} {has_received}");
                assert_eq!(poll.is_quiet(), !is_urgent);
            });
        }
    }
}

/// The event of urgent data that is not next in line yet, and then data of which the events are to come.
#[run_test(run)]
async fn an_event_that_is_not_explained_stays_so_until_the_socket_is_empty(
    poll: &MultishotPoll,
    _: UnixStream,
    _: UnixStream,
) {
    let (socket, peer, sink) = tcp_pair(poll).await;
    send_urgent(&socket, &peer);
    sink.complete(Ok(ONE_WAKE), true);
    poll.clear_events();
    // A receive that has filled its buffer, and one that has not.
    poll.note_data();
    sink.complete(Ok(ONE_WAKE), true);
    poll.clear_events();
    poll.note_data();
    assert!(!poll.note_end_of_data(socket.as_raw_fd()));
}

#[test]
fn ends_and_urgent_data_that_the_kernel_has_seen_are_known_at_once() {
    let ends = [libc::POLLRDHUP, libc::POLLHUP, libc::POLLERR, libc::POLLPRI];
    for mask in ends {
        run(async |poll, _, _| {
            let (socket, _peer, sink) = tcp_pair(poll).await;
            sink.complete(Ok((libc::POLLIN | mask) as u32), true);
            poll.clear_events();
            poll.note_data();
            assert!(!poll.note_end_of_data(socket.as_raw_fd()));
            assert!(!poll.is_quiet());
        });
    }
}
