//! What is looked for while a simulation runs, and what it has done.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use glommio::simulation::Report;
use glommio::timer::sleep;

use crate::check::control::Control;
use crate::check::executor_stats::ExecutorStats;
use crate::check::invariants::Invariant;
use crate::check::library::Library;
use crate::check::probe::Timing;
use crate::clock;
use crate::counters::Totals;
use crate::counts::grouped;

/// Sees what all executors have entered.
pub(super) struct Judge {
    control: Arc<Control>,
    library: Library,
    judged: Judged,
    /// The most that there was of anything at a time.
    totals: Totals,
}

/// What is not judged in every simulation.
pub(super) struct Judged {
    /// Nothing may be late.
    pub(super) lateness: bool,
    /// Tasks run in the order in which they were woken.
    pub(super) order: bool,
    /// No other workload takes memory.
    pub(super) peaks: bool,
}

impl Judge {
    pub(super) fn new(control: Arc<Control>, judged: Judged) -> Self {
        Judge {
            control,
            library: Library::new(),
            judged,
            totals: Totals::default(),
        }
    }

    /// Looks again and again, and has the run drain after `duration`.
    pub(super) async fn watch(judge: Rc<RefCell<Self>>, duration: Duration) -> Result<(), String> {
        let began = clock::now();
        while clock::since(began) < duration {
            sleep(LOOK_EVERY).await;
            judge.borrow_mut().look()?;
        }
        judge.borrow().control.drain();
        Ok(())
    }

    /// What is broken, in words.
    pub(super) fn look(&mut self) -> Result<(), String> {
        self.library.look();
        let of_library = (&self.library.ledger, "library");
        let all_stats = self.control.all_stats();
        let ledgers = all_stats.iter().map(|it| (&it.ledger, &*it.name));
        let (mut in_flight, mut live) = (0, 0);
        for (ledger, name) in ledgers.chain([of_library]) {
            let is_broken = |it: &Invariant| {
                // The files of a simulation are in the memory of the process.
                let is_judged = match it {
                    Invariant::PeaksReturn => self.judged.peaks,
                    Invariant::InOrder => self.judged.order,
                    _ => true,
                };
                is_judged && ledger.count(*it).violations > 0
            };
            let broken = Invariant::ALL.into_iter().filter(is_broken);
            let broken: Vec<_> = broken.map(Invariant::label).collect();
            if !broken.is_empty() {
                let words = ledger.first_violations().join("; ");
                return Err(format!("broken: {}: {name}: {words}", broken.join("; ")));
            }
        }
        for stats in &all_stats {
            in_flight += stats.gauges.in_flight.load(Ordering::Relaxed);
            live += stats.gauges.live_timers.load(Ordering::Relaxed);
            self.look_at_lateness(stats)?;
        }
        let totals = &mut self.totals;
        totals.in_flight_max = totals.in_flight_max.max(in_flight);
        totals.live_timers_max = totals.live_timers_max.max(live.max(0) as u64);
        Ok(())
    }

    fn look_at_lateness(&self, stats: &ExecutorStats) -> Result<(), String> {
        for timing in [Timing::Lateness, Timing::Burst, Timing::Crowd] {
            let taken = stats.take(timing, &self.control.stalls, clock::now());
            let late = taken.map_or(0, |taken| taken.max());
            if self.judged.lateness && late > 0 {
                let (name, timing) = (&stats.name, timing.label());
                return Err(format!(
                    "broken: {timing}: {name}: {late} ns in simulated time"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn tally(&self, report: &Report) -> Tally {
        let all_stats = self.control.all_stats();
        let ledgers = all_stats.iter().map(|it| &it.ledger);
        let checks = ledgers.chain([&self.library.ledger]).map(|ledger| {
            let counts = Invariant::ALL.into_iter().map(|it| ledger.count(it).checks);
            counts.sum::<u64>()
        });
        let mut totals = self.totals;
        all_stats.iter().for_each(|it| totals.add(&it.gauges));
        Tally {
            simulated: report.elapsed(),
            events: report.events(),
            digest: report.digest(),
            checks: checks.sum(),
            totals,
        }
    }
}

/// What has been done, and found in order.
#[derive(Debug, Default)]
pub(super) struct Tally {
    simulated: Duration,
    events: u64,
    digest: u64,
    checks: u64,
    totals: Totals,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.simulated += other.simulated;
        self.events += other.events;
        self.digest = self.digest.rotate_left(1) ^ other.digest;
        self.checks += other.checks;
        self.totals.join(&other.totals);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [events, checks] = [self.events, self.checks].map(grouped);
        let (simulated, digest) = (self.simulated.as_secs_f64(), self.digest);
        writeln!(
            f,
            "{simulated:.1} s simulated, {events} events, digest {digest:016x}; {checks} checks"
        )?;
        self.totals.fmt(f)
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(50);
