//! How long to wait for an acknowledgement before a datagram is sent again: RFC 6298.
//!
//! ```text
//!   first sample R       SRTT = R                           RTTVAR = R/2                         (2.2)
//!   each further one     RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|, then SRTT = 7/8 SRTT + 1/8 R      (2.3)
//!   always               RTO = SRTT + max(G, 4 RTTVAR), and not outside RTO_MIN to RTO_MAX
//!   a timeout            RTO = 2 RTO, until the next sample                                      (5.5)
//! ```
//!
//! Karn's rule, that a datagram sent more than once gives no sample, is kept by the window, which
//! takes the samples. It is why backing off must outlast the datagram that timed out: on a path
//! that has become longer than the estimate every datagram is sent twice, and none would ever give
//! a sample.

use std::time::Duration;

use super::ack::ACK_DELAY;

/// The estimate of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Rto {
    estimate: Option<Estimate>,
    rto: Duration,
    /// Timeouts since the last sample.
    backed_off: u32,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    srtt: Duration,
    rttvar: Duration,
}

impl Rto {
    /// Of a flow whose first datagrams wait for `initial`.
    pub fn new(initial: Duration) -> Self {
        Rto {
            estimate: None,
            rto: initial,
            backed_off: 0,
        }
    }

    /// Enters a round trip that was measured.
    pub fn sampled(&mut self, rtt: Duration) {
        let estimate = match self.estimate {
            None => Estimate {
                srtt: rtt,
                rttvar: rtt / 2,
            },
            Some(Estimate { srtt, rttvar }) => Estimate {
                // Against the mean as it was before this sample.
                rttvar: (rttvar * 3 + srtt.abs_diff(rtt)) / 4,
                srtt: (srtt * 7 + rtt) / 8,
            },
        };
        self.rto = (estimate.srtt + (estimate.rttvar * 4).max(GRANULARITY)).clamp(RTO_MIN, RTO_MAX);
        self.estimate = Some(estimate);
        self.backed_off = 0;
    }

    /// Doubles the timeout of what is sent from now on. To be called once for all that was sent
    /// under one timeout, however much of it is lost.
    pub fn back_off(&mut self) {
        self.backed_off = (self.backed_off + 1).min(DOUBLINGS_MAX);
    }

    /// The smoothed round trip, once there was a sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|estimate| estimate.srtt)
    }

    /// How long a datagram that is being sent for the `resent`th time again waits for its
    /// acknowledgement: as the flow has backed off, and at least twice as long each time.
    pub fn timeout(&self, resent: u32) -> Duration {
        self.doubled(self.backed_off.max(resent))
    }

    /// The same by the estimate alone.
    pub fn estimated(&self, resent: u32) -> Duration {
        self.doubled(resent)
    }

    fn doubled(&self, doublings: u32) -> Duration {
        (self.rto * (1 << doublings.min(DOUBLINGS_MAX))).min(RTO_MAX)
    }
}

/// What the RFC asks for before the first sample (2.1).
pub const RTO_INITIAL: Duration = Duration::from_secs(1);

/// The RFC asks for a second (2.4), for the sake of coarse clocks and of peers that sit on their
/// acknowledgements. This clock is exact and this peer is ours, so the nearest link may be as quick
/// as it is; what must not happen is that the peer's longest wait looks like a loss.
const RTO_MIN: Duration = Duration::from_millis(20);
const _: () = assert!(
    RTO_MIN.as_millis() >= 2 * ACK_DELAY.as_millis(),
    "a delayed acknowledgement is no loss"
);

/// The RFC allows for a minute (2.5). These links are shorter, and a flow that waits for so long does nothing.
pub const RTO_MAX: Duration = Duration::from_secs(4);

/// Of the clock that measures round trips, with what a loaded executor adds to it.
const GRANULARITY: Duration = Duration::from_millis(1);

/// More doublings than lie between the two bounds change nothing.
const DOUBLINGS_MAX: u32 = 8;
const _: () = assert!(
    RTO_MIN.as_millis() << DOUBLINGS_MAX >= RTO_MAX.as_millis(),
    "backing off reaches the longest timeout"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: f64) -> Duration {
        Duration::from_secs_f64(ms / 1e3)
    }

    /// Worked out by hand from the formulas (2.2) and (2.3) of RFC 6298.
    #[test]
    fn agrees_with_the_formulas() {
        let mut rto = Rto::new(RTO_INITIAL);
        assert_eq!((rto.srtt(), rto.timeout(0)), (None, ms(1_000.0)));
        for (sample, srtt, expected) in [
            // SRTT 100, RTTVAR 50: 100 + 200.
            (100.0, 100.0, 300.0),
            // RTTVAR 37.5 + 25 = 62.5, SRTT 87.5 + 25: 112.5 + 250.
            (200.0, 112.5, 362.5),
            // RTTVAR 46.875 + 0, SRTT as it was: 112.5 + 187.5.
            (112.5, 112.5, 300.0),
            // RTTVAR 35.15625 + 25, SRTT 98.4375 + 1.5625: 100 + 240.625.
            (12.5, 100.0, 340.625),
        ] {
            rto.sampled(ms(sample));
            assert_eq!(rto.srtt(), Some(ms(srtt)), "after {sample} ms");
            assert_eq!(rto.timeout(0), ms(expected), "after {sample} ms");
        }
    }

    #[test]
    fn each_time_it_is_sent_again_a_datagram_waits_twice_as_long() {
        let mut rto = Rto::new(RTO_INITIAL);
        rto.sampled(ms(100.0));
        let waits: Vec<_> = (0..6).map(|resent| rto.timeout(resent)).collect();
        assert_eq!(
            waits,
            [300.0, 600.0, 1_200.0, 2_400.0, 4_000.0, 4_000.0].map(ms)
        );
        assert_eq!(rto.timeout(u32::MAX), RTO_MAX);
    }

    #[test]
    fn a_flow_backs_off_until_the_next_sample() {
        let mut rto = Rto::new(RTO_INITIAL);
        rto.sampled(ms(100.0));
        rto.back_off();
        rto.back_off();
        let waits: Vec<_> = (0..5).map(|resent| rto.timeout(resent)).collect();
        assert_eq!(waits, [1_200.0, 1_200.0, 1_200.0, 2_400.0, 4_000.0].map(ms));
        assert_eq!(rto.estimated(0), ms(300.0));
        (0..100).for_each(|_| rto.back_off());
        assert_eq!(rto.timeout(0), RTO_MAX);
        // RTTVAR 37.5 + 0, SRTT as it was.
        rto.sampled(ms(100.0));
        assert_eq!(rto.timeout(0), ms(250.0));
    }
}
