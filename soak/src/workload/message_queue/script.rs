//! What happens to a message: decided by the seed and its number, before it is published.

use std::time::Duration;

use support::generator::{Draw, stream};

/// What the fates of a run's messages are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    seed: u64,
    /// The allowance of every second message: their deadlines come in the order of their arming.
    uniform_allowance: Duration,
    /// The longest of the others.
    allowance_max: Duration,
}

impl Pattern {
    /// For a run of `duration`: deadlines are as long as can be had with some of them passing.
    pub(crate) fn new(seed: u64, duration: Duration) -> Self {
        Pattern {
            seed,
            uniform_allowance: (duration / 2).clamp(UNIFORM_ALLOWANCE_MIN, UNIFORM_ALLOWANCE_MAX),
            allowance_max: ALLOWANCE_MAX,
        }
    }

    /// As `new`, for a simulation: waiting costs nothing there, so that long runs have deadlines of
    /// minutes, as message queues have.
    pub(crate) fn simulated(seed: u64, duration: Duration) -> Self {
        let pattern = Pattern::new(seed, duration);
        Pattern {
            uniform_allowance: pattern.uniform_allowance.max(duration / 4),
            allowance_max: pattern.allowance_max.max(duration / 2),
            ..pattern
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The fate of the message numbered `id`.
    pub(crate) fn script(&self, id: u64) -> Script {
        let mut rng = stream(self.seed, id);
        let allowance = if rng.chance(1, 2) {
            self.uniform_allowance
        } else {
            rng.log_uniform(ALLOWANCE_MIN, self.allowance_max)
        };
        let payload_bytes =
            PAYLOAD_BYTES_MIN + rng.usize(..PAYLOAD_BYTES_MAX - PAYLOAD_BYTES_MIN + 1);
        Script {
            seed: self.seed,
            id,
            // In whole microseconds, as the wire has it.
            allowance: Duration::from_micros(allowance.as_micros() as u64),
            payload_bytes,
        }
    }
}

/// The fate of one message, known only to the client that publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    seed: u64,
    id: u64,
    /// How long the client may take to ack a delivery.
    pub(crate) allowance: Duration,
    payload_bytes: usize,
}

/// What the client does about one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Ack within the allowance.
    Ack { after: Duration },
    /// Ask for the allowance anew, then ack within that.
    ExtendThenAck {
        extend_after: Duration,
        ack_after: Duration,
    },
    /// Nothing.
    Ignore,
    /// Ack, but after the deadline: the broker must take no notice.
    AckLate { after: Duration },
}

impl Script {
    /// What to do about the `attempt`th delivery.
    pub(crate) fn reply(&self, attempt: u8) -> Reply {
        let mut rng = stream(self.seed ^ u64::from(attempt) << 56, self.id);
        match rng.u64(..100) {
            0..85 => Reply::Ack {
                after: rng.percent_of(self.allowance, 2, 50),
            },
            85..90 => Reply::ExtendThenAck {
                extend_after: rng.percent_of(self.allowance, 40, 70),
                ack_after: rng.percent_of(self.allowance, 35, 60),
            },
            90..98 => Reply::Ignore,
            _ => Reply::AckLate {
                after: rng.percent_of(self.allowance, 102, 130),
            },
        }
    }

    /// Replaces the content of `out` by the payload.
    pub(crate) fn payload(&self, out: &mut Vec<u8>) {
        out.clear();
        out.resize(self.payload_bytes, 0);
        stream(!self.seed, self.id).fill(out);
    }
}

/// How often a message is delivered before it is given up.
pub(crate) const ATTEMPTS_MAX: u8 = 3;

/// A hundred thousand messages that wait for half a second each would be two hundred thousand a
/// second.
const UNIFORM_ALLOWANCE_MAX: Duration = Duration::from_secs(20);
const UNIFORM_ALLOWANCE_MIN: Duration = Duration::from_millis(200);

const ALLOWANCE_MIN: Duration = Duration::from_millis(50);
const ALLOWANCE_MAX: Duration = Duration::from_secs(60);
const PAYLOAD_BYTES_MIN: usize = 16;
const PAYLOAD_BYTES_MAX: usize = 240;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_message_has_the_same_fate() {
        let pattern = Pattern::new(1, Duration::from_secs(300));
        let (a, b) = (pattern.script(2), pattern.script(2));
        assert_eq!(a, b);
        assert_eq!(a.reply(2), b.reply(2));
        let (mut of_a, mut of_b) = (Vec::new(), vec![9; 500]);
        a.payload(&mut of_a);
        b.payload(&mut of_b);
        assert_eq!(of_a, of_b);
    }

    #[test]
    fn deadlines_pass_within_short_runs() {
        for (run, allowance_ms) in [(1, 500), (20, 10_000), (300, 20_000), (7_200, 20_000)] {
            let pattern = Pattern::new(1, Duration::from_secs(run));
            assert_eq!(pattern.uniform_allowance.as_millis(), allowance_ms);
        }
    }

    #[test]
    fn one_delivery_in_ten_is_left_to_time_out() {
        let pattern = Pattern::new(42, Duration::from_secs(20));
        let mut unanswered = 0;
        let mut uniform = 0;
        for id in 0..20_000 {
            let script = pattern.script(id);
            assert!(script.allowance >= ALLOWANCE_MIN && script.allowance <= ALLOWANCE_MAX);
            uniform += usize::from(script.allowance == pattern.uniform_allowance);
            match script.reply(1) {
                Reply::Ack { after } => assert!(after <= script.allowance / 2),
                Reply::ExtendThenAck {
                    extend_after,
                    ack_after,
                } => {
                    assert!(extend_after < script.allowance && ack_after < script.allowance);
                    assert!(extend_after + ack_after > script.allowance / 2);
                }
                Reply::Ignore => unanswered += 1,
                Reply::AckLate { after } => {
                    assert!(after > script.allowance);
                    unanswered += 1;
                }
            }
        }
        assert!((1_800..2_200).contains(&unanswered), "{unanswered}");
        assert!((9_500..10_500).contains(&uniform), "{uniform}");
    }
}
