//! What is promised of lateness, workload by workload.

use std::time::Duration;

use crate::check::probe::{Timing, Workload};

/// What is promised of one kind of latency in one workload: what the work may take before a
/// callback begins, on the reference machine, of half of them, of 999 in a thousand, and at the
/// longest.
pub(super) struct Promise {
    pub(super) workload: Workload,
    pub(super) timing: Timing,
    pub(super) p50: Option<Duration>,
    pub(super) p999: Option<Duration>,
    pub(super) max: Option<Duration>,
    /// For how long the executor may have waited for a core within a second to be judged for it.
    pub(super) waited_max: Duration,
    /// In how many seconds it must have been seen.
    pub(super) seconds_least: u64,
    /// How many latencies make a median.
    pub(super) p50_least: u64,
}

impl Promise {
    pub(super) fn find(workload: Workload, timing: Timing) -> &'static Promise {
        let mut promises = PROMISES.iter();
        let found = promises.find(|it| it.workload == workload && it.timing == timing);
        found.expect("there is a promise for every kind that is timed")
    }

    /// What its rows are called, and what they are about.
    pub(super) fn words(&self) -> (String, String) {
        let workload = self.workload.label();
        let (what, whose) = match self.timing {
            Timing::Lateness => {
                let whose = "callbacks of timers after their deadlines, in the workload";
                return (format!("late, {workload}"), format!("{whose} {workload}"));
            }
            Timing::Burst => (
                "late, in a burst",
                "callbacks of 100,000 timers with one and the same deadline",
            ),
            Timing::Crowd => (
                "late, in a crowd",
                "callbacks of 100,000 timers that are due one after the other, over seconds",
            ),
            Timing::Neighbour => (
                "late, next to a hog",
                "callbacks of timers while a task of another queue works without a pause and yields \
                 when it is asked to",
            ),
            Timing::Sleep => (
                "late, 1 ms sleeps",
                "ends of sleeps in an executor that does nothing else, as the plain thread that \
                 measures the noise",
            ),
            Timing::Ping if self.workload == Workload::Greedy => (
                "ping during floods",
                "answers over a socket of an executor whose other tasks take all that they are given",
            ),
            Timing::Ping => (
                "ping during bursts",
                "answers over a socket of an executor in which 100,000 timers are due",
            ),
            Timing::SegmentRtt => ("round trip", "acknowledgements of datagrams"),
        };
        (what.to_owned(), whose.to_owned())
    }
}

const fn promise(workload: Workload, timing: Timing, us: [u64; 3]) -> Promise {
    const fn work(us: u64) -> Option<Duration> {
        match us {
            0 => None,
            us => Some(Duration::from_micros(us)),
        }
    }
    let [p50, p999, max] = us;
    Promise {
        workload,
        timing,
        p50: work(p50),
        p999: work(p999),
        max: work(max),
        waited_max: match timing {
            Timing::Neighbour => WAITED_MAX_BESIDE_A_HOG,
            _ => WAITED_MAX,
        },
        seconds_least: match timing {
            Timing::Burst | Timing::Crowd | Timing::Ping => 1,
            _ => SECONDS_LEAST,
        },
        p50_least: match (workload, timing) {
            (_, Timing::Crowd) => P50_LEAST_OF_A_CROWD,
            (Workload::Idle, Timing::Lateness) => P50_LEAST_BEHIND_HOGS,
            (Workload::Idle, Timing::Neighbour) => P50_LEAST_BEHIND_HOGS / 2,
            _ => P50_LEAST,
        },
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

/// For so long an executor may have waited for a core within a second to be judged for it,
pub(super) const WAITED_MAX: Duration = Duration::from_millis(400);

/// and less where a task works all the time: it is put aside in the middle of what is measured.
const WAITED_MAX_BESIDE_A_HOG: Duration = Duration::from_millis(200);

/// Fewer quiet seconds than these are a matter of chance; a burst comes every six seconds.
const SECONDS_LEAST: u64 = 5;

const P50_LEAST: u64 = 100;

/// A crowd is due at 30 timers a millisecond or more, so that one stall decides about a few hundred. Of a
/// crowd that begins in a second that is not judged, its last few milliseconds may be all that is.
const P50_LEAST_OF_A_CROWD: u64 = 5_000;

/// The timers of one hog, 64 at the usual load, are late together if the host takes the core meanwhile, and a few
/// such hogs decide nothing. So many are those of fifteen rounds, each of two hogs that keep the thread and one that
/// yields.
const P50_LEAST_BEHIND_HOGS: u64 = 2_000;
