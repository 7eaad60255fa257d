//! Up and down across 256 timers, where the staged wheel goes from its first stage to the wheel; it
//! goes back when it is empty.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use glommio::timer::Timer;
use support::generator::Rng;

use crate::check::checker::{Checker, Live};
use crate::check::model::Key;
use crate::clock;

/// Crosses it for so long, or until the run drains. Nothing is left armed.
pub(super) async fn cross(checker: &Rc<Checker>, rng: &mut Rng, lasts: Duration) {
    let began = clock::now();
    while clock::since(began) < lasts && !checker.control.is_draining() {
        let mut armed = Vec::new();
        for _ in 0..CROSSINGS {
            bring_to(checker, &mut armed, near_the_threshold(rng));
        }
        bring_to(checker, &mut armed, 0);
        // When the timer of this pause fires, there is none.
        checker.pause(PAUSE).await;
    }
}

/// Arms timers, or cancels the latest, until there are `count`.
fn bring_to(checker: &Rc<Checker>, armed: &mut Vec<(Timer, Key, Live)>, count: usize) {
    while armed.len() < count {
        let ticket = checker.arm(clock::now() + FAR);
        let mut timer = Timer::new(ticket.delay());
        let polled = Pin::new(&mut timer).poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_ready() {
            // A planted defect.
            checker.fired(ticket.key);
        }
        armed.push((timer, ticket.key, ticket.live));
    }
    for (timer, key, live) in armed.drain(count..) {
        checker.cancel(key);
        drop((timer, live));
    }
}

fn near_the_threshold(rng: &mut Rng) -> usize {
    BRINK - 3 + rng.usize(..7)
}

/// As many timers as the first stage does not take.
const BRINK: usize = 256;
const CROSSINGS: usize = 20;
const FAR: Duration = Duration::from_secs(3_600);
const PAUSE: Duration = Duration::from_millis(2);
