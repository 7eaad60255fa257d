//! What happens to a message: decided by the seed and its number, before it is published.

use crate::workload::prelude::*;

/// What the fates of a run's messages are drawn from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    seed: u64,
    /// The allowance of every second message: their deadlines come in the order of their arming.
    uniform_allowance: Duration,
    /// The longest of the others.
    allowance_max: Duration,
}

impl Pattern {
    /// For a run of `duration`: deadlines are as long as can be had with some of them passing. Waiting costs nothing in a
    /// simulation, so that long ones have deadlines of minutes, as message queues have.
    pub(super) fn new(seed: u64, duration: Duration, is_simulated: bool) -> Self {
        let least = |part| {
            if is_simulated {
                duration / part
            } else {
                Duration::ZERO
            }
        };
        let uniform = (duration / 2).clamp(UNIFORM_ALLOWANCE_MIN, UNIFORM_ALLOWANCE_MAX);
        Pattern {
            seed,
            uniform_allowance: uniform.max(least(4)),
            allowance_max: ALLOWANCE_MAX.max(least(2)),
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// The fate of the message numbered `id`.
    pub(super) fn script(&self, id: u64) -> Script {
        let mut rng = stream(self.seed, id);
        let allowance = if rng.chance(1, 2) {
            self.uniform_allowance
        } else {
            rng.log_uniform(ALLOWANCE_MIN, self.allowance_max)
        };
        Script {
            seed: self.seed,
            id,
            allowance,
            payload_bytes: rng.usize(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX),
        }
    }
}

/// The fate of one message, known only to the client that publishes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    seed: u64,
    id: u64,
    /// How long the client may take to ack a delivery.
    pub(super) allowance: Duration,
    payload_bytes: usize,
}

/// What the client does about one delivery.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    /// Within the allowance, or after the deadline: then the broker must take no notice.
    Ack {
        after: Duration,
    },
    /// Ask for the allowance anew, then ack within that.
    ExtendThenAck {
        extend_after: Duration,
        ack_after: Duration,
    },
    Ignore,
}

impl Script {
    /// What to do about the `attempt`th delivery.
    pub(super) fn reply(&self, attempt: u8) -> Reply {
        let mut rng = stream(self.seed ^ u64::from(attempt) << 56, self.id);
        let choice = rng.u64(..100);
        let mut percent = |from, to| rng.percent_of(self.allowance, from, to);
        match choice {
            0..85 => Reply::Ack {
                after: percent(2, 50),
            },
            85..90 => Reply::ExtendThenAck {
                extend_after: percent(40, 70),
                ack_after: percent(35, 60),
            },
            90..98 => Reply::Ignore,
            _ => Reply::Ack {
                after: percent(102, 130),
            },
        }
    }

    /// Replaces the content of `out` by the payload.
    pub(super) fn payload(&self, out: &mut Vec<u8>) {
        out.clear();
        out.resize(self.payload_bytes, 0);
        stream(!self.seed, self.id).fill(out);
    }
}

/// How often a message is delivered before it is given up.
pub(super) const ATTEMPTS_MAX: u8 = 3;

/// A hundred thousand messages that wait for half a second each would be two hundred thousand a second.
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
    fn one_delivery_in_ten_is_left_to_time_out() {
        let pattern = Pattern::new(42, Duration::from_secs(20), false);
        let (mut unanswered, mut uniform) = (0, 0);
        for id in 0..20_000 {
            let script = pattern.script(id);
            uniform += usize::from(script.allowance == pattern.uniform_allowance);
            unanswered += usize::from(match script.reply(1) {
                Reply::Ignore => true,
                Reply::Ack { after } => after > script.allowance,
                Reply::ExtendThenAck {
                    extend_after,
                    ack_after,
                } => {
                    assert!(extend_after < script.allowance && ack_after < script.allowance);
                    false
                }
            });
        }
        assert!((1_800..2_200).contains(&unanswered), "{unanswered}");
        assert!((9_500..10_500).contains(&uniform), "{uniform}");
    }
}
