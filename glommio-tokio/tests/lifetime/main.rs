//! The background thread: when it starts and ends, and what happens where it cannot.
//!
//! It belongs to the process, so these tests take turns.

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

mod failures;
mod races;
mod users;

/// What has not happened by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

static TURN: Mutex<()> = Mutex::new(());

/// Waits for the other tests, and for their thread to end.
fn take_turn() -> MutexGuard<'static, ()> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    await_threads(0);
    turn
}

/// Threads of tokio's driver in this process. None of these tests uses the blocking pool, whose
/// threads have the same name.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("it runs");
    let names = tasks.map(|task| {
        let path = task.expect("it is listed").path().join("comm");
        // A thread that has ended since has none.
        fs::read_to_string(path).unwrap_or_default()
    });
    names.filter(|name| name.trim() == "glommio-tokio").count()
}

fn await_threads(count: usize) {
    let begin = Instant::now();
    while threads() != count {
        let found = threads();
        assert!(begin.elapsed() < PATIENCE, "{found} threads, not {count}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Created when it is polled: the function of tokio's wants the context already.
async fn sleep_of_tokio(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
