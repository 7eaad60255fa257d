//! Timers that fire together: armed for far off, then reset to now, in order. Nothing has to be
//! waited for, and one pass takes them all, up to its bound.

use crate::common::hooks;
use crate::common::prelude::*;
use crate::harness::{HOUR, poll};

/// Runs `test` in an executor with few timers and in one with many.
pub fn run_in_both_stages(test: impl AsyncFn()) {
    for sleepers in [0, 400] {
        run(async {
            let others: Vec<_> = (0..sleepers).map(|_| armed(Waker::noop())).collect();
            test().await;
            drop(others);
        });
    }
}

/// A timer that is armed for far off.
pub fn armed(waker: &Waker) -> Timer {
    let mut timer = Timer::new(HOUR);
    assert!(poll(&mut timer, waker).is_pending());
    timer
}

/// Timers that wakers take, drop and move.
#[derive(Clone, Default)]
pub struct Batch(pub Rc<RefCell<Vec<Option<Timer>>>>);

impl Batch {
    /// Arms `count` of them; `on_wake` is told which one is woken.
    pub fn arm(count: usize, on_wake: impl Fn(&Batch, usize) + 'static) -> Batch {
        let batch = Batch::default();
        let call = Rc::new(on_wake);
        for n in 0..count {
            let (call, owner) = (Rc::clone(&call), Rc::downgrade(&batch.0));
            let waker = hooks::on_wake(move || {
                let batch = Batch(owner.upgrade().expect("the test holds the batch"));
                call(&batch, n);
            });
            batch.0.borrow_mut().push(Some(armed(&waker)));
        }
        batch
    }

    /// All of them, in order.
    pub fn make_due(&self) {
        for timer in self.0.borrow_mut().iter_mut().flatten() {
            timer.reset(Duration::ZERO);
        }
    }

    pub fn take(&self, n: usize) -> Option<Timer> {
        self.0.borrow_mut()[n].take()
    }

    pub fn reset(&self, n: usize, wait: Duration) {
        if let Some(timer) = &mut self.0.borrow_mut()[n] {
            timer.reset(wait);
        }
    }
}
