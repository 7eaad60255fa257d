//! Deadlines by a ring that is entered to wait for each: what the kernel takes for exact timers.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use io_uring::IoUring;
use io_uring::types::{SubmitArgs, Timespec};
use workloads::machine::{process_cpu, process_waits};
use workloads::report;
use workloads::samples::{Samples, microseconds, nanoseconds};

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
    report("expire-spread-p50", lateness.median());
    report("expire-spread-p99", lateness.quantile(0.99));
    report("expire-spread-p999", lateness.quantile(0.999));
    report("expire-spread-max", lateness.quantile(1.0));
    let cpu = process_cpu() - cpu_before;
    report("expire-spread-cpu", nanoseconds(cpu) / 1e6);
    report(
        "expire-spread-wakes",
        (process_waits() - wakes_before) as f64,
    );
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

/// `long-waits-30ms-p50`, `-p90`, and so on, µs: how late a wait of that time ends after which the processor has
/// been idle.
pub fn long_waits() -> io::Result<()> {
    let sleeper = Sleeper::new()?;
    for (millis, count) in [(30, 100), (100, 50), (300, 30)] {
        let mut samples = Samples::with_capacity(count);
        for _ in 0..count {
            let deadline = Instant::now() + Duration::from_millis(millis);
            samples.push(microseconds(sleeper.sleep_until(deadline)?));
        }
        report(&format!("long-waits-{millis}ms-p50"), samples.median());
        report(&format!("long-waits-{millis}ms-p90"), samples.quantile(0.9));
    }
    Ok(())
}

/// `waits-10us-cpu`, `-50us-`, `-100us-`, `-1000us-`, ms: a second of waits of that time, one after the other.
pub fn waits() -> io::Result<()> {
    let sleeper = Sleeper::new()?;
    for micros in [10, 50, 100, 1000] {
        let apart = Duration::from_micros(micros);
        let before = process_cpu();
        let end = Instant::now() + Duration::from_secs(1);
        let mut next = Instant::now() + apart;
        while next < end {
            sleeper.sleep_until(next)?;
            // What has passed meanwhile is left out.
            while next <= Instant::now() {
                next += apart;
            }
        }
        let cpu = process_cpu() - before;
        report(&format!("waits-{micros}us-cpu"), nanoseconds(cpu) / 1e6);
    }
    Ok(())
}

/// `standstills-sum`, `-max`, µs: how long the processor did something else, in ten seconds of a loop that does
/// nothing but read the clock; what is shorter than a tenth of a millisecond is left out.
pub fn standstills() -> io::Result<()> {
    const SHORTEST: Duration = Duration::from_micros(100);
    let begin = Instant::now();
    let (mut sum, mut max, mut last) = (Duration::ZERO, Duration::ZERO, begin);
    while last - begin < Duration::from_secs(10) {
        let now = Instant::now();
        let gap = now - last;
        if gap >= SHORTEST {
            sum += gap;
            max = max.max(gap);
        }
        last = now;
    }
    report("standstills-sum", microseconds(sum));
    report("standstills-max", microseconds(max));
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
