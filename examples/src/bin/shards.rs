//! One executor per CPU, each with a foreground and a background queue, and their statistics.
//!
//! ```console
//! $ cargo run --release -p examples --bin shards -- --shards 1 --stall
//! executor .. on ..: requests ran .. in .. turns; upkeep ran .. in .. turns; .. polls in all
//! ```
//!
//! The library reports through `tracing`, and a program that sets up no subscriber sees nothing of
//! it. `--stall` turns stall detection on and shows a report: a task then keeps its thread for
//! 300 ms without asking whether another one should run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use glommio::timer::sleep;
use glommio::{
    DefaultStallDetectionHandler, GlommioError, Latency, LocalExecutorPoolBuilder, PoolPlacement,
    Shares, executor, spawn_local_into, yield_if_needed,
};

/// Shares each CPU out between two task queues.
#[derive(Clone, Debug, Parser)]
#[command(name = "shards")]
struct Options {
    /// Detect stalls, and have a task of the first shard stall its thread.
    #[arg(long)]
    stall: bool,

    /// Executors. Default: one for each CPU, as far apart as they can be.
    #[arg(long)]
    shards: Option<usize>,
}

fn main() -> Result<(), GlommioError<()>> {
    let Options { stall, shards } = Options::parse();
    // Warnings and errors of the library go to the standard error output.
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_writer(std::io::stderr)
        .init();
    let first = Arc::new(AtomicBool::new(stall));
    let shards = shards.unwrap_or_else(PoolPlacement::default_shards);
    let mut builder =
        LocalExecutorPoolBuilder::new(PoolPlacement::MaxSpread(shards, None)).name("shard");
    if stall {
        // A task that keeps its thread is reported, with its stack. So is one whose thread does not
        // get its CPU, as on a machine that is busy with other things.
        let handler = || Box::new(DefaultStallDetectionHandler {}) as _;
        builder = builder.detect_stalls(Some(Box::new(handler)));
    }
    let shards = builder.on_all_shards(move || work(first.swap(false, Ordering::Relaxed)))?;
    // One panicking shard does not hide the others: each has its own result.
    for lines in shards.join_all() {
        println!("{}", lines?);
    }
    Ok(())
}

async fn work(stall: bool) -> String {
    // When both want the CPU, requests get nine tenths of it, and are looked at within 2 ms.
    let requests = executor().create_task_queue(
        Shares::Static(900),
        Latency::Matters(Duration::from_millis(2)),
        "requests",
    );
    let upkeep = executor().create_task_queue(Shares::Static(100), Latency::NotImportant, "upkeep");

    // Blocking calls have threads of their own, on the CPU of their shard.
    let host = executor()
        .spawn_blocking(|| std::fs::read_to_string("/proc/sys/kernel/hostname"))
        .await
        .unwrap_or_default();

    if stall {
        // No other task of this executor runs meanwhile.
        std::thread::sleep(Duration::from_millis(300));
    }
    let until = Instant::now() + Duration::from_millis(500);
    let tasks = [requests, upkeep]
        .map(|queue| spawn_local_into(compute(until), queue).expect("the queue was just made"));
    for task in tasks {
        task.await;
    }
    // Figures are of rounds that have ended: let this one end.
    sleep(Duration::from_millis(1)).await;

    let mut lines = format!("executor {} on {}:", executor().id(), host.trim());
    for (queue, name) in [(requests, "requests"), (upkeep, "upkeep")] {
        let stats = executor()
            .task_queue_stats(queue)
            .expect("the queue is still there");
        lines += &format!(
            " {name} ran {:?} in {} turns;",
            stats.runtime(),
            stats.queue_selected()
        );
    }
    let stats = executor().executor_stats();
    lines + &format!(" {} polls in all", stats.tasks_executed())
}

/// Work that never waits: it asks between its steps whether another task should run.
async fn compute(until: Instant) {
    while Instant::now() < until {
        std::hint::black_box((0..1000_u64).sum::<u64>());
        yield_if_needed().await;
    }
}
