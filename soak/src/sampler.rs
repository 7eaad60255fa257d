//! Once a second: what all executors did since the last look, as numbers for the view and the
//! record.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use support::quantiles::{Durations, Histogram, histogram};

use crate::check::control::Control;
use crate::check::probe::{Timing, Workload};
use crate::check::timeliness::Timeliness;
use crate::counters::Totals;
use crate::measure::memory;
use crate::measure::noise::Noise;
use crate::measure::process::{self, CoreTime, Cores, Ticks, Waited};
use crate::measure::quiet::{Second, Taken};
use crate::record::Sample;

/// Gathers the numbers of a run.
#[derive(Debug)]
pub(crate) struct Sampler {
    control: Arc<Control>,
    started: Instant,
    noise: Noise,
    pub(crate) timeliness: Timeliness,
    /// The longest that a plain thread's sleep was overslept.
    pub(crate) noise_max: Duration,
    /// Of each executor, in their order.
    waits: Vec<Wait>,
    first: Moment,
    last: Moment,
    pub(crate) totals: Totals,
    /// What the host of a virtual machine took away, and what a quota did.
    pub(crate) taken: [Taken; 2],
}

/// Where the sums stood at a moment.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Instant,
    totals: Totals,
    cpu_time: Duration,
    ticks: Ticks,
    throttled: Duration,
}

impl Moment {
    fn now(totals: Totals) -> io::Result<Self> {
        Ok(Moment {
            at: Instant::now(),
            totals,
            cpu_time: process::cpu_time()?,
            ticks: Ticks::now(),
            throttled: process::throttled(),
        })
    }

    fn seconds_since(&self, earlier: &Moment) -> f64 {
        (self.at - earlier.at).as_secs_f64().max(1e-9)
    }

    /// In cores.
    fn throttled_since(&self, earlier: &Moment) -> f64 {
        let throttled = self.throttled.saturating_sub(earlier.throttled);
        throttled.as_secs_f64() / self.seconds_since(earlier)
    }
}

/// How long an executor's thread has waited for a core.
#[derive(Clone, Copy, Debug, Default)]
struct Wait {
    until_now: CoreTime,
    this_second: Waited,
    /// In the second before, and in the latest.
    seconds: [Waited; 2],
}

impl Sampler {
    pub(crate) fn start(control: &Arc<Control>, workloads: &[Workload]) -> io::Result<Self> {
        let last = Moment::now(Totals::default())?;
        Ok(Sampler {
            control: Arc::clone(control),
            started: last.at,
            noise: Noise::start()?,
            timeliness: Timeliness::new(workloads),
            noise_max: Duration::ZERO,
            waits: Vec::new(),
            first: last,
            last,
            totals: Totals::default(),
            taken: Default::default(),
        })
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The numbers since the last call, with the latencies that came before `until`.
    pub(crate) fn sample(&mut self, until: Instant) -> io::Result<Sample> {
        let noise = self.noise.take(&self.control.stalls, until);
        self.totals = self.add_up();
        let moment = Moment::now(self.totals)?;
        let last = std::mem::replace(&mut self.last, moment);
        let span_s = moment.seconds_since(&last);
        let cpu_cores = (moment.cpu_time.saturating_sub(last.cpu_time)).as_secs_f64() / span_s;
        let Cores { all, busy, stolen } = moment.ticks.cores_since(last.ticks);
        let second = Second {
            noise_p50: noise.at(0.5),
            noise_p99: noise.at(0.99),
            cores: all,
            throttled_cores: moment.throttled_since(&last),
            stolen_cores: stolen,
            other_cores: (busy - cpu_cores).max(0.0),
            is_stopped: !self.control.stalls.lasted(last.at, moment.at).is_zero(),
            is_unoptimised: cfg!(debug_assertions),
        };
        self.timeliness.begin(&second, &noise);
        self.noise_max = self.noise_max.max(noise.longest());
        self.look_at_waits();
        for wait in &mut self.waits {
            wait.seconds = [wait.seconds[1], std::mem::take(&mut wait.this_second)];
        }
        let late = self.take_latencies(until);

        let per_s = |of: fn(&Totals) -> u64| (of(&self.totals) - of(&last.totals)) as f64 / span_s;
        let live_timers = self.control.live_timers();
        let all_stats = self.control.all_stats().into_iter();
        let in_flight = all_stats.map(|it| it.gauges.in_flight.load(Ordering::Relaxed));
        let in_flight: u64 = in_flight.sum();
        let sample = Sample {
            at_s: self.started.elapsed().as_secs_f64(),
            in_flight,
            live_timers,
            armed_per_s: per_s(|totals| totals.timers_armed),
            cancelled_per_s: per_s(|totals| totals.timers_cancelled),
            fired_per_s: per_s(|totals| totals.timers_fired),
            acks_per_s: per_s(|totals| totals.messages_acked),
            timeouts_per_s: per_s(|totals| totals.message_timeouts),
            datagrams_per_s: per_s(|totals| totals.datagrams_sent),
            late_p50_ns: late.value_at_quantile(0.5),
            late_p99_ns: late.value_at_quantile(0.99),
            late_max_ns: late.max(),
            noise_p99_ns: noise.value_at_quantile(0.99),
            noise_max_ns: noise.max(),
            is_quiet: second.disturbance().is_none(),
            resident_bytes: process::resident_bytes()?,
            allocated_bytes: memory::allocated().bytes,
            cpu_cores,
            stolen_cores: second.stolen_cores,
            other_cores: second.other_cores,
            violations: self.totals.violations,
        };
        let stolen = moment.ticks.cores_since(self.first.ticks).stolen;
        self.taken[0].enter(stolen, second.stolen_cores);
        let throttled = moment.throttled_since(&self.first);
        self.taken[1].enter(throttled, second.throttled_cores);
        self.totals.live_timers_max = self.totals.live_timers_max.max(live_timers.max(0) as u64);
        self.totals.in_flight_max = self.totals.in_flight_max.max(in_flight);
        Ok(sample)
    }

    /// Takes what is left, once every executor has ended or been given up.
    pub(crate) fn finish(&mut self) {
        self.timeliness.end();
        self.take_latencies(Instant::now());
        self.totals = self.add_up();
    }

    /// For how long each executor has waited since the last look.
    pub(crate) fn look_at_waits(&mut self) {
        let all_stats = self.control.all_stats();
        self.waits.resize(all_stats.len(), Wait::default());
        for (stats, wait) in all_stats.iter().zip(&mut self.waits) {
            let now = stats.core_time().unwrap_or(wait.until_now);
            let before = std::mem::replace(&mut wait.until_now, now);
            wait.this_second.enter(now.since(before).waited);
        }
    }

    /// What was seen of timers, of all kinds; returned is the lateness of those that were due by
    /// themselves.
    fn take_latencies(&mut self, until: Instant) -> Histogram<u64> {
        let mut late = histogram();
        for (stats, wait) in self.control.all_stats().iter().zip(&self.waits) {
            for timing in Timing::ALL {
                let Some(seen) = stats.take(timing, &self.control.stalls, until) else {
                    continue;
                };
                if timing == Timing::Lateness {
                    late.merge(&seen);
                }
                self.timeliness
                    .enter(stats.workload, timing, &seen, wait.seconds);
            }
        }
        late
    }

    fn add_up(&self) -> Totals {
        let mut totals = Totals {
            stalls: self.control.stalls.count(),
            live_timers_max: self.totals.live_timers_max,
            in_flight_max: self.totals.in_flight_max,
            ..Totals::default()
        };
        for stats in self.control.all_stats() {
            totals.add(&stats.gauges);
            totals.violations += stats.ledger.violations();
        }
        totals
    }
}
