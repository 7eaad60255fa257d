//! Once a second: what all executors did since the last look, as numbers for the view and the record.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::check::control::Control;
use crate::check::station::{Gauges, Station, Timing};
use crate::measure::lag::new_histogram;
use crate::measure::memory;
use crate::measure::noise::Noise;
use crate::measure::process::{self, Ticks};
use crate::record::{Distribution, Sample, Totals, seconds};

/// Gathers the numbers of a run.
#[derive(Debug)]
pub(crate) struct Sampler {
    started: Instant,
    noise: Noise,
    /// Of the whole run, by [`Timing`].
    timings: [Histogram<u64>; Timing::ALL.len()],
    overslept: Histogram<u64>,
    /// Of the second at hand.
    late: Histogram<u64>,
    noisy: Histogram<u64>,
    first: Ticks,
    last: Moment,
    totals: Totals,
    stolen: Stolen,
}

/// Cores that the host of a virtual machine took away.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stolen {
    pub(crate) on_average: f64,
    pub(crate) worst_second: f64,
}

/// Where the sums stood at a moment.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Instant,
    totals: Totals,
    cpu_time: Duration,
    ticks: Ticks,
}

impl Sampler {
    pub(crate) fn start() -> io::Result<Self> {
        let now = Instant::now();
        let first = Ticks::now();
        Ok(Sampler {
            started: now,
            noise: Noise::start()?,
            timings: Timing::ALL.map(|_| new_histogram()),
            overslept: new_histogram(),
            late: new_histogram(),
            noisy: new_histogram(),
            first,
            last: Moment {
                at: now,
                totals: Totals::default(),
                cpu_time: process::cpu_time()?,
                ticks: first,
            },
            totals: Totals::default(),
            stolen: Stolen::default(),
        })
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The numbers since the last call, with the latencies that came before `until`.
    pub(crate) fn sample<'a>(
        &mut self,
        control: &Control,
        stations: impl Iterator<Item = &'a Station> + Clone,
        until: Instant,
    ) -> io::Result<Sample> {
        let now = Instant::now();
        self.take_latencies(control, stations.clone(), until);
        self.totals = self.add_up(control, stations.clone());
        let moment = Moment {
            at: now,
            totals: self.totals,
            cpu_time: process::cpu_time()?,
            ticks: Ticks::now(),
        };
        let last = std::mem::replace(&mut self.last, moment);
        let span_s = seconds(now - last.at).max(1e-9);
        let per_s = |of: fn(&Totals) -> u64| (of(&self.totals) - of(&last.totals)) as f64 / span_s;
        let live_timers = sum_signed(stations.clone());
        let in_flight = sum(stations, |gauges| &gauges.in_flight);
        let late = |quantile| self.late.value_at_quantile(quantile);
        let sample = Sample {
            at_s: seconds(self.started.elapsed()),
            in_flight,
            live_timers,
            armed_per_s: per_s(|totals| totals.timers_armed),
            cancelled_per_s: per_s(|totals| totals.timers_cancelled),
            fired_per_s: per_s(|totals| totals.timers_fired),
            acks_per_s: per_s(|totals| totals.messages_acked),
            timeouts_per_s: per_s(|totals| totals.message_timeouts),
            datagrams_per_s: per_s(|totals| totals.datagrams_sent),
            late_p50_ns: late(0.5),
            late_p99_ns: late(0.99),
            late_max_ns: self.late.max(),
            noise_p99_ns: self.noisy.value_at_quantile(0.99),
            noise_max_ns: self.noisy.max(),
            resident_bytes: process::resident_bytes()?,
            allocated_bytes: memory::allocated().bytes,
            cpu_cores: seconds(moment.cpu_time.saturating_sub(last.cpu_time)) / span_s,
            stolen_cores: moment.ticks.cores_since(last.ticks).stolen,
            violations: self.totals.violations,
        };
        self.stolen.on_average = moment.ticks.cores_since(self.first).stolen;
        self.stolen.worst_second = self.stolen.worst_second.max(sample.stolen_cores);
        self.totals.live_timers_max = self.totals.live_timers_max.max(live_timers.max(0) as u64);
        self.totals.in_flight_max = self.totals.in_flight_max.max(in_flight);
        Ok(sample)
    }

    /// Takes what is left, once every executor has ended or been given up.
    pub(crate) fn finish<'a>(
        &mut self,
        control: &Control,
        stations: impl Iterator<Item = &'a Station> + Clone,
    ) {
        self.take_latencies(control, stations.clone(), Instant::now());
        self.totals = self.add_up(control, stations);
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn timing(&self, timing: Timing) -> &Histogram<u64> {
        &self.timings[timing as usize]
    }

    /// By how much the plain thread's sleeps were overslept.
    pub(crate) fn overslept(&self) -> &Histogram<u64> {
        &self.overslept
    }

    pub(crate) fn stolen(&self) -> Stolen {
        self.stolen
    }

    pub(crate) fn distributions(&self) -> Vec<Distribution> {
        let timings = Timing::ALL
            .into_iter()
            .map(|timing| Distribution::new(timing.label(), self.timing(timing)));
        let noise = Distribution::new(MACHINE_NOISE, &self.overslept);
        timings
            .chain([noise])
            .filter(|distribution| distribution.count > 0)
            .collect()
    }

    fn take_latencies<'a>(
        &mut self,
        control: &Control,
        stations: impl Iterator<Item = &'a Station>,
        until: Instant,
    ) {
        self.late.reset();
        self.noisy.reset();
        for station in stations {
            station.take(Timing::Lateness, &mut self.late, &control.stalls, until);
            for timing in OTHERS {
                let into = &mut self.timings[timing as usize];
                station.take(timing, into, &control.stalls, until);
            }
        }
        self.noise.take(&mut self.noisy, &control.stalls, until);
        for (total, second) in [
            (&mut self.timings[Timing::Lateness as usize], &self.late),
            (&mut self.overslept, &self.noisy),
        ] {
            total
                .add(second)
                .expect("both histograms have the same bounds");
        }
    }

    fn add_up<'a>(
        &self,
        control: &Control,
        stations: impl Iterator<Item = &'a Station> + Clone,
    ) -> Totals {
        let sum = |of: fn(&Gauges) -> &AtomicU64| sum(stations.clone(), of);
        Totals {
            timers_armed: sum(|gauges| &gauges.armed),
            timers_rearmed: sum(|gauges| &gauges.rearmed),
            timers_cancelled: sum(|gauges| &gauges.cancelled),
            timers_fired: sum(|gauges| &gauges.fired),
            messages_published: sum(|gauges| &gauges.published),
            messages_acked: sum(|gauges| &gauges.acks),
            message_timeouts: sum(|gauges| &gauges.timeouts),
            messages_redelivered: sum(|gauges| &gauges.redelivered),
            messages_dead: sum(|gauges| &gauges.dead_letters),
            datagrams_sent: sum(|gauges| &gauges.datagrams_sent),
            datagrams_lost: sum(|gauges| &gauges.datagrams_lost),
            datagrams_repeated: sum(|gauges| &gauges.datagrams_repeated),
            bytes_delivered: sum(|gauges| &gauges.bytes_delivered),
            stalls: control.stalls.count(),
            violations: stations
                .clone()
                .map(|station| station.ledger.violations())
                .sum(),
            live_timers_max: self.totals.live_timers_max,
            in_flight_max: self.totals.in_flight_max,
        }
    }
}

fn sum<'a>(stations: impl Iterator<Item = &'a Station>, of: impl Fn(&Gauges) -> &AtomicU64) -> u64 {
    stations
        .map(|station| of(&station.gauges).load(Ordering::Relaxed))
        .sum()
}

fn sum_signed<'a>(stations: impl Iterator<Item = &'a Station>) -> i64 {
    stations
        .map(|station| station.gauges.live_timers.load(Ordering::Relaxed))
        .sum()
}

/// Nanoseconds of a quantile as a duration.
pub(crate) fn quantile(histogram: &Histogram<u64>, quantile: f64) -> Duration {
    Duration::from_nanos(histogram.value_at_quantile(quantile))
}

/// The distribution that is nobody's timers.
pub(crate) const MACHINE_NOISE: &str = "machine noise";

/// What is not also shown second by second.
const OTHERS: [Timing; 3] = [Timing::Burst, Timing::Ping, Timing::SegmentRtt];
const _: () = assert!(OTHERS.len() + 1 == Timing::ALL.len(), "none is forgotten");
