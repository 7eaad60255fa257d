//! Timers that are waited for: for seconds, for hours, for ever.

use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glommio::timer::{Timer, TimerActionOnce};
use glommio::{Task, spawn_local};
use support::generator::{Draw, Rng, stream};

use super::sizes::Sizes;
use crate::check::checker::{Checker, Live};
use crate::check::model::Key;

/// What the executor waits for all the time.
pub(super) struct Sleepers {
    checker: Rc<Checker>,
    far: Vec<(Key, TimerActionOnce<()>)>,
    sleeps: Vec<Task<()>>,
}

impl Sleepers {
    pub(super) fn start(checker: &Rc<Checker>, mut rng: Rng, sizes: Sizes) -> Self {
        let never = (0..NEVER).map(|_| spawn_local(never(Rc::clone(checker))));
        let sleeps = (0..sizes.sleeps).map(|_| {
            let rng = stream(rng.u64(..), 0);
            spawn_local(sleep_again_and_again(
                Rc::clone(checker),
                rng,
                sizes.sleep_max,
            ))
        });
        let sleeps = never.chain(sleeps).collect();
        Sleepers {
            checker: Rc::clone(checker),
            far: far(checker, &mut rng, sizes.far),
            sleeps,
        }
    }

    /// Everything is still to come, or sleeps.
    pub(super) async fn cancel_all(self) {
        for (key, action) in self.far {
            self.checker.cancel(key);
            action.destroy();
        }
        for sleep in self.sleeps {
            sleep.cancel().await;
        }
    }
}

/// Arms `count` timers that are minutes to hours ahead, so that none of them fires in a run.
pub(super) fn far(
    checker: &Rc<Checker>,
    rng: &mut Rng,
    count: usize,
) -> Vec<(Key, TimerActionOnce<()>)> {
    (0..count)
        .map(|_| {
            let ahead = checker.control.patience() * 10 + rng.log_uniform(FAR_MIN, FAR_MAX);
            let ticket = checker.arm(Instant::now() + ahead);
            let checker = Rc::clone(checker);
            let (key, live) = (ticket.key, ticket.live);
            let action = TimerActionOnce::do_at(ticket.deadline, async move {
                let _live = live;
                checker.fired(key);
            });
            (key, action)
        })
        .collect()
}

/// Waits for longer than anything lasts.
async fn never(checker: Rc<Checker>) {
    let deadline = Instant::now() + CENTURIES;
    let ticket = checker.arm(deadline);
    // What a planted defect says of it is a time that can be counted; else the library is told the
    // largest there is.
    let wait = if ticket.deadline == deadline {
        Duration::MAX
    } else {
        ticket.delay()
    };
    waited(&checker, ticket.key, ticket.live, Timer::new(wait)).await;
}

async fn sleep_again_and_again(checker: Rc<Checker>, mut rng: Rng, longest: Duration) {
    loop {
        let wait = rng.log_uniform(SLEEP_MIN.min(longest / 4), longest);
        let ticket = checker.arm(Instant::now() + wait);
        let timer = Timer::new(ticket.delay());
        waited(&checker, ticket.key, ticket.live, timer).await;
    }
}

/// Waits for the timer, and enters that it fired. If the wait is dropped it was cancelled.
async fn waited(checker: &Checker, key: Key, _live: Live, timer: Timer) {
    let timer = pin!(timer);
    // Dropped before the timer: a cancellation is entered before it happens.
    let waiting = Waiting { checker, key };
    timer.await;
    checker.fired(key);
    drop(waiting);
}

struct Waiting<'a> {
    checker: &'a Checker,
    key: Key,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Changes nothing if it has fired.
        self.checker.cancel(self.key);
    }
}

const FAR_MIN: Duration = Duration::from_secs(10 * 60);
const FAR_MAX: Duration = Duration::from_secs(48 * 3_600);

/// The model counts in `Instant`s, which end somewhere after this.
const CENTURIES: Duration = Duration::from_secs(200 * 365 * 24 * 3_600);
const NEVER: usize = 16;

const SLEEP_MIN: Duration = Duration::from_secs(1);
