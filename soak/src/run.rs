//! One run from start to verdict: starts the executors, samples them, drains them, judges.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use crate::check::control::Control;
use crate::check::executor_stats::ExecutorStats;
use crate::check::invariants::{Count, Invariant};
use crate::check::library::Library;
use crate::check::probe::Workload;
use crate::check::verdict::Evidence;
use crate::measure::resources::Resources;
use crate::measure::{noise, ring_events};
use crate::options::Options;
use crate::print::print_line;
use crate::record::{FORMAT, Machine, Outcome, PlanRecord, Record, Sample, Series};
use crate::report::progress::Progress;
use crate::sampler::Sampler;
use crate::supervisor::worker::{ToMonitor, Worker};
use crate::timer_queue::TimerQueue;
use crate::workload::{self, Ending, Executor, Plan, files};

/// Runs what the command line asks for, and prints the verdict.
pub(crate) fn soak(
    options: &Options,
    worker: &Worker,
) -> Result<Record, Box<dyn std::error::Error>> {
    let started_unix_s = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    ring_events::install();
    ring_events::probe()?;
    let machine = machine(options);
    let workloads = options.workloads();
    let plan = plan(options, machine.slowness);
    let mut begun = Record {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        timer_queue: TimerQueue::OURS.label().to_owned(),
        name: TimerQueue::OURS.label().to_owned(),
        plan: plan_record(&plan, &workloads),
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
    let names = all_stats(&run.executors).map(|stats| stats.name().to_owned());
    begun.plan.executors = names.collect();
    worker.tell(&ToMonitor::Began(Box::new(begun.clone())))?;
    let cut = run.supervise(worker)?;
    worker.tell(&ToMonitor::Draining)?;
    plan.control.drain();
    let failures = run.wait_for_ends();
    run.sampler.finish(&plan.control, all_stats(&run.executors));
    if failures.is_empty() {
        run.resources.look_at_rest()?;
    }

    let evidence = run.evidence(failures, plan.load);
    let rows = evidence.rows();
    let record = Record {
        ran_s: run.ran.as_secs_f64(),
        is_interrupted: cut == Some(Cut::Interrupted),
        outcome: Outcome::of(&rows),
        totals: run.sampler.totals(),
        distributions: evidence.timeliness.distributions(),
        samples: run.series.finish(),
        words: [&evidence.failures[..], &evidence.first_violations].concat(),
        complaints: ring_events::complaints(),
        rows,
        ..begun
    };
    if let Some(cut) = cut {
        print_line!("\nended after {:.1} s: {}", record.ran_s, cut.words());
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
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
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

fn plan_record(plan: &Plan, workloads: &[Workload]) -> PlanRecord {
    let labels = workloads.iter().map(|workload| workload.label().to_owned());
    PlanRecord {
        workloads: labels.collect(),
        duration_s: plan.duration.as_secs_f64(),
        seed: plan.seed,
        load: plan.load,
        clients: plan.clients as u64,
        executors: Vec::new(),
        files: describe_files(plan),
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

fn all_stats(executors: &[Executor]) -> impl Iterator<Item = &ExecutorStats> + Clone {
    executors.iter().map(|executor| &*executor.stats)
}

/// Why a run ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Interrupted,
    ExecutorEnded,
    Violated,
}

impl Cut {
    fn words(self) -> &'static str {
        match self {
            Cut::Interrupted => "interrupted",
            Cut::ExecutorEnded => "an executor did not go on",
            Cut::Violated => "the first violation",
        }
    }
}

struct Run {
    duration: Duration,
    control: Arc<Control>,
    /// A violation of this ends it.
    until_broken: Option<Invariant>,
    library: Library,
    slowness: f64,
    executors: Vec<Executor>,
    resources: Resources,
    sampler: Sampler,
    series: Series,
    ran: Duration,
}

impl Run {
    fn new(
        plan: &Plan,
        workloads: &[Workload],
        until_broken: Option<Invariant>,
    ) -> io::Result<Self> {
        // The sampler's thread and files are part of what is there at rest.
        let sampler = Sampler::start(workloads)?;
        Ok(Run {
            duration: plan.duration,
            control: Arc::clone(&plan.control),
            until_broken,
            library: Library::new(),
            slowness: plan.slowness,
            executors: Vec::new(),
            resources: Resources::at_rest(plan.duration)?,
            sampler,
            series: Series::new(),
            ran: Duration::ZERO,
        })
    }

    /// Samples once a second until the time is up, or something ends the run before.
    fn supervise(&mut self, worker: &Worker) -> io::Result<Option<Cut>> {
        let mut progress = Progress::new(self.duration);
        let mut next_sample = SAMPLE_EVERY;
        let mut cut = None;
        while cut.is_none() && self.sampler.elapsed() < self.duration {
            let left = self.duration.saturating_sub(self.sampler.elapsed());
            thread::sleep(LOOK_EVERY.min(left));
            self.library.look();
            self.sampler.look_at_waits(all_stats(&self.executors));
            cut = self.cut(worker);
            if self.sampler.elapsed() >= next_sample && left > SAMPLE_EVERY / 2 {
                next_sample += SAMPLE_EVERY;
                let now = Instant::now();
                progress.show(&self.sample(now - JUDGED_AFTER)?);
            }
        }
        // The last one is of all that is left: near the end nothing is stopped any more.
        progress.show(&self.sample(Instant::now())?);
        self.ran = self.sampler.elapsed();
        Ok(cut)
    }

    fn cut(&mut self, worker: &Worker) -> Option<Cut> {
        let mut executors = self.executors.iter_mut();
        if worker.is_interrupted() {
            Some(Cut::Interrupted)
        } else if executors.any(|it| it.ending(Duration::ZERO).is_some()) {
            Some(Cut::ExecutorEnded)
        } else {
            self.is_violated().then_some(Cut::Violated)
        }
    }

    fn is_violated(&self) -> bool {
        let ledgers = all_stats(&self.executors).map(|stats| &stats.ledger);
        let mut ledgers = ledgers.chain([&self.library.ledger]);
        self.until_broken
            .is_some_and(|row| ledgers.any(|ledger| ledger.count(row).violations > 0))
    }

    /// The numbers since the last sample, with the latencies that came before `until`.
    fn sample(&mut self, until: Instant) -> io::Result<Sample> {
        let all_stats = all_stats(&self.executors);
        let is_complete = all_stats.clone().all(ExecutorStats::is_complete);
        let sample = self.sampler.sample(&self.control, all_stats, until)?;
        self.series.push(sample);
        self.control
            .set_patience(patience(self.slowness, self.sampler.noise_max));
        self.resources.look(&sample, is_complete)?;
        if self.resources.has_warmed_up() {
            self.control.set_warm();
        }
        Ok(sample)
    }

    /// Joins every executor; says of those that failed or would not end how and where.
    fn wait_for_ends(&mut self) -> Vec<String> {
        let deadline = Instant::now() + END_PATIENCE + self.control.patience() * 4;
        let mut failures = Vec::new();
        for executor in &mut self.executors {
            let limit = deadline.saturating_duration_since(Instant::now());
            let failure = match executor.ending(limit) {
                Some(Ending::Clean) => None,
                Some(Ending::Failed(how)) => Some(how.clone()),
                None => Some("did not end".to_owned()),
            };
            failures.extend(failure.map(|how| format!("{}: {how}", executor.stats.name())));
        }
        failures
    }

    fn evidence(&mut self, failures: Vec<String>, load: f64) -> Evidence {
        let mut counts = [Count::default(); Invariant::ALL.len()];
        let mut first_violations = Vec::new();
        self.library.look();
        let ledgers = all_stats(&self.executors).map(|stats| (stats.name(), &stats.ledger));
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
            taken: self.sampler.taken(),
            slowness: self.slowness,
            load,
            memory: self.resources.memory,
            left: self.resources.left,
            descriptors: self.resources.descriptors,
            executors: self.executors.len(),
            failures,
        }
    }
}

const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// By then each stop has been reported.
const JUDGED_AFTER: Duration = Duration::from_millis(500);

/// How soon an interrupt or a violation is seen, and how closely waits for a core are told apart.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Every open deadline is settled at once when a run drains, so that ends come within a moment.
const END_PATIENCE: Duration = Duration::from_secs(20);
