//! Operations in random order against a model that is too simple to be wrong.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::op::Op;
use super::*;
use crate::reactor::preempt::MIN_SLICE;

#[derive(Clone, Debug)]
enum Step {
    Nop,
    /// Waits for one of the eventfds.
    Wait(usize),
    /// Writes to one of them.
    Signal(usize),
    /// Polls the operation that has been there for longest but `n`.
    Poll(usize),
    /// Gives it up.
    Drop(usize),
    Turn,
    /// Asks as a running task, for long enough to have submissions handed over in between.
    Run,
    CancelNow,
}

const BELLS: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Nop),
        4 => (0..BELLS).prop_map(Step::Wait),
        1 => (0..BELLS).prop_map(Step::Signal),
        4 => (0..20_usize).prop_map(Step::Poll),
        3 => (0..20_usize).prop_map(Step::Drop),
        3 => Just(Step::Turn),
        1 => Just(Step::Run),
        1 => Just(Step::CancelNow),
    ]
}

/// What the model knows of an operation.
struct Expected {
    operation: Box<dyn Future<Output = io::Result<u32>> + Unpin>,
    /// The eventfd it waits for, if any.
    bell: Option<usize>,
    woken: Arc<Count>,
    waker: Waker,
    was_pending: bool,
}

struct World {
    reactor: Rc<Reactor>,
    bells: [EventFd; BELLS],
    rung: [bool; BELLS],
    /// By age.
    operations: BTreeMap<usize, Expected>,
    born: usize,
}

impl World {
    fn new(depth: usize) -> Self {
        World {
            reactor: reactor(depth),
            bells: [(); BELLS].map(|()| eventfd()),
            rung: [false; BELLS],
            operations: BTreeMap::new(),
            born: 0,
        }
    }

    fn submit(&mut self, op: impl Op<Output = u32>, bell: Option<usize>) {
        let (woken, waker) = counting_waker();
        let expected = Expected {
            operation: Box::new(self.reactor.submit(op)),
            bell,
            woken,
            waker,
            was_pending: false,
        };
        self.operations.insert(self.born, expected);
        self.born += 1;
    }

    fn nth(&self, n: usize) -> Option<usize> {
        self.operations.keys().nth(n).copied()
    }

    /// Polls an operation; takes it away if it is done.
    fn poll(&mut self, age: usize) {
        let expected = self
            .operations
            .get_mut(&age)
            .expect("the age was just looked up");
        let Some(result) = poll(&mut expected.operation, &expected.waker) else {
            expected.was_pending = true;
            return;
        };
        if expected.was_pending {
            assert!(
                expected.woken.get() >= 1,
                "it is done and no task was woken"
            );
        }
        match expected.bell {
            None => assert_eq!(result.unwrap(), 0),
            Some(bell) => {
                assert!(self.rung[bell], "it completed before the event");
                assert_ne!(result.unwrap() & libc::POLLIN as u32, 0);
            }
        }
        self.operations.remove(&age);
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Nop => self.submit(Nop, None),
            Step::Wait(bell) => self.submit(readable(&self.bells[bell]), Some(bell)),
            Step::Signal(bell) => {
                self.bells[bell]
                    .write(1)
                    .expect("an eventfd takes a small number");
                self.rung[bell] = true;
            }
            Step::Poll(n) => {
                if let Some(age) = self.nth(n) {
                    self.poll(age);
                }
            }
            Step::Drop(n) => {
                if let Some(age) = self.nth(n) {
                    let dropped = self.operations.remove(&age).expect("it was just looked up");
                    let woken = Arc::clone(&dropped.woken);
                    drop(dropped);
                    assert_eq!(Arc::strong_count(&woken), 1, "its waker is kept");
                }
            }
            Step::Turn => {
                turn(&self.reactor);
            }
            Step::Run => {
                let started = Instant::now();
                while started.elapsed() < 2 * MIN_SLICE {
                    self.reactor.need_preempt();
                }
            }
            Step::CancelNow => self.reactor.cancel_now(),
        }
        let in_table = self.reactor.in_flight().len();
        assert!(
            in_table >= self.operations.len(),
            "one that is waited for is missing"
        );
    }

    /// All that can complete does, and what is left after that is exactly what waits.
    fn finish(mut self) {
        let started = Instant::now();
        loop {
            turn(&self.reactor);
            let ages: Vec<_> = self.operations.keys().copied().collect();
            ages.into_iter().for_each(|age| self.poll(age));
            let can_complete = |it: &Expected| it.bell.is_none_or(|bell| self.rung[bell]);
            let in_table = self.reactor.in_flight().len();
            if !self.operations.values().any(can_complete) && in_table == self.operations.len() {
                break;
            }
            assert!(started.elapsed() < PATIENCE, "an operation never ends");
        }
        shut_down(&self.reactor);
        for expected in self.operations.values() {
            assert_eq!(expected.woken.get(), 0, "woken without an event");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn operations_do_what_the_model_says(
        depth in 1..=4_usize,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut world = World::new(depth);
        for step in &steps {
            world.apply(step);
        }
        world.finish();
    }
}
