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
    pub(crate) fn label(self) -> &'static str {
        match self {
            Workload::MessageQueue => "message-queue",
            Workload::ReliableUdp => "reliable-udp",
            Workload::ReEntrancy => "re-entrancy",
            Workload::Cluster => "cluster",
            Workload::Churn => "churn",
            Workload::Idle => "idle",
            Workload::Queues => "queues",
            Workload::Files => "files",
            Workload::Greedy => "greedy",
            Workload::Survival => "survival",
            #[cfg(feature = "quic")]
            Workload::Quic => "quic",
        }
    }

    /// Whether it needs a directory.
    pub(crate) fn has_files(self) -> bool {
        matches!(self, Workload::Files | Workload::Greedy)
    }
}

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timing {
    /// From a timer's deadline to the beginning of its callback.
    Lateness,
    /// The same of timers that are due by the hundred thousand.
    Burst,
    /// The same of as many that are due one after the other.
    Crowd,
    /// The same beside a task of another queue that works without a pause and yields when it
    /// should.
    Neighbour,
    /// The same of an executor that does nothing but sleep, as the thread does that measures the
    /// noise.
    Sleep,
    /// From asking to the answer, over a socket, in an executor that has bursts of timers, or
    /// greedy tasks.
    Ping,
    /// From sending a datagram to its acknowledgement, if it was sent once.
    SegmentRtt,
}

impl Timing {
    pub(crate) const ALL: [Timing; 7] = [
        Timing::Lateness,
        Timing::Burst,
        Timing::Crowd,
        Timing::Neighbour,
        Timing::Sleep,
        Timing::Ping,
        Timing::SegmentRtt,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Timing::Lateness => "timer lateness",
            Timing::Burst => "lateness in bursts",
            Timing::Crowd => "lateness in crowds",
            Timing::Neighbour => "next to a hog",
            Timing::Sleep => "1 ms sleeps",
            Timing::Ping => "ping",
            Timing::SegmentRtt => "datagram round trip",
        }
    }

    /// How often a measurement should begin that waits for the end of the one before: a long one
    /// stands for all that it has kept from beginning (coordinated omission). Deadlines do not wait
    /// for each other, and datagrams are sent however long others take.
    pub(crate) fn interval(self) -> Option<Duration> {
        (self == Timing::Ping).then_some(PING_EVERY)
    }
}

/// How often a ping is sent.
pub(crate) const PING_EVERY: Duration = Duration::from_millis(1);
