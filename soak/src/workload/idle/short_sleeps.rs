//! An executor that wants to wake at each millisecond and does nothing then: the twin of the plain
//! thread that measures the noise. The machine treats both alike, so that what the one is later
//! than the other is the library's.

use std::rc::Rc;
use std::time::Instant;

use glommio::timer::Timer;

use crate::check::checker::Checker;
use crate::check::probe::Timing;
use crate::measure::noise::SLEEP;

pub(super) async fn run(checker: Rc<Checker>) {
    let mut due = Instant::now();
    while !checker.control.is_draining() {
        // Not from the end of the sleep before: every millisecond counts, also those overslept.
        due += SLEEP;
        let ticket = checker.arm(due);
        let _live = ticket.live;
        Timer::new(ticket.deadline.saturating_duration_since(Instant::now())).await;
        checker.fired_as(ticket.key, Timing::Sleep);
    }
    checker.settle().await;
}
