//! Operations that complete many times.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;
use crate::ring::Submission;

/// Notes what it is told, and may give its operation up while it is told so.
#[derive(Default)]
struct Notes {
    outcomes: RefCell<Vec<Noted>>,
    gives_up: RefCell<Option<SinkHandle>>,
}

/// A completion.
#[derive(Clone, Copy, Debug)]
struct Noted {
    raw: i32,
    has_more: bool,
}

impl Sink for Notes {
    type Item = io::Result<u32>;

    fn complete(&self, result: io::Result<u32>, has_more: bool) {
        let raw = raw(&result);
        self.outcomes.borrow_mut().push(Noted { raw, has_more });
        let given_up = self.gives_up.take();
        drop(given_up);
    }
}

impl Notes {
    fn count(&self) -> usize {
        self.outcomes.borrow().len()
    }

    fn last(&self) -> Noted {
        *self.outcomes.borrow().last().expect("it has heard of some")
    }

    /// It heard of one last completion, after all the others.
    fn is_over(&self) -> bool {
        let outcomes = self.outcomes.borrow();
        let is_over = outcomes.last().is_some_and(|last| !last.has_more);
        let others = outcomes.len().saturating_sub(1);
        assert!(outcomes.iter().take(others).all(|it| it.has_more));
        is_over
    }
}

fn in_flight(reactor: &Reactor) -> usize {
    reactor.in_flight().len()
}

#[test]
fn a_failure_is_the_last_completion() {
    let reactor = reactor(4);
    let notes = Rc::new(Notes::default());
    let nothing = PollMany {
        fd: -1,
        events: libc::POLLIN,
    };
    let guard = reactor.submit_to(nothing, notes.clone());
    turn_until(&reactor, || notes.is_over());
    assert_eq!(notes.last().raw, -libc::EBADF);
    assert_eq!((notes.count(), in_flight(&reactor)), (1, 0));
    drop(guard);
    assert!(
        !reactor.in_flight().has_cancels(),
        "there is nothing to be cancelled"
    );
}

/// The kernel may end an operation with a success, for instance when completions have no room.
#[test]
fn a_success_may_be_the_last_completion() {
    let reactor = reactor(1);
    let (bell, notes) = (eventfd(), Rc::new(Notes::default()));
    let guard = reactor.submit_to(watch(&bell), notes.clone());
    turn(&reactor);
    for _ in 0..4 {
        let nop = Submission::nop();
        reactor.ring().push_memoryless(&nop).expect("there is room");
        reactor.ring().enter(Wait::Now).expect("entering works");
    }
    signal(&bell);
    reactor.ring().enter(Wait::Now).expect("entering works");
    turn_until(&reactor, || notes.count() > 0);
    assert!(notes.last().raw > 0);
    assert_eq!(in_flight(&reactor) == 0, notes.is_over());
    drop(guard);
    turn_until(&reactor, || notes.is_over());
    assert_eq!(in_flight(&reactor), 0);
}

#[test]
fn a_sink_may_give_up_its_operation_at_a_completion() {
    let reactor = reactor(4);
    let (bell, notes) = (eventfd(), Rc::new(Notes::default()));
    let guard = reactor.submit_to(watch(&bell), notes.clone());
    notes.gives_up.replace(Some(guard));
    turn(&reactor);
    signal(&bell);
    turn_until(&reactor, || notes.is_over());
    assert_eq!(notes.last().raw, -libc::ECANCELED);
    assert_eq!((notes.count(), in_flight(&reactor)), (2, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Watch(usize),
    Signal(usize),
    Drop(usize),
    Turn,
    CancelNow,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_usize).prop_map(Step::Watch),
        3 => (0..2_usize).prop_map(Step::Signal),
        2 => any::<usize>().prop_map(Step::Drop),
        3 => Just(Step::Turn),
        1 => Just(Step::CancelNow),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens when: all completions of an operation reach its sink, the last of them once;
    /// if the kernel has never heard of it, none.
    #[test]
    fn the_last_completion_is_the_last(
        depth in 1_usize..4,
        steps in prop::collection::vec(step(), 0..100),
    ) {
        let reactor = reactor(depth);
        let bells = [eventfd(), eventfd()];
        let mut guards = Vec::new();
        let mut all = Vec::new();
        for step in steps {
            match step {
                Step::Watch(bell) => {
                    let notes = Rc::new(Notes::default());
                    guards.push(reactor.submit_to(watch(&bells[bell]), notes.clone()));
                    all.push(notes);
                }
                Step::Signal(bell) => signal(&bells[bell]),
                Step::Drop(pick) if !guards.is_empty() => {
                    drop(guards.swap_remove(pick % guards.len()));
                }
                Step::Drop(_) => {}
                Step::Turn => {
                    turn(&reactor);
                }
                Step::CancelNow => reactor.cancel_now(),
            }
            let alive = all.iter().filter(|notes| Rc::strong_count(notes) > 1).count();
            prop_assert_eq!(in_flight(&reactor), alive);
        }
        shut_down(&reactor);
        for notes in &all {
            prop_assert_eq!(notes.is_over(), notes.count() > 0);
            prop_assert_eq!(Rc::strong_count(notes), 1);
        }
    }
}
