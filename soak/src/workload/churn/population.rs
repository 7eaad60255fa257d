//! The timers that stand, and what is done to them: everything in the model.
//!
//! A timer lies in a slot and is polled by hand. Its waker writes the slot's number into a list,
//! and a task polls what is written there.

use std::sync::Mutex;
use std::task::Wake;

use futures_lite::future::poll_fn;

use crate::check::waker::Calls;
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
    /// Of the waker that it has, once it was polled.
    calls: Option<Arc<Calls>>,
}

impl Armed {
    /// The timer is about to be dropped, or polled with another waker: the one that it has must not be called any more.
    fn gone(&mut self) {
        if let Some(calls) = self.calls.take() {
            calls.gone();
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
        let passing = if standing < FEW {
            PASSING_MIN
        } else {
            (standing / 8).min(PASSING_MAX)
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
            let armed = self.slots.borrow_mut()[index].take();
            match armed {
                Some(armed) if armed.is_due() && !self.checker.control.is_draining() => {
                    self.put(index, armed);
                }
                Some(armed) => self.cancel(armed),
                None => {}
            }
            if index % A_TURN == A_TURN - 1 {
                yield_now().await;
            }
        }
        while self.checker.armed() > 0 && !self.checker.control.is_draining() {
            self.checker.pause(Duration::from_millis(1)).await;
        }
        let left = self.slots.take();
        left.into_iter()
            .flatten()
            .for_each(|armed| self.cancel(armed));
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
        let before = self.slots.borrow_mut()[index].take();
        let Some(armed) = before else {
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
            let armed = self.slots.borrow_mut()[index].take();
            if let Some(armed) = armed {
                let deadline = if armed.is_due() {
                    armed.deadline
                } else {
                    Instant::now() + rng.uniform(Duration::ZERO, RIPE_WITHIN)
                };
                self.rearm(index, deadline, armed);
            }
        }
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
            calls: None,
        };
        self.poll(index, armed);
    }

    /// Polls a timer that lies in no slot, and puts it there unless it has fired.
    fn poll(&self, index: usize, mut armed: Armed) {
        armed.gone();
        let calls = Calls::new(&self.checker, armed.key, armed.deadline);
        let waker = Waker::from(Arc::new(Arrival {
            index,
            arrivals: Arc::clone(&self.arrivals),
            calls: Arc::clone(&calls),
        }));
        armed.calls = Some(calls);
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
        if let Some(calls) = &armed.calls {
            calls.moved(deadline);
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
                // None: the population was scattered, or the timer that called was cancelled.
                let armed = self
                    .slots
                    .borrow_mut()
                    .get_mut(index)
                    .and_then(Option::take);
                if let Some(armed) = armed {
                    self.poll(index, armed);
                }
            }
        }
    }
}

/// Slots whose timers want to be polled.
#[derive(Default)]
struct Arrivals(Mutex<Woken>);

#[derive(Default)]
struct Woken {
    slots: Vec<usize>,
    collector: Option<Waker>,
}

impl Arrivals {
    /// Moves the list into `into`, once there is something in it.
    fn poll(&self, cx: &Context<'_>, into: &mut Vec<usize>) -> Poll<()> {
        let mut woken = lock(&self.0);
        std::mem::swap(&mut woken.slots, into);
        if into.is_empty() {
            woken.collector = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

/// A timer's waker.
struct Arrival {
    index: usize,
    arrivals: Arc<Arrivals>,
    calls: Arc<Calls>,
}

impl Wake for Arrival {
    fn wake(self: Arc<Self>) {
        self.calls.called();
        let collector = {
            let mut woken = lock(&self.arrivals.0);
            woken.slots.push(self.index);
            woken.collector.take()
        };
        if let Some(collector) = collector {
            collector.wake();
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

impl Spread {
    pub(super) const ALL: [Spread; 5] = [
        Spread::Short,
        Spread::Magnitudes,
        Spread::Equal,
        Spread::Increasing,
        Spread::Decreasing,
    ];
}

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
        let (began, drawn) = (Instant::now(), 0);
        Deadlines {
            spread,
            began,
            drawn,
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
