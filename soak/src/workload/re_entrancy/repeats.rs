//! `TimerActionRepeat`s: their periods, and stopping them from outside and from inside.

use glommio::timer::TimerActionRepeat;

use super::cycle::Cycle;
use crate::workload::prelude::*;

/// Starts `count` supervisors, each with one repeated action after the other until the cycle is
/// over.
pub(super) fn start(cycle: &Rc<Cycle>, mut rng: Rng, count: usize) -> Vec<Task<()>> {
    let supervise = |_| spawn_local(supervise(Rc::clone(cycle), stream(rng.u64(..), 0)));
    (0..count).map(supervise).collect()
}

async fn supervise(cycle: Rc<Cycle>, mut rng: Rng) {
    while !cycle.is_over() {
        let beat = Rc::new(Beat {
            checker: Rc::clone(&cycle.checker),
            cycle: Rc::clone(&cycle),
            rng: RefCell::new(stream(rng.u64(..), 0)),
            next: RefCell::new(None),
            runs_left: Cell::new(1 + rng.u64(..20) as u32),
            is_finished: Cell::new(false),
            is_stopped: Cell::new(false),
            handle: RefCell::new(None),
        });
        // The first run has no delay.
        let _ = beat.expect_in(Duration::ZERO);
        let repeat = TimerActionRepeat::repeat({
            let beat = Rc::clone(&beat);
            move || Rc::clone(&beat).run()
        });
        match rng.u64(..4) {
            0 => {
                let given_up = async {
                    beat.written_off().await;
                    None
                };
                if let Some(joined) = or(async { Some(repeat.join().await) }, given_up).await {
                    beat.judge(joined == Some(()), || {
                        format!("joined with {joined:?} after its last run")
                    });
                }
            }
            1 => {
                sleep(rng.log_uniform(Duration::from_millis(1), STOP_AFTER_MAX)).await;
                beat.stop();
                repeat.destroy();
                let expected = beat.is_finished.get().then_some(());
                let joined = repeat.join().await;
                beat.judge(joined == expected, || {
                    format!("joined with {joined:?}, not {expected:?}")
                });
            }
            2 => {
                sleep(rng.log_uniform(Duration::from_millis(1), STOP_AFTER_MAX)).await;
                beat.stop();
                repeat.cancel().await;
                let holds = Rc::strong_count(&beat);
                beat.judge(holds == 1, || {
                    format!("{} of its parts outlived its cancellation", holds - 1)
                });
            }
            // It destroys itself from inside its last run.
            _ => {
                *beat.handle.borrow_mut() = Some(repeat);
                or(beat.finished(), beat.written_off()).await;
                let repeat = beat.handle.borrow_mut().take();
                let repeat = repeat.expect("it was put there above");
                if beat.is_finished.get() {
                    let joined = repeat.join().await;
                    beat.judge(joined.is_none(), || {
                        format!("joined with {joined:?} after destroying itself")
                    });
                } else {
                    repeat.destroy();
                }
            }
        }
    }
}

/// One repeated action.
struct Beat {
    checker: Rc<Checker>,
    cycle: Rc<Cycle>,
    rng: RefCell<Rng>,
    /// The run that is to come.
    next: RefCell<Option<(Key, Live)>>,
    runs_left: Cell<u32>,
    is_finished: Cell<bool>,
    is_stopped: Cell<bool>,
    /// Its own handle, if it is to destroy itself.
    handle: RefCell<Option<TimerActionRepeat>>,
}

impl Beat {
    async fn run(self: Rc<Self>) -> Option<Duration> {
        let expected = self.next.borrow_mut().take();
        match expected {
            Some((key, _live)) => {
                self.checker.fired(key);
            }
            None => self.judge(false, || "ran although it had been stopped".to_owned()),
        }
        let (suspends, wait) = {
            let mut rng = self.rng.borrow_mut();
            let wait = match rng.chance(1, 10) {
                true => Duration::ZERO,
                false => rng.log_uniform(Duration::from_millis(1), PERIOD_MAX),
            };
            (rng.chance(1, 4), wait)
        };
        if suspends {
            sleep(Duration::from_micros(500)).await;
            self.judge(!self.is_stopped.get(), || {
                "went on after it had been stopped".to_owned()
            });
        }
        self.runs_left.set(self.runs_left.get() - 1);
        if self.runs_left.get() == 0 || self.cycle.is_over() {
            if let Some(own) = &*self.handle.borrow() {
                own.destroy();
            }
            self.is_finished.set(true);
            return None;
        }
        Some(self.expect_in(wait))
    }

    /// The next run is to come after `wait`: what the library is told.
    fn expect_in(&self, wait: Duration) -> Duration {
        let ticket = self.checker.arm(clock::now() + wait);
        let told = ticket.delay();
        *self.next.borrow_mut() = Some((ticket.key, ticket.live));
        told
    }

    async fn finished(&self) {
        while !self.is_finished.get() {
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The cycle has been over for as long as any workload waits for a timer, so that the next run
    /// will not come: no task should wait for it. It counts as lost.
    async fn written_off(&self) {
        let mut waited_since = clock::now();
        while clock::since(waited_since) < self.checker.control.patience() {
            sleep(Duration::from_millis(20)).await;
            if !self.cycle.is_over() {
                waited_since = clock::now();
            }
        }
    }

    /// It is about to be stopped from outside.
    fn stop(&self) {
        self.is_stopped.set(true);
        if let Some((key, _live)) = self.next.borrow_mut().take() {
            self.checker.cancel(key);
        }
    }

    fn judge(&self, holds: bool, detail: impl FnOnce() -> String) {
        self.checker.holds(Invariant::CancelsHold, holds, || {
            format!("repeated action: {}", detail())
        });
    }
}

const PERIOD_MAX: Duration = Duration::from_millis(200);
const STOP_AFTER_MAX: Duration = Duration::from_millis(500);
