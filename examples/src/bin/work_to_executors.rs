//! Work from one executor to others, and the results back.
//!
//! ```console
//! $ cargo run --release -p examples --bin work_to_executors -- --workers 2 --below 100000
//! 9592 primes below 100000 in ..
//! worker 0 did .. pieces
//! worker 1 did .. pieces
//! ```
//!
//! The primes below a number are counted. One executor cuts the numbers into pieces; a pair of
//! channels leads to each worker and back. A worker has a few pieces at a time, and gets one more
//! for each that it returns: the fast ones get more. Work that computes for long asks now and then
//! whether other tasks should run (`yield_if_needed`), as its executor has but one thread.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::error::Error;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;

use clap::Parser;
use glommio::channels::shared_channel::{self, SharedReceiver, SharedSender};
use glommio::{LocalExecutor, LocalExecutorBuilder, Placement, spawn_local, yield_if_needed};

/// Counts primes on several executors.
#[derive(Debug, Parser)]
struct Options {
    /// Executors, besides the one that hands out the work.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,

    /// Primes below this number are counted.
    #[arg(long, default_value_t = 5_000_000)]
    below: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Options { workers, below } = Options::parse();
    let (mut ends, mut executors) = (Vec::new(), Vec::new());
    for _ in 0..workers {
        let (pieces, pieces_end) = shared_channel::new_bounded(PIECES_AT_ONCE);
        let (counts_end, counts) = shared_channel::new_bounded(PIECES_AT_ONCE);
        ends.push((pieces, counts));
        let builder = LocalExecutorBuilder::new(Placement::Unbound).name("worker");
        executors.push(builder.spawn(move || work(pieces_end, counts_end))?);
    }
    let begin = Instant::now();
    let primes = LocalExecutor::default().run(lead(below, ends))?;
    println!("{primes} primes below {below} in {:.1?}", begin.elapsed());
    for (worker, executor) in executors.into_iter().enumerate() {
        println!("worker {worker} did {} pieces", executor.join()?);
    }
    Ok(())
}

/// Hands out the pieces, and returns the sum of the results.
async fn lead(
    below: u64,
    workers: Vec<(SharedSender<Range<u64>>, SharedReceiver<u64>)>,
) -> io::Result<u64> {
    let starts = (0..below).step_by(PIECE as usize);
    let pieces = starts.map(move |start| start..below.min(start + PIECE));
    // The tasks of this executor take from one iterator, without a lock.
    let pieces = Rc::new(RefCell::new(pieces));
    let tasks = workers.into_iter().map(|(sender, receiver)| {
        let pieces = Rc::clone(&pieces);
        spawn_local(async move {
            // Only if it has panicked.
            let worker_is_gone = || io::Error::other("a worker has ended too early");
            let (sender, receiver) = (sender.connect().await, receiver.connect().await);
            let (mut outstanding, mut sum) = (0, 0);
            loop {
                while outstanding < PIECES_AT_ONCE {
                    let Some(piece) = pieces.borrow_mut().next() else {
                        break;
                    };
                    sender.send(piece).await.map_err(|_| worker_is_gone())?;
                    outstanding += 1;
                }
                if outstanding == 0 {
                    // Dropping the sender ends the worker.
                    return Ok::<u64, io::Error>(sum);
                }
                sum += receiver.recv().await.ok_or_else(worker_is_gone)?;
                outstanding -= 1;
            }
        })
    });
    let mut sum = 0;
    for task in tasks.collect::<Vec<_>>() {
        sum += task.await?;
    }
    Ok(sum)
}

/// Returns how many pieces it did.
async fn work(pieces: SharedReceiver<Range<u64>>, counts: SharedSender<u64>) -> u64 {
    let (pieces, counts) = (pieces.connect().await, counts.connect().await);
    let mut done = 0;
    while let Some(piece) = pieces.recv().await {
        let mut primes = 0;
        for number in piece {
            primes += u64::from(is_prime(number));
            if number.is_multiple_of(64) {
                yield_if_needed().await;
            }
        }
        if counts.send(primes).await.is_err() {
            break;
        }
        done += 1;
    }
    done
}

fn is_prime(number: u64) -> bool {
    let mut divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    number >= 2 && divisors.all(|divisor| !number.is_multiple_of(divisor))
}

const PIECE: u64 = 10_000;
/// More than one, so that a worker does not wait for the leader.
const PIECES_AT_ONCE: usize = 4;
