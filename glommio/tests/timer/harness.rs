//! Running a test so that a lost wake-up ends it.

use crate::common::prelude::*;

/// A wait that no test sits out.
pub const HOUR: Duration = Duration::from_secs(3600);

pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The limit that was over.
pub fn limit_of<T>(result: glommio::Result<T, ()>) -> Option<Duration> {
    match result {
        Err(GlommioError::TimedOut(limit)) => Some(limit),
        _ => None,
    }
}

/// As [`run`], in an executor whose preemption timer is longer than the watchdog waits.
pub fn run_unpreempted(test: impl AsyncFnOnce()) {
    with_watchdog(|| {
        let local = with_slices_of(Duration::from_secs(600));
        local.run(test());
    });
}

/// Keeps the thread busy, without yielding, until `instant` is past.
pub fn hog_until(instant: Instant) {
    while Instant::now() <= instant {
        std::hint::spin_loop();
    }
}

/// Keeps the thread busy, without yielding.
pub fn hog(length: Duration) {
    hog_until(Instant::now() + length);
}

/// Yields until `condition` holds.
pub async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        executor().yield_now().await;
    }
}

/// One poll of `timer`.
pub fn poll(timer: &mut Timer, waker: &Waker) -> Poll<Instant> {
    Pin::new(timer).poll(&mut Context::from_waker(waker))
}

/// A timer that one task awaits while others reset it.
pub type Shared = Rc<RefCell<Timer>>;

pub fn shared(timer: Timer) -> Shared {
    Rc::new(RefCell::new(timer))
}

/// Awaits a shared timer, borrowing it for one poll at a time.
pub async fn expiry(timer: &Shared) -> Instant {
    poll_fn(|cx| Pin::new(&mut *timer.borrow_mut()).poll(cx)).await
}

/// Writes into a log when it is dropped.
pub struct OnDrop<T: Clone>(pub Log<T>, pub T);

impl<T: Clone> Drop for OnDrop<T> {
    fn drop(&mut self) {
        self.0.push(self.1.clone());
    }
}
