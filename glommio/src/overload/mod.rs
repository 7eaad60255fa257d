//! Refusing work when the executor is late.
//!
//! A server that gets more requests than it can serve becomes later and later: requests wait in the
//! queue of runnable tasks and in the buffers of their sockets. When their clients have given up,
//! the time that such requests take is wasted. A [`LoadShedder`] measures how long a task of the
//! executor waits until it is polled, and refuses requests while that is too long. The others
//! are then answered in time.
//!
//! ```
//! use glommio::overload::LoadShedder;
//! use std::{rc::Rc, time::Duration};
//!
//! async fn answer(shed: Rc<LoadShedder>) -> (u16, String) {
//!     // Before anything expensive.
//!     if let Err(overloaded) = shed.admit() {
//!         return (503, overloaded.to_string());
//!     }
//!     (200, "hello".to_owned())
//! }
//!
//! glommio::LocalExecutor::default().run(async {
//!     let shed = Rc::new(LoadShedder::new());
//!     assert_eq!(answer(shed).await.0, 200);
//!
//!     // With other limits:
//!     let second = Duration::from_secs(1);
//!     let shed = LoadShedder::builder().target(second / 50).interval(second).build();
//!     assert!(!shed.is_overloaded());
//!     println!("{:?} behind", shed.delay());
//! });
//! ```
//!
//! # What is measured
//!
//! [`admit`](LoadShedder::admit) has a task arm a timer that is due in a millisecond. When the task is
//! polled then, it is as late as any task that became runnable with it, because a socket was ready
//! for instance: the time until the executor looks, the tasks ahead of it, and the turns of other
//! task queues by their shares are all in it. Time that the executor sleeps meanwhile, because of
//! the [slack](crate::LocalExecutorBuilder::timer_slack) of its timers, is left out. There is one measurement
//! at a time, and none without requests. Waits for a disk or another server are not measured, and
//! a request waits anew for each of its polls: limit how many requests there are at a time, with a
//! [`Semaphore`](crate::sync::Semaphore).
//!
//! # When requests are refused
//!
//! The executor is overloaded when every delay for 100 ms (the interval) was above 5 ms (the
//! target), and it has hardly slept meanwhile. By this rule of CoDel, a burst that the executor works
//! off is no overload. Then requests are refused for as long as the delay is above the
//! target, and admitted when it is below. This ends when there was no delay above the target for an interval, or
//! when the executor has slept for as long as the target.
//! CoDel itself drops at an increasing pace, for senders that slow down when they lose packets.
//! Clients of a server do not, so requests are refused by how long they have waited, as in "Fail at
//! Scale".
//!
//! - K. Nichols and V. Jacobson, *Controlling Queue Delay*, ACM Queue 10 (5), 2012; RFC 8289.
//! - B. Maurer, *Fail at Scale*, ACM Queue 13 (8), 2015: adaptive time limits in queues.
//!
//! Cost: a look at the clock for each request, and a timer and two polls for each measurement.

#![forbid(unsafe_code)]

mod lateness;

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use self::lateness::Lateness;
use crate::clock;
use crate::executor::{Core, Task, current, spawn_local};
use crate::reactor::budget;
use crate::timer::Timer;

#[doc(hidden)]
#[deprecated = "renamed to `LoadShedder`"]
pub type Shed = LoadShedder;
#[doc(hidden)]
#[deprecated = "renamed to `LoadShedderBuilder`"]
pub type ShedBuilder = LoadShedderBuilder;

/// Refuses work when the executor is late; see the [module](self).
///
/// Use it from tasks of the task queue in which it was made, as some queues are later than others. One
/// `LoadShedder` serves all connections of an executor.
pub struct LoadShedder {
    state: Rc<ShedderState>,
    /// Dropped with it, and so cancelled.
    _probe: Task<()>,
}

struct ShedderState {
    lateness: RefCell<Lateness>,
    /// Of the task that measures, once it has waited.
    probe: RefCell<Option<Waker>>,
    core: Weak<Core>,
}

impl LoadShedder {
    /// With a target of 5 ms and an interval of 100 ms.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    #[allow(clippy::new_without_default, reason = "it needs an executor")]
    pub fn new() -> LoadShedder {
        LoadShedder::builder().build()
    }

    /// Sets the target and the interval.
    pub fn builder() -> LoadShedderBuilder {
        LoadShedderBuilder {
            target: TARGET,
            interval: INTERVAL,
        }
    }

    /// Admits a request, or says why not. To be called when its task runs, before the work is done.
    ///
    /// An error costs the client nothing but the answer; send it with the time after which to try
    /// again, such as `Retry-After` of HTTP.
    ///
    /// # Errors
    ///
    /// [`Overloaded`] if the executor is overloaded and later than the target now.
    pub fn admit(&self) -> Result<(), Overloaded> {
        let state = &self.state;
        let now = clock::now();
        let mut lateness = state.lateness.borrow_mut();
        let slept = state.slept();
        let begins = lateness.begin(now + LEAD, slept);
        let target = lateness.target;
        let refusal = lateness.refusal(now, slept);
        drop(lateness);
        if begins {
            state.wake_probe();
        }
        match refusal {
            None => Ok(()),
            Some(delay) => Err(Overloaded { delay, target }),
        }
    }

    /// Waits until a request would be [admitted](Self::admit). Awaited before each `accept`, it
    /// leaves connections in the queue of the kernel instead of refusing requests.
    ///
    /// While it waits, its task is polled each time that all others had their turn.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{net::TcpListener, overload::LoadShedder};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// # let _client = std::net::TcpStream::connect(listener.local_addr()?);
    /// let shed = LoadShedder::new();
    /// shed.ready().await;
    /// let stream = listener.accept().await?;
    /// # drop(stream);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn ready(&self) {
        budget::consume().await;
        poll_fn(|cx| match self.admit() {
            Ok(()) => Poll::Ready(()),
            Err(_) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        })
        .await;
    }

    /// How long what runs now has waited, by the last measurement and the one under way. Zero
    /// before the first [request](Self::admit).
    pub fn delay(&self) -> Duration {
        let lateness = self.state.lateness.borrow();
        lateness.delay(clock::now(), self.state.slept())
    }

    /// Whether the executor is overloaded, by the last request: late ones are refused.
    pub fn is_overloaded(&self) -> bool {
        self.state.lateness.borrow().is_overloaded()
    }
}

impl ShedderState {
    /// How long the executor has slept in its life. Once that is over, it sleeps forever.
    fn slept(&self) -> Duration {
        let core = self.core.upgrade();
        core.map_or(Duration::MAX, |core| core.slept())
    }

    fn wake_probe(&self) {
        // Out of the cell, for waking may log, which is user code.
        let probe = self.probe.borrow().clone();
        if let Some(probe) = probe {
            probe.wake();
        }
    }
}

/// Measures whenever that is asked for.
async fn measure(state: Rc<ShedderState>) {
    loop {
        let due = poll_fn(|cx| {
            let due = state.lateness.borrow().began();
            if due.is_none() {
                (state.probe.borrow_mut()).get_or_insert_with(|| cx.waker().clone());
            }
            due.map_or(Poll::Pending, Poll::Ready)
        });
        Timer::at(due.await).await;
        let slept = state.slept();
        state.lateness.borrow_mut().end(clock::now(), slept);
    }
}

impl_debug! { LoadShedder, it: delay: it.delay(), is_overloaded: it.is_overloaded(); .. }

/// Builds a [`LoadShedder`]: how much delay is accepted, and for how long.
#[derive(Clone, Copy, Debug)]
#[must_use = "`build` makes the `LoadShedder`"]
pub struct LoadShedderBuilder {
    target: Duration,
    interval: Duration,
}

impl LoadShedderBuilder {
    /// The delay that is accepted. The default is 5 ms.
    ///
    /// It should be longer than the longest poll of a task, for one such poll makes others as late. Zero
    /// counts as a nanosecond.
    pub fn target(mut self, target: Duration) -> Self {
        self.target = target;
        self
    }

    /// For how long the delay has to be longer than that until requests are refused, and shorter
    /// until none is. The default is 100 ms.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Builds the `LoadShedder` for the executor of this thread, and spawns its task into the current task
    /// queue.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn build(self) -> LoadShedder {
        let lateness = Lateness::new(self.target, self.interval, clock::now());
        let state = Rc::new(ShedderState {
            lateness: RefCell::new(lateness),
            probe: RefCell::default(),
            core: Rc::downgrade(&current::expect()),
        });
        LoadShedder {
            _probe: spawn_local(measure(Rc::clone(&state))),
            state,
        }
    }
}

/// A request was refused, because the executor is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overloaded {
    delay: Duration,
    target: Duration,
}

impl Overloaded {
    /// How late the executor is.
    pub fn delay(&self) -> Duration {
        self.delay
    }
}

impl fmt::Display for Overloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overloaded { delay, target } = self;
        write!(
            f,
            "overloaded: the executor is {delay:.1?} late, and refuses what is later than {target:.1?}"
        )
    }
}

impl Error for Overloaded {}

/// The values that RFC 8289 recommends for the Internet are 5 and 100 ms; those of *Fail at Scale*
/// for servers are the same.
const TARGET: Duration = Duration::from_millis(5);
const INTERVAL: Duration = Duration::from_millis(100);

/// How long after a request its timer is due: a bound on how often an executor measures.
const LEAD: Duration = Duration::from_millis(1);
