//! Operations whose handle is dropped: what they have made is undone, and those that are to be
//! finished are.

use std::cell::Cell;
use std::os::fd::IntoRawFd;

use super::op::Op;
use super::ops::Close;
use super::*;
use crate::ring::{Outcome, Submission};

/// When the handle is dropped.
#[derive(Clone, Copy, Debug)]
enum When {
    BeforeSubmission,
    BeforeCompletion,
    AfterCompletion,
}

/// Drops the handle of `op` at the given time, and waits until the operation is over.
fn give_up(reactor: &Rc<Reactor>, op: impl Op, when: When) {
    let handle = reactor.submit(op);
    let key = reactor.in_flight().keys()[0];
    match when {
        When::BeforeSubmission => {}
        When::BeforeCompletion => {
            flush(reactor);
        }
        When::AfterCompletion => {
            turn_until(reactor, || reactor.in_flight().is_completed(key));
        }
    }
    assert_eq!(
        reactor.in_flight().waits_for_device(),
        !matches!(when, When::AfterCompletion)
    );
    drop(handle);
    turn_until(reactor, || reactor.in_flight().len() == 0);
    assert!(!reactor.in_flight().waits_for_device());
}

#[test]
fn the_end_of_the_reactor_finishes_what_is_to_be_finished() {
    let reactor = reactor(64);
    let pipes: Vec<_> = (0..20)
        .map(|_| nix::unistd::pipe().expect("descriptors are free"))
        .map(|(reader, writer)| {
            let fd = writer.into_raw_fd();
            (reader, reactor.submit(Close { fd }))
        })
        .collect();
    shut_down(&reactor);
    for (reader, handle) in pipes {
        assert_eq!(nix::unistd::read(&reader, &mut [0]), Ok(0));
        drop(handle);
    }
}

/// Does nothing, and notes what becomes of it.
struct Noted {
    notes: Rc<Notes>,
    /// Something in the place itself, beside what is behind pointers.
    number: u64,
}

#[derive(Default)]
struct Notes {
    completed: Cell<u32>,
    outputs_dropped: Cell<u32>,
    ops_dropped: Cell<u32>,
    comes_back_to: RefCell<Option<Rc<Reactor>>>,
    panics: Cell<bool>,
}

const NUMBER: u64 = 0x0123_4567_89ab_cdef;

/// The output of [`Noted`].
struct Output(Rc<Notes>);

impl Op for Noted {
    type Output = Output;

    fn submission(&mut self) -> Submission<'_> {
        Submission::nop()
    }

    fn complete(self, outcome: Outcome) -> io::Result<Output> {
        assert_eq!((self.number, outcome.raw), (NUMBER, 0));
        self.notes.completed.update(|count| count + 1);
        Ok(Output(Rc::clone(&self.notes)))
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.notes.ops_dropped.update(|count| count + 1);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.0.outputs_dropped.update(|count| count + 1);
        if let Some(reactor) = &*self.0.comes_back_to.borrow() {
            drop(reactor.submit(Nop));
            reactor.need_preempt();
        }
        assert!(!self.0.panics.get(), "an output panics, as intended");
    }
}

impl Notes {
    fn op(self: &Rc<Self>) -> Noted {
        Noted {
            notes: Rc::clone(self),
            number: NUMBER,
        }
    }

    fn counts(&self) -> [u32; 3] {
        [&self.completed, &self.outputs_dropped, &self.ops_dropped].map(|it| it.take())
    }
}

#[test]
fn an_operation_is_completed_once_and_its_output_dropped_once() {
    let reactor = reactor(4);
    let notes = Rc::new(Notes::default());
    for comes_back in [false, true] {
        notes
            .comes_back_to
            .replace(comes_back.then(|| Rc::clone(&reactor)));
        give_up(&reactor, notes.op(), When::BeforeSubmission);
        assert_eq!(notes.counts(), [0, 0, 1], "the kernel has not heard of it");
        give_up(&reactor, notes.op(), When::BeforeCompletion);
        assert_eq!(notes.counts(), [1, 1, 1]);
        give_up(&reactor, notes.op(), When::AfterCompletion);
        assert_eq!(notes.counts(), [1, 1, 1]);
    }
    notes.comes_back_to.take();
    let (woken, waker) = counting_waker();
    let mut handle = reactor.submit(notes.op());
    assert!(poll(&mut handle, &waker).is_none());
    turn_until(&reactor, || woken.get() == 1);
    let output = poll(&mut handle, &waker);
    assert_eq!(notes.counts(), [1, 0, 1]);
    drop(output);
    assert_eq!(notes.counts(), [0, 1, 0]);
    assert_eq!(Rc::strong_count(&notes), 1);
}

#[test]
fn an_output_that_panics_when_it_is_discarded_ends_no_turn() {
    let reactor = reactor(4);
    let notes = Rc::new(Notes::default());
    notes.panics.set(true);
    give_up(&reactor, notes.op(), When::BeforeCompletion);
    assert_eq!(notes.counts(), [1, 1, 1]);
    // In the destructor of the handle it goes on like any other.
    let caught = panic::catch(|| give_up(&reactor, notes.op(), When::AfterCompletion));
    panic::discard(caught.expect_err("the output panics"));
    assert_eq!(notes.counts(), [1, 1, 1]);
    assert_eq!(reactor.in_flight().len(), 0);
    shut_down(&reactor);
}

#[test]
fn what_has_completed_is_discarded_with_the_table() {
    let reactor = reactor(4);
    let notes = Rc::new(Notes::default());
    let handle = reactor.submit(notes.op());
    let key = reactor.in_flight().keys()[0];
    turn_until(&reactor, || reactor.in_flight().is_completed(key));
    drop(reactor);
    assert_eq!(notes.counts(), [1, 1, 1]);
    drop(handle);
}
