//! Unix datagrams that wait for room: the receiver's queue is short, and waiting for it is the
//! rule.

use glommio::unconstrained;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::timeouts::LIMIT;
use super::unix_datagram::unconnected_pair;
use super::unix_listener::Place;
use super::unix_stream::rests;
use super::{
    Counted, PATIENCE, Result, abandon, give_up, io_kind, leaves_no_descriptor, run, run_in_child,
};
use crate::common::prelude::*;

/// Has `send` fill the queue of a receiver that does not read. Returns how many datagrams it takes.
async fn fill<F: Future<Output = Result<usize>>>(send: impl Fn() -> F) -> usize {
    let mut sent = 0;
    while let Some(result) = poll_once(unconstrained(send())).await {
        result.expect("the receiver is there");
        sent += 1;
    }
    sent
}

fn numbered(number: usize) -> Vec<u8> {
    let mut payload = vec![number as u8; number % 300 + 2];
    payload[..2].copy_from_slice(&(number as u16).to_be_bytes());
    payload
}

/// A flood, from a sender that is connected to the receiver or not, and one of a pair.
#[test]
fn a_flood_against_a_full_queue_arrives_whole_and_in_order() {
    const DATAGRAMS: usize = 3000;
    for kind in 0..3 {
        run(async move {
            let place = Place::new();
            let (sender, receiver) = if kind == 0 {
                UnixDatagram::pair()?
            } else {
                (UnixDatagram::unbound()?, UnixDatagram::bind(place.path())?)
            };
            if kind == 1 {
                sender.connect(place.path()).await?;
            }
            let path = place.path().to_owned();
            let flood = spawn_local(async move {
                for number in 0..DATAGRAMS {
                    let payload = numbered(number);
                    let sent = if kind == 2 {
                        sender.send_to(&payload, &path).await?
                    } else {
                        sender.send(&payload).await?
                    };
                    assert_eq!(sent, payload.len());
                }
                Ok::<_, GlommioError<()>>(sender)
            });
            let mut buf = [0; 400];
            for number in 0..DATAGRAMS {
                if number % 500 == 0 {
                    sleep(Duration::from_millis(2)).await;
                }
                let count = receiver.recv(&mut buf).await?;
                assert_eq!(buf[..count], numbered(number));
            }
            drop(flood.await?);
            abandon(receiver.recv(&mut buf)).await;
            Ok(())
        });
    }
}

/// An unconnected socket is called writable however full the receiver is.
#[run_test]
async fn a_send_that_waits_for_the_receiver_does_not_spin() {
    let (place, receiver, sender) = unconnected_pair()?;
    let filled = fill(|| sender.send_to(b"full", place.path())).await;
    assert!(filled > 0);
    let path = place.path().to_owned();
    let waiting = Rc::clone(&sender);
    let waits = spawn_local(async move { waiting.send_to(b"at last", path).await });
    sleep(Duration::from_millis(10)).await;
    rests().await;
    let mut buf = [0; 8];
    for _ in 0..filled {
        assert_eq!(receiver.recv(&mut buf).await?, 4);
    }
    assert_eq!(waits.await?, 7);
    assert_eq!(receiver.recv(&mut buf).await?, 7);
    assert_eq!(&buf[..7], b"at last");
}

/// Here it is the sender's own buffer that is full, long before the receiver's queue is.
#[run_test]
async fn long_datagrams_fill_the_sender_and_wait_without_spinning() {
    let (place, receiver, sender) = unconnected_pair()?;
    let long = vec![b'l'; 60_000];
    let filled = fill(|| sender.send_to(&long, place.path())).await;
    // Another sender has room for it.
    let other = UnixDatagram::unbound()?;
    other.send_to(b"queued", place.path()).await?;
    let (path, waiting, payload) = (place.path().to_owned(), Rc::clone(&sender), long.clone());
    let waits = spawn_local(async move { waiting.send_to(&payload, path).await });
    rests().await;
    let mut buf = vec![0; 70_000];
    for _ in 0..filled {
        assert_eq!(receiver.recv(&mut buf).await?, 60_000);
    }
    assert_eq!(receiver.recv(&mut buf).await?, 6);
    assert_eq!(waits.await?, 60_000);
    assert_eq!(receiver.recv(&mut buf).await?, 60_000);
    assert!(buf[..60_000] == long);
    let too_long = vec![0; 1 << 20];
    let error = sender.send_to(&too_long, place.path()).await;
    let error = error.expect_err("longer than the send buffer");
    assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
}

/// The kernel calls a connected socket full when its peer is, also for what goes elsewhere.
#[run_test]
async fn a_peer_that_does_not_read_holds_up_nothing_for_others() {
    let place = Place::new();
    let elsewhere = place.beside("elsewhere");
    let _deaf = UnixDatagram::bind(place.path())?;
    let receiver = UnixDatagram::bind(&elsewhere)?;
    let sender = Rc::new(UnixDatagram::unbound()?);
    sender.connect(place.path()).await?;
    fill(|| sender.send(b"unread")).await;
    // By another: what is received from a socket makes room in it, which would wake its waits.
    let other = UnixDatagram::unbound()?;
    let filled = fill(|| other.send_to(b"queued", &elsewhere)).await;
    let (path, waiting) = (elsewhere.clone(), Rc::clone(&sender));
    let waits = spawn_local(async move { waiting.send_to(b"last", path).await });
    sleep(Duration::from_millis(20)).await;
    for _ in 0..filled {
        assert_eq!(receiver.recv(&mut [0; 8]).await?, 6);
    }
    assert_eq!(waits.await?, 4);
    assert_eq!(receiver.recv(&mut [0; 8]).await?, 4);
}

#[run_test]
async fn a_send_that_waits_hears_of_the_receivers_fate() {
    let (place, receiver, sender) = unconnected_pair()?;
    fill(|| sender.send_to(b"unread", place.path())).await;
    let start = |waiting: &Rc<UnixDatagram>| {
        let (path, waiting) = (place.path().to_owned(), Rc::clone(waiting));
        spawn_local(async move { waiting.send_to(b"x", path).await })
    };
    let waits = start(&sender);
    sleep(Duration::from_millis(5)).await;
    drop(receiver);
    let error = waits.await.expect_err("the receiver was closed");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);

    // Another socket takes its path while a send waits for the first.
    std::fs::remove_file(place.path())?;
    let first = UnixDatagram::bind(place.path())?;
    let filled = fill(|| sender.send_to(b"unread", place.path())).await;
    let waits = start(&sender);
    sleep(Duration::from_millis(5)).await;
    std::fs::remove_file(place.path())?;
    let second = UnixDatagram::bind(place.path())?;
    fill(|| sender.send_to(b"unread", place.path())).await;
    drop(first);
    // It waits for the other now: the first, being closed, would never be full again.
    rests().await;
    for _ in 0..filled {
        second.recv(&mut [0; 8]).await?;
    }
    assert_eq!(waits.await?, 1);
    assert_eq!(second.recv(&mut [0; 8]).await?, 1);

    // It gets a peer that is not this one.
    fill(|| sender.send_to(b"unread", place.path())).await;
    let waits = start(&sender);
    sleep(Duration::from_millis(5)).await;
    let friend = UnixDatagram::bind(place.beside("friend"))?;
    second.connect(place.beside("friend")).await?;
    second.recv(&mut [0; 8]).await?;
    let error = waits.await.expect_err("it hears its peer alone");
    assert_eq!(io_kind(&error), io::ErrorKind::PermissionDenied);
    drop(friend);
}

#[run_test]
async fn a_send_that_was_dropped_has_sent_nothing() {
    let (place, receiver, sender) = unconnected_pair()?;
    let filled = fill(|| sender.send_to(b"before", place.path())).await;
    for milliseconds in [0, 1, 5] {
        let mut given_up = Box::pin(sender.send_to(b"never", place.path()));
        assert!(poll_once(&mut given_up).await.is_none());
        sleep(Duration::from_millis(milliseconds)).await;
        assert!(poll_once(&mut given_up).await.is_none());
    }
    let mut buf = [0; 8];
    for _ in 0..filled {
        assert_eq!(receiver.recv(&mut buf).await?, 6);
    }
    abandon(receiver.recv(&mut buf)).await;
    sender.send_to(b"after", place.path()).await?;
    assert_eq!(receiver.recv(&mut buf).await?, 5);
    assert_eq!(&buf[..5], b"after");
}

#[run_test]
async fn receives_and_sends_time_out_and_go_on() {
    let (place, receiver, sender) = unconnected_pair()?;
    assert_eq!(
        (receiver.read_timeout(), receiver.write_timeout()),
        (None, None)
    );
    for error in [
        receiver.set_read_timeout(Some(Duration::ZERO)),
        receiver.set_write_timeout(Some(Duration::ZERO)),
    ] {
        let error = error.expect_err("zero is no timeout");
        assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
    receiver.set_read_timeout(Some(LIMIT))?;
    sender.set_write_timeout(Some(2 * LIMIT))?;
    assert_eq!(receiver.read_timeout(), Some(LIMIT));
    assert_eq!(sender.write_timeout(), Some(2 * LIMIT));
    let mut buf = [0; 8];
    for takes_longer_than_it_may in [true, false] {
        give_up(receiver.recv(&mut buf)).await;
        if takes_longer_than_it_may {
            sleep(2 * LIMIT).await;
        }
        timed_out(LIMIT, receiver.recv(&mut buf)).await;
        timed_out(LIMIT, receiver.recv_from(&mut buf)).await;
        timed_out(LIMIT, receiver.peek_from(&mut buf)).await;
    }
    let filled = fill(|| sender.send_to(b"full", place.path())).await;
    for _ in 0..2 {
        timed_out(2 * LIMIT, sender.send_to(b"late", place.path())).await;
    }
    sender.connect(place.path()).await?;
    timed_out(2 * LIMIT, sender.send(b"late")).await;
    for _ in 0..filled {
        assert_eq!(receiver.recv(&mut buf).await?, 4);
        assert_eq!(&buf[..4], b"full", "what timed out was not sent");
    }
    sender.send(b"again").await?;
    assert_eq!(receiver.recv(&mut buf).await?, 5);

    let (one, other) = UnixDatagram::pair()?;
    one.set_read_timeout(Some(LIMIT))?;
    let late = spawn_local(async move {
        sleep(LIMIT * 2).await;
        other.send(b"late").await.map(|_| other)
    });
    assert_eq!(one.peek(&mut buf).await?, 4, "a peek has no limit");
    drop(late.await?);
}

async fn timed_out<T>(limit: Duration, waits: impl Future<Output = Result<T>>) {
    let started = Instant::now();
    let error = waits.await.err().expect("it cannot be done");
    assert!(started.elapsed() >= limit, "after {:?}", started.elapsed());
    assert_eq!(io_kind(&error), io::ErrorKind::TimedOut);
    assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
}

#[run_test]
async fn pending_polls_leave_nothing_behind() {
    let counted = Arc::new(Counted);
    let waker = Waker::from(Arc::clone(&counted));
    let mut cx = Context::from_waker(&waker);
    let place = Place::new();
    let (socket, full) = (UnixDatagram::bind("")?, UnixDatagram::bind(place.path())?);
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    fill(|| socket.send_to(b"full", place.path())).await;
    {
        let mut buf = [0; 8];
        let mut receive = Box::pin(socket.recv(&mut buf));
        let mut send = Box::pin(socket.send_to(b"more", place.path()));
        let mut at_first = 0;
        for round in 0..64_000 {
            assert!(Pin::new(&mut receive).poll(&mut cx).is_pending());
            assert!(Pin::new(&mut send).poll(&mut cx).is_pending());
            if round == 0 {
                at_first = Arc::strong_count(&counted);
            }
        }
        assert_eq!(Arc::strong_count(&counted), at_first);
    }
    assert_eq!(Arc::strong_count(&counted), 2, "this test's own two");
    drop(full);
}

#[run_test(leaves_no_descriptor)]
fn waits_for_room_leave_no_descriptor_open() {
    LocalExecutor::default().run(async {
        let place = Place::new();
        let receiver = UnixDatagram::bind(place.path()).expect("a free path");
        let sender = UnixDatagram::unbound().expect("sockets can be made");
        fill(|| sender.send_to(b"full", place.path())).await;
        for _ in 0..20 {
            abandon(sender.send_to(b"more", place.path())).await;
        }
        let waits = sender.send_to(b"more", place.path());
        let reads = async {
            sleep(Duration::from_millis(2)).await;
            receiver.recv(&mut [0; 8]).await
        };
        let (sent, received) = futures_lite::future::zip(waits, reads).await;
        assert_eq!(
            (
                sent.expect("the queue has space"),
                received.expect("it is full")
            ),
            (4, 4)
        );
    });
}

/// What waits takes a descriptor more, and gets on without it.
#[run_test(run_in_child)]
async fn a_wait_without_a_descriptor_left_ends_all_the_same() {
    let (place, receiver, sender) = unconnected_pair()?;
    let filled = fill(|| sender.send_to(b"full", place.path())).await;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(io::Error::from)?;
    setrlimit(Resource::RLIMIT_NOFILE, 100, hard).map_err(io::Error::from)?;
    let mut rest = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        rest.push(file);
    }
    let (path, waiting) = (place.path().to_owned(), Rc::clone(&sender));
    let waits = spawn_local(async move { waiting.send_to(b"last", path).await });
    rests().await;
    for _ in 0..filled {
        assert_eq!(receiver.recv(&mut [0; 8]).await?, 4);
    }
    assert_eq!(waits.await?, 4);
    fill(|| sender.send_to(b"full", place.path())).await;
    sender.set_write_timeout(Some(LIMIT))?;
    timed_out(LIMIT, sender.send_to(b"late", place.path())).await;
}
