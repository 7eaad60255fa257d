//! Datagrams in numbers: segments, many at a time, what the kernel tells of each, pacing.

mod refused;
mod sending;

use std::net::IpAddr;
use std::time::SystemTime;

use glommio::net::{DatagramPool, Ecn, ReceivedDatagrams, Segments};

use super::{Result, abandon, io_kind, run};
use crate::common::prelude::*;

/// A receiver, and a sender that has it as its peer.
async fn pair() -> Result<(UdpSocket, UdpSocket)> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?).await?;
    Ok((receiver, sender))
}

/// Bytes that tell where in the stream they are.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 251 + at) as u8).collect()
}

/// Receives datagrams until there are so many.
async fn datagrams(socket: &UdpSocket, pool: &DatagramPool, count: usize) -> Result<Vec<Vec<u8>>> {
    let (mut received, mut all) = (Vec::new(), Vec::new());
    while all.len() < count {
        let before = received.len();
        let added = socket.recv_many(pool, &mut received).await?;
        assert!(added > 0);
        assert_eq!(received.len(), before + added);
        for buffer in received.drain(..) {
            assert!(!buffer.is_truncated());
            all.extend(buffer.segments().map(<[u8]>::to_vec));
        }
    }
    assert_eq!(all.len(), count);
    Ok(all)
}

/// The next one.
async fn one(socket: &UdpSocket, pool: &DatagramPool) -> Result<ReceivedDatagrams> {
    let mut received = Vec::new();
    socket.recv_many(pool, &mut received).await?;
    assert_eq!(received.len(), 1);
    Ok(received.remove(0))
}

#[run_test]
async fn many_datagrams_are_received_at_a_time_and_in_order() {
    let (receiver, sender) = pair().await?;
    for number in 0..100_u8 {
        sender.send(&vec![number; number.into()]).await?;
    }
    let pool = DatagramPool::new(64, 2000);
    let mut received = Vec::new();
    let mut counts = Vec::new();
    while counts.iter().sum::<usize>() < 64 {
        counts.push(receiver.recv_many(&pool, &mut received).await?);
    }
    assert_eq!(counts, [32, 32], "as many as one call takes");
    assert_eq!(pool.available(), 0);
    received.drain(..60);
    while received.len() < 40 {
        receiver.recv_many(&pool, &mut received).await?;
    }
    for (buffer, number) in received.iter().zip(60..) {
        assert_eq!(buffer.bytes(), vec![number; number.into()]);
        assert_eq!(buffer.from(), sender.local_addr()?);
        assert_eq!(buffer.segments().len(), 1);
    }
}

#[run_test]
async fn coalesced_datagrams_are_told_apart() {
    let (receiver, sender) = pair().await?;
    receiver.set_gro(true)?;
    let pool = DatagramPool::new(8, DatagramPool::MAX_BYTES);
    let bytes = pattern(1200 * 50 + 300);
    sender.send_segments(&Segments::new(&bytes, 1200)).await?;
    sender.send(b"").await?;
    sender.send(b"single").await?;
    let mut received = Vec::new();
    let mut all = Vec::new();
    while all.len() < 53 {
        receiver.recv_many(&pool, &mut received).await?;
        for buffer in received.drain(..) {
            assert_eq!(buffer.segments().len(), buffer.segments().count());
            all.extend(buffer.segments().map(<[u8]>::to_vec));
        }
    }
    let expected = (bytes.chunks(1200)).chain([&b""[..], &b"single"[..]]);
    assert!(expected.eq(all.iter().map(Vec::as_slice)));
}

#[run_test]
async fn short_buffers_and_coalescing_do_not_go_together() {
    let (receiver, sender) = pair().await?;
    receiver.set_gro(true)?;
    let short = DatagramPool::new(8, DatagramPool::MAX_BYTES - 1);
    let mut received = Vec::new();
    sender.send(b"kept").await?;
    for error in [
        receiver.recv_many(&short, &mut received).await,
        receiver.try_recv_many(&short, &mut received),
    ] {
        let error = error.expect_err("datagrams would be lost");
        assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("65535"), "{error}");
    }
    receiver.set_gro(false)?;
    assert_eq!(one(&receiver, &short).await?.bytes(), b"kept");
}

#[run_test]
async fn pools_have_at_least_one_buffer_and_none_that_is_too_long() {
    let (receiver, sender) = pair().await?;
    for (pool, buffers, bytes) in [
        (DatagramPool::new(0, 0), 1, 1),
        (DatagramPool::new(3, usize::MAX), 3, 65_535),
    ] {
        assert_eq!((pool.buffers(), pool.buffer_bytes()), (buffers, bytes));
        sender.send(b"x").await?;
        assert_eq!(one(&receiver, &pool).await?.bytes(), b"x");
    }
    Ok(())
}

#[run_test]
async fn a_long_datagram_says_that_it_was_cut() {
    let (receiver, sender) = pair().await?;
    let pool = DatagramPool::new(8, 4);
    for (sent, expected, is_cut) in [
        (&b"12345"[..], &b"1234"[..], true),
        (b"1234", b"1234", false),
        (b"", b"", false),
    ] {
        sender.send(sent).await?;
        let buffer = one(&receiver, &pool).await?;
        assert_eq!((buffer.bytes(), buffer.is_truncated()), (expected, is_cut));
    }
    Ok(())
}

/// An address of this host, and one as which sockets of `bound` see it.
const FAMILIES: [(&str, &str, &str); 3] = [
    ("0.0.0.0:0", "127.0.0.1", "127.0.0.1"),
    ("[::]:0", "::1", "::1"),
    // IPv4 through a socket of IPv6.
    ("[::]:0", "127.0.0.1", "::ffff:127.0.0.1"),
];

#[run_test]
async fn marks_times_and_destinations_are_received_when_asked_for() {
    for (bound, address, seen) in FAMILIES {
        let Ok(receiver) = UdpSocket::bind(bound) else {
            skipped("no IPv6 on this machine");
            continue;
        };
        let address: IpAddr = address.parse().expect("an address");
        let seen: IpAddr = seen.parse().expect("an address");
        let to = SocketAddr::new(address, receiver.local_addr()?.port());
        let sender = UdpSocket::bind(SocketAddr::new(address, 0))?;
        let pool = DatagramPool::new(8, 100);
        let marks = [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)];
        for is_on in [false, true, false] {
            receiver.set_receive_ecn(is_on)?;
            receiver.set_receive_destination(is_on)?;
            receiver.set_receive_timestamps(is_on)?;
            for mark in marks {
                let before = SystemTime::now();
                let segments = Segments::new(b"12345", 2).to(to).ecn(mark);
                sender.send_segments(&segments).await?;
                let mut parts = Vec::new();
                while parts.len() < 3 {
                    receiver.recv_many(&pool, &mut parts).await?;
                }
                for part in &parts {
                    assert_eq!(part.from().ip(), seen);
                    if !is_on {
                        assert_eq!((part.ecn(), part.destination()), (None, None));
                        assert_eq!(part.received_at(), None);
                        continue;
                    }
                    assert_eq!(part.ecn(), mark, "to {address}");
                    let destination = part.destination().expect("it was asked for");
                    assert_eq!(destination.address, seen);
                    assert_ne!(destination.interface, 0);
                    let at = part.received_at().expect("it was asked for");
                    assert!(at >= before - Duration::from_secs(1), "{at:?}, {before:?}");
                    assert!(at <= SystemTime::now() + Duration::from_secs(1));
                }
            }
        }
    }
}

#[run_test]
async fn without_a_free_buffer_nothing_is_received_until_one_comes_back() {
    let (receiver, sender) = pair().await?;
    let pool = DatagramPool::new(2, 100);
    for number in 0..5_u8 {
        sender.send(&[number]).await?;
    }
    let mut received = Vec::new();
    assert_eq!(receiver.recv_many(&pool, &mut received).await?, 2);
    assert_eq!((pool.available(), pool.pauses()), (0, 0));
    for _ in 0..3 {
        abandon(receiver.recv_many(&pool, &mut Vec::new())).await;
    }
    assert_eq!(pool.pauses(), 3);
    let error = receiver.try_recv_many(&pool, &mut Vec::new());
    let error = error.expect_err("there is no buffer");
    assert_eq!(io_kind(&error), io::ErrorKind::WouldBlock);

    let mut more = Vec::new();
    {
        let mut receive = std::pin::pin!(receiver.recv_many(&pool, &mut more));
        assert!(poll_once(&mut receive).await.is_none());
        received.remove(0);
        assert_eq!(receive.await?, 1);
    }
    assert_eq!(pool.pauses(), 4);
    assert_eq!(received[0].bytes(), [1]);
    assert_eq!(more[0].bytes(), [2]);
    drop((received, more));
    assert_eq!(datagrams(&receiver, &pool, 2).await?, [[3], [4]]);
    assert_eq!(pool.available(), 2);
}

#[run_test]
async fn sockets_that_share_a_pool_all_go_on_when_buffers_come_back() {
    let pool = DatagramPool::new(1, 100);
    let mut tasks = Vec::new();
    let mut senders = Vec::new();
    for _ in 0..5 {
        let (receiver, sender) = pair().await?;
        senders.push(sender);
        let pool = pool.clone();
        tasks.push(spawn_local(async move {
            let mut received = Vec::new();
            for number in 0..20_u8 {
                receiver.recv_many(&pool, &mut received).await?;
                yield_now().await;
                assert_eq!(received.pop().expect("one").bytes(), [number]);
            }
            Result::Ok(())
        }));
    }
    for number in 0..20 {
        for sender in &senders {
            sender.send(&[number]).await?;
        }
        yield_now().await;
    }
    for task in tasks {
        task.await?;
    }
    assert_eq!(pool.available(), 1);
}

#[test]
fn buffers_outlive_their_socket_and_their_pool() {
    let kept = run(async {
        let (receiver, sender) = pair().await?;
        sender.send(b"kept").await?;
        let mut buffer = one(&receiver, &DatagramPool::new(1, 10)).await?;
        buffer.bytes_mut()[0] = b'w';
        Ok(buffer)
    });
    assert_eq!(kept.bytes(), b"wept");
    assert!(format!("{kept:?}").contains("is_truncated: false"));
}

#[run_test]
async fn a_receive_that_waits_for_long_ends_with_the_read_timeout() {
    let (receiver, sender) = pair().await?;
    let pool = DatagramPool::new(4, 100);
    let limit = Duration::from_millis(30);
    receiver.set_read_timeout(Some(limit))?;
    let start = Instant::now();
    let error = receiver.recv_many(&pool, &mut Vec::new()).await;
    let error = error.expect_err("nothing was sent");
    assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
    assert!(start.elapsed() >= limit);
    sender.send(b"x").await?;
    assert_eq!(one(&receiver, &pool).await?.bytes(), b"x");
}

#[run_test]
async fn a_refusal_is_reported_and_the_socket_goes_on() {
    // An address at which no other test takes the port meanwhile.
    let receiver = UdpSocket::bind("127.0.0.4:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?).await?;
    let (address, pool) = (receiver.local_addr()?, DatagramPool::new(4, 100));
    drop(receiver);
    sender.send(b"to a closed port").await?;
    let error = sender.recv_many(&pool, &mut Vec::new()).await;
    let error = error.expect_err("the port is closed");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
    assert_eq!(pool.available(), 4);

    let receiver = UdpSocket::bind(address)?;
    receiver.send_to(b"back", sender.local_addr()?).await?;
    assert_eq!(one(&sender, &pool).await?.bytes(), b"back");
}

#[run_test]
async fn drops_of_the_kernel_are_counted() {
    let (receiver, sender) = pair().await?;
    assert_eq!(receiver.receive_drops()?, 0);
    receiver.set_recv_buffer_size(1)?;
    for _ in 0..100 {
        sender.send(&[7; 1000]).await?;
    }
    let drops = receiver.receive_drops()? as usize;
    assert!(drops > 0);
    let pool = DatagramPool::new(128, 2000);
    assert_eq!(
        datagrams(&receiver, &pool, 100 - drops).await?.len(),
        100 - drops
    );
    abandon(receiver.recv_many(&pool, &mut Vec::new())).await;
}

#[run_test]
async fn several_tasks_receive_each_datagram_once() {
    let (receiver, sender) = pair().await?;
    let (receiver, pool) = (Rc::new(receiver), DatagramPool::new(4, 100));
    let numbers = Rc::new(RefCell::new(Vec::new()));
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (receiver, pool) = (Rc::clone(&receiver), pool.clone());
            let numbers = Rc::clone(&numbers);
            spawn_local(async move {
                let mut received = Vec::new();
                while receiver.recv_many(&pool, &mut received).await? > 0 {
                    let new = received.drain(..).map(|buffer| buffer.bytes()[0]);
                    numbers.borrow_mut().extend(new);
                }
                Result::Ok(())
            })
        })
        .collect();
    for number in 0..200_u8 {
        sender.send(&[number]).await?;
        if number % 7 == 0 {
            sleep(Duration::from_micros(50)).await;
        }
    }
    while numbers.borrow().len() < 200 {
        sleep(Duration::from_millis(1)).await;
    }
    for task in tasks {
        task.cancel().await;
    }
    let mut numbers = numbers.take();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..200));
}

#[run_test]
async fn multicasts_are_received_with_their_group() {
    let group = Ipv4Addr::new(239, 1, 2, 77);
    let receiver = UdpSocket::bind("0.0.0.0:0")?;
    receiver.set_receive_destination(true)?;
    receiver.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?;
    let to = SocketAddr::new(group.into(), receiver.local_addr()?.port());
    sender
        .send_segments(&Segments::new(b"all", 3).to(to))
        .await?;
    let received = one(&receiver, &DatagramPool::new(1, 10)).await?;
    assert_eq!(received.bytes(), b"all");
    let destination = received.destination().expect("it was asked for");
    assert_eq!(destination.address, group);
}

#[run_test]
async fn both_ends_at_full_rate_lose_nothing_that_the_kernel_took() {
    let (receiver, sender) = pair().await?;
    receiver.set_gro(true)?;
    let pool = DatagramPool::new(64, DatagramPool::MAX_BYTES);
    let bytes = pattern(1000 * 60);
    let send = async {
        for _ in 0..200 {
            sender.send_segments(&Segments::new(&bytes, 1000)).await?;
            yield_now().await;
        }
        // The end, which comes through once there is space.
        for _ in 0..10 {
            sleep(Duration::from_millis(2)).await;
            sender.send(b"end").await?;
        }
        Result::Ok(())
    };
    let receive = async {
        let (mut count, mut received) = (0_u64, Vec::new());
        loop {
            receiver.recv_many(&pool, &mut received).await?;
            for buffer in received.drain(..) {
                for datagram in buffer.segments() {
                    if datagram == b"end" {
                        return Result::Ok(count);
                    }
                    let at = (count as usize % 60) * 1000;
                    if receiver.receive_drops()? == 0 {
                        assert_eq!(datagram, &bytes[at..at + 1000]);
                    }
                    count += 1;
                }
            }
        }
    };
    let (sent, count) = zip(send, receive).await;
    sent?;
    assert!(count? > 0);
}
