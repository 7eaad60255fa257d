//! Ticks that arrive late, read by time, corrected and aged out.
//!
//! `cargo run -p timelog --example timelog_quickstart`

use std::error::Error;

use timelog::{Config, MemLog, Progress, TimeUnit};

fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::streaming().unit(TimeUnit::Millis);
    let mut log = MemLog::new(config)?;

    // Prices in cents. Rows may arrive in any order; those of one timestamp stay in the order of
    // arrival.
    log.append(1_000, 100)?;
    log.extend([(3_000, 104), (2_000, 102), (2_000, 101)])?;

    // A snapshot shows the log as it is now, whatever happens to it later.
    let before = log.snapshot();

    // A delete hides what came before it, and nothing after it: this is how to correct rows.
    log.delete(2_000..=2_000)?;
    log.append(2_000, 103)?;

    let now = log.snapshot();
    println!("prices from the second second on, the newest first:");
    for (ts, price) in now.range(2_000..).rev() {
        println!("{ts:>6} ms  {price}");
    }
    println!(
        "rows: {} now, {} before the correction",
        now.count(..),
        before.count(..)
    );
    println!(
        "next after 1,000 ms: {:?}; last: {:?}",
        now.next_after(1_000),
        now.last()
    );

    // Whole stretches of memory, without copies.
    let sum: i32 = now.spans(..).flat_map(|span| span.values()).sum();
    println!("mean price: {}", sum / now.count(..) as i32);

    // Maintenance, in steps of at most a thousand rows and a page: between them the caller may do
    // other things.
    log.flush();
    log.request_compaction();
    while log.step(1_000) == Progress::More {}

    // What is older than two seconds goes, and late rows from that time are refused.
    log.raise_floor(2_000);
    assert!(log.append(1_500, 99).is_err());
    println!(
        "kept: {:?}",
        log.snapshot().into_rows(..).collect::<Vec<_>>()
    );
    Ok(())
}
