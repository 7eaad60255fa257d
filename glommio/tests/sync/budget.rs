//! Locks and tasks that may do nothing more in their poll.

use std::rc::Rc;

use glommio::spawn_local;
use glommio::sync::Mutex;

use crate::common::run;

#[run_test]
async fn a_lock_that_is_handed_over_to_a_refused_task_stays_with_it() {
    let mutex = Rc::new(Mutex::new(0));
    let guard = mutex.lock().await.unwrap();
    let tasks: Vec<_> = (0..10)
        .map(|number| {
            let mutex = mutex.clone();
            spawn_local(async move {
                let mut value = mutex.lock().await.unwrap();
                assert_eq!(*value, number, "in the order in which they came");
                *value += 1;
                while !glommio::executor().need_preempt() {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    drop(guard);
    for task in tasks {
        task.await;
    }
    assert_eq!(*mutex.lock().await.unwrap(), 10);
}
