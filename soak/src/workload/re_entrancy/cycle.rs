//! The rise and fall of the number of timers, the tasks that end with it, and how long timers wait.

use crate::workload::prelude::*;

/// One rise and fall.
pub(super) struct Cycle {
    pub(super) checker: Rc<Checker>,
    began: Instant,
    lasts: Duration,
    has_ended: Cell<bool>,
}

impl Cycle {
    pub(super) fn new(checker: &Rc<Checker>, lasts: Duration) -> Rc<Self> {
        Rc::new(Cycle {
            checker: Rc::clone(checker),
            began: clock::now(),
            lasts,
            has_ended: Cell::new(false),
        })
    }

    /// How many timers there should be now: 1 as many as usual, 2 the most. `None`: it is over.
    pub(super) fn height(&self) -> Option<f64> {
        if self.checker.control.is_draining() {
            return None;
        }
        height(clock::since(self.began).div_duration_f64(self.lasts))
    }

    pub(super) fn end(&self) {
        self.has_ended.set(true);
    }

    /// Whether to stop making timers.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended.get() || self.checker.control.is_draining()
    }
}

/// By the part of the cycle that has passed.
fn height(part: f64) -> Option<f64> {
    let within = |from: f64, to: f64| (part - from) / (to - from);
    match part {
        ..USUAL_UNTIL => Some(1.0),
        ..RISE_UNTIL => Some(1.0 + within(USUAL_UNTIL, RISE_UNTIL)),
        ..TOP_UNTIL => Some(2.0),
        ..1.0 => Some(2.0 - 2.0 * within(TOP_UNTIL, 1.0)),
        _ => None,
    }
}

const USUAL_UNTIL: f64 = 0.3;
const RISE_UNTIL: f64 = 0.5;
const TOP_UNTIL: f64 = 0.7;

/// How long timers of a kind wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waits {
    /// So many of them fire soon, however many there are.
    pub(super) usual: usize,
    pub(super) short_max: Duration,
}

impl Waits {
    /// For one of `count` timers.
    pub(super) fn draw(&self, rng: &mut Rng, count: usize) -> Duration {
        if rng.chance(self.usual as u64, count.max(self.usual) as u64) {
            self.draw_short(rng)
        } else {
            rng.log_uniform(self.short_max, LONG_MAX)
        }
    }

    /// Between a millisecond and two seconds; one in fifty is none at all.
    pub(super) fn draw_short(&self, rng: &mut Rng) -> Duration {
        if rng.chance(1, 50) {
            return Duration::ZERO;
        }
        rng.log_uniform(Duration::from_millis(1), self.short_max)
    }
}

const LONG_MAX: Duration = Duration::from_secs(3_600);
