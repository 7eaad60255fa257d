//! When to send, at a given rate.

#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use crate::clock;
use crate::reactor::budget;
use crate::timer::sleep_until;

/// Spreads what is sent over time, so that queues on the way do not overflow: a rate, and how much
/// may go at once after a pause (the generic cell rate algorithm, ITU-T I.371).
///
/// [`reserve`](Self::reserve) tells when to send, for
/// [`UdpSocket::send_segments_at`](super::UdpSocket::send_segments_at);
/// [`wait`](Self::wait) waits until then.
///
/// # Examples
///
/// ```
/// use glommio::net::Pacer;
/// use std::time::{Duration, Instant};
///
/// # glommio::LocalExecutor::default().run(async {
/// let start = Instant::now();
/// let mut pacer = Pacer::new(1_000_000, 2_000);
/// for _ in 0..4 {
///     pacer.wait(1_000).await; // and send as much
/// }
/// // 2,000 bytes went at once, the others at 1 MB/s.
/// assert!(start.elapsed() >= Duration::from_millis(2));
///
/// pacer.set_rate(500_000, 2_000);
/// let at = pacer.reserve(1_000); // when to send them
/// assert!(at >= start + Duration::from_millis(2));
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Pacer {
    bytes_per_second: u64,
    burst: Duration,
    /// When all that was sent would have left at the rate.
    empty_at: Option<Instant>,
}

impl Pacer {
    /// At most `bytes_per_second` over time, and up to `burst_bytes` at once after a pause. A rate
    /// of 0 is taken for 1.
    pub fn new(bytes_per_second: u64, burst_bytes: u64) -> Pacer {
        let mut pacer = Pacer {
            bytes_per_second: bytes_per_second.max(1),
            burst: Duration::ZERO,
            empty_at: None,
        };
        pacer.burst = pacer.time_of(burst_bytes);
        pacer
    }

    /// Changes the rate and the burst from here on: what was reserved keeps its time.
    pub fn set_rate(&mut self, bytes_per_second: u64, burst_bytes: u64) {
        self.bytes_per_second = bytes_per_second.max(1);
        self.burst = self.time_of(burst_bytes);
    }

    /// Counts `bytes` as sent, and tells when they may be: now, if the burst allows it, or later.
    /// Data larger than the burst may go whole once all before it has left at the rate.
    pub fn reserve(&mut self, bytes: u64) -> Instant {
        let now = clock::now();
        let time = self.time_of(bytes);
        let begin = self.empty_at.map_or(now, |empty| empty.max(now));
        let end = begin.checked_add(time).unwrap_or(begin);
        self.empty_at = Some(end);
        end.checked_sub(self.burst.max(time))
            .map_or(now, |at| at.max(now))
    }

    /// Waits until `bytes` may be sent, and counts them as sent.
    ///
    /// # Panics
    ///
    /// Panics if it has to wait and no executor runs on this thread.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the bytes are counted all the same: what follows is sent later for it.
    pub async fn wait(&mut self, bytes: u64) {
        let at = self.reserve(bytes);
        if at > clock::now() {
            sleep_until(at).await;
        } else {
            budget::consume().await;
        }
    }

    /// How long `bytes` take at the rate.
    fn time_of(&self, bytes: u64) -> Duration {
        let ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}
