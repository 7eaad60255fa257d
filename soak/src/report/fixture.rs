//! Records as a run of some length would have made them, from a seeded generator.

use support::generator::{Draw, Rng, stream};

use crate::check::verdict::{Evidence, Verdict};
use crate::record::{
    Distribution, FORMAT, Machine, Outcome, PlanRecord, Record, Row, RowStatus, Sample, Totals,
};

pub(super) const WHEEL: &str = "staged timing wheel";
pub(super) const MAP: &str = "classic ordered map";

/// A run of `seconds` with peaks of timers and stops of the whole process; `slowness` makes it late
/// and busy.
pub(super) fn record(timer_queue: &str, seconds: u64, slowness: f64) -> Record {
    let mut rng = stream(7, seconds);
    let samples: Vec<Sample> = (1..=seconds)
        .map(|at_s| sample(&mut rng, at_s, slowness))
        .collect();
    let fired: f64 = samples.iter().map(|sample| sample.fired_per_s).sum();
    let fired = fired as u64;
    Record {
        format: FORMAT,
        version: "0.1.0".to_owned(),
        timer_queue: timer_queue.to_owned(),
        name: timer_queue.to_owned(),
        machine: Machine {
            kernel: "6.18.44".to_owned(),
            cpu: "Intel(R) Xeon(R) Processor @ 2.60GHz".to_owned(),
            cores: 4,
            memory_bytes: 16 << 30,
            build: "release".to_owned(),
            ring: "io_uring, mode defer; uses accept_multi, poll_multi".to_owned(),
            rings: Vec::new(),
            slowness: 1.07,
        },
        plan: PlanRecord {
            workloads: vec!["message-queue".to_owned(), "idle".to_owned()],
            duration_s: seconds as f64,
            seed: 42,
            load: 1.0,
            clients: 2,
            executors: vec!["broker".to_owned(), "client 0".to_owned()],
            files: "/tmp, with direct I/O".to_owned(),
            injected: None,
        },
        started_unix_s: 1_795_300_000,
        ran_s: seconds as f64 + 0.4,
        is_interrupted: false,
        outcome: Outcome::Pass,
        rows: rows(fired),
        words: Vec::new(),
        complaints: Vec::new(),
        totals: Totals {
            timers_armed: 11 * fired,
            timers_fired: fired,
            messages_acked: 8 * fired,
            datagrams_sent: 3 * fired,
            stalls: seconds / 45,
            ..Totals::default()
        },
        distributions: distributions(&mut rng, slowness, 200 * seconds),
        samples,
    }
}

/// A run that broke promises, with words which would break a page that did not escape them.
pub(super) fn failed(seconds: u64) -> Record {
    let mut record = record(WHEEL, seconds, 1.0);
    record.outcome = Outcome::Fail;
    record.plan.injected = Some("early".to_owned());
    record.totals.violations = 17;
    record.rows[0] = Row {
        violations: 17,
        worst: "12,345 ns (17 times)".to_owned(),
        standing: RowStatus::Fail,
        ..record.rows[0].clone()
    };
    record.words = vec![
        "broker: nothing early: timer 4711 fired 12,345 ns before its deadline".to_owned(),
        "client <0> & \"co\": nothing early: '</script><b>' was due at 12.000000001 s".to_owned(),
    ];
    let late = record.samples.iter_mut().skip(seconds as usize / 3);
    late.for_each(|sample| sample.violations = 17);
    record
}

fn sample(rng: &mut Rng, at_s: u64, slowness: f64) -> Sample {
    let mut around = |mean: f64, spread: f64| {
        mean * (1.0 + spread * ((rng.u64(..2_001) as f64 - 1_000.0) / 1_000.0))
    };
    // A peak each minute, a stop of the process each 45 seconds.
    let peak = if at_s % 60 > 48 { 4.0 } else { 1.0 };
    let is_stopped = at_s % 45 == 44;
    let warm = 1.0 - (-(at_s as f64) / 5.0).exp();
    let noise_max = around(900_000.0, 0.8) * if at_s.is_multiple_of(17) { 8.0 } else { 1.0 };
    let late_max = around(1.6e6 * slowness * peak, 0.7) + if is_stopped { 9e6 } else { noise_max };
    Sample {
        at_s: at_s as f64,
        in_flight: around(98_000.0 * warm, 0.02) as u64,
        live_timers: around(140_000.0 * warm * peak, 0.03) as i64,
        armed_per_s: around(182_000.0 * peak.sqrt() / slowness, 0.08),
        cancelled_per_s: around(165_000.0 * peak.sqrt() / slowness, 0.08),
        fired_per_s: around(16_500.0 / slowness, 0.1) * if is_stopped { 0.3 } else { 1.0 },
        acks_per_s: around(88_000.0 / slowness, 0.05),
        timeouts_per_s: around(9_000.0 / slowness, 0.05),
        datagrams_per_s: around(24_000.0, 0.1),
        late_p50_ns: around(38_000.0 * slowness, 0.2) as u64,
        late_p99_ns: around(410_000.0 * slowness * peak, 0.4) as u64,
        late_max_ns: late_max as u64,
        noise_p99_ns: around(180_000.0, 0.5) as u64,
        noise_max_ns: noise_max as u64,
        resident_bytes: ((62.0 + 26.0 * warm + 9.0 * peak) * 1e6 * slowness.sqrt()) as u64,
        allocated_bytes: around(
            (30.0 + 16.0 * warm + 8.0 * peak) * 1e6 * slowness.sqrt(),
            0.02,
        ) as u64,
        cpu_cores: around(1.4 * slowness, 0.07),
        stolen_cores: if is_stopped { 0.6 } else { 0.0 },
        other_cores: 0.05,
        is_quiet: !is_stopped,
        violations: 0,
    }
}

/// What the verdict is on evidence of nothing, with numbers.
fn rows(fired: u64) -> Vec<Row> {
    let number = |row: Row| {
        let (checks, worst, standing) = match &*row.invariant {
            "socket timeouts" => (0, &*row.worst, RowStatus::NotExercised),
            "lateness p99.9" => (fired, "3.21 ms", RowStatus::Pass),
            "memory after warm-up" => (300, "+9.8 MiB on 96.3 MiB", RowStatus::Pass),
            _ if fired == 0 => (0, &*row.worst, RowStatus::NotExercised),
            _ => (fired, &*row.worst, RowStatus::Pass),
        };
        Row {
            checks,
            worst: worst.to_owned(),
            standing,
            ..row
        }
    };
    let verdict = Verdict::new(&Evidence::default());
    verdict.rows.into_iter().map(number).collect()
}

fn distributions(rng: &mut Rng, slowness: f64, count: u64) -> Vec<Distribution> {
    let mut distribution = |name: &str, typical: f64, tail: f64| {
        let mut histogram = support::quantiles::histogram();
        for _ in 0..count {
            // A sum of uniform numbers is nearly normal; its exponential has the long tail of
            // waits.
            let sum: f64 = (0..6)
                .map(|_| rng.u64(..1_000) as f64 / 1_000.0 - 0.5)
                .sum();
            let is_rare = rng.chance(1, 500);
            let ns = typical * (sum * 1.3).exp() * if is_rare { tail } else { 1.0 };
            histogram.saturating_record(ns as u64);
        }
        Distribution::new(name, &histogram)
    };
    vec![
        distribution("timer lateness", 38_000.0 * slowness, 30.0),
        distribution("machine noise", 60_000.0, 8.0),
        distribution("ping during bursts", 240_000.0 * slowness, 12.0),
    ]
}
