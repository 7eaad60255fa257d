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

    /// Which part of it has passed. `None`: all of it.
    pub(super) fn part(&self) -> Option<f64> {
        let part = clock::since(self.began).div_duration_f64(self.lasts);
        (part < 1.0 && !self.checker.control.is_draining()).then_some(part)
    }

    pub(super) fn end(&self) {
        self.has_ended.set(true);
    }

    /// Whether to stop making timers.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended.get() || self.checker.control.is_draining()
    }
}

/// How many timers of a kind there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) usual: usize,
    pub(super) top: usize,
}

impl Range {
    /// How many when this part of a cycle has passed.
    pub(super) fn at(self, part: f64) -> usize {
        let (usual, top) = (self.usual as f64, self.top as f64);
        let within = |from: f64, to: f64| (part - from) / (to - from);
        let count = match part {
            ..USUAL_UNTIL => usual,
            ..RISE_UNTIL => usual + (top - usual) * within(USUAL_UNTIL, RISE_UNTIL),
            ..TOP_UNTIL => top,
            _ => top * (1.0 - within(TOP_UNTIL, 1.0)),
        };
        count.round() as usize
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
