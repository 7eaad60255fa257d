//! What happens to a message: decided by the seed and its number, before it is published.

use crate::workload::prelude::*;

/// What the fates of a run's messages are drawn from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    pub(super) seed: u64,
    /// How long a client may take to ack a delivery.
    pub(super) ack_deadline: Duration,
}

impl Pattern {
    /// For a run of `duration`: deadlines are as long as can be had with some messages dying, which takes three of them.
    /// Waiting costs nothing in a simulation, so that long ones have deadlines of minutes, as message queues have.
    pub(super) fn new(seed: u64, duration: Duration, is_simulated: bool) -> Self {
        let longest = match is_simulated {
            true => Duration::MAX,
            false => ACK_DEADLINE_MAX,
        };
        Pattern {
            seed,
            ack_deadline: (duration / 6).clamp(ACK_DEADLINE_MIN, longest),
        }
    }

    /// How long after the `attempt`th delivery of message `id` the client acks it: in time, or after the deadline, when
    /// the broker must take no notice. `None`: it does not.
    pub(super) fn acks_after(&self, id: u64, attempt: u8) -> Option<Duration> {
        let mut rng = stream(self.seed ^ u64::from(attempt) << 56, id);
        let (from, to) = match rng.u64(..100) {
            0..90 => (1, 50),
            90..98 => return None,
            _ => (102, 130),
        };
        Some(rng.percent_of(self.ack_deadline, from, to))
    }

    /// Replaces the content of `out` by the payload of message `id`, which begins with that.
    pub(super) fn payload(&self, id: u64, out: &mut Vec<u8>) {
        let mut rng = stream(!self.seed, id);
        out.clear();
        out.resize(rng.usize(PAYLOAD_BYTES), 0);
        rng.fill(out);
        out[..8].copy_from_slice(&id.to_le_bytes());
    }
}

/// How often a message is delivered before it goes to the dead letters.
pub(super) const ATTEMPTS_MAX: u8 = 3;

/// A hundred thousand messages that wait for half a second each would be two hundred thousand a second.
const ACK_DEADLINE_MAX: Duration = Duration::from_secs(20);
const ACK_DEADLINE_MIN: Duration = Duration::from_millis(200);

const PAYLOAD_BYTES: std::ops::RangeInclusive<usize> = 16..=240;
