//! Groups of operations on their way to the device, and the futures that wait for them.

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::error::Error;
use super::format::{BLOCK_HEAD, ROWS_HEAD, add_rows, push_rows_head};
use crate::Seq;

/// Operations that become durable together.
#[derive(Debug, Default)]
pub(super) struct Group {
    outcome: OnceCell<Result<(), Error>>,
    waiting: RefCell<Vec<Waker>>,
}

impl Group {
    /// One that is durable.
    pub fn durable() -> Rc<Self> {
        let group = Self::default();
        group.finish(Ok(()));
        Rc::new(group)
    }

    /// Tells all that wait, once.
    pub fn finish(&self, outcome: Result<(), Error>) {
        if self.outcome.set(outcome).is_err() {
            return;
        }
        for waker in self.waiting.take() {
            // Those after a waker that panics wait as well; the panic has been reported by its hook.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }
}

/// Waits until an operation is on the device, with its [`Seq`].
///
/// The operation was accepted, and is visible, before this is made. Dropping it changes nothing: the
/// operation becomes durable all the same, with its group.
///
/// # Errors
/// [`Error::Poisoned`], if the write-ahead log could not be written or synced. It is not known then
/// whether the operation is durable; a log that is opened again tells by
/// [`Log::seq`](super::Log::seq). [`Error::Closed`], if the executor ended before.
///
/// # Cancel safety
/// Dropping it ends the wait and nothing else.
#[derive(Debug)]
#[must_use = "without awaiting it, it is not known whether the operation is durable"]
pub struct Commit {
    group: Rc<Group>,
    seq: Seq,
    /// Its place among those that wait.
    place: Option<usize>,
}

impl Commit {
    pub(super) fn new(group: Rc<Group>, seq: Seq) -> Self {
        Self {
            group,
            seq,
            place: None,
        }
    }

    /// The last operation that it waits for.
    pub fn seq(&self) -> Seq {
        self.seq
    }
}

impl Future for Commit {
    type Output = Result<Seq, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = self.group.outcome.get() {
            return Poll::Ready(outcome.clone().map(|()| self.seq));
        }
        // Outside of the borrow: wakers may run any code.
        let mut waker = cx.waker().clone();
        let mut waiting = self.group.waiting.borrow_mut();
        match self.place.and_then(|place| waiting.get_mut(place)) {
            Some(held) => std::mem::swap(held, &mut waker),
            None => {
                let place = waiting.len();
                waiting.push(waker);
                drop(waiting);
                self.place = Some(place);
            }
        }
        Poll::Pending
    }
}

/// The group that gathers, and those before it that are to be written.
#[derive(Debug)]
pub(super) struct Tail {
    /// The size of a group, in bytes, unless one operation is larger.
    most_bytes: usize,
    /// Those that are full, and their bytes. Writers that wait for one group fill the next while that
    /// is written, so neither the device nor they wait for the other.
    full: VecDeque<Taken>,
    full_bytes: usize,
    /// The block that they become: its head, to be filled in, and the operations. Empty if there are
    /// none.
    block: Vec<u8>,
    /// The memory of blocks that were written, for the next ones.
    spare: Vec<Vec<u8>>,
    /// Where the rows begin that the last operations are, to add rows to them.
    rows_at: Option<usize>,
    /// The operation that comes next.
    next: u64,
    operations: u32,
    group: Rc<Group>,
}

/// A group to write.
#[derive(Debug)]
pub(super) struct Taken {
    pub block: Vec<u8>,
    pub first: u64,
    pub operations: u32,
    pub group: Rc<Group>,
}

impl Tail {
    pub fn new(next: u64, most_bytes: usize) -> Self {
        Self {
            most_bytes,
            full: VecDeque::new(),
            full_bytes: 0,
            block: Vec::new(),
            spare: Vec::new(),
            rows_at: None,
            next,
            operations: 0,
            // Until there is another one: nothing is to be waited for.
            group: Group::durable(),
        }
    }

    pub fn bytes(&self) -> usize {
        self.full_bytes + self.block.len().saturating_sub(BLOCK_HEAD)
    }

    pub fn is_empty(&self) -> bool {
        self.operations == 0 && self.full.is_empty()
    }

    /// The last operation.
    pub fn last(&self) -> Seq {
        Seq(self.next - 1)
    }

    /// Waits for all operations so far: those of the group that gathers or, if there are none, of the
    /// one before.
    pub fn commit(&self) -> Commit {
        Commit::new(Rc::clone(&self.group), self.last())
    }

    pub fn rows(&mut self, rows: u32, bytes: &[u8]) -> Commit {
        self.begin(rows, ROWS_HEAD + bytes.len());
        let is_added = (self.rows_at).is_some_and(|at| add_rows(&mut self.block, at, rows));
        if !is_added {
            self.rows_at = Some(self.block.len());
            push_rows_head(&mut self.block, rows);
        }
        self.block.extend_from_slice(bytes);
        self.commit()
    }

    /// A delete or a floor.
    pub fn operation(&mut self, bytes: &[u8]) -> Commit {
        self.begin(1, bytes.len());
        self.rows_at = None;
        self.block.extend_from_slice(bytes);
        self.commit()
    }

    fn begin(&mut self, operations: u32, bytes: usize) {
        if self.operations > 0 && self.block.len() + bytes > BLOCK_HEAD + self.most_bytes {
            let full = self.take_gathered();
            self.full_bytes += full.block.len() - BLOCK_HEAD;
            self.full.push_back(full);
        }
        if self.operations == 0 {
            self.group = Rc::default();
            self.block.resize(BLOCK_HEAD, 0);
        }
        self.operations += operations;
        self.next += u64::from(operations);
    }

    /// The bytes of the block that comes next.
    pub fn next_bytes(&self) -> usize {
        self.full
            .front()
            .map_or(&self.block, |full| &full.block)
            .len()
    }

    /// The first operation of it.
    pub fn next_first(&self) -> u64 {
        let gathered = self.next - u64::from(self.operations);
        self.full.front().map_or(gathered, |full| full.first)
    }

    /// Takes the oldest group; what comes later is in another one.
    pub fn take(&mut self) -> Taken {
        let Some(full) = self.full.pop_front() else {
            return self.take_gathered();
        };
        self.full_bytes -= full.block.len() - BLOCK_HEAD;
        full
    }

    fn take_gathered(&mut self) -> Taken {
        let next = self.spare.pop().unwrap_or_default();
        self.rows_at = None;
        Taken {
            block: std::mem::replace(&mut self.block, next),
            first: self.next - u64::from(self.operations),
            operations: std::mem::take(&mut self.operations),
            group: Rc::clone(&self.group),
        }
    }

    /// Takes back the memory of a block.
    pub fn reuse(&mut self, mut block: Vec<u8>) {
        block.clear();
        if block.capacity() <= KEPT_BYTES && self.spare.len() < KEPT {
            self.spare.push(block);
        }
    }
}

/// The memory of so many blocks is kept, if they are not larger.
const KEPT: usize = 2;
const KEPT_BYTES: usize = 4 << 20;

/// The most that so many bytes of operations take with their heads.
pub(super) const fn payload_bytes(bytes: usize) -> usize {
    bytes + ROWS_HEAD
}
