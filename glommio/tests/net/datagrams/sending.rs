//! Sending: segments, several buffers, pacing.

use std::net::IpAddr;

use glommio::net::{DatagramPool, Ecn, Pacer, Segments};
use proptest::prelude::*;

use super::{abandon, datagrams, io_kind, one, pair, pattern, run, skipped};
use crate::common::prelude::*;

#[run_test]
async fn segments_arrive_as_datagrams_of_their_size() {
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
}

#[run_test]
async fn a_buffer_of_one_segment_is_an_ordinary_datagram() {
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
}

#[run_test]
async fn segments_that_cannot_be_sent_are_told_apart() {
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
}

#[run_test]
async fn segments_go_to_their_address_or_to_the_peer() {
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
}

#[run_test]
async fn many_buffers_are_sent_by_one_call_and_in_order() {
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
}

#[run_test]
async fn of_many_buffers_those_before_one_that_fails_are_sent() {
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
}

#[run_test]
async fn an_answer_comes_from_the_address_that_was_asked() {
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
}

#[run_test]
async fn what_is_sent_at_a_time_is_not_sent_before() {
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

#[run_test]
async fn a_pacer_lets_a_burst_through_and_then_keeps_to_the_rate() {
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
}

/// What was dropped was not sent.
#[run_test]
async fn sends_that_are_dropped_have_sent_nothing() {
    let (receiver, sender) = pair().await?;
    let pool = DatagramPool::new(64, 2000);
    let later = Instant::now() + Duration::from_secs(3600);
    let segments = Segments::new(b"never", 2);
    drop(sender.send_segments(&segments));
    abandon(sender.send_segments_at(&segments, later)).await;
    sender.send(b"x").await?;
    assert_eq!(datagrams(&receiver, &pool, 1).await?, [b"x"]);
    abandon(receiver.recv_many(&pool, &mut Vec::new())).await;
}
