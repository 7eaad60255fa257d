//! Timers that are waited for: for seconds, for hours, for ever.

use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glommio::timer::{Timer, TimerActionOnce};
use glommio::{Task, spawn_local};

use super::Sizes;
use crate::check::model::Key;
use crate::check::watch::{Live, Watch};
use crate::rng::{Draw, Rng, stream};

/// What the executor waits for all the time.
pub(super) struct Sleepers {
    watch: Rc<Watch>,
    far: Vec<(Key, TimerActionOnce<()>)>,
    sleeps: Vec<Task<()>>,
}

impl Sleepers {
    pub(super) fn start(watch: &Rc<Watch>, mut rng: Rng, sizes: Sizes) -> Self {
        let never = (0..NEVER).map(|_| spawn_local(never(Rc::clone(watch))));
        let sleeps = (0..sizes.sleeps).map(|_| {
            let rng = stream(rng.u64(..), 0);
            spawn_local(sleep_again_and_again(
                Rc::clone(watch),
                rng,
                sizes.sleep_max,
            ))
        });
        let sleeps = never.chain(sleeps).collect();
        Sleepers {
            watch: Rc::clone(watch),
            far: far(watch, &mut rng, sizes.far),
            sleeps,
        }
    }

    /// Everything is still to come, or sleeps.
    pub(super) async fn cancel_all(self) {
        for (key, action) in self.far {
            self.watch.cancel(key);
            action.destroy();
        }
        for sleep in self.sleeps {
            sleep.cancel().await;
        }
    }
}

/// Arms `count` timers that are minutes to hours ahead, so that none of them fires in a run.
pub(super) fn far(
    watch: &Rc<Watch>,
    rng: &mut Rng,
    count: usize,
) -> Vec<(Key, TimerActionOnce<()>)> {
    (0..count)
        .map(|_| {
            let ahead = watch.control.patience() * 10 + rng.log_uniform(FAR_MIN, FAR_MAX);
            let ticket = watch.arm(Instant::now() + ahead);
            let watch = Rc::clone(watch);
            let (key, live) = (ticket.key, ticket.live);
            let action = TimerActionOnce::do_at(ticket.deadline, async move {
                let _live = live;
                watch.fired(key);
            });
            (key, action)
        })
        .collect()
}

/// Waits for longer than anything lasts.
async fn never(watch: Rc<Watch>) {
    let deadline = Instant::now() + CENTURIES;
    let ticket = watch.arm(deadline);
    // What a planted defect says of it is a time that can be counted; else the library is told the
    // largest there is.
    let wait = if ticket.deadline == deadline {
        Duration::MAX
    } else {
        ticket.delay()
    };
    waited(&watch, ticket.key, ticket.live, Timer::new(wait)).await;
}

async fn sleep_again_and_again(watch: Rc<Watch>, mut rng: Rng, longest: Duration) {
    loop {
        let wait = rng.log_uniform(SLEEP_MIN.min(longest / 4), longest);
        let ticket = watch.arm(Instant::now() + wait);
        let timer = Timer::new(ticket.delay());
        waited(&watch, ticket.key, ticket.live, timer).await;
    }
}

/// Waits for the timer, and enters that it fired. If the wait is dropped it was cancelled.
async fn waited(watch: &Watch, key: Key, _live: Live, timer: Timer) {
    let timer = pin!(timer);
    // Dropped before the timer: a cancellation is entered before it happens.
    let waiting = Waiting { watch, key };
    timer.await;
    watch.fired(key);
    drop(waiting);
}

struct Waiting<'a> {
    watch: &'a Watch,
    key: Key,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Changes nothing if it has fired.
        self.watch.cancel(self.key);
    }
}

const FAR_MIN: Duration = Duration::from_secs(10 * 60);
const FAR_MAX: Duration = Duration::from_secs(48 * 3_600);

/// The model counts in `Instant`s, which end somewhere after this.
const CENTURIES: Duration = Duration::from_secs(200 * 365 * 24 * 3_600);
const NEVER: usize = 16;

const SLEEP_MIN: Duration = Duration::from_secs(1);
