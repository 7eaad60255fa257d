//! The ring of an executor in a [simulation](crate::simulated).
//!
//! It takes the submissions that the kernel's takes. What an operation does is done when its end has come, in the turn that learns of it: until
//! then its memory is not touched.
//!
//! A timeout of a slice ends after a number of looks at the ring that chance says: where a slice ends is
//! up to the seed.

#![allow(unsafe_code)]

mod described;
mod file;
mod socket;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::time::Instant;

use super::completion::Completion;
use super::operation::Operation;
use super::{Features, QueueFull, Submission, TimeoutCell, Wait};
use crate::simulated::{Due, Event, PlannedAt, RingId, World};
use crate::stats::{RingCounts, SharedCounts};
use crate::sys::fork_detect::Origin;
use simulated_kernel::disk::PendingSync;

/// See the module.
pub(crate) struct SimulatedRing {
    world: Rc<World>,
    id: RingId,
    origin: Origin,
    entries: usize,
    /// Pushed and not taken.
    queue: RefCell<VecDeque<Queued>>,
    /// Taken, by user data.
    in_flight: RefCell<BTreeMap<u64, InFlight>>,
    completed: RefCell<VecDeque<Completion>>,
    slice_timeout: Cell<Option<SliceTimeout>>,
    counts: SharedCounts<RingCounts>,
}

enum Queued {
    Operation(Asked),
    Timeout(u64),
    TimeoutMove { name: u64, user_data: u64 },
    TimeoutRemoval { name: u64, user_data: u64 },
}

/// What a submission asks for.
#[derive(Clone, Copy)]
struct Asked {
    user_data: u64,
    operation: Operation,
}

struct InFlight {
    asked: Asked,
    what: What,
}

/// What an operation waits for.
enum What {
    /// The time at which a disk is done with it.
    Disk(PlannedAt),
    Sync(PlannedAt, PendingSync),
    /// A change of a socket.
    Socket,
}

/// The timeout that ends a slice.
#[derive(Clone, Copy)]
struct SliceTimeout {
    user_data: u64,
    /// Looks at the ring until it ends.
    looks: u32,
}

/// A slice ends after so many looks at most.
const LOOKS_MAX: u32 = 50;

impl SimulatedRing {
    pub(super) fn new(depth: usize, world: Rc<World>) -> io::Result<Self> {
        Ok(SimulatedRing {
            id: world.add_ring(),
            world,
            origin: Origin::here()?,
            entries: depth.next_power_of_two(),
            queue: RefCell::default(),
            in_flight: RefCell::default(),
            completed: RefCell::default(),
            slice_timeout: Cell::default(),
            counts: SharedCounts::default(),
        })
    }

    #[cfg(feature = "metrics")]
    pub(super) fn counts(&self) -> &SharedCounts<RingCounts> {
        &self.counts
    }

    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) fn features(&self) -> Features {
        Features::of_others()
    }

    /// # Safety
    ///
    /// See [`KernelRing::push`](super::KernelRing::push).
    pub(super) unsafe fn push(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        self.queue(Queued::Operation(Asked {
            user_data: submission.user_data(),
            operation: submission.operation(),
        }))
    }

    pub(super) fn push_memoryless(&self, submission: &Submission<'_>) -> Result<(), QueueFull> {
        let has_memory = submission.operation().points_to_memory();
        assert!(!has_memory, "its memory needs an owner");
        // SAFETY: there is no memory to keep valid.
        unsafe { self.push(submission) }
    }

    pub(super) fn push_timeout(
        &self,
        _: TimeoutCell,
        _: Instant,
        name: u64,
    ) -> Result<(), QueueFull> {
        self.queue(Queued::Timeout(name))
    }

    pub(super) fn push_timeout_move(
        &self,
        _: TimeoutCell,
        _: Instant,
        name: u64,
        user_data: u64,
    ) -> Result<(), QueueFull> {
        self.queue(Queued::TimeoutMove { name, user_data })
    }

    pub(super) fn push_timeout_removal(&self, name: u64, user_data: u64) -> Result<(), QueueFull> {
        self.queue(Queued::TimeoutRemoval { name, user_data })
    }

    fn queue(&self, queued: Queued) -> Result<(), QueueFull> {
        let mut queue = self.queue.borrow_mut();
        if queue.len() == self.entries {
            return Err(QueueFull);
        }
        queue.push_back(queued);
        Ok(())
    }

    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    pub(super) fn queued(&self) -> usize {
        self.queue.borrow().len()
    }

    pub(super) fn work_pending(&self) -> bool {
        if let Some(timeout) = self.slice_timeout.get() {
            match timeout.looks.checked_sub(1) {
                Some(looks) => self
                    .slice_timeout
                    .set(Some(SliceTimeout { looks, ..timeout })),
                None => {
                    self.slice_timeout.set(None);
                    self.complete(timeout.user_data, -libc::ETIME);
                }
            }
        }
        self.completions_posted() || self.has_deferred_work()
    }

    pub(super) fn completions_posted(&self) -> bool {
        !self.completed.borrow().is_empty()
    }

    pub(super) fn assert_own(&self) {
        self.origin.assert_here();
    }

    pub(super) fn needs_enter_to_reap(&self) -> bool {
        self.has_deferred_work()
    }

    pub(super) fn has_deferred_work(&self) -> bool {
        self.world.has_due(self.id)
    }

    /// Never waits: time is the simulation's to move. A wait is one of an executor that ends, for
    /// operations that it has given up: these end now.
    pub(super) fn enter(&self, wait: Wait) -> io::Result<()> {
        self.submit_only()?;
        while let Some(due) = self.world.next_due(self.id) {
            self.end(due);
        }
        if !matches!(wait, Wait::Now) && !self.completions_posted() {
            let left = std::mem::take(&mut *self.in_flight.borrow_mut());
            for (user_data, in_flight) in left {
                let result = match &in_flight.what {
                    What::Socket => {
                        self.world.end_wait(self.id, user_data);
                        -libc::ECANCELED
                    }
                    What::Disk(planned) | What::Sync(planned, _) => {
                        self.world.forget_plan(*planned);
                        self.perform(in_flight)
                    }
                };
                self.complete(user_data, result);
            }
        }
        Ok(())
    }

    pub(super) fn submit_only(&self) -> io::Result<()> {
        let taken = std::mem::take(&mut *self.queue.borrow_mut());
        self.counts.entered(taken.len());
        for queued in taken {
            self.begin(queued);
        }
        Ok(())
    }

    pub(super) fn reap(&self, reaped: &mut Vec<Completion>) {
        reaped.extend(self.completed.borrow_mut().drain(..));
    }

    /// The node is about to end. Each operation that is on its way to the disk has happened by
    /// then, or not, or in part; none is seen to complete.
    pub(super) fn lose_operations(&self) {
        let in_flight = self.in_flight.borrow();
        let mut on_their_way: Vec<_> = in_flight.values().map(|it| it.asked.operation).collect();
        drop(in_flight);
        self.world.draw(|rng| rng.shuffle(&mut on_their_way));
        for operation in on_their_way {
            if self.world.draw(fastrand::Rng::bool) {
                self.perform_unseen(operation);
            }
        }
    }

    /// An operation has come to its end, or to an event if it has more.
    fn end(&self, due: Due) {
        let Due {
            user_data,
            result,
            has_more,
        } = due;
        let mut in_flight = self.in_flight.borrow_mut();
        let Some(ended) = in_flight.get(&user_data) else {
            return;
        };
        let asked = ended.asked;
        if let What::Socket = ended.what {
            if !has_more {
                in_flight.remove(&user_data);
            }
            drop(in_flight);
            let socket = socket_of(asked.operation).expect("it is of one");
            return self.end_socket(asked, socket, result, has_more);
        }
        let ended = in_flight.remove(&user_data).expect("it was there just now");
        drop(in_flight);
        let what = self.described(asked.operation);
        let result = self.perform(ended);
        // A descriptor has the number that the process has free, which is not up to the seed.
        let opens = matches!(asked.operation, Operation::Open { .. });
        self.world.note(Event::Ends {
            what,
            result: if opens { result.min(0) } else { result },
        });
        self.complete(user_data, result);
    }

    fn begin(&self, queued: Queued) {
        match queued {
            Queued::Operation(asked) => self.begin_operation(asked),
            Queued::Timeout(name) => {
                if self.ring_is_on(name) {
                    self.arm(name);
                }
            }
            Queued::TimeoutMove { name, user_data } => {
                if self.ring_is_on(user_data) {
                    let is_armed = self.is_armed(name);
                    if is_armed {
                        self.arm(name);
                    }
                    self.complete(user_data, if is_armed { 0 } else { -libc::ENOENT });
                }
            }
            Queued::TimeoutRemoval { name, user_data } => {
                if self.ring_is_on(user_data) {
                    let is_armed = self.is_armed(name);
                    if is_armed {
                        self.slice_timeout.set(None);
                        self.complete(name, -libc::ECANCELED);
                    }
                    self.complete(user_data, if is_armed { 0 } else { -libc::ENOENT });
                }
            }
        }
    }

    /// Otherwise nothing has an effect, and what was asked as `user_data` completes.
    fn ring_is_on(&self, user_data: u64) -> bool {
        let is_off = self.world.ring_is_off(self.id);
        if is_off {
            self.complete(user_data, -libc::ECANCELED);
        }
        !is_off
    }

    fn is_armed(&self, name: u64) -> bool {
        (self.slice_timeout.get()).is_some_and(|it| it.user_data == name)
    }

    fn begin_operation(&self, asked: Asked) {
        let Asked {
            user_data,
            operation,
        } = asked;
        if self.world.ring_is_off(self.id) {
            // Nothing has an effect, but what the process holds is given back.
            let result = match operation {
                Operation::Close { fd } => self.close(fd),
                _ => -libc::ECANCELED,
            };
            return self.complete(user_data, result);
        }
        match operation {
            Operation::Cancel { target } => return self.cancel(target, user_data),
            Operation::Nop => return self.complete(user_data, 0),
            _ => self.world.note(Event::Begins(self.described(operation))),
        }
        let node = self.world.node_of(self.id);
        let is_short = node.is_some_and(|it| self.world.no_memory_until(it).is_some());
        if is_short && !matches!(operation, Operation::Close { .. }) {
            return self.complete(user_data, -libc::ENOMEM);
        }
        if let Some(socket) = socket_of(operation) {
            return self.begin_socket(asked, socket);
        }
        match self.begin_file(asked) {
            Ok(in_flight) => {
                self.in_flight.borrow_mut().insert(user_data, in_flight);
            }
            Err(errno) => self.complete(user_data, -errno),
        }
    }

    fn arm(&self, user_data: u64) {
        let looks = self.world.draw(|rng| rng.u32(1..=LOOKS_MAX));
        self.slice_timeout
            .set(Some(SliceTimeout { user_data, looks }));
    }

    /// What is on its way to a disk is not called back.
    fn cancel(&self, target: u64, user_data: u64) {
        let mut in_flight = self.in_flight.borrow_mut();
        let result = match in_flight.get(&target) {
            None => -libc::ENOENT,
            Some(InFlight {
                what: What::Socket, ..
            }) => {
                in_flight.remove(&target);
                self.world.end_wait(self.id, target);
                self.complete(target, -libc::ECANCELED);
                0
            }
            Some(_) => -libc::EALREADY,
        };
        drop(in_flight);
        self.complete(user_data, result);
    }

    fn complete(&self, user_data: u64, result: i32) {
        self.post(user_data, result, false);
    }

    fn post(&self, user_data: u64, result: i32, has_more: bool) {
        let completion = Completion::made(user_data, result, has_more);
        self.completed.borrow_mut().push_back(completion);
    }
}

/// The socket that an operation waits for.
fn socket_of(operation: Operation) -> Option<RawFd> {
    match operation {
        Operation::Poll { fd, .. } => Some(fd),
        Operation::Accept { listener } => Some(listener),
        Operation::Connect { socket, .. } => Some(socket),
        _ => None,
    }
}

impl Drop for SimulatedRing {
    fn drop(&mut self) {
        self.world.remove_ring(self.id);
    }
}
