//! The clock around a load.

use std::io;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use workloads::report_all;

use crate::server::Server;

const WARM_UP: Duration = Duration::from_millis(250);
const MEASURED: Duration = Duration::from_secs(1);

/// What a server did in the measured second.
#[derive(Debug)]
pub struct Measured {
    /// Messages, connections or bytes, whatever the load counts.
    pub count: u64,
    pub elapsed: Duration,
    /// CPU time of the server.
    pub cpu: Duration,
    /// What the load has recorded, in nanoseconds.
    pub latency: Histogram<u64>,
}

impl Measured {
    /// Takes `step` after `step`, each of which says how much it has done.
    pub fn steadily(
        server: &Server,
        mut step: impl FnMut(&mut Histogram<u64>) -> io::Result<u64>,
    ) -> io::Result<Self> {
        let longest_ns = 60_000_000_000;
        let mut latency = Histogram::new_with_bounds(1, longest_ns, 3)
            .expect("three digits from a nanosecond to a minute are within its bounds");
        let begin = Instant::now();
        while begin.elapsed() < WARM_UP {
            step(&mut latency)?;
        }

        latency.reset();
        let mut count = 0;
        let cpu_before = server.cpu()?;
        let begin = Instant::now();
        let elapsed = loop {
            count += step(&mut latency)?;
            let elapsed = begin.elapsed();
            if elapsed >= MEASURED {
                break elapsed;
            }
        };
        Ok(Self {
            count,
            elapsed,
            cpu: server.cpu()? - cpu_before,
            latency,
        })
    }

    /// `<case>-p50`, `<case>-p99`, µs: from a question to its answer.
    pub fn report_latency(&self, case: &str) {
        let us = |part| self.latency.value_at_quantile(part) as f64 / 1e3;
        report_all(case, [("p50", us(0.5)), ("p99", us(0.99))]);
    }

    /// `<case>-rate`, 1000/s.
    pub fn report_rate(&self, case: &str) {
        let per_second = self.count as f64 / self.elapsed.as_secs_f64();
        report_all(case, [("rate", per_second / 1e3)]);
    }

    /// `<case>-cpu`, µs of the server for each that was counted; `<case>-busy`, percent of the time in which it had
    /// the CPU.
    pub fn report_cpu(&self, case: &str) {
        let us = self.cpu.as_secs_f64() * 1e6;
        let part = self.cpu.as_secs_f64() / self.elapsed.as_secs_f64();
        report_all(
            case,
            [("cpu", us / self.count as f64), ("busy", 100.0 * part)],
        );
    }
}

/// Adds the time since `begin`.
pub fn record(latency: &mut Histogram<u64>, begin: Instant) {
    latency.saturating_record(begin.elapsed().as_nanos() as u64);
}
