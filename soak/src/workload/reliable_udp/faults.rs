//! What a link does to datagrams, as the seed has it: delay, loss, duplication, reordering, damage.
//!
//! Pure: decides, and leaves the doing to the channel. The delay is that of the link, which moves
//! to another path every few seconds, and a little jitter, so that neighbours may swap places; a
//! datagram held back is overtaken by many.

use std::ops::Range;

use crate::workload::prelude::*;

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

/// What happens to a datagram that is not lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) delay: Duration,
    /// A second copy comes as well, after so long.
    pub(super) again: Option<Duration>,
    /// Which bit of it is turned, counted around.
    pub(super) damage: Option<u64>,
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

    /// What happens to a datagram that is sent now. `None`: it is lost.
    pub(super) fn decide(&mut self, now: Instant) -> Option<Carried> {
        self.follow(now);
        if self.outage.contains(&now) || self.rng.chance(LOST, OF) {
            return None;
        }
        let is_held = self.rng.chance(HELD, OF);
        let mut delay = self.delay();
        if is_held {
            delay += self.rng.uniform(HELD_MIN, HELD_MAX);
        }
        Some(Carried {
            delay,
            again: self.rng.chance(TWICE, OF).then(|| self.delay()),
            damage: self.rng.chance(DAMAGED, OF).then(|| self.rng.u64(..)),
        })
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
