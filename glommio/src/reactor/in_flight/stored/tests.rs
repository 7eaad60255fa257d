#![allow(unsafe_code)]

use std::io;
use std::rc::Rc;

use super::*;
use crate::reactor::op::PollOnce;

/// As small as a plain one, with a destructor. Its submission may borrow.
struct Counted(Rc<()>);

impl Op for Counted {
    type Output = Rc<()>;

    fn submission(&mut self) -> Submission<'_> {
        unreachable!("it is not submitted")
    }

    fn complete(self, _outcome: Outcome) -> io::Result<Rc<()>> {
        Ok(self.0)
    }
}

#[test]
fn a_small_plain_operation_takes_no_place_and_moves() {
    let mut spares = SpareSlots::default();
    let events = libc::POLLIN;
    let op = StoredOp::new(PollOnce { fd: 7, events }, &mut spares);
    assert!(op.slot().is_none());
    let mut moved = Box::new(op);
    // SAFETY: it was not submitted.
    assert!(unsafe { moved.completed(Outcome::of(1)) }.is_none());
    let (op, outcome) = moved.take::<PollOnce>(&mut spares);
    assert_eq!((op.fd, op.events, outcome.raw), (7, events, 1));
    let op = StoredOp::new(PollOnce { fd: 7, events }, &mut spares);
    // SAFETY: it was not submitted.
    unsafe { op.recycle(&mut spares) };
    assert!(spares.0.is_empty());
}

#[test]
fn another_one_stays_in_its_place_and_is_dropped_once() {
    let mut spares = SpareSlots::default();
    let count = Rc::new(());
    let mut op = StoredOp::new(Counted(Rc::clone(&count)), &mut spares);
    let slot = op.slot();
    assert!(slot.is_some());
    // SAFETY: it was not submitted.
    unsafe { op.completed(Outcome::of(0)) };
    let moved = Box::new(op);
    assert_eq!(moved.slot(), slot);
    drop(moved);
    assert_eq!(
        Rc::strong_count(&count),
        1,
        "completed, and its output dropped"
    );
    let op = StoredOp::new(Counted(Rc::clone(&count)), &mut spares);
    // SAFETY: it was not submitted.
    unsafe { op.recycle(&mut spares) };
    assert_eq!((Rc::strong_count(&count), spares.0.len()), (1, 1));
    drop(StoredOp::new(Counted(Rc::clone(&count)), &mut spares));
    assert_eq!((Rc::strong_count(&count), spares.0.len()), (1, 0));
}
