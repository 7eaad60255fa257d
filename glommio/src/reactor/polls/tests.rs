use std::sync::Arc;
use std::task::Wake;

use super::*;

/// Where the tasks of these tests would be.
const TASKS: [*const (); 2] = [ptr::without_provenance(16), ptr::without_provenance(32)];

#[test]
fn a_poll_follows_the_one_before_of_its_task_and_no_other() {
    let polls = Polls::default();
    let noted = [Cell::new(0), Cell::new(0)];
    let last = Cell::new(0);
    let poll = |task: usize| {
        last.set(last.get() + 1);
        let number = last.get();
        polls.begin(TASKS[task], number, noted[task].replace(number));
        polls.under_way()
    };
    let [a1, b1, a2, a3, b2] = [0, 1, 0, 0, 1].map(poll);
    let follows = |poll: TaskPoll| [a1, b1, a2, a3, b2].map(|it| poll.is_or_follows(it.number()));
    assert_eq!(follows(a1), [true, false, false, false, false]);
    assert_eq!(follows(b1), [false, true, false, false, false]);
    assert_eq!(follows(a2), [true, false, true, false, false]);
    assert_eq!(follows(a3), [false, false, true, true, false]);
    assert_eq!(follows(b2), [false, true, false, false, true]);
}

#[test]
fn outside_of_polls_nothing_follows() {
    let polls = Polls::default();
    polls.begin(TASKS[0], 1, 0);
    polls.end();
    let outside = polls.under_way();
    assert!(!outside.is_or_follows(outside.number()) && !outside.is_or_follows(1));
    assert!(!outside.is_of(Waker::noop()), "whose data pointer is null");
    polls.begin(TASKS[0], 2, 0);
    assert!(!polls.under_way().is_or_follows(outside.number()));
}

#[test]
fn a_sleep_that_began_after_a_look_is_told_from_one_before() {
    struct Unheard;
    impl Wake for Unheard {
        fn wake(self: Arc<Self>) {}
    }
    let own = Waker::from(Arc::new(Unheard));
    let polls = Polls::default();
    polls.begin(own.data(), 1, 0);
    let [before, look, after] = [polls.last_look(), polls.look(), polls.last_look()];
    let has_slept = || polls.under_way().has_slept_since(look);

    polls.begin(own.data(), 2, 1);
    polls.has_slept(before, &own);
    polls.has_slept(after, Waker::noop());
    assert!(
        !has_slept(),
        "the one began before, the other is not the task's"
    );
    polls.has_slept(after, &own);
    polls.has_slept(before, &own);
    assert!(has_slept());
    let outer = polls.begin(TASKS[1], 3, 0);
    assert!(!has_slept(), "that was another task");
    polls.resume(outer);
    assert!(has_slept());
    polls.begin(own.data(), 4, 2);
    assert!(!has_slept(), "that was in another poll");
}

#[test]
fn a_poll_goes_on_when_one_inside_it_is_over() {
    let polls = Polls::default();
    polls.begin(TASKS[0], 1, 0);
    let number = polls.under_way().number();
    let outer = polls.begin(TASKS[1], 2, 0);
    assert_ne!(polls.under_way().number(), number);
    polls.resume(outer);
    assert_eq!(polls.under_way().number(), number);
}
