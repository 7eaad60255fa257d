//! A rate limiter: so many requests per second, and a burst.
//!
//! ```console
//! $ cargo run --release -p examples --bin rate_limiter -- --rate 100 --burst 5 --requests 25
//! ```
//!
//! `RateLimiter` is 30 lines, to be copied. It needs no task and no list of waiters: each request
//! is given the time at which it may go on, one interval after the request before it, and waits for
//! that time by a timer of its own (this is the generic cell rate algorithm of telephone networks).
//! Requests go on in the order in which they came.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Parser;
use glommio::timer::sleep_until;
use glommio::{LocalExecutorBuilder, Placement, spawn_local};

/// Lets requests pass at a rate.
#[derive(Debug, Parser)]
#[command(name = "rate_limiter")]
struct Options {
    /// Requests per second.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,

    /// Requests that may come at once, after a pause.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    burst: u32,

    /// Requests, which all come at once here.
    #[arg(long, default_value_t = 25)]
    requests: u32,
}

/// Spaces requests of one executor out.
struct RateLimiter {
    interval: Duration,
    /// How much earlier than at its interval a request may go on.
    tolerance: Duration,
    /// When the next request may go on, were there no burst.
    next: Cell<Instant>,
}

impl RateLimiter {
    /// `rate` requests per second, of which `burst` may come at once. Both at least 1.
    fn new(rate: u32, burst: u32) -> RateLimiter {
        let interval = Duration::from_secs(1) / rate;
        RateLimiter {
            interval,
            tolerance: interval * (burst - 1),
            next: Cell::new(Instant::now()),
        }
    }

    /// Waits until the request may go on.
    ///
    /// Dropped while it waits, its turn passes unused.
    async fn acquire(&self) {
        let now = Instant::now();
        // Intervals in which no request came are not made up for, but for the burst.
        let turn = self.next.get().max(now);
        self.next.set(turn + self.interval);
        let wait = (turn - now).saturating_sub(self.tolerance);
        if !wait.is_zero() {
            sleep_until(now + wait).await;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("rate_limiter")
        .spawn(move || run(options))?;
    executor.join()?;
    Ok(())
}

async fn run(options: Options) {
    let limiter = Rc::new(RateLimiter::new(options.rate, options.burst));
    let begin = Instant::now();
    let mut requests = Vec::new();
    for number in 0..options.requests {
        let limiter = Rc::clone(&limiter);
        requests.push(spawn_local(async move {
            limiter.acquire().await;
            println!("request {number} after {} us", begin.elapsed().as_micros());
        }));
    }
    for request in requests {
        request.await;
    }
}
