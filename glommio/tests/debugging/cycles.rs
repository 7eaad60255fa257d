//! Tasks that wait for each other in a circle.

use glommio::sync::Mutex;

use crate::common::prelude::*;
use crate::{named, settle, task};

type Lock = Rc<Mutex<()>>;

/// Takes one lock, lets others run, and takes another.
async fn both(first: Lock, second: Lock) {
    let _first = first.lock().await;
    executor().yield_now().await;
    drop(second.lock().await);
}

#[run_test]
async fn two_locks_taken_in_both_orders_are_a_cycle() {
    let [a, b] = [Lock::default(), Lock::default()];
    let _one = named("one", both(a.clone(), b.clone()));
    let _other = named("other", both(b.clone(), a.clone()));
    // It waits for those of the circle, and is not in it.
    let _outside = named("outside", async move { drop(a.lock().await) });
    let dump = settle().await;
    let ids = ["one", "other"].map(|name| task(&dump, name).id);
    assert_eq!(dump.cycles, [ids.to_vec()], "{dump}");
    let [one, other] = ids;
    let text = format!("cycle: task {one} waits for task {other} waits for task {one}\n");
    assert!(dump.to_string().ends_with(&text), "{dump}");
}

#[run_test]
async fn locks_that_are_free_again_are_no_cycle() {
    let [a, b] = [Lock::default(), Lock::default()];
    let tasks = [
        named("one", both(a.clone(), b.clone())),
        named("other", both(a.clone(), b.clone())),
    ];
    assert!(settle().await.cycles.is_empty());
    join_all(tasks).await;
    let [one, other] = [
        named("one", both(a.clone(), b.clone())),
        named("other", both(b, a)),
    ];
    assert_eq!(settle().await.cycles.len(), 1);
    one.cancel().await;
    other.await;
    assert!(settle().await.cycles.is_empty());
}

#[run_test]
async fn a_lock_that_is_locked_twice_is_a_cycle_of_one() {
    let lock = Lock::default();
    let _twice = named("twice", both(lock.clone(), lock));
    let dump = settle().await;
    assert_eq!(dump.cycles, [[task(&dump, "twice").id]], "{dump}");
}

#[run_test]
async fn handles_that_are_awaited_in_a_circle_are_one() {
    let places: [Rc<RefCell<Option<Task<()>>>>; 3] = Default::default();
    let waiter = |place: &Rc<RefCell<Option<Task<()>>>>| {
        let place = Rc::clone(place);
        async move {
            executor().yield_now().await;
            let next = place.borrow_mut().take();
            next.expect("it was put there").await;
        }
    };
    let names = ["first", "second", "third"];
    let tasks: Vec<_> = (names.iter().zip(&places))
        .map(|(name, place)| named(name, waiter(place)))
        .collect();
    // Each has the one after it, and the last the first.
    for (task, place) in tasks.into_iter().zip([2, 0, 1]) {
        *places[place].borrow_mut() = Some(task);
    }
    let dump = settle().await;
    let ids = names.map(|name| task(&dump, name).id);
    assert_eq!(dump.cycles, [ids.to_vec()], "{dump}");
}

#[run_test]
async fn a_lock_and_a_handle_make_a_circle() {
    let lock = Lock::default();
    let _parent = named("parent", {
        let lock = Rc::clone(&lock);
        async move {
            let _held = lock.lock().await;
            let lock = Rc::clone(&lock);
            let child = named("child", async move { drop(lock.lock().await) });
            child.await;
        }
    });
    let dump = settle().await;
    assert_eq!(dump.cycles.len(), 1, "{dump}");
    assert_eq!(dump.cycles[0].len(), 2, "{dump}");
}
