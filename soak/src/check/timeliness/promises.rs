//! What is promised of lateness, workload by workload.

use std::time::Duration;

use crate::check::probe::{Timing, Workload};

/// What is promised of one kind of latency in one workload.
pub(super) struct Promise {
    pub(super) workload: Workload,
    pub(super) timing: Timing,
    us: [u64; 3],
}

impl Promise {
    pub(super) fn find(workload: Workload, timing: Timing) -> &'static Promise {
        let mut promises = PROMISES.iter();
        let found = promises.find(|it| it.workload == workload && it.timing == timing);
        found.expect("there is a promise for every kind that is timed")
    }

    /// What the work may take before a callback begins, on the reference machine, of half of them,
    /// of 999 in a thousand, and at the longest.
    pub(super) fn work(&self) -> [Option<Duration>; 3] {
        let work = |us: u64| (us > 0).then(|| Duration::from_micros(us));
        self.us.map(work)
    }

    /// For how long the executor may have waited for a core within a second to be judged for it:
    /// less where a task works all the time, which is put aside in the middle of what is measured.
    pub(super) fn waited_max(&self) -> Duration {
        match self.timing {
            Timing::Neighbour => WAITED_MAX / 2,
            _ => WAITED_MAX,
        }
    }

    /// In how many seconds it must have been seen. Fewer quiet ones are a matter of chance; a burst
    /// comes every six.
    pub(super) fn seconds_least(&self) -> u64 {
        match self.timing {
            Timing::Burst | Timing::Crowd | Timing::Ping => 1,
            _ => 5,
        }
    }

    /// How many latencies make a median.
    pub(super) fn p50_least(&self) -> u64 {
        match (self.workload, self.timing) {
            (_, Timing::Crowd) => P50_LEAST_OF_A_CROWD,
            (Workload::Idle, Timing::Lateness) => P50_LEAST_BEHIND_HOGS,
            (Workload::Idle, Timing::Neighbour) => P50_LEAST_BEHIND_HOGS / 2,
            _ => 100,
        }
    }

    /// What its rows are called, and what they are about.
    pub(super) fn words(&self) -> (String, String) {
        let (workload, whose) = (self.workload.label(), self.timing.meaning());
        let what = match self.timing {
            Timing::Lateness => {
                return (format!("late, {workload}"), format!("{whose} {workload}"));
            }
            Timing::Burst => "late, in a burst",
            Timing::Crowd => "late, in a crowd",
            Timing::Neighbour => "late, next to a hog",
            Timing::Sleep => "late, 1 ms sleeps",
            Timing::Ping if self.workload == Workload::Greedy => {
                let whose = "answers of an executor whose other tasks take all that they are given";
                return ("ping during floods".to_owned(), whose.to_owned());
            }
            Timing::Ping => "ping during bursts",
            Timing::SegmentRtt => "round trip",
        };
        (what.to_owned(), whose.to_owned())
    }
}

const fn promise(workload: Workload, timing: Timing, us: [u64; 3]) -> Promise {
    Promise {
        workload,
        timing,
        us,
    }
}

/// In microseconds: the median, 999 of a thousand, the longest. Zero: nothing is promised.
#[rustfmt::skip]
pub(super) const PROMISES: [Promise; 13] = [
    promise(Workload::MessageQueue, Timing::Lateness, [150, 10_000, 30_000]),
    promise(Workload::ReliableUdp, Timing::Lateness, [150, 5_000, 30_000]),
    promise(Workload::ReliableUdp, Timing::SegmentRtt, [0, 0, 0]),
    promise(Workload::ReEntrancy, Timing::Lateness, [150, 10_000, 30_000]),
    // A hundred thousand callbacks, each of which asks the model: seven microseconds each. An answer
    // takes several turns of the executor, each of 256 callbacks.
    promise(Workload::Cluster, Timing::Burst, [0, 0, 700_000]),
    // Each callback keeps the next ones waiting for what the model does.
    promise(Workload::Cluster, Timing::Crowd, [300, 20_000, 60_000]),
    promise(Workload::Cluster, Timing::Ping, [1_000, 30_000, 60_000]),
    promise(Workload::Churn, Timing::Lateness, [150, 10_000, 30_000]),
    // Many of these have waited for a hog, and then for each other.
    promise(Workload::Idle, Timing::Lateness, [300, 0, 30_000]),
    promise(Workload::Idle, Timing::Neighbour, [300, 0, 20_000]),
    promise(Workload::Idle, Timing::Sleep, [50, 5_000, 20_000]),
    promise(Workload::Greedy, Timing::Lateness, [300, 10_000, 30_000]),
    promise(Workload::Greedy, Timing::Ping, [1_000, 30_000, 60_000]),
];

pub(super) const WAITED_MAX: Duration = Duration::from_millis(400);

/// A crowd is due at 30 timers a millisecond or more, so that one stall decides about a few hundred. Of a
/// crowd that begins in a second that is not judged, its last few milliseconds may be all that is.
const P50_LEAST_OF_A_CROWD: u64 = 5_000;

/// The timers of one hog, 64 at the usual load, are late together if the host takes the core meanwhile, and a few
/// such hogs decide nothing. So many are those of fifteen rounds, each of two hogs that keep the thread and one that
/// yields.
const P50_LEAST_BEHIND_HOGS: u64 = 2_000;
