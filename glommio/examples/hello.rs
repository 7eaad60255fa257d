//! A first look: an executor, tasks, timers, a time limit, and a task queue.
//!
//! ```console
//! $ cargo run --release -p glommio --example hello
//! ```

use std::process::ExitCode;
use std::time::{Duration, Instant};

use glommio::timer::{Timer, TimerActionOnce, timeout};
use glommio::{
    GlommioError, Latency, LocalExecutorBuilder, Placement, Shares, executor, spawn_local,
    spawn_local_into,
};

fn main() -> ExitCode {
    // An executor runs on one thread. Here it starts one of its own, and `join` waits for it and
    // returns the output of the future.
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("hello")
        .spawn(hello);
    match executor.and_then(|executor| executor.join()) {
        Ok(answer) => {
            println!("the executor has ended and returned {answer}");
            ExitCode::SUCCESS
        }
        // Such as too few descriptors: the text says what to change. `main` returning the error
        // would print its `Debug` form.
        Err(error) => {
            eprintln!("hello: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn hello() -> u32 {
    // io_uring, or epoll where that is missing or forbidden.
    let driver = executor().driver();
    println!("hello from executor {} on {driver:?}", executor().id());

    // A task runs on the same thread as the one that spawned it: no locks, no `Send`.
    let task = spawn_local(async {
        println!("  a task begins at once, and here it waits");
        Timer::new(Duration::from_millis(20)).await;
        println!("  the task goes on after 20 ms");
        40
    });
    println!("meanwhile its parent goes on");
    // Awaiting a task gives its result. Dropping it would cancel it; `detach` lets it run alone.
    let forty = task.await;

    // A timer resolves to its deadline, so its lateness can be computed.
    let scheduled = Timer::new(Duration::from_millis(10)).await;
    println!("a timer of 10 ms was {:?} late", Instant::now() - scheduled);

    // A timer action runs by itself when its time comes, and can be moved or cancelled until then.
    let action = TimerActionOnce::do_in(Duration::from_secs(3600), async { "an hour" });
    action.rearm_in(Duration::from_millis(5));
    println!(
        "an action set for {} ran early, because it was re-armed",
        action.join().await.unwrap_or("never")
    );

    // `timeout` gives up on a future that takes too long, and drops it.
    let limited = timeout(Duration::from_millis(10), async {
        Timer::new(Duration::from_secs(3600)).await;
        Ok(())
    });
    match limited.await {
        Err(GlommioError::TimedOut(limit)) => println!("gave up waiting after {limit:?}"),
        other => println!("an hour has passed within 10 ms: {other:?}"),
    }

    // Task queues share the thread by weight. This one gets a tenth of what the default queue gets
    // (1000 shares) while both are busy, and all of it while it is alone.
    let background =
        executor().create_task_queue(Shares::Static(100), Latency::NotImportant, "background");
    let two = spawn_local_into(async { 2 }, background)
        .expect("the queue was created in this executor")
        .await;
    println!("a task in the queue \"background\" has returned {two}");

    forty + two
}
