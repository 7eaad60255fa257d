//! Deadlines by a ring that is entered to wait for each: what the kernel takes for exact timers.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use io_uring::IoUring;
use io_uring::types::{SubmitArgs, Timespec};
use workloads::machine::{process_cpu, process_waits};
use workloads::samples::{Samples, microseconds, nanoseconds};
use workloads::{report, report_all};

const DEADLINES: u32 = 100_000;
const APART: Duration = Duration::from_micros(10);
const LEAD: Duration = Duration::from_millis(300);

/// `expire-spread-p50`, `-p99`, `-p999`, `-max`, µs, `-cpu`, ms, `-wakes`: as the case of that name, without
/// tasks. The loop sleeps for the next deadline that has not passed, and then counts all that have.
pub fn spread_over_a_second() -> io::Result<()> {
    let sleeper = Sleeper::new()?;
    let first = Instant::now() + LEAD;
    let mut lateness = Samples::with_capacity(DEADLINES as usize);
    let (cpu_before, wakes_before) = (process_cpu(), process_waits());
    for index in 0..DEADLINES {
        let deadline = first + APART * index;
        lateness.push(microseconds(sleeper.sleep_until(deadline)?));
    }
    let parts = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
    report_all(
        "expire-spread",
        parts.map(|(end, part)| (end, lateness.quantile(part))),
    );
    let cpu = nanoseconds(process_cpu() - cpu_before) / 1e6;
    let wakes = (process_waits() - wakes_before) as f64;
    report_all("expire-spread", [("cpu", cpu), ("wakes", wakes)]);
    Ok(())
}

/// `overshoot-100us`, `overshoot-1ms`, `overshoot-10ms`, µs: as the case of that name.
pub fn overshoot() -> io::Result<()> {
    let sleeper = Sleeper::new()?;
    for (row, micros, count) in [
        ("overshoot-100us", 100, 400),
        ("overshoot-1ms", 1_000, 150),
        ("overshoot-10ms", 10_000, 50),
    ] {
        let mut samples = Samples::with_capacity(count);
        for _ in 0..count {
            let deadline = Instant::now() + Duration::from_micros(micros);
            samples.push(microseconds(sleeper.sleep_until(deadline)?));
        }
        report(row, samples.median());
    }
    Ok(())
}

/// A ring without operations.
struct Sleeper(IoUring);

impl Sleeper {
    fn new() -> io::Result<Self> {
        let mut ring = IoUring::builder();
        ring.setup_single_issuer().setup_defer_taskrun();
        ring.build(8).map(Sleeper)
    }

    /// How late it returned.
    fn sleep_until(&self, deadline: Instant) -> io::Result<Duration> {
        loop {
            let now = Instant::now();
            if let Some(late) = now.checked_duration_since(deadline) {
                return Ok(late);
            }
            let left = Timespec::from(deadline - now);
            let args = SubmitArgs::new().timespec(&left);
            match self.0.submitter().submit_with_args(1, &args) {
                Err(error) if error.raw_os_error() == Some(libc::ETIME) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
    }
}
