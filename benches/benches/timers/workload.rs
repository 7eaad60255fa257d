//! What is put into the queues, and the two ways to churn them.

use std::hint::black_box;
use std::iter;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use crate::queues::{Queue, TimerQueue};

/// A waker like a task's: one allocation, counted references.
pub fn waker() -> Waker {
    struct Task;
    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }
    Waker::from(Arc::new(Task))
}

/// So many clones of one waker.
pub fn wakers(count: usize) -> Vec<Waker> {
    iter::repeat_n(waker(), count).collect()
}

/// When the timers of a bench are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadlines {
    /// From 1 ms to 30 s ahead, in no order.
    Mixed,
    /// All 5 s ahead.
    Uniform,
}

/// So many mixed deadlines after `epoch`, in no order, the same ones each time.
pub fn deadlines(epoch: Instant, count: usize) -> Vec<Instant> {
    let mut random = Rng::with_seed(0);
    let (low, high) = (Duration::from_millis(1), Duration::from_secs(30));
    iter::repeat_with(|| epoch + random.uniform(low, high))
        .take(count)
        .collect()
}

impl Deadlines {
    /// So many of them.
    pub fn after(self, epoch: Instant, count: usize) -> Vec<Instant> {
        match self {
            Deadlines::Mixed => deadlines(epoch, count),
            Deadlines::Uniform => vec![epoch + Duration::from_secs(5); count],
        }
    }
}

/// Arms a timer for each deadline; `wakers` must hold as many.
pub fn fill<Q: Queue>(
    queue: &mut Q,
    deadlines: &[Instant],
    wakers: &mut Vec<Waker>,
    handles: &mut Vec<Q::Handle>,
) {
    let first = wakers.len() - deadlines.len();
    for (&deadline, waker) in deadlines.iter().zip(wakers.drain(first..)) {
        handles.push(queue.insert(black_box(deadline), waker));
    }
}

/// A queue with many timers, of which one is cancelled and another armed again and again: the life
/// of timeouts.
#[derive(Debug)]
pub struct Churn<Q: Queue> {
    /// The queue.
    pub queue: Q,
    /// Names of the armed timers; taken and put back by an operation.
    pub handles: Vec<Option<Q::Handle>>,
    deadlines: Vec<Instant>,
    /// Positions in `handles`.
    victims: Vec<u32>,
    turn: usize,
    spare: Option<Waker>,
}

/// How many deadlines and victims are prepared; after that they come again. All of a large
/// population has its turn, or a part of it would stay in the cache.
fn cycle(population: usize) -> usize {
    population.next_power_of_two().max(1 << 16)
}

impl<Q: Queue> Churn<Q> {
    /// A queue with so many timers.
    pub fn new(population: usize, deadlines: Deadlines) -> Self {
        let epoch = Q::epoch();
        let mut queue = Q::new(epoch);
        let mut handles = Vec::with_capacity(population);
        let all = deadlines.after(epoch, population);
        fill(&mut queue, &all, &mut wakers(population), &mut handles);
        let mut random = Rng::with_seed(1);
        let cycle = cycle(population);
        Churn {
            queue,
            handles: handles.into_iter().map(Some).collect(),
            deadlines: deadlines.after(epoch, cycle),
            victims: iter::repeat_with(|| random.usize(..population) as u32)
                .take(cycle)
                .collect(),
            turn: 0,
            spare: Some(waker()),
        }
    }

    /// Arms a timer and cancels it, while the others wait. The waker goes round, so that no
    /// counting of references is measured.
    #[inline]
    pub fn recent(&mut self) {
        let deadline = self.next_deadline();
        let waker = self.spare.take().expect("put back below");
        let handle = self.queue.insert(deadline, waker);
        self.spare = self.queue.cancel(black_box(handle));
    }

    /// Cancels one of the waiting timers, whichever, and arms another.
    #[inline]
    pub fn random(&mut self) {
        let deadline = self.next_deadline();
        let victim = self.victim();
        let waker = self.cancel(victim);
        self.insert(victim, deadline, waker);
    }

    /// The deadline of the next timer.
    #[inline]
    pub fn next_deadline(&mut self) -> Instant {
        self.turn = (self.turn + 1) & (self.deadlines.len() - 1);
        black_box(self.deadlines[self.turn])
    }

    /// The timer to go next.
    #[inline]
    pub fn victim(&self) -> usize {
        self.victims[self.turn] as usize
    }

    /// Cancels a timer.
    #[inline]
    pub fn cancel(&mut self, victim: usize) -> Waker {
        let handle = self.handles[victim].take().expect("armed again each time");
        self.queue.cancel(handle).expect("armed")
    }

    /// Arms a timer in its place.
    #[inline]
    pub fn insert(&mut self, victim: usize, deadline: Instant, waker: Waker) {
        self.handles[victim] = Some(self.queue.insert(deadline, waker));
    }
}

impl<Q: TimerQueue> Churn<Q> {
    /// Gives the timer to go next another deadline.
    #[inline]
    pub fn rearm(&mut self, deadline: Instant) {
        let victim = self.victim();
        let handle = self.handles[victim].take().expect("put back each time");
        self.handles[victim] = Some(self.queue.rearm(handle, black_box(deadline)));
    }
}

/// A queue in which timers expire batch by batch and are armed again, so that as many wait at all
/// times.
///
/// The deadlines are spread over 30 s, a poll falls on the last of each batch, and what has fired
/// is armed again for 30 s later.
#[derive(Debug)]
pub struct Rotation<Q: TimerQueue> {
    queue: Q,
    /// In the order of the deadlines.
    timers: Vec<(Instant, Option<Q::Handle>)>,
    batch: usize,
    /// Where the next batch begins.
    position: usize,
    expired: Vec<Waker>,
    spare: Waker,
}

const ROTATION: Duration = Duration::from_secs(30);

impl<Q: TimerQueue> Rotation<Q> {
    /// So many timers, of which `batch` fire at a time; the one is a multiple of the other. They
    /// are armed in no order: no queue's memory is in that of the deadlines.
    pub fn new(timers: usize, batch: usize) -> Self {
        assert!(timers.is_multiple_of(batch));
        let epoch = Q::epoch();
        let mut queue = Q::new(epoch);
        let deadlines = deadlines(epoch, timers);
        let mut handles = Vec::with_capacity(timers);
        fill(&mut queue, &deadlines, &mut wakers(timers), &mut handles);
        let mut timers: Vec<_> = deadlines
            .into_iter()
            .zip(handles.into_iter().map(Some))
            .collect();
        timers.sort_unstable_by_key(|timer| timer.0);
        Rotation {
            queue,
            timers,
            batch,
            position: 0,
            expired: Vec::with_capacity(2 * batch),
            spare: waker(),
        }
    }

    /// Brings the clock to the last deadline of the next batch and returns it.
    pub fn advance(&mut self) -> Instant {
        let (now, _) = self.timers[self.position + self.batch - 1];
        self.queue.advance(now);
        now
    }

    /// Fires what is due, usually the batch.
    #[inline]
    pub fn expire(&mut self, now: Instant) {
        while self.queue.expire(now, usize::MAX, &mut self.expired) {}
    }

    /// Gives back the handles of the batch.
    #[inline]
    pub fn release(&mut self) {
        for (_, handle) in &mut self.timers[self.position..][..self.batch] {
            self.queue.release(handle.take().expect("armed"));
        }
    }

    /// Arms the batch again and goes on to the next. Returns how many have fired.
    pub fn arm(&mut self) -> usize {
        let fired = self.expired.len();
        for (deadline, handle) in &mut self.timers[self.position..][..self.batch] {
            *deadline += ROTATION;
            let waker = self.expired.pop().unwrap_or_else(|| self.spare.clone());
            *handle = Some(self.queue.insert(*deadline, waker));
        }
        self.expired.clear();
        self.position = (self.position + self.batch) % self.timers.len();
        fired
    }
}
