//! An operation of any type, as the table keeps it.
//!
//! The table cannot name the types of all operations, and must not allocate for each. So an
//! operation lies in a *slot*, a block of memory of one size that the table uses again and again,
//! with a description of its type beside it. The type comes back when the operation is taken out:
//! it is compared then.
//!
//! Places do not move while the table grows, and nothing reaches into one from
//! [`StoredOp::submission`] until the operation has completed. That is what the submission's borrow
//! asks for.
//!
//! A small operation whose submission borrows nothing ([`Op::PLAIN`]) needs no slot: it lies where
//! the pointer to one would. So an idle connection, whose operation is a descriptor and a mask,
//! holds no slot.

#![allow(unsafe_code)]

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use super::super::op::{OnDrop, Op};
use crate::ring::{Outcome, Submission};
use crate::sys::descriptor::Descriptor;

/// What an operation takes at most. Larger ones box a part of theirs.
const SLOT_BYTES: usize = 96;

/// Places kept for operations to come. More have been in use at a time only if more were in flight.
const MAX_SPARE_PLACES: usize = 256;

#[repr(C, align(16))]
struct Slot(MaybeUninit<[u8; SLOT_BYTES]>);

/// What a plain operation takes at most to do without a slot.
type Inline = MaybeUninit<u64>;

/// Which of the two it is, the operation's type says.
#[derive(Clone, Copy)]
union Store {
    inline: Inline,
    /// Owned.
    slot: NonNull<Slot>,
}

/// Places for operations to come.
#[derive(Default)]
pub(super) struct SpareSlots(
    #[expect(clippy::vec_box, reason = "the boxes come and go, and never move")] Vec<Box<Slot>>,
);

impl SpareSlots {
    fn take(&mut self) -> Box<Slot> {
        let spare = self.0.pop();
        spare.unwrap_or_else(|| Box::new(Slot(MaybeUninit::uninit())))
    }

    fn put_back(&mut self, slot: Box<Slot>) {
        if self.0.len() < MAX_SPARE_PLACES {
            self.0.push(slot);
        }
    }
}

/// An operation of any type, and what the kernel said of it, if it has.
///
/// Dropping one that has completed completes it and drops the output, which undoes what the kernel
/// has done for it. That is user code, as the operation's own destructor may be. One that the
/// kernel has is not dropped: who pushes its submission promises that.
pub(in crate::reactor) struct StoredOp {
    /// Holds a value of the type that `of` is made for. A slot is not a box, which would claim
    /// that nothing else, such as the kernel, touches the value.
    store: Store,
    of: &'static OpType,
    outcome: Option<Outcome>,
}

/// What can be done with an operation whose type is not known. All functions take the address of a
/// value of the type; the last two leave no value behind.
struct OpType {
    type_id: fn() -> TypeId,
    is_inline: bool,
    waits_for_device: bool,
    on_drop: OnDrop,
    submission: for<'a> unsafe fn(NonNull<u8>, PhantomData<&'a mut StoredOp>) -> Submission<'a>,
    release: unsafe fn(NonNull<u8>) -> Option<Descriptor>,
    discard: unsafe fn(NonNull<u8>, Outcome),
    drop: unsafe fn(NonNull<u8>),
}

/// Every operation has its [`OpType`].
trait Typed: Op + Sized {
    const TYPE: &'static OpType = &OpType {
        type_id: TypeId::of::<Self>,
        is_inline: Self::IS_INLINE,
        waits_for_device: Self::WAITS_FOR_DEVICE,
        on_drop: Self::ON_DROP,
        submission: submission::<Self>,
        release: release::<Self>,
        discard: discard::<Self>,
        drop: drop_in_place::<Self>,
    };

    const IS_INLINE: bool = Self::PLAIN.is_some()
        && size_of::<Self>() <= size_of::<Inline>()
        && align_of::<Self>() <= align_of::<Inline>();

    const FITS: () = assert!(
        size_of::<Self>() <= SLOT_BYTES && align_of::<Self>() <= align_of::<Slot>(),
        "the operation is too large for its slot: box what is large in it"
    );
}

impl<O: Op> Typed for O {}

/// # Safety
///
/// `at` holds an `O`, of which no other reference is used for `'a`. It stays there until the kernel
/// is done with the submission, unless [`Op::PLAIN`] is there.
unsafe fn submission<'a, O: Op>(
    at: NonNull<u8>,
    _: PhantomData<&'a mut StoredOp>,
) -> Submission<'a> {
    // SAFETY: promised by the caller; `FITS` or `IS_INLINE` says that it is aligned and within its
    // memory.
    let op: &'a mut O = unsafe { at.cast().as_mut() };
    match O::PLAIN {
        Some(plain) => plain(op),
        None => op.submission(),
    }
}

/// # Safety
///
/// `at` holds an `O`, and the kernel does not have it.
unsafe fn release<O: Op>(at: NonNull<u8>) -> Option<Descriptor> {
    // SAFETY: as in `submission`.
    unsafe { at.cast::<O>().as_mut() }.release()
}

/// # Safety
///
/// `at` holds an `O`, and is taken to be empty from here on.
unsafe fn discard<O: Op>(at: NonNull<u8>, outcome: Outcome) {
    // SAFETY: as in `submission`; the value is not looked at in its memory again.
    let op = unsafe { at.cast::<O>().read() };
    drop(op.complete(outcome));
}

/// # Safety
///
/// `at` holds an `O`, and is taken to be empty from here on.
unsafe fn drop_in_place<O: Op>(at: NonNull<u8>) {
    // SAFETY: as in `submission`; the value is not looked at again.
    unsafe { at.cast::<O>().drop_in_place() };
}

impl StoredOp {
    #[inline]
    pub(super) fn new<O: Op>(op: O, spares: &mut SpareSlots) -> Self {
        const { O::FITS };
        let store = if O::IS_INLINE {
            let mut inline = Inline::uninit();
            // SAFETY: `IS_INLINE` says that an `O` is aligned and within it.
            unsafe { inline.as_mut_ptr().cast::<O>().write(op) };
            Store { inline }
        } else {
            let mut slot = spares.take();
            // SAFETY: `FITS` says that an `O` is aligned and within the slot, which is ours.
            unsafe { slot.0.as_mut_ptr().cast::<O>().write(op) };
            Store {
                slot: NonNull::from(Box::leak(slot)),
            }
        };
        StoredOp {
            store,
            of: O::TYPE,
            outcome: None,
        }
    }

    /// Where the value is. An inline one moves with `self`.
    #[inline]
    fn at(&mut self) -> NonNull<u8> {
        match self.slot() {
            Some(slot) => slot.cast(),
            None => NonNull::from(&mut self.store).cast(),
        }
    }

    /// The slot, if it has one.
    #[inline]
    fn slot(&self) -> Option<NonNull<Slot>> {
        if self.of.is_inline {
            return None;
        }
        // SAFETY: a value that is not inline is in a slot.
        Some(unsafe { self.store.slot })
    }

    /// See [`Op::WAITS_FOR_DEVICE`].
    pub(super) fn waits_for_device(&self) -> bool {
        self.of.waits_for_device
    }

    pub(super) fn on_drop(&self) -> OnDrop {
        self.of.on_drop
    }

    /// What the kernel is asked. The borrow may last until the operation has completed: the
    /// operation is neither moved nor looked at before.
    pub(super) fn submission(&mut self) -> Submission<'_> {
        let (of, at) = (self.of, self.at());
        // SAFETY: (1) the value is owned, and `&mut self` says that nothing else looks at it; (2)
        // it is of the type that `of` was made for; (3) it stays in its slot, or is inline, which
        // is for those with `Op::PLAIN` only.
        unsafe { (of.submission)(at, PhantomData) }
    }

    /// Takes in the outcome. What the operation does not need any more.
    ///
    /// # Safety
    ///
    /// The kernel does not have the operation, or is done with it.
    pub(super) unsafe fn completed(&mut self, outcome: Outcome) -> Option<Descriptor> {
        self.outcome = Some(outcome);
        let (of, at) = (self.of, self.at());
        // SAFETY: (1) the value is owned, and `&mut self` says that nothing else looks at it; (2)
        // it is of the type that `of` was made for; (3) the caller promises that the kernel is done
        // with it.
        unsafe { (of.release)(at) }
    }

    /// The operation and its outcome.
    ///
    /// # Panics
    ///
    /// Panics if it has not completed, or is of another type.
    #[inline]
    pub(super) fn take<O: Op>(self, spares: &mut SpareSlots) -> (O, Outcome) {
        let outcome = self
            .outcome
            .expect("only completed operations are taken out");
        assert!(
            (self.of.type_id)() == TypeId::of::<O>(),
            "the key is of an operation of another type"
        );
        let mut this = ManuallyDrop::new(self);
        // SAFETY: (1) the value is owned and an `O`, as its type says; (2) `this` is not dropped,
        // so that it is moved out once.
        let op = unsafe { this.at().cast::<O>().read() };
        if let Some(slot) = this.slot() {
            // SAFETY: it came from a box, and is not used any more: `this` is not dropped.
            spares.put_back(unsafe { Box::from_raw(slot.as_ptr()) });
        }
        (op, outcome)
    }
}

impl Drop for StoredOp {
    fn drop(&mut self) {
        let _freed_last = OwnedSlot(self.slot());
        let (of, at) = (self.of, self.at());
        match self.outcome {
            // SAFETY: the value is of the type that `of` was made for, and `self` is gone
            // afterwards.
            Some(outcome) => unsafe { (of.discard)(at, outcome) },
            // SAFETY: as above.
            None => unsafe { (of.drop)(at) },
        }
    }
}

/// Frees a slot whose value is gone, also if dropping the value panicked.
struct OwnedSlot(Option<NonNull<Slot>>);

impl Drop for OwnedSlot {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            // SAFETY: it came from a box, and is owned.
            drop(unsafe { Box::from_raw(slot.as_ptr()) });
        }
    }
}
