//! One run from start to verdict: starts the executors, samples them, drains them, judges.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use crate::check::control::Control;
use crate::check::invariants::{Count, Invariant};
use crate::check::library::Library;
use crate::check::probe::Workload;
use crate::check::verdict::Evidence;
use crate::measure::resources::Resources;
use crate::measure::{noise, ring_events};
use crate::options::Options;
use crate::print::print_line;
use crate::record::{FORMAT, Machine, Outcome, PlanRecord, Record, Sample, Series};
use crate::report::progress;
use crate::sampler::Sampler;
use crate::supervisor::worker::{ToMonitor, Worker};
use crate::timer_queue::OURS;
use crate::workload::{self, Executor, Plan, files};

/// Runs what the command line asks for, and prints the verdict.
pub(crate) fn soak(
    options: &Options,
    worker: &Worker,
) -> Result<Record, Box<dyn std::error::Error>> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let started_unix_s = since.map_or(0, |since| since.as_secs());
    ring_events::install();
    ring_events::probe()?;
    let machine = machine(options);
    let workloads = options.workloads();
    let plan = plan(options, machine.slowness);
    let mut begun = Record {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        timer_queue: OURS.to_owned(),
        name: OURS.to_owned(),
        plan: PlanRecord {
            workloads: workloads.iter().map(|it| it.label()).collect(),
            duration_s: plan.duration.as_secs_f64(),
            seed: plan.seed,
            load: plan.load,
            clients: plan.clients as u64,
            executors: Vec::new(),
            files: describe_files(&plan),
        },
        machine,
        started_unix_s,
        ..Record::default()
    };
    announce(&begun);
    worker.listen(&plan.control)?;
    let mut run = Run::new(&plan, &workloads, options.until_broken)?;
    for workload in &workloads {
        run.executors.extend(workload::start(*workload, &plan)?);
    }
    let names = run.executors.iter().map(|it| it.stats.name.clone());
    begun.plan.executors = names.collect();
    worker.tell(&ToMonitor::Began(Box::new(begun.clone())))?;
    let cut = run.supervise(worker)?;
    worker.tell(&ToMonitor::Draining)?;
    plan.control.drain();
    let failures = run.wait_for_ends();
    run.sampler.finish();
    if failures.is_empty() {
        run.resources.look_at_rest()?;
    }

    let evidence = run.evidence(failures);
    let rows = evidence.rows();
    let record = Record {
        ran_s: run.ran.as_secs_f64(),
        is_interrupted: cut == Some(INTERRUPTED),
        outcome: Outcome::of(&rows),
        totals: run.sampler.totals,
        distributions: evidence.timeliness.distributions(),
        samples: run.series.finish(),
        words: [&evidence.failures[..], &evidence.first_violations].concat(),
        complaints: ring_events::complaints(),
        rows,
        ..begun
    };
    if let Some(cut) = cut {
        print_line!("\nended after {:.1} s: {cut}", record.ran_s);
    }
    print_line!("\n{}{evidence}", record.totals);
    for complaint in &record.complaints {
        print_line!("the library's log: {complaint}");
    }
    print_line!("{record}");
    Ok(record)
}

fn plan(options: &Options, slowness: f64) -> Plan {
    let cores = support::machine::processors();
    Plan {
        control: Arc::new(Control::new(patience(slowness, Duration::ZERO))),
        seed: options.seed(),
        // A slow machine gets less to do, so that it is tested and not merely swamped.
        load: options.load / slowness,
        cores,
        clients: (cores / 2).clamp(1, 8),
        duration: options.duration,
        slowness,
        files_in: options.files_made_in.clone().unwrap_or_default(),
        nodes: None,
    }
}

/// Where files are written, and whether past the page cache. Empty if there are none.
fn describe_files(plan: &Plan) -> String {
    let directory = &plan.files_in;
    if directory.as_os_str().is_empty() {
        return String::new();
    }
    let how = if files::directory::has_direct_io(directory) {
        "with direct I/O"
    } else {
        "which refuses direct I/O, so that everything goes through the page cache"
    };
    format!("{}, {how}", directory.display())
}

fn machine(options: &Options) -> Machine {
    let build = ["release", "debug"][usize::from(cfg!(debug_assertions))];
    let this = support::machine::Machine::this();
    Machine {
        kernel: this.release,
        cpu: this.processor,
        cores: this.processors as u64,
        memory_bytes: this.memory_bytes,
        build: build.to_owned(),
        ring: ring_events::rings(),
        slowness: options.slowness.unwrap_or_else(noise::slowness),
    }
}

fn announce(begun: &Record) {
    let Record { machine, plan, .. } = begun;
    print_line!(
        "timer queue: {}   kernel: {}   cores: {}   build: {}",
        begun.timer_queue,
        machine.kernel,
        machine.cores,
        machine.build,
    );
    print_line!("driver: {}", machine.ring);
    print_line!(
        "duration: {}s   seed: {}   load: {:.2}   clients: {}   slowness: {:.2}",
        plan.duration_s,
        plan.seed,
        plan.load,
        plan.clients,
        machine.slowness,
    );
    if !plan.files.is_empty() {
        print_line!("files: {}", plan.files);
    }
    print_line!("workloads: {}", plan.workloads.join(", "));
}

/// How long a timer may be overdue before it is called lost.
fn patience(slowness: f64, noise_max: Duration) -> Duration {
    Duration::from_secs(2).mul_f64(slowness) + noise_max * 20
}

struct Run<'a> {
    plan: &'a Plan,
    /// A violation of this ends it.
    until_broken: Option<Invariant>,
    library: Library,
    executors: Vec<Executor>,
    resources: Resources,
    sampler: Sampler,
    series: Series,
    ran: Duration,
}

impl<'a> Run<'a> {
    fn new(
        plan: &'a Plan,
        workloads: &[Workload],
        until_broken: Option<Invariant>,
    ) -> io::Result<Self> {
        // The sampler's thread and files are part of what is there at rest.
        let sampler = Sampler::start(&plan.control, workloads)?;
        Ok(Run {
            plan,
            until_broken,
            library: Library::new(),
            executors: Vec::new(),
            resources: Resources::at_rest(plan.duration)?,
            sampler,
            series: Series::new(),
            ran: Duration::ZERO,
        })
    }

    /// Samples once a second until the time is up, or something ends the run before: what that was.
    fn supervise(&mut self, worker: &Worker) -> io::Result<Option<&'static str>> {
        let (mut next_sample, mut next_line) = (SAMPLE_EVERY, Duration::ZERO);
        let mut cut = None;
        while cut.is_none() && self.sampler.elapsed() < self.plan.duration {
            let left = self.plan.duration.saturating_sub(self.sampler.elapsed());
            thread::sleep(LOOK_EVERY.min(left));
            self.library.look();
            self.sampler.look_at_waits();
            cut = self.cut(worker);
            if self.sampler.elapsed() >= next_sample && left > SAMPLE_EVERY / 2 {
                next_sample += SAMPLE_EVERY;
                let now = Instant::now();
                let sample = self.sample(now - JUDGED_AFTER)?;
                if self.sampler.elapsed() >= next_line {
                    next_line = self.sampler.elapsed() + progress::every(self.plan.duration);
                    progress::show(&sample);
                }
            }
        }
        // The last one is of all that is left: near the end nothing is stopped any more.
        let last = self.sample(Instant::now())?;
        if self.sampler.elapsed() >= next_line {
            progress::show(&last);
        }
        self.ran = self.sampler.elapsed();
        Ok(cut)
    }

    /// Why the run ends before its time, if it does.
    fn cut(&mut self, worker: &Worker) -> Option<&'static str> {
        let mut executors = self.executors.iter_mut();
        if worker.is_interrupted() {
            Some(INTERRUPTED)
        } else if executors.any(|it| it.ending(Duration::ZERO).is_some()) {
            Some("an executor did not go on")
        } else {
            self.is_violated().then_some("the first violation")
        }
    }

    fn is_violated(&self) -> bool {
        let ledgers = self.executors.iter().map(|it| &it.stats.ledger);
        let mut ledgers = ledgers.chain([&self.library.ledger]);
        self.until_broken
            .is_some_and(|row| ledgers.any(|ledger| ledger.count(row).violations > 0))
    }

    /// The numbers since the last sample, with the latencies that came before `until`.
    fn sample(&mut self, until: Instant) -> io::Result<Sample> {
        let control = &self.plan.control;
        let gauges = self.executors.iter().map(|it| &it.stats.gauges);
        let to_come = gauges.map(|it| it.quic_connections_to_come.load(Ordering::Relaxed));
        let is_complete = to_come.sum::<u64>() == 0;
        let sample = self.sampler.sample(until)?;
        self.series.push(sample);
        control.set_patience(patience(self.plan.slowness, self.sampler.noise_max));
        self.resources.look(&sample, is_complete)?;
        if self.resources.has_warmed_up() {
            control.set_warm();
        }
        Ok(sample)
    }

    /// Joins every executor; says of those that failed or would not end how and where.
    fn wait_for_ends(&mut self) -> Vec<String> {
        let deadline = Instant::now() + END_PATIENCE + self.plan.control.patience() * 4;
        let mut failures = Vec::new();
        for executor in &mut self.executors {
            let limit = deadline.saturating_duration_since(Instant::now());
            let failure = match executor.ending(limit) {
                Some(Ok(())) => continue,
                Some(Err(how)) => how.clone(),
                None => "did not end".to_owned(),
            };
            failures.push(format!("{}: {failure}", executor.stats.name));
        }
        failures
    }

    fn evidence(&mut self, failures: Vec<String>) -> Evidence {
        let mut counts = [Count::default(); Invariant::ALL.len()];
        let mut first_violations = Vec::new();
        self.library.look();
        let ledgers = self.executors.iter().map(|it| &it.stats);
        let ledgers = ledgers.map(|stats| (&*stats.name, &stats.ledger));
        for (name, ledger) in ledgers.chain([("library", &self.library.ledger)]) {
            for invariant in Invariant::ALL {
                let count = &mut counts[invariant as usize];
                *count = count.merge(ledger.count(invariant));
            }
            let named = |violation| format!("{name}: {violation}");
            first_violations.extend(ledger.first_violations().into_iter().map(named));
        }
        Evidence {
            counts,
            first_violations,
            timeliness: std::mem::take(&mut self.sampler.timeliness),
            taken: self.sampler.taken,
            slowness: self.plan.slowness,
            load: self.plan.load,
            resources: std::mem::take(&mut self.resources),
            executors: self.executors.len(),
            failures,
        }
    }
}

const INTERRUPTED: &str = "interrupted";

const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// By then each stop has been reported.
const JUDGED_AFTER: Duration = Duration::from_millis(500);

/// How soon an interrupt or a violation is seen, and how closely waits for a core are told apart.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Every open deadline is settled at once when a run drains, so that ends come within a moment.
const END_PATIENCE: Duration = Duration::from_secs(20);
