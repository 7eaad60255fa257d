//! What firing timers asks of the allocator.

use glommio::timer::sleep_until;

use crate::common::prelude::*;
use crate::counting::Allocations;

/// A large allocation has the allocator consolidate what thousands of finished tasks have left, and
/// timers that are due wait for it. The wheel's first crowds bring the memory that is sorted in, in
/// up to four pieces, each of which may first serve for a few timers and be replaced for many.
#[test]
fn firing_a_crowd_allocates_nothing_large() {
    let executor = LocalExecutorBuilder::default()
        .make()
        .expect("this machine has io_uring");
    let large_calls = executor.run(async {
        // The instruments have such memory, too.
        if cfg!(any(
            feature = "timing-wheel",
            feature = "audit",
            feature = "metrics"
        )) {
            for _ in 0..4 {
                fire_a_crowd().await;
            }
        }
        fire_a_crowd().await
    });
    assert_eq!(large_calls, 0);
}

/// Large allocations while a thousand timers fire that have all come due when they are looked at.
///
/// They share one deadline, so that each crowd asks the same of the queue.
async fn fire_a_crowd() -> usize {
    loop {
        let deadline = Instant::now() + Duration::from_millis(300);
        let armed = Rc::new(Cell::new(0));
        let sleepers: Vec<_> = (0..1000)
            .map(|_| {
                let armed = armed.clone();
                glommio::spawn_local(async move {
                    armed.set(armed.get() + 1);
                    sleep_until(deadline).await;
                })
                .detach()
            })
            .collect();
        while armed.get() < 1000 {
            glommio::executor().yield_task_queue_now().await;
        }
        // A machine that stood still has let some of them fire before the others were armed.
        let whole = Instant::now() < deadline;
        while Instant::now() < deadline + Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        let before = Allocations::of_this_thread();
        for sleeper in sleepers {
            sleeper.await.expect("nothing cancels it");
        }
        if whole {
            return Allocations::of_this_thread().since(before).large_calls;
        }
    }
}
