//! One run from start to verdict: starts the executors, samples them, drains them, judges.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use signal_hook::consts::SIGINT;

use crate::control::Control;
use crate::invariants::{Count, Invariant};
use crate::noise::{self, Noise};
use crate::options::Options;
use crate::process;
use crate::progress::{Progress, Sample};
use crate::station::new_histogram;
use crate::verdict::{Descriptors, Evidence, Lateness, Memory, Verdict};
use crate::workload::{Crew, Ending, Plan};

/// Runs what the command line asks for, and prints the verdict.
pub(crate) fn soak(options: &Options) -> Result<Verdict, Box<dyn std::error::Error>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // A second interrupt ends the process at once, should draining take too long.
    signal_hook::flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupted))?;
    signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))?;

    let slowness = noise::slowness();
    let plan = plan(options, slowness);
    announce(options, &plan, slowness);
    let mut run = Run::new(options.duration, &plan, slowness)?;
    let descriptors_before = process::descriptors()?;
    for workload in options.workload.workloads() {
        run.crews.extend(workload.start(&plan)?);
    }
    run.watch_over(&interrupted)?;
    plan.control.drain();
    let failures = run.wait_for_ends();
    if failures.is_empty() {
        run.note_descriptors(process::descriptors()?, descriptors_before);
    }

    let evidence = run.evidence(failures);
    let verdict = Verdict::new(&evidence);
    println!("\n{evidence}\n{verdict}");
    Ok(verdict)
}

fn plan(options: &Options, slowness: f64) -> Plan {
    let cores = process::cores();
    Plan {
        control: Arc::new(Control::new(patience(slowness, Duration::ZERO))),
        seed: options.seed(),
        // A slow machine gets less to do, so that it is tested and not merely swamped.
        load: options.load / slowness,
        cores,
        clients: options.clients.map_or((cores - 1).clamp(1, 8), usize::from),
    }
}

fn announce(options: &Options, plan: &Plan, slowness: f64) {
    let queue = if cfg!(feature = "timing-wheel") {
        "staged timing wheel"
    } else {
        "classic ordered map"
    };
    println!(
        "timer queue: {queue}   kernel: {}   cores: {}   build: {}",
        process::kernel_release(),
        plan.cores,
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    );
    println!(
        "duration: {:?}   seed: {}   load: {}   clients: {}   slowness: {slowness:.2}",
        options.duration, plan.seed, options.load, plan.clients,
    );
}

/// How long a timer may be overdue before it is called lost.
fn patience(slowness: f64, noise_max: Duration) -> Duration {
    Duration::from_secs(2).mul_f64(slowness) + noise_max * 20
}

struct Run {
    duration: Duration,
    control: Arc<Control>,
    noise: Noise,
    slowness: f64,
    load: f64,
    /// Of the worst executor in its worst second.
    contention: f64,
    crews: Vec<Crew>,
    /// Of the second at hand.
    lateness: Histogram<u64>,
    lateness_total: Histogram<u64>,
    /// When the last sample was taken, and the sums of acks and timeouts then.
    last: (Instant, u64, u64),
    started: Instant,
    memory: Memory,
    descriptors: Descriptors,
    descriptors_warm: Option<usize>,
    live_before: i64,
}

impl Run {
    fn new(duration: Duration, plan: &Plan, slowness: f64) -> io::Result<Self> {
        Ok(Run {
            duration,
            control: Arc::clone(&plan.control),
            noise: Noise::start()?,
            slowness,
            load: plan.load,
            contention: 1.0,
            crews: Vec::new(),
            lateness: new_histogram(),
            lateness_total: new_histogram(),
            last: (Instant::now(), 0, 0),
            started: Instant::now(),
            memory: Memory::default(),
            descriptors: Descriptors::default(),
            descriptors_warm: None,
            live_before: 0,
        })
    }

    /// Samples once a second until the time is up, somebody interrupts, or an executor ends.
    fn watch_over(&mut self, interrupted: &AtomicBool) -> io::Result<()> {
        let duration = self.duration;
        let progress = Progress::new(duration);
        let mut next_sample = SAMPLE_EVERY;
        while self.started.elapsed() < duration {
            thread::sleep(LOOK_EVERY.min(duration.saturating_sub(self.started.elapsed())));
            if interrupted.load(Ordering::Relaxed) || self.any_ended() {
                break;
            }
            if self.started.elapsed() < next_sample {
                continue;
            }
            next_sample += SAMPLE_EVERY;
            let noise_max = self.noise.level().max;
            self.control
                .set_patience(patience(self.slowness, noise_max));
            let sample = self.sample()?;
            progress.show(&sample);
            if self.is_warm(&sample) {
                self.note_resources(sample.resident_bytes)?;
            }
        }
        progress.end();
        Ok(())
    }

    fn any_ended(&mut self) -> bool {
        self.crews
            .iter_mut()
            .any(|crew| crew.ending(Duration::ZERO).is_some())
    }

    fn sample(&mut self) -> io::Result<Sample> {
        let mut sample = Sample {
            at: self.started.elapsed(),
            resident_bytes: process::resident_bytes()?,
            ..Sample::default()
        };
        let (mut acks, mut timeouts) = (0, 0);
        self.lateness.reset();
        for crew in &mut self.crews {
            let gauges = &crew.station.gauges;
            acks += gauges.acks.load(Ordering::Relaxed);
            timeouts += gauges.timeouts.load(Ordering::Relaxed);
            sample.in_flight += gauges.in_flight.load(Ordering::Relaxed);
            sample.live_timers += gauges.live_timers.load(Ordering::Relaxed);
            sample.violations += crew.station.ledger.violations();
            self.contention = self.contention.max(crew.contention());
            crew.station.take_lateness(&mut self.lateness);
        }
        self.lateness_total
            .add(&self.lateness)
            .expect("both histograms have the same bounds");
        let quantile = |quantile| Duration::from_nanos(self.lateness.value_at_quantile(quantile));
        sample.late_p50 = quantile(0.5);
        sample.late_p99 = quantile(0.99);
        sample.late_max = Duration::from_nanos(self.lateness.max());

        let now = Instant::now();
        let (then, acks_then, timeouts_then) =
            std::mem::replace(&mut self.last, (now, acks, timeouts));
        let seconds = (now - then).as_secs_f64();
        sample.acks_per_s = (acks - acks_then) as f64 / seconds;
        sample.timeouts_per_s = (timeouts - timeouts_then) as f64 / seconds;
        Ok(sample)
    }

    /// Memory and descriptors are judged once the number of timers has stopped growing, in any case
    /// after half the run.
    fn is_warm(&mut self, sample: &Sample) -> bool {
        let live_before = std::mem::replace(&mut self.live_before, sample.live_timers);
        let is_steady = sample.live_timers - live_before <= live_before / STEADY_DIVISOR;
        let warm_after = (self.duration / 4).min(WARM_UP_MAX);
        self.memory.samples > 0
            || sample.at >= self.duration / 2
            || (sample.at >= warm_after && is_steady)
    }

    fn note_resources(&mut self, bytes: u64) -> io::Result<()> {
        if self.memory.samples == 0 {
            self.memory.warm_bytes = bytes;
        }
        self.memory.samples += 1;
        self.memory.peak_bytes = self.memory.peak_bytes.max(bytes);
        let descriptors = process::descriptors()?;
        let warm = *self.descriptors_warm.get_or_insert(descriptors);
        self.note_descriptors(descriptors, warm);
        Ok(())
    }

    fn note_descriptors(&mut self, descriptors: usize, expected: usize) {
        self.descriptors.samples += 1;
        let deviation = descriptors.abs_diff(expected) as u64;
        self.descriptors.deviation = self.descriptors.deviation.max(deviation);
    }

    /// Joins every executor; says of those that failed or would not end how and where.
    fn wait_for_ends(&mut self) -> Vec<String> {
        let deadline = Instant::now() + END_PATIENCE + self.control.patience() * 4;
        let mut failures = Vec::new();
        for crew in &mut self.crews {
            let limit = deadline.saturating_duration_since(Instant::now());
            let failure = match crew.ending(limit) {
                Some(Ending::Clean) => None,
                Some(Ending::Failed(how)) => Some(how.clone()),
                None => Some("did not end".to_owned()),
            };
            failures.extend(failure.map(|how| format!("{}: {how}", crew.station.name())));
            crew.station.take_lateness(&mut self.lateness_total);
        }
        failures
    }

    fn evidence(&self, failures: Vec<String>) -> Evidence {
        let mut counts = [Count::default(); Invariant::ALL.len()];
        let mut first_violations = Vec::new();
        for crew in &self.crews {
            let ledger = &crew.station.ledger;
            for invariant in Invariant::ALL {
                let count = &mut counts[invariant as usize];
                *count = count.merge(ledger.count(invariant));
            }
            let named = |violation| format!("{}: {violation}", crew.station.name());
            first_violations.extend(ledger.first_violations().into_iter().map(named));
        }
        Evidence {
            counts,
            first_violations,
            lateness: Lateness {
                timers: self.lateness_total.len(),
                p50: Duration::from_nanos(self.lateness_total.value_at_quantile(0.5)),
                p999: Duration::from_nanos(self.lateness_total.value_at_quantile(0.999)),
                max: Duration::from_nanos(self.lateness_total.max()),
            },
            noise: self.noise.level(),
            slowness: self.slowness,
            contention: self.contention,
            load: self.load,
            memory: self.memory,
            descriptors: self.descriptors,
            executors: self.crews.len(),
            failures,
        }
    }
}

const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// How soon an interrupt is seen.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Growth by less than a fiftieth in a second is called steady.
const STEADY_DIVISOR: i64 = 50;

const WARM_UP_MAX: Duration = Duration::from_secs(20);

/// Every open deadline is settled at once when a run drains, so that ends come within a moment.
const END_PATIENCE: Duration = Duration::from_secs(20);
