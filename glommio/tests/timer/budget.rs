//! Ticks that are always due, beside other tasks.

use glommio::timer::{MissedTickBehavior, interval};

use crate::common::prelude::*;

#[run_test]
async fn ticks_that_are_always_due_let_a_sleeper_run() {
    for behavior in [
        MissedTickBehavior::Burst,
        MissedTickBehavior::Delay,
        MissedTickBehavior::Skip,
    ] {
        let is_awake = Rc::new(Cell::new(false));
        let sleeper = spawn_local({
            let is_awake = is_awake.clone();
            async move {
                sleep(Duration::from_millis(2)).await;
                is_awake.set(true);
            }
        });
        let mut ticks = interval(Duration::from_nanos(20));
        ticks.set_missed_tick_behavior(behavior);
        while !is_awake.get() {
            ticks.tick().await;
        }
        sleeper.await;
    }
}
