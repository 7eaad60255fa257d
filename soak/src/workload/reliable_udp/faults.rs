//! What a link does to datagrams, as the seed has it: delay, loss, duplication, reordering, damage.
//!
//! Pure: decides, and leaves the doing to the channel. The delay is that of the link, which moves
//! to another path every few seconds, and a little jitter, so that neighbours may swap places; a
//! datagram held back is overtaken by many.

use std::ops::Range;
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

/// How far apart the ends of a flow are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Distance {
    /// The least time that a datagram takes.
    pub(super) one_way: Duration,
    /// Up to so much longer for each.
    pub(super) jitter: Duration,
}

/// One direction of a link.
#[derive(Debug)]
pub(super) struct Faults {
    rng: Rng,
    distance: Distance,
    /// In thousandths of the distance.
    path: u64,
    path_until: Instant,
    outage: Range<Instant>,
}

/// What happens to a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    Carried {
        delay: Duration,
        /// A second copy comes as well, after so long.
        again: Option<Duration>,
        /// Which bit of it is turned, counted around.
        damage: Option<u64>,
    },
}

impl Faults {
    pub(super) fn new(rng: Rng, distance: Distance, now: Instant) -> Self {
        let mut faults = Faults {
            rng,
            distance,
            path: 1_000,
            path_until: now,
            outage: now..now,
        };
        faults.next_outage(now);
        faults
    }

    /// What happens to a datagram that is sent now.
    pub(super) fn decide(&mut self, now: Instant) -> Fate {
        self.follow(now);
        if self.outage.contains(&now) || self.rng.chance(LOST, OF) {
            return Fate::Lost;
        }
        let is_held = self.rng.chance(HELD, OF);
        let mut delay = self.delay();
        if is_held {
            delay += self.rng.uniform(HELD_MIN, HELD_MAX);
        }
        Fate::Carried {
            delay,
            again: self.rng.chance(TWICE, OF).then(|| self.delay()),
            damage: self.rng.chance(DAMAGED, OF).then(|| self.rng.u64(..)),
        }
    }

    fn delay(&mut self) -> Duration {
        let on_path = self.distance.one_way.mul_f64(self.path as f64 / 1e3);
        on_path + self.rng.uniform(Duration::ZERO, self.distance.jitter)
    }

    /// Moves path and outage on to `now`.
    fn follow(&mut self, now: Instant) {
        if now >= self.path_until {
            self.path = 1_000 + self.rng.u64(..PATH_LONGER_MAX);
            self.path_until = now + self.rng.uniform(PATH_MIN, PATH_MAX);
        }
        if now >= self.outage.end {
            self.next_outage(now);
        }
    }

    fn next_outage(&mut self, now: Instant) {
        let begin = now + self.rng.uniform(BETWEEN_OUTAGES_MIN, BETWEEN_OUTAGES_MAX);
        self.outage = begin..begin + OUTAGE;
    }
}

/// Of so many datagrams ..
const OF: u64 = 1_000;
/// .. so many get lost, besides those in an outage,
const LOST: u64 = 30;
/// come twice,
const TWICE: u64 = 20;
/// are held back,
const HELD: u64 = 20;
/// or have a bit turned.
const DAMAGED: u64 = 3;

const HELD_MIN: Duration = Duration::from_millis(1);
const HELD_MAX: Duration = Duration::from_millis(80);

/// Everything is lost for so long, now and then.
const OUTAGE: Duration = Duration::from_millis(100);
const BETWEEN_OUTAGES_MIN: Duration = Duration::from_secs(3);
const BETWEEN_OUTAGES_MAX: Duration = Duration::from_secs(12);

/// A path is kept for a while, and may be longer than the shortest by so many thousandths.
const PATH_MIN: Duration = Duration::from_secs(2);
const PATH_MAX: Duration = Duration::from_secs(8);
const PATH_LONGER_MAX: u64 = 150;

#[cfg(test)]
mod tests {
    use support::generator::stream;

    use super::*;

    /// A datagram each millisecond for more than two minutes.
    #[test]
    fn each_fault_happens_about_as_often_as_it_says() {
        let distance = Distance {
            one_way: Duration::from_millis(50),
            jitter: Duration::from_millis(10),
        };
        let start = Instant::now();
        let mut faults = Faults::new(stream(3, 1), distance, start);
        let (mut held, mut twice, mut damaged) = (0, 0, 0);
        let (mut lost, mut in_a_row, mut longest) = (0, 0, 0);
        for ms in 0..150_000 {
            match faults.decide(start + Duration::from_millis(ms)) {
                Fate::Lost => {
                    lost += 1;
                    in_a_row += 1;
                    longest = longest.max(in_a_row);
                }
                Fate::Carried {
                    delay,
                    again,
                    damage,
                } => {
                    in_a_row = 0;
                    held += u32::from(delay > distance.one_way.mul_f64(1.15) + distance.jitter);
                    twice += u32::from(again.is_some());
                    damaged += u32::from(damage.is_some());
                    assert!(delay >= distance.one_way, "{delay:?}");
                }
            }
        }
        // Three in a hundred, and a tenth of a second in each 7.6, in one piece.
        assert!((5_700..7_200).contains(&lost), "{lost} lost");
        assert!((100..106).contains(&longest), "{longest} in a row");
        assert!((1_800..3_200).contains(&held), "{held} held back");
        assert!((2_600..3_200).contains(&twice), "{twice} twice");
        assert!((330..530).contains(&damaged), "{damaged} damaged");
    }
}
