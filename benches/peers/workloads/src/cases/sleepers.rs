//! A steady crowd of sleeping tasks, the background of other measurements.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;

use crate::Runtime;

/// Spawns `count` tasks that sleep for `delay` over and over, and returns once all are asleep.
pub async fn sleepers<R: Runtime>(count: usize, seed: u64, delay: fn(&mut Rng) -> Duration) {
    let random = Rc::new(RefCell::new(Rng::with_seed(seed)));
    let polled = Rc::new(Cell::new(0));
    for _ in 0..count {
        let (random, polled) = (random.clone(), polled.clone());
        R::spawn_detached(async move {
            polled.set(polled.get() + 1);
            loop {
                let wait = delay(&mut random.borrow_mut());
                R::timer(wait).await;
            }
        });
    }
    // A task that has been polled is asleep by the time another one runs.
    while polled.get() < count {
        R::yield_now().await;
    }
}
