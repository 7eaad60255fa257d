//! Connections that are read so often that they have a multishot poll: what holds for the first
//! reads holds for the thousandth.

use std::io::{IoSliceMut, Write};

use super::{aged_pair, run, wait_often};
use crate::common::again_with;
use crate::common::prelude::*;

/// Many more waits than it takes.
const OFTEN: usize = 40;

/// Reads of every size against writes of every size, with and without waiting.
#[run_test]
async fn nothing_is_left_behind_by_reads_of_any_size() {
    let (mut stream, mut peer) = aged_pair(OFTEN).await?;
    let message: Vec<u8> = (0..=255).cycle().take(64).collect();
    for sent in 1..=message.len() {
        for asked in [1, 2, 3, 7, 8, 16, 63, 64, 65] {
            peer.write_all(&message[..sent])?;
            let mut received = Vec::new();
            while received.len() < sent {
                let mut buf = vec![0; asked];
                let count = stream.read(&mut buf).await?;
                assert_ne!(count, 0, "the peer is there");
                received.extend_from_slice(&buf[..count]);
            }
            assert_eq!(received, message[..sent]);
        }
    }
    assert!(poll_once(stream.read(&mut [0; 8])).await.is_none());
}

/// Each event of the socket is there before the next step: none comes later that would make up for it.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// A receive stops at urgent data, short of what there is.
#[run_test]
async fn what_lies_behind_urgent_data_is_read() {
    for (is_vectored, settles_between, asked) in [
        (false, false, 64),
        (true, false, 64),
        (false, true, 64),
        (false, false, 2),
        (false, true, 2),
    ] {
        let (mut stream, mut peer) = aged_pair(OFTEN).await?;
        for _ in 0..3 {
            peer.write_all(b"abc")?;
            if settles_between {
                settle().await;
            }
            socket2::SockRef::from(&peer).send_out_of_band(b"!")?;
            if settles_between {
                settle().await;
            }
            peer.write_all(b"def")?;
            settle().await;
            let mut received = Vec::new();
            while received.len() < 6 {
                let mut buf = [0; 64];
                let count = if is_vectored {
                    let (left, right) = buf.split_at_mut(32);
                    let mut slices = [IoSliceMut::new(left), IoSliceMut::new(right)];
                    stream.read_vectored(&mut slices).await?
                } else {
                    stream.read(&mut buf[..asked]).await?
                };
                received.extend_from_slice(&buf[..count]);
            }
            assert_eq!(received, b"abcdef");
        }
    }
    Ok(())
}

/// The kernel takes 1024 slices, and a receive that fills them leaves the rest.
#[run_test]
async fn what_does_not_fit_into_the_slices_of_one_call_is_read() {
    let (mut stream, mut peer) = aged_pair(OFTEN).await?;
    peer.write_all(&[7; 1500])?;
    settle().await;
    let mut received = 0;
    while received < 1500 {
        let mut buf = [0; 1500];
        let mut slices: Vec<_> = buf.chunks_mut(1).map(IoSliceMut::new).collect();
        let count = stream.read_vectored(&mut slices).await?;
        assert_eq!(buf[..count], [7; 1500][..count]);
        received += count;
    }
}

/// Data that comes while no task reads causes no events after a while, and is read all the same.
#[run_test]
async fn a_reader_that_stays_away_misses_nothing() {
    let (mut stream, mut peer) = aged_pair(OFTEN).await?;
    for round in 1..20 {
        wait_often(OFTEN, &mut stream, &mut peer).await?;
        for byte in 0..round {
            peer.write_all(&[byte])?;
            // Each turn reaps what has come.
            executor().yield_task_queue_now().await;
            sleep(Duration::from_micros(1)).await;
        }
        for byte in 0..round {
            let mut received = [0];
            stream.read_exact(&mut received).await?;
            assert_eq!(received, [byte]);
        }
        assert!(poll_once(stream.read(&mut [0; 8])).await.is_none());
    }
}

/// The same where each wait is a submission of its own.
#[test]
fn waits_one_by_one() {
    const NAME: &str = "busy::waits_one_by_one";
    const WITHOUT: [(&str, &str); 1] = [("GLOMMIO_RING_WITHOUT", "poll_multi")];
    let filters = ["busy::", "stream::", "timeouts::", "hostile::"];
    again_with(NAME, &WITHOUT, &filters);
}
