//! How deadlines are spread over time.

use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

/// A way to draw deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Anywhere within the next 50 ms: most of them fire if they are left alone.
    Short,
    /// A millisecond to an hour, every order of magnitude as likely.
    Magnitudes,
    /// All of a burst at one instant.
    Equal,
    /// Each a little later than the one before.
    Increasing,
    /// Each a little sooner than the one before.
    Decreasing,
}

impl Spread {
    pub(super) const ALL: [Spread; 5] = [
        Spread::Short,
        Spread::Magnitudes,
        Spread::Equal,
        Spread::Increasing,
        Spread::Decreasing,
    ];

    /// For a burst that begins at `now`.
    pub(super) fn begin(self, now: Instant) -> Deadlines {
        Deadlines {
            spread: self,
            next: match self {
                Spread::Decreasing => now + FAR,
                _ => now + NEAR,
            },
        }
    }
}

/// The deadlines of one burst.
#[derive(Debug)]
pub(super) struct Deadlines {
    spread: Spread,
    next: Instant,
}

impl Deadlines {
    pub(super) fn draw(&mut self, rng: &mut Rng) -> Instant {
        let now = Instant::now();
        match self.spread {
            Spread::Short => now + rng.uniform(Duration::ZERO, NEAR),
            Spread::Magnitudes => {
                now + rng.log_uniform(Duration::from_millis(1), Duration::from_secs(3_600))
            }
            Spread::Equal => self.next,
            Spread::Increasing => {
                self.next += STEP;
                self.next
            }
            Spread::Decreasing => {
                self.next -= STEP;
                self.next
            }
        }
    }

    /// One that does not fire within the burst.
    pub(super) fn draw_far(&mut self, rng: &mut Rng) -> Instant {
        self.draw(rng) + FAR
    }
}

/// Soon enough to fire between two bursts.
const NEAR: Duration = Duration::from_millis(50);

/// A burst draws at most some 100,000 deadlines.
const FAR: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use support::generator::stream;

    use super::*;

    #[test]
    fn each_spread_is_what_it_is_called() {
        let (base, mut rng) = (Instant::now(), stream(1, 1));
        let mut draw = |spread: Spread| -> Vec<Instant> {
            let mut deadlines = spread.begin(base);
            (0..1_000).map(|_| deadlines.draw(&mut rng)).collect()
        };
        assert!(draw(Spread::Increasing).is_sorted_by(|a, b| a < b));
        assert!(draw(Spread::Decreasing).is_sorted_by(|a, b| a > b));
        assert!(draw(Spread::Equal).is_sorted_by(|a, b| a == b));
        let short = draw(Spread::Short);
        assert!(!short.is_sorted() && short.iter().all(|&at| at >= base));
        let magnitudes = draw(Spread::Magnitudes);
        let beyond = |s| {
            let limit = Instant::now() + Duration::from_secs(s);
            magnitudes.iter().filter(|&&at| at > limit).count()
        };
        assert!(beyond(60) > 100 && beyond(1_800) < 200, "{}", beyond(60));
    }
}
