//! The timers that stand, and what is done to them: everything in the model.
//!
//! A timer lies in a slot and is polled by hand. Its waker writes the slot's number into a list,
//! and a task polls what is written there.

use futures_lite::future::poll_fn;

use super::arrivals::{Arrival, Arrivals};
use crate::workload::prelude::*;

/// A population.
pub(super) struct Population {
    checker: Rc<Checker>,
    standing: usize,
    /// The standing ones first, then those that come and go.
    slots: RefCell<Vec<Option<Armed>>>,
    arrivals: Arc<Arrivals>,
}

struct Armed {
    key: Key,
    deadline: Instant,
    timer: Timer,
    _live: Live,
    /// The waker that it has, once it was polled.
    waker: Option<Arc<Arrival>>,
}

impl Armed {
    /// The timer is about to be dropped, or polled with another waker: the one that it has must not be called any more.
    fn gone(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.gone();
        }
    }

    /// What is due is left to fire, or one that never does would be cancelled unnoticed.
    fn is_due(&self) -> bool {
        self.deadline <= Instant::now()
    }
}

impl Population {
    /// An empty one, with room for `standing` timers and some that come and go beside them.
    pub(super) fn new(checker: &Rc<Checker>, standing: usize) -> Rc<Self> {
        let passing = match standing {
            ..FEW => PASSING_MIN,
            _ => (standing / 8).min(PASSING_MAX),
        };
        Rc::new(Population {
            checker: Rc::clone(checker),
            standing,
            slots: RefCell::new((0..standing + passing).map(|_| None).collect()),
            arrivals: Arc::default(),
        })
    }

    /// Arms the timers that stand, a piece at a time. The task that is returned polls the timers
    /// that are woken, and must be kept.
    pub(super) async fn gather(self: &Rc<Self>, rng: &mut Rng) -> Task<()> {
        let collector = spawn_local(Rc::clone(self).collect());
        let a_step = (self.standing / GATHER_STEPS).max(A_TURN);
        for index in 0..self.standing {
            self.arm(index, far(rng));
            if index % a_step == a_step - 1 {
                self.checker.pause(Duration::from_millis(1)).await;
            }
        }
        collector
    }

    /// Cancels everything. What is due already has until it is called lost.
    pub(super) async fn scatter(&self) {
        let count = self.slots.borrow().len();
        for index in 0..count {
            if let Some(armed) = self.take(index) {
                match armed.is_due() && !self.checker.control.is_draining() {
                    true => self.put(index, armed),
                    false => self.cancel(armed),
                }
            }
            if index % A_TURN == A_TURN - 1 {
                yield_now().await;
            }
        }
        while self.checker.armed() > 0 && !self.checker.control.is_draining() {
            self.checker.pause(Duration::from_millis(1)).await;
        }
        let left = self.slots.take().into_iter().flatten();
        left.for_each(|armed| self.cancel(armed));
    }

    /// Does something to a timer.
    pub(super) fn step(&self, rng: &mut Rng, deadlines: &mut Deadlines) {
        let passing = self.slots.borrow().len() - self.standing;
        let index = if self.standing > 0 && rng.chance(1, 2) {
            rng.usize(..self.standing)
        } else {
            self.standing + rng.usize(..passing)
        };
        let deadline = if index < self.standing {
            far(rng)
        } else {
            deadlines.draw(rng)
        };
        let Some(armed) = self.take(index) else {
            return self.arm(index, deadline);
        };
        if self.checker.is_armed(armed.key) && armed.is_due() {
            return self.put(index, armed);
        }
        match rng.u64(..10) {
            0..4 => self.rearm(index, deadline, armed),
            // A new waker takes the place of the old one.
            4 => self.poll(index, armed),
            choice => {
                self.cancel(armed);
                // Those that stand are replaced, or they would become fewer.
                if index < self.standing || choice < 8 {
                    self.arm(index, deadline);
                }
            }
        }
    }

    /// Moves some of the timers that stand to where they fire within the rest that follows.
    pub(super) fn ripen(&self, rng: &mut Rng) {
        for _ in 0..(self.standing / 4).min(RIPE_MAX) {
            let index = rng.usize(..self.standing);
            if let Some(armed) = self.take(index) {
                let deadline = if armed.is_due() {
                    armed.deadline
                } else {
                    Instant::now() + rng.uniform(Duration::ZERO, RIPE_WITHIN)
                };
                self.rearm(index, deadline, armed);
            }
        }
    }

    /// None if there is none, because it was cancelled or the population scattered.
    fn take(&self, index: usize) -> Option<Armed> {
        let mut slots = self.slots.borrow_mut();
        slots.get_mut(index).and_then(Option::take)
    }

    fn put(&self, index: usize, armed: Armed) {
        self.slots.borrow_mut()[index] = Some(armed);
    }

    fn arm(&self, index: usize, deadline: Instant) {
        let ticket = self.checker.arm(deadline);
        let armed = Armed {
            key: ticket.key,
            deadline,
            timer: Timer::new(ticket.delay()),
            _live: ticket.live,
            waker: None,
        };
        self.poll(index, armed);
    }

    /// Polls a timer that lies in no slot, and puts it there unless it has fired.
    fn poll(&self, index: usize, mut armed: Armed) {
        armed.gone();
        let (stats, arrivals) = (&self.checker.stats, &self.arrivals);
        let waker = Arrival::new(stats, arrivals, index, armed.key, armed.deadline);
        armed.waker = Some(Arc::clone(&waker));
        let waker = Waker::from(waker);
        let polled = Pin::new(&mut armed.timer).poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            armed.gone();
            self.checker.fired(armed.key);
        } else {
            self.put(index, armed);
        }
    }

    fn rearm(&self, index: usize, deadline: Instant, mut armed: Armed) {
        self.checker.rearm(armed.key, deadline);
        if let Some(waker) = &armed.waker {
            waker.moved(deadline);
        }
        armed.timer.reset(until(deadline));
        armed.deadline = deadline;
        self.put(index, armed);
    }

    fn cancel(&self, mut armed: Armed) {
        self.checker.cancel(armed.key);
        armed.gone();
    }

    async fn collect(self: Rc<Self>) {
        let mut woken = Vec::new();
        loop {
            poll_fn(|cx| self.arrivals.poll(cx, &mut woken)).await;
            for index in woken.drain(..) {
                if let Some(armed) = self.take(index) {
                    self.poll(index, armed);
                }
            }
        }
    }
}

pub(super) fn until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Where those that stand have their deadlines.
fn far(rng: &mut Rng) -> Instant {
    Instant::now() + rng.log_uniform(Duration::from_secs(60), Duration::from_secs(3_600))
}

/// Below it the timers that come and go are so few that their number stays about where it is.
const FEW: usize = 300;
const PASSING_MIN: usize = 4;
const PASSING_MAX: usize = 4_096;

/// Before each rest.
const RIPE_MAX: usize = 256;
const RIPE_WITHIN: Duration = Duration::from_millis(50);

const A_TURN: usize = 256;
const GATHER_STEPS: usize = 200;

/// A way to draw deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Anywhere within the next 50 ms: most of them fire if they are left alone.
    Short,
    /// A millisecond to an hour, every order of magnitude as likely.
    Magnitudes,
    /// All of a burst at one instant.
    Equal,
    /// Each a little later than the one before.
    Increasing,
    /// Each a little sooner than the one before.
    Decreasing,
}

pub(super) const SPREADS: [Spread; 5] = {
    use Spread::{Decreasing, Equal, Increasing, Magnitudes, Short};
    [Short, Magnitudes, Equal, Increasing, Decreasing]
};

/// The deadlines of one burst.
#[derive(Debug)]
pub(super) struct Deadlines {
    spread: Spread,
    began: Instant,
    drawn: u32,
}

impl Deadlines {
    /// For a burst that begins now.
    pub(super) fn new(spread: Spread) -> Self {
        Deadlines {
            spread,
            began: Instant::now(),
            drawn: 0,
        }
    }

    pub(super) fn draw(&mut self, rng: &mut Rng) -> Instant {
        self.drawn += 1;
        let now = Instant::now();
        match self.spread {
            Spread::Short => now + rng.uniform(Duration::ZERO, NEAR),
            Spread::Magnitudes => {
                now + rng.log_uniform(Duration::from_millis(1), Duration::from_secs(3_600))
            }
            Spread::Equal => self.began + NEAR,
            Spread::Increasing => self.began + NEAR + STEP * self.drawn,
            Spread::Decreasing => self.began + FAR - STEP * self.drawn,
        }
    }

    /// One that does not fire within the burst.
    pub(super) fn draw_far(&mut self, rng: &mut Rng) -> Instant {
        self.draw(rng) + FAR
    }
}

/// Soon enough to fire between two bursts.
const NEAR: Duration = Duration::from_millis(50);

/// A burst draws at most some 100,000 deadlines.
const FAR: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_micros(20);
