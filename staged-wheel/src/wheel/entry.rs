//! A timer as the wheels keep it: the record, its states, and the handle that names it.
//!
//! ```text
//!             arm                     promote, place            cursor arrives
//!   Free ──────────▶ Dense ──────────────────▶ Listed ──────────────────▶ InRun
//!    ▲ │                                         ▲ │                        │
//!    │ └─────────── arm ─────────────────────────┘ └── rearm into the ──▶ InHeap
//!    │                                                 current tick         │
//!    └────────────── cancel, fire (generation + 1) ◀────────────────────────┘
//!                        │ the last generation is spent
//!                        ▼
//!                     Retired
//! ```
//!
//! A handle fits its record only while their generations agree, and no generation is handed out
//! twice for one index. So a handle may outlive its timer, the reuse of the record and even the
//! page the record lay on: it then names nothing, for good.

use std::num::NonZeroU32;

/// Names one armed timer of the queue that handed it out, and nothing once that timer has fired or
/// was cancelled.
///
/// Eight bytes, also inside an `Option`. Dropping it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerHandle {
    pub(crate) index: u32,
    pub(crate) generation: NonZeroU32,
}

/// A timer's record: what names it, whom to wake, and since when.
///
/// 32 bytes with a waker as payload. The alignment keeps two records on a cache line and none
/// across two, so that finding a timer and taking its waker loads one line.
#[derive(Debug)]
#[repr(C, align(32))]
pub(super) struct Record<T> {
    /// The count of arms at the time of this one: breaks ties, and proves that a key is not stale.
    pub(super) seq: u64,
    /// There while the timer is armed.
    pub(super) payload: Option<T>,
    /// The generation of the handle that fits, or that the next arm will hand out. Zero: retired.
    pub(super) generation: u32,
    /// The slot when listed (see `level.rs`), the position when dense; when free, that of the next
    /// free record of the page. So a timer that fires needs no link.
    pub(super) place: u16,
    pub(super) state: RecordState,
}

/// What fires.
pub(super) struct FiredRecord<T> {
    pub(super) index: u32,
    /// Of the handle that fitted.
    pub(super) generation: u32,
    pub(super) deadline_ns: u64,
    pub(super) payload: T,
}

/// What a list needs of a timer. It lies apart, four to a cache line, so that lists are walked,
/// moved and mended without waiting for the records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Nanoseconds since the queue's epoch.
    pub(super) deadline_ns: u64,
    /// The next record of the slot's list.
    pub(super) next: u32,
    pub(super) prev: u32,
}

impl Link {
    /// Of a record that is in no list.
    #[inline(always)]
    pub(super) fn alone(deadline_ns: u64) -> Self {
        Link {
            deadline_ns,
            next: NIL,
            prev: NIL,
        }
    }
}

/// Where a record is, and thus who must be told when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RecordState {
    /// On its page's free list.
    Free,
    /// Never to be used again: its generations are spent.
    Retired,
    /// In the dense arrays of the inline stage, at `place`.
    Dense,
    /// In the list of the slot `place`.
    Listed,
    /// Nowhere: its deadline is never. It waits for a cancel or a re-arm.
    Parked,
    /// Named by one key of the run of the current tick.
    InRun,
    /// Named by one key of the heap, next to the run.
    InHeap,
}

/// The order in which timers fire: by deadline, then by arming. The index only says whose key it
/// is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) deadline_ns: u64,
    pub(super) seq: u64,
    pub(crate) index: u32,
}

impl Key {
    /// Before every timer due at `ns` or later.
    #[inline]
    pub(super) fn first_at(ns: u64) -> Self {
        Key {
            deadline_ns: ns,
            seq: 0,
            index: 0,
        }
    }

    /// Behind every timer due at `ns` or before.
    #[inline]
    pub(super) fn last_at(ns: u64) -> Self {
        Key {
            deadline_ns: ns,
            seq: u64::MAX,
            index: NIL,
        }
    }
}

/// No record.
pub(super) const NIL: u32 = u32::MAX;

/// Records to a page.
pub(crate) const PAGE: usize = 1 << PAGE_BITS;
/// Next to nothing where histories are to open, empty and give back pages all the time.
pub(super) const PAGE_BITS: u32 = if cfg!(any(fuzzing, small_wheel)) {
    2
} else {
    8
};

/// The page an index lies on, and where on it.
#[inline]
pub(super) fn split(index: u32) -> (usize, usize) {
    ((index >> PAGE_BITS) as usize, index as usize & (PAGE - 1))
}

const _: () = assert!(
    size_of::<Record<[std::ptr::NonNull<()>; 2]>>() == 32,
    "two records to a cache line, given a payload of a waker's size",
);
const _: () = assert!(size_of::<Link>() == 16);
const _: () = assert!(size_of::<TimerHandle>() == 8);
const _: () = assert!(size_of::<Option<TimerHandle>>() == 8);
