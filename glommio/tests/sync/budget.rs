//! Locks and tasks that may do nothing more in their poll.

use glommio::sync::Mutex;

use crate::common::prelude::*;

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
                spin_until_preempted();
            })
        })
        .collect();
    drop(guard);
    join_all(tasks).await;
    assert_eq!(*mutex.lock().await.unwrap(), 10);
}
