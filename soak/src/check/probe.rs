//! What is timed, and in which workload.

use std::time::Duration;

use clap::ValueEnum;

/// What can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Workload {
    /// A broker and its clients: ack deadlines, redelivery, socket timeouts.
    MessageQueue,
    /// Selective repeat over datagrams that are lost, doubled and shuffled on purpose.
    ReliableUdp,
    /// Timers that cancel, re-arm and drop each other from inside their callbacks.
    ReEntrancy,
    /// Bursts of equal deadlines, and a ping beside them.
    Cluster,
    /// Timers armed and cancelled at full speed.
    Churn,
    /// Long sleeps, a process that is stopped and continued, tasks that hog the processor.
    Idle,
    /// Both timer queues without a runtime, on clocks of their own.
    Queues,
    /// Files that are written and read back, and processes that are killed while they append.
    Files,
    /// Peers, producers, writers and blocking calls that take all that they are given.
    Greedy,
    /// Shards that die and are restarted, connections that move, overload that comes and goes.
    Survival,
    /// Connections of QUIC over a network that loses datagrams, from clients that move.
    #[cfg(feature = "quic")]
    Quic,
}

impl Workload {
    /// As on the command line.
    pub(crate) fn label(self) -> String {
        let value = self.to_possible_value();
        value.expect("none is hidden").get_name().to_owned()
    }

    /// Whether it needs a directory.
    pub(crate) fn has_files(self) -> bool {
        matches!(self, Workload::Files | Workload::Greedy)
    }
}

labelled! {
    /// What is timed: latencies, from when something was due, or asked for, to when it came.
    Timing;
    Lateness, "timer lateness": "callbacks of timers after their deadlines, in the workload";
    Burst, "lateness in bursts": "callbacks of 100,000 timers with one and the same deadline";
    Crowd, "lateness in crowds":
        "callbacks of 100,000 timers that are due one after the other, over seconds";
    Neighbour, "next to a hog":
        "callbacks of timers while a task of another queue works without a pause and yields when it is asked to";
    Sleep, "1 ms sleeps":
        "ends of sleeps in an executor that does nothing else, as the plain thread that measures the noise";
    Ping, "ping": "answers over a socket of an executor in which 100,000 timers are due";
    SegmentRtt, "datagram round trip": "acknowledgements of datagrams that were sent once";
}

/// How often a ping is sent.
pub(crate) const PING_EVERY: Duration = Duration::from_millis(1);
