//! Stall detection in pools: a handler for each shard.

use libc::SIGUSR1;

use crate::common::prelude::*;
use crate::witness::{INTERVAL, Witness};

#[run_test]
fn each_shard_has_a_handler_of_its_own_that_was_made_on_the_calling_thread() {
    const SHARDS: usize = 3;
    // Not `Send`, and it need not be.
    let made = Rc::new(RefCell::new(Vec::new()));
    let note = Rc::clone(&made);
    let here = thread::current().id();
    let pool = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(SHARDS))
        .preempt_timer(INTERVAL)
        .detect_stalls(Some(Box::new(move || {
            assert_eq!(thread::current().id(), here);
            let witness = Witness::of(SIGUSR1);
            note.borrow_mut().push(witness.clone());
            witness.boxed()
        })));
    assert_eq!(made.borrow().len(), 0, "not before it is needed");
    let handles = pool.on_all_shards(|| async {
        thread::sleep(5 * INTERVAL);
        executor().id()
    });
    assert_eq!(made.borrow().len(), SHARDS, "once for each");
    assert_eq!(Rc::strong_count(&made), 1, "what makes them is dropped");
    let ids = handles.expect("threads start").join_all();
    for (witness, id) in made.borrow().iter().zip(ids) {
        assert_eq!(witness.the_one().executor, id.expect("it ran"));
        assert_eq!(witness.holders(), 1);
    }
}

#[run_test]
fn a_handler_that_cannot_be_had_fails_its_shard_alone() {
    let signals = RefCell::new(vec![SIGUSR1, libc::SIGKILL, SIGUSR1]);
    let handles = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(3))
        .detect_stalls(Some(Box::new(move || {
            Witness::of(signals.borrow_mut().pop().expect("one for each")).boxed()
        })))
        .on_all_shards(|| async {})
        .expect("threads start");
    let results = handles.join_all();
    assert!(results[0].is_ok() && results[2].is_ok());
    match &results[1] {
        Err(GlommioError::IoError(error)) => assert_eq!(error.kind(), io::ErrorKind::InvalidInput),
        other => panic!("the signal cannot be handled: {other:?}"),
    }
}

#[run_test]
fn a_pool_detects_no_stalls_if_it_is_switched_off_again() {
    LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
        .detect_stalls(Some(Box::new(|| panic!("no handler is needed"))))
        .detect_stalls(None)
        .on_all_shards(|| async { thread::sleep(2 * INTERVAL) })
        .expect("threads start")
        .join_all()
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .expect("they ran");
}
