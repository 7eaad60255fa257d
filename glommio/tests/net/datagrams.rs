//! Datagrams in numbers: segments, many at a time, what the kernel tells of each, pacing.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use futures_lite::future::{poll_once, yield_now, zip};
use glommio::net::{DatagramPool, Ecn, Pacer, ReceivedDatagrams, Segments, UdpSocket};
use glommio::spawn_local;
use glommio::timer::sleep;
use proptest::prelude::*;

use super::{Result, abandon, io_kind, run};
use crate::common::skipped::skipped;

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

#[test]
fn segments_arrive_as_datagrams_of_their_size() {
    run(async {
        let (receiver, sender) = pair().await?;
        let bytes = pattern(1200 * 53 + 17);
        sender.send_segments(&Segments::new(&bytes, 1200)).await?;
        let mut buffer = [0; 2000];
        for expected in bytes.chunks(1200) {
            let (length, from) = receiver.recv_from(&mut buffer).await?;
            assert_eq!(&buffer[..length], expected);
            assert_eq!(from, sender.local_addr()?);
        }
        abandon(receiver.recv_from(&mut buffer)).await;
        Ok(())
    });
}

#[test]
fn a_buffer_of_one_segment_is_an_ordinary_datagram() {
    run(async {
        let (receiver, sender) = pair().await?;
        let bytes = pattern(60_000);
        for length in [0, 1, 1200, 60_000] {
            for size in [length, length + 1, usize::MAX] {
                let segments = Segments::new(&bytes[..length], size);
                sender.send_segments(&segments).await?;
                let mut buffer = vec![1; 65_000];
                assert_eq!(receiver.recv_from(&mut buffer).await?.0, length);
                assert_eq!(buffer[..length], bytes[..length]);
            }
        }
        Ok(())
    });
}

#[test]
fn segments_that_cannot_be_sent_are_told_apart() {
    run(async {
        let (receiver, sender) = pair().await?;
        let most = sender.max_segments();
        assert!(most >= 1);
        let bytes = pattern(most * 100 + 1);
        let refused = [
            (Segments::new(&bytes, 0), "a segment size of 0".to_owned()),
            (
                Segments::new(&bytes, 100),
                format!("{} segments in one call: it takes up to {most}", most + 1),
            ),
        ];
        for (segments, expected) in refused {
            for error in [
                sender.send_segments(&segments).await,
                sender.try_send_segments(&segments),
                sender.send_segments_at(&segments, Instant::now()).await,
            ] {
                let error = error.expect_err("it is refused");
                assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
                assert!(error.to_string().contains(&expected), "{error}");
            }
        }
        // More than a packet holds.
        let bytes = pattern(65_508);
        let whole = Segments::new(&bytes, bytes.len());
        let error = sender.send_segments(&whole).await.expect_err("too long");
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        // Nothing of all that was sent.
        sender.send(b"x").await?;
        assert_eq!(receiver.recv_from(&mut [0; 9]).await?.0, 1);
        Ok(())
    });
}

#[test]
fn segments_go_to_their_address_or_to_the_peer() {
    run(async {
        let (peer, sender) = pair().await?;
        let other = UdpSocket::bind("127.0.0.1:0")?;
        let to_other = Segments::new(b"other", 5).to(other.local_addr()?);
        sender.send_segments(&to_other).await?;
        sender.send_segments(&Segments::new(b"peer", 4)).await?;
        let mut buffer = [0; 9];
        assert_eq!(peer.recv_from(&mut buffer).await?.0, 4);
        assert_eq!(other.recv_from(&mut buffer).await?.0, 5);

        let error = other.send_segments(&Segments::new(b"whom", 4)).await;
        let error = error.expect_err("there is no peer");
        assert_eq!(error.raw_os_error(), Some(libc::EDESTADDRREQ));
        Ok(())
    });
}

#[test]
fn many_buffers_are_sent_by_one_call_and_in_order() {
    run(async {
        let (receiver, sender) = pair().await?;
        let other = UdpSocket::bind("127.0.0.1:0")?;
        assert_eq!(sender.send_many(&[]).await?, 0);
        let bytes: Vec<_> = (0..40).map(|number| pattern(number * 10)).collect();
        let mut many: Vec<_> = (bytes.iter())
            .map(|bytes| Segments::new(bytes, 100))
            .collect();
        many[1] = many[1].to(other.local_addr()?);
        let mut left = &many[..];
        let mut counts = Vec::new();
        while !left.is_empty() {
            counts.push(sender.send_many(left).await?);
            left = &left[counts[counts.len() - 1]..];
        }
        assert_eq!(counts, [32, 8], "as many as one call takes");
        let pool = DatagramPool::new(256, 200);
        let mut expected = Vec::new();
        for (_, bytes) in bytes.iter().enumerate().filter(|(index, _)| *index != 1) {
            match &bytes[..] {
                [] => expected.push(&[][..]),
                bytes => expected.extend(bytes.chunks(100)),
            }
        }
        assert_eq!(datagrams(&receiver, &pool, expected.len()).await?, expected);
        assert_eq!(datagrams(&other, &pool, 1).await?, [&bytes[1][..]]);
        Ok(())
    });
}

#[test]
fn of_many_buffers_those_before_one_that_fails_are_sent() {
    run(async {
        let (receiver, sender) = pair().await?;
        let pool = DatagramPool::new(8, 200);
        let long = pattern(65_508);
        let fine = Segments::new(b"fine", 4);
        for (wrong, code) in [
            (Segments::new(b"no size", 0), None),
            (Segments::new(&long, long.len()), Some(libc::EMSGSIZE)),
        ] {
            assert_eq!(sender.send_many(&[fine, fine, wrong, fine]).await?, 2);
            let error = sender.send_many(&[wrong, fine]).await;
            let error = error.expect_err("it is the first");
            assert_eq!(error.raw_os_error(), code);
            let is_refused_here = io_kind(&error) == io::ErrorKind::InvalidInput;
            assert_eq!(is_refused_here, code.is_none());
            assert_eq!(datagrams(&receiver, &pool, 2).await?, [b"fine", b"fine"]);
        }
        abandon(receiver.recv_many(&pool, &mut Vec::new())).await;
        Ok(())
    });
}

#[test]
fn many_datagrams_are_received_at_a_time_and_in_order() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn coalesced_datagrams_are_told_apart() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn short_buffers_and_coalescing_do_not_go_together() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn a_long_datagram_says_that_it_was_cut() {
    run(async {
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
    });
}

/// An address of this host, and one as which sockets of `bound` see it.
const FAMILIES: [(&str, &str, &str); 3] = [
    ("0.0.0.0:0", "127.0.0.1", "127.0.0.1"),
    ("[::]:0", "::1", "::1"),
    // IPv4 through a socket of IPv6.
    ("[::]:0", "127.0.0.1", "::ffff:127.0.0.1"),
];

#[test]
fn marks_times_and_destinations_are_received_when_asked_for() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn an_answer_comes_from_the_address_that_was_asked() {
    run(async {
        for (bound, asked, own) in [
            ("0.0.0.0:0", "127.0.0.7", "127.0.0.1"),
            ("[::]:0", "127.0.0.7", "127.0.0.1"),
            ("[::]:0", "::1", "::1"),
        ] {
            let Ok(server) = UdpSocket::bind(bound) else {
                skipped("no IPv6 on this machine");
                continue;
            };
            server.set_receive_destination(true)?;
            let asked: IpAddr = asked.parse().expect("an address");
            let client = UdpSocket::bind(SocketAddr::new(own.parse().expect("one"), 0))?;
            let port = server.local_addr()?.port();
            client.connect(SocketAddr::new(asked, port)).await?;
            client.send(b"question").await?;

            let pool = DatagramPool::new(1, 100);
            let question = one(&server, &pool).await?;
            let destination = question.destination().expect("it was asked for");
            let answer = Segments::new(b"answer", 6)
                .to(question.from())
                .source(Some(destination.address));
            server.send_segments(&answer).await?;
            // What comes from another address is not received.
            assert_eq!(client.recv(&mut [0; 9]).await?, 6);
        }
        Ok(())
    });
}

#[test]
fn without_a_free_buffer_nothing_is_received_until_one_comes_back() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn sockets_that_share_a_pool_all_go_on_when_buffers_come_back() {
    run(async {
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
        Ok(())
    });
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

#[test]
fn a_receive_that_waits_for_long_ends_with_the_read_timeout() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn a_refusal_is_reported_and_the_socket_goes_on() {
    run(async {
        let (receiver, sender) = pair().await?;
        let (address, pool) = (receiver.local_addr()?, DatagramPool::new(4, 100));
        drop(receiver);
        sender.send(b"to nobody's port").await?;
        let error = sender.recv_many(&pool, &mut Vec::new()).await;
        let error = error.expect_err("the port is closed");
        assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
        assert_eq!(pool.available(), 4);

        let receiver = UdpSocket::bind(address)?;
        receiver.send_to(b"back", sender.local_addr()?).await?;
        assert_eq!(one(&sender, &pool).await?.bytes(), b"back");
        Ok(())
    });
}

#[test]
fn drops_of_the_kernel_are_counted() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn several_tasks_receive_each_datagram_once() {
    run(async {
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
        Ok(())
    });
}

#[test]
fn what_is_sent_at_a_time_is_not_sent_before() {
    run(async {
        for holds in [false, true] {
            let (receiver, sender) = pair().await?;
            if holds {
                // The loopback device sends at once what it is told to hold; it arrives all the same.
                sender.set_transmit_times(true)?;
            }
            let at = Instant::now() + Duration::from_millis(20);
            let segments = Segments::new(b"12345", 2);
            sender.send_segments_at(&segments, at).await?;
            assert!(holds || Instant::now() >= at);
            let pool = DatagramPool::new(4, 100);
            assert_eq!(
                datagrams(&receiver, &pool, 3).await?,
                [&b"12"[..], b"34", b"5"]
            );
            sender.set_transmit_times(false)?;
            let later = Instant::now() + Duration::from_millis(20);
            abandon(sender.send_segments_at(&segments, later + Duration::from_secs(60))).await;
            sender.send_segments_at(&segments, later).await?;
            assert!(Instant::now() >= later);
            assert_eq!(datagrams(&receiver, &pool, 3).await?.len(), 3);
        }
        Ok(())
    });
}

#[test]
fn marks_of_congestion_are_two_bits() {
    for bits in 0..=255_u8 {
        let mark = Ecn::from_bits(bits);
        assert_eq!(mark.map_or(0, Ecn::bits), bits & 3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In no stretch of time goes more than the rate and the burst allow, and no more time passes
    /// than is needed for that.
    #[test]
    fn a_pacer_keeps_to_its_rate(
        rate in 1_000_000_u64..1_000_000_000,
        burst in 0_u64..100_000,
        sizes in prop::collection::vec(1_u64..70_000, 1..40),
    ) {
        let before = Instant::now();
        let mut pacer = Pacer::new(rate, burst);
        let times: Vec<_> = sizes.iter().map(|&size| pacer.reserve(size)).collect();
        let after = Instant::now();
        prop_assert!(times[0] <= after && times.is_sorted());
        for (index, first) in times.iter().enumerate() {
            let mut bytes = 0;
            for (size, time) in sizes[index..].iter().zip(&times[index..]) {
                bytes += size;
                let allowed = (*time - *first).as_secs_f64() * rate as f64 + burst as f64;
                // The first and the last one are sent whole.
                prop_assert!(bytes as f64 <= allowed.max(0.0) + 2.0 * 70_000.0);
            }
        }
        let all: u64 = sizes.iter().sum();
        let whole = Duration::from_secs_f64(all as f64 / rate as f64);
        prop_assert!(*times.last().expect("one") <= after.max(before) + whole);
    }
}

#[test]
fn a_pacer_lets_a_burst_through_and_then_keeps_to_the_rate() {
    run(async {
        let start = Instant::now();
        let mut pacer = Pacer::new(1_000_000, 4_000);
        let times: Vec<_> = (0..10).map(|_| pacer.reserve(1_000)).collect();
        for (index, time) in times.iter().enumerate() {
            let least = Duration::from_millis((index as u64 + 1).saturating_sub(4));
            assert!(*time >= start + least, "{index}");
        }
        pacer.set_rate(1_000_000_000, 0);
        pacer.wait(1).await;
        assert!(start.elapsed() >= Duration::from_millis(9));
        // Rates and sizes at the ends of their ranges.
        Pacer::new(0, u64::MAX).reserve(u64::MAX);
        Pacer::new(u64::MAX, 0).reserve(0);
        let mut endless = Pacer::new(1, 0);
        endless.reserve(u64::MAX);
        endless.reserve(u64::MAX);
        abandon(endless.wait(1)).await;
        Ok(())
    });
}

#[test]
fn multicasts_are_received_with_their_group() {
    run(async {
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
        Ok(())
    });
}

/// Futures that are dropped in each state they can be in lose no datagram and no buffer.
#[test]
fn receives_that_are_dropped_lose_nothing() {
    run(async {
        let (receiver, sender) = pair().await?;
        let pool = DatagramPool::new(3, 100);
        let mut numbers = Vec::new();
        let mut kept = Vec::new();
        let mut sent = 0_u8;
        for round in 0..200_u32 {
            // Before anything is there, after it has come, and after the readiness was reaped.
            let mut received = Vec::new();
            {
                let mut receive = std::pin::pin!(receiver.recv_many(&pool, &mut received));
                let polls = round % 4;
                for poll in 0..polls {
                    if poll == round % 3 {
                        sender.send(&[sent]).await?;
                        sent = sent.wrapping_add(1);
                    }
                    if poll_once(&mut receive).await.is_some() {
                        break;
                    }
                    if round % 5 < 3 {
                        yield_now().await;
                    } else {
                        sleep(Duration::from_micros(50)).await;
                    }
                }
            }
            // At times a buffer is kept, so that the pool is short of them.
            numbers.extend(received.iter().map(|buffer| buffer.bytes()[0]));
            kept.extend(received);
            if round % 6 == 0 {
                kept.clear();
            }
        }
        kept.clear();
        assert_eq!(pool.available(), 3);
        while numbers
            .last()
            .is_none_or(|last| last.wrapping_add(1) != sent)
        {
            let buffer = datagrams(&receiver, &pool, 1).await;
            numbers.push(buffer?[0][0]);
        }
        assert!(numbers.iter().copied().eq(0..sent), "{numbers:?}");
        Ok(())
    });
}

/// The same for sends that wait for space: what was dropped was not sent.
#[test]
fn sends_that_are_dropped_have_sent_nothing() {
    run(async {
        let (receiver, sender) = pair().await?;
        let pool = DatagramPool::new(64, 2000);
        let later = Instant::now() + Duration::from_secs(3600);
        let segments = Segments::new(b"never", 2);
        drop(sender.send_segments(&segments));
        abandon(sender.send_segments_at(&segments, later)).await;
        sender.send(b"x").await?;
        assert_eq!(datagrams(&receiver, &pool, 1).await?, [b"x"]);
        abandon(receiver.recv_many(&pool, &mut Vec::new())).await;
        Ok(())
    });
}

#[test]
fn both_ends_at_full_rate_lose_nothing_that_the_kernel_took() {
    run(async {
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
        Ok(())
    });
}
