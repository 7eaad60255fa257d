//! Whether what a peak took went back to the allocator.
//!
//! ```text
//!   bytes             ╱╲
//!              ╱╲    ╱  ╲         after ≤ before + bound, where *before* is
//!             ╱  ╲  ╱    ╲___     this peak's beginning, and that of the first one
//!   ─────────╱    ╲╱
//! ```
//!
//! The allocator is counted for the whole process. What others take as they begin is not this peak's: one that
//! begins before the run is warm is not judged. Later others come and go, and their timers are
//! counted too: by as many as these swung meanwhile, so much is excused. A workload that runs alone
//! is excused nothing, and measured against the beginning of its first peak then so that small leaks add
//! up.

use std::rc::Rc;
use std::time::Duration;

use glommio::timer::sleep;

use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::measure::{memory, process};
use crate::{clock, counts};

/// The peaks of one executor.
#[derive(Debug)]
pub(crate) struct Peaks {
    checker: Rc<Checker>,
    this: Span,
    /// From the beginning of the first peak that is judged.
    all: Span,
    is_judged: bool,
}

/// What was seen from some moment on.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Bytes.
    before: u64,
    most: u64,
    most_timers: i64,
    /// Timers of other executors, at the least and at the most.
    elsewhere: (i64, i64),
}

impl Peaks {
    pub(crate) fn new(checker: &Rc<Checker>) -> Self {
        let span = Span::begin(checker);
        Peaks {
            checker: Rc::clone(checker),
            this: span,
            all: span,
            is_judged: false,
        }
    }

    /// The number of timers is about to rise.
    pub(crate) fn begin(&mut self) {
        self.this = Span::begin(&self.checker);
        if !self.is_judged {
            self.all = self.this;
            self.is_judged = self.checker.control.is_warm();
        }
        self.look();
    }

    /// On the way, and at the top.
    pub(crate) fn look(&mut self) {
        self.this.look(&self.checker);
        self.all.look(&self.checker);
    }

    /// After the fall: waits until every future is gone, then judges. What has not come back within
    /// a moment is kept.
    pub(crate) async fn judge(&mut self) {
        let asked = clock::now();
        while self.checker.live() > 0 && clock::since(asked) < self.checker.control.patience() {
            self.checker.pause(LOOK_EVERY).await;
        }
        self.checker.shrink();
        if !self.is_judged {
            return;
        }
        let checker = Rc::clone(&self.checker);
        let excess = until_back(&checker, || {
            self.look();
            let bytes = memory::allocated().bytes;
            self.this.excess(bytes).max(self.all.excess(bytes))
        });
        let excess = excess.await;
        checker.check(Invariant::PeaksReturn, excess, || {
            let after = memory::allocated().bytes;
            let Span { before, most, .. } = self.this;
            let [before, most, after, excess] = [before, most, after, excess].map(counts::bytes);
            format!(
                "{before} before a peak, {most} at its top, {after} after it, {excess} more than allowed"
            )
        });
    }
}

/// Waits for a moment until memory is back: what is in excess then.
pub(crate) async fn until_back(checker: &Checker, mut excess: impl FnMut() -> u64) -> u64 {
    let asked = clock::now();
    loop {
        // What another workload holds for a moment is not what a peak took.
        let patience = match process::is_memory_held() {
            true => checker.control.patience(),
            false => RETURN_PATIENCE,
        };
        let excess = excess();
        // What a process has allocated does not follow from the seed: in a simulation nothing goes by it.
        let may_wait = !checker.control.is_simulated() && clock::since(asked) < patience;
        if excess == 0 || !may_wait {
            return excess;
        }
        sleep(LOOK_EVERY).await;
    }
}

impl Span {
    fn begin(checker: &Checker) -> Self {
        let bytes = memory::allocated().bytes;
        let elsewhere = elsewhere(checker);
        Span {
            before: bytes,
            most: bytes,
            most_timers: 0,
            elsewhere: (elsewhere, elsewhere),
        }
    }

    fn look(&mut self, checker: &Checker) {
        self.most = self.most.max(memory::allocated().bytes);
        self.most_timers = self.most_timers.max(checker.live());
        let now = elsewhere(checker);
        let (least, most) = self.elsewhere;
        self.elsewhere = (least.min(now), most.max(now));
    }

    fn excess(&self, bytes: u64) -> u64 {
        let (least, most) = self.elsewhere;
        let bound = KEPT_BYTES
            + self.most_timers.unsigned_abs() * KEPT_BYTES_PER_TIMER
            + (most - least).unsigned_abs() * BYTES_PER_TIMER_ELSEWHERE;
        bytes.saturating_sub(self.before + bound)
    }
}

fn elsewhere(checker: &Checker) -> i64 {
    checker.control.live_timers() - checker.live()
}

/// What fills up once and stays: the model's memory of the past, 3.7 MiB, histograms, and a start.
const KEPT_BYTES: u64 = 8 << 20;

/// What may stay behind by design. The timer queue keeps its pages, 48 bytes a timer, for two
/// windows of four seconds in case the peak comes again, and the room in which it sorts, up to 32
/// bytes; an executor keeps its list of tasks and its run queue as long as they were, up to 32
/// bytes together.
const KEPT_BYTES_PER_TIMER: u64 = 112;

/// A task, its timer, its message and what the model knows of it, in maps that grow by doubling.
pub(crate) const BYTES_PER_TIMER_ELSEWHERE: u64 = 2_048;

const LOOK_EVERY: Duration = Duration::from_millis(5);
const RETURN_PATIENCE: Duration = Duration::from_secs(1);
