//! Timers on a plain thread: others send it commands, and it sleeps until the next expiry or the next
//! command, whichever comes first.
//!
//! ```sh
//! cargo run --release -p staged-wheel --example thread
//! ```

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use staged_wheel::StagedWheel;

enum Command {
    /// Call this then.
    Call(Instant, Box<dyn FnOnce() + Send>),
}

/// Ends when the last sender is dropped and no timer is left.
fn run(commands: mpsc::Receiver<Command>) {
    let mut timers = StagedWheel::new(Instant::now());
    let mut expired: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    loop {
        let received = match timers.next_expiry() {
            Some(next) => commands.recv_timeout(next.saturating_duration_since(Instant::now())),
            None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match (received, timers.next_expiry()) {
            (Ok(Command::Call(deadline, call)), _) => {
                timers.insert(deadline, call);
            }
            (Err(RecvTimeoutError::Timeout), _) => {}
            (Err(RecvTimeoutError::Disconnected), Some(next)) => {
                thread::sleep(next.saturating_duration_since(Instant::now()));
            }
            (Err(RecvTimeoutError::Disconnected), None) => return,
        }
        // What is left after 256 is due at once: `next_expiry` says so.
        timers.expire(Instant::now(), 256, &mut expired);
        for call in expired.drain(..) {
            call();
        }
    }
}

fn main() {
    let (commands, received) = mpsc::channel();
    let timers = thread::spawn(move || run(received));
    let start = Instant::now();
    for n in (0..100_000_u64).rev() {
        let deadline = start + Duration::from_millis(500) + Duration::from_micros(n);
        let call = move || {
            assert!(Instant::now() >= deadline, "never early");
            if n % 20_000 == 0 {
                println!("{n}: {:?} late", deadline.elapsed());
            }
        };
        commands
            .send(Command::Call(deadline, Box::new(call)))
            .expect("the thread waits for commands");
    }
    drop(commands);
    timers.join().expect("no call panics");
    println!("100,000 timers in {:?}", start.elapsed());
}
