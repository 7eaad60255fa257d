//! An operation of any type, at an address of its own.
//!
//! The table cannot name the types of all operations, and must not allocate for each. So an
//! operation lies in a *place*, a block of memory of one size that the table uses again and again,
//! with a description of its type beside it. The type comes back when the operation is taken out:
//! it is compared then.
//!
//! Places do not move while the table grows, and nothing reaches into one from
//! [`StoredOp::submission`] until the operation has completed. That is what the submission's borrow
//! asks for.

#![allow(unsafe_code)]

use std::any::TypeId;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};

use super::super::op::{OnDrop, Op};
use crate::ring::{Outcome, Submission};
use crate::sys::block_device::PolledQueue;
use crate::sys::descriptor::Descriptor;

/// What an operation takes at most. Larger ones box a part of theirs.
const PLACE_BYTES: usize = 96;

/// Places kept for operations to come. More have been in use at a time only if more were in flight.
const MAX_SPARE_PLACES: usize = 256;

#[repr(C, align(16))]
struct Place(MaybeUninit<[u8; PLACE_BYTES]>);

/// Places for operations to come.
#[derive(Default)]
pub(super) struct SparePlaces(
    #[expect(clippy::vec_box, reason = "the boxes come and go, and never move")] Vec<Box<Place>>,
);

impl SparePlaces {
    fn take(&mut self) -> Box<Place> {
        let spare = self.0.pop();
        spare.unwrap_or_else(|| Box::new(Place(MaybeUninit::uninit())))
    }

    fn put_back(&mut self, place: Box<Place>) {
        if self.0.len() < MAX_SPARE_PLACES {
            self.0.push(place);
        }
    }
}

/// An operation of any type, and what the kernel said of it, if it has.
///
/// Dropping one that has completed completes it and drops the output, which undoes what the kernel
/// has done for it. That is code of others, as the operation's own destructor may be.
pub(in crate::reactor) struct StoredOp {
    /// Owned, and holds a value of the type that `of` is made for. Not a box, which would claim
    /// that nothing else, such as the kernel, touches the value.
    place: NonNull<Place>,
    of: &'static OpType,
    outcome: Option<Outcome>,
}

/// What can be done with an operation whose type is not known. All functions take the address of a
/// value of the type; the last two leave no value behind.
struct OpType {
    type_id: fn() -> TypeId,
    on_drop: OnDrop,
    submission: for<'a> unsafe fn(&'a mut Place) -> Submission<'a>,
    polled: unsafe fn(&Place) -> Option<&'static PolledQueue>,
    release: unsafe fn(&mut Place) -> Option<Descriptor>,
    discard: unsafe fn(&mut Place, Outcome),
    drop: unsafe fn(&mut Place),
}

/// Every operation has its [`OpType`].
trait Typed: Op + Sized {
    const TYPE: &'static OpType = &OpType {
        type_id: TypeId::of::<Self>,
        on_drop: Self::ON_DROP,
        submission: submission::<Self>,
        polled: polled::<Self>,
        release: release::<Self>,
        discard: discard::<Self>,
        drop: drop_in_place::<Self>,
    };

    const FITS: () = assert!(
        size_of::<Self>() <= PLACE_BYTES && align_of::<Self>() <= align_of::<Place>(),
        "the operation is too large for its place: box what is large in it"
    );
}

impl<O: Op> Typed for O {}

/// # Safety
///
/// `place` holds an `O`.
unsafe fn submission<O: Op>(place: &mut Place) -> Submission<'_> {
    // SAFETY: promised by the caller; `FITS` says that it is aligned and within the place.
    unsafe { &mut *place.0.as_mut_ptr().cast::<O>() }.submission()
}

/// # Safety
///
/// `place` holds an `O`, and the kernel does not have it.
unsafe fn polled<O: Op>(place: &Place) -> Option<&'static PolledQueue> {
    // SAFETY: as in `submission`.
    unsafe { &*place.0.as_ptr().cast::<O>() }.polled()
}

/// # Safety
///
/// `place` holds an `O`, and the kernel does not have it.
unsafe fn release<O: Op>(place: &mut Place) -> Option<Descriptor> {
    // SAFETY: as in `submission`.
    unsafe { &mut *place.0.as_mut_ptr().cast::<O>() }.release()
}

/// # Safety
///
/// `place` holds an `O`, and is taken to be empty from here on.
unsafe fn discard<O: Op>(place: &mut Place, outcome: Outcome) {
    // SAFETY: as in `submission`; the value is not looked at in its place again.
    let op = unsafe { place.0.as_mut_ptr().cast::<O>().read() };
    drop(op.complete(outcome));
}

/// # Safety
///
/// `place` holds an `O`, and is taken to be empty from here on.
unsafe fn drop_in_place<O: Op>(place: &mut Place) {
    // SAFETY: as in `submission`; the value is not looked at again.
    unsafe { ptr::drop_in_place(place.0.as_mut_ptr().cast::<O>()) };
}

impl StoredOp {
    #[inline]
    pub(super) fn new<O: Op>(op: O, spares: &mut SparePlaces) -> Self {
        const { O::FITS };
        let mut place = spares.take();
        // SAFETY: `FITS` says that an `O` is aligned and within the place, which is ours.
        unsafe { place.0.as_mut_ptr().cast::<O>().write(op) };
        StoredOp {
            place: NonNull::from(Box::leak(place)),
            of: O::TYPE,
            outcome: None,
        }
    }

    pub(super) fn on_drop(&self) -> OnDrop {
        self.of.on_drop
    }

    /// What the kernel is asked. The borrow may last until the operation has completed: the
    /// operation is neither moved nor looked at before.
    pub(super) fn submission(&mut self) -> Submission<'_> {
        // SAFETY: (1) the place is owned, and `&mut self` says that nothing else looks at it; (2)
        // it holds a value of the type that `of` was made for.
        unsafe { (self.of.submission)(self.place.as_mut()) }
    }

    /// The queue that is polled for its completion. The kernel does not have it, or is done with
    /// it.
    pub(super) fn polled(&self) -> Option<&'static PolledQueue> {
        // SAFETY: (1) the place is owned, and `&self` says that nothing writes to it; (2) it holds
        // a value of the type that `of` was made for; (3) the caller says that the kernel
        // does not have it.
        unsafe { (self.of.polled)(self.place.as_ref()) }
    }

    /// The kernel is done with it, with this outcome. What the operation does not need any more.
    pub(super) fn completed(&mut self, outcome: Outcome) -> Option<Descriptor> {
        self.outcome = Some(outcome);
        // SAFETY: (1) the place is owned, and `&mut self` says that nothing else looks at it; (2)
        // it holds a value of the type that `of` was made for; (3) the kernel is done with
        // it.
        unsafe { (self.of.release)(self.place.as_mut()) }
    }

    /// The operation and its outcome.
    ///
    /// # Panics
    ///
    /// Panics if it has not completed, or is of another type.
    #[inline]
    pub(super) fn take<O: Op>(self, spares: &mut SparePlaces) -> (O, Outcome) {
        let outcome = self
            .outcome
            .expect("only completed operations are taken out");
        assert!(
            (self.of.type_id)() == TypeId::of::<O>(),
            "the key is of an operation of another type"
        );
        let this = ManuallyDrop::new(self);
        // SAFETY: (1) the place is owned and holds an `O`, as its type says; (2) `this` is not
        // dropped, so that the value is moved out once.
        let op = unsafe { this.place.cast::<O>().read() };
        // SAFETY: `place` came from a box, and is not used after this.
        spares.put_back(unsafe { Box::from_raw(this.place.as_ptr()) });
        (op, outcome)
    }
}

impl StoredOp {
    /// As dropping it, before it has completed; its place is used again. For operations that are no
    /// more than numbers.
    pub(super) fn recycle(self, spares: &mut SparePlaces) {
        debug_assert!(self.outcome.is_none(), "it would be discarded");
        let this = ManuallyDrop::new(self);
        // SAFETY: `place` came from a box, and `this` is not dropped.
        let mut place = unsafe { Box::from_raw(this.place.as_ptr()) };
        // SAFETY: it holds a value of the type that `of` was made for, and is empty afterwards.
        unsafe { (this.of.drop)(&mut place) };
        spares.put_back(place);
    }
}

impl Drop for StoredOp {
    fn drop(&mut self) {
        // SAFETY: `place` came from a box, and is not used after this. Freed also if what follows
        // panics.
        let mut place = unsafe { Box::from_raw(self.place.as_ptr()) };
        match self.outcome {
            // SAFETY: it holds a value of the type that `of` was made for, and is empty afterwards:
            // it is freed.
            Some(outcome) => unsafe { (self.of.discard)(&mut place, outcome) },
            // SAFETY: as above.
            None => unsafe { (self.of.drop)(&mut place) },
        }
    }
}
