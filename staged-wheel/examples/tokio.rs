//! Exact timers on another runtime: one task of a tokio `LocalSet` keeps the deadlines of all others
//! in a wheel, and sleeps until the next expiry.
//!
//! ```sh
//! cargo run --release -p staged-wheel --example tokio
//! ```

use std::cell::RefCell;
use std::future::{self, Future};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use staged_wheel::{StagedWheel, TimerHandle};

/// The timers of one thread.
#[derive(Clone)]
struct Timers(Rc<RefCell<Shared>>);

struct Shared {
    wheel: StagedWheel<Waker>,
    /// Of the task that sleeps, while it does.
    driver: Option<Waker>,
}

/// Comes at its deadline.
struct Sleep {
    timers: Timers,
    deadline: Instant,
    handle: Option<TimerHandle>,
}

impl Timers {
    fn new() -> Self {
        let wheel = StagedWheel::new(Instant::now());
        Timers(Rc::new(RefCell::new(Shared {
            wheel,
            driver: None,
        })))
    }

    fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep {
            timers: self.clone(),
            deadline,
            handle: None,
        }
    }

    /// Wakes the sleepers when they are due, for good.
    async fn drive(self) {
        let mut expired = Vec::new();
        loop {
            let has_more = (self.0.borrow_mut().wheel).expire(Instant::now(), 256, &mut expired);
            // With nothing borrowed: a waker may come back here.
            expired.drain(..).for_each(Waker::wake);
            if has_more {
                tokio::task::yield_now().await;
                continue;
            }
            let next = self.0.borrow_mut().wheel.next_expiry();
            let sleep = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next.into()).await,
                    None => future::pending().await,
                }
            };
            let mut sleep = std::pin::pin!(sleep);
            // Until the next expiry, or until there is an earlier one.
            future::poll_fn(|cx| {
                let mut shared = self.0.borrow_mut();
                let earlier = shared.wheel.next_expiry();
                if earlier != next {
                    return Poll::Ready(());
                }
                shared.driver = Some(cx.waker().clone());
                drop(shared);
                sleep.as_mut().poll(cx)
            })
            .await;
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.deadline {
            return Poll::Ready(());
        }
        let timers = self.timers.clone();
        let mut shared = timers.0.borrow_mut();
        let armed = self.handle.and_then(|it| shared.wheel.get_mut(it));
        let (replaced, driver) = match armed {
            Some(armed) => (Some(std::mem::replace(armed, cx.waker().clone())), None),
            None => {
                self.handle = Some(shared.wheel.insert(self.deadline, cx.waker().clone()));
                (None, shared.driver.take())
            }
        };
        // Wakers are woken and dropped with nothing borrowed.
        drop(shared);
        drop(replaced);
        driver.into_iter().for_each(Waker::wake);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let handle = self.handle.take();
        let waker = handle.and_then(|it| self.timers.0.borrow_mut().wheel.cancel(it));
        drop(waker);
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime without I/O needs nothing");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let timers = Timers::new();
        tokio::task::spawn_local(timers.clone().drive());
        let start = Instant::now();
        let sleepers: Vec<_> = (0..100_000)
            .map(|n| {
                let sleep = timers.sleep_until(start + Duration::from_micros(500_000 + n));
                tokio::task::spawn_local(async move {
                    let deadline = sleep.deadline;
                    sleep.await;
                    deadline.elapsed()
                })
            })
            .collect();
        let mut latest = Duration::ZERO;
        for sleeper in sleepers {
            latest = latest.max(sleeper.await.expect("no sleeper panics"));
        }
        println!(
            "100,000 sleepers in {:?}; the latest was {latest:?} late",
            start.elapsed()
        );
    });
}
