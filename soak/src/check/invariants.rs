//! The ledger: what is promised, how often it was checked, and the worst that was seen.
//!
//! One ledger per executor, so that writing it never contends; its numbers are atomics all the
//! same, because the main thread reads them while the executor runs and must still read them when
//! the executor hangs. A check that holds costs one uncontended addition.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::measure::lock;

labelled! {
    /// The promises, for first-time readers: what the executors check while they run. The main thread adds lateness, memory
    /// and descriptors.
    Invariant;
    NothingEarly, "nothing early":
        "No timer fires, and no message is redelivered, before its deadline, not even by a nanosecond.";
    NothingLost, "nothing lost":
        "Every timer that was armed either fires or is cancelled.";
    NothingTwice, "nothing fired twice": "No timer fires a second time, and none fires that was not armed.";
    InOrder, "fired in order":
        "Timers that wait side by side fire by their deadlines, and those due together in the order in which they \
         were armed.";
    CancelsHold, "cancelled stays silent": "A timer that was cancelled in time never fires.";
    StaleCancels, "stale cancels hit nothing": "Cancelling a timer that has fired already touches no other timer.";
    Deliveries, "messages accounted for":
        "Every message arrives exactly as often as the protocol says, with its own content.";
    SocketTimeouts, "socket timeouts":
        "A read or write gives up no earlier than its timeout, and no byte is lost by it.";
    BytesWhole, "datagram bytes whole":
        "From datagrams that were lost, repeated and shuffled on the way come exactly the bytes that were sent.";
    FileBytes, "files read as written":
        "What is read from a file is what was last written to it, past the page cache and through it.";
    SizesAndNames, "file sizes and names": "A file has the size it was set to and the name it was given, and no other.";
    Records, "records outlive a crash": "What a process has said is safe is there, and whole, after it was killed.";
    Confirmed, "confirmed outlives shards":
        "What a service has confirmed is there after shards of it have died, connections have moved and requests \
         were refused; each is answered once and in order, and no descriptor is left.";
    IoMemory, "I/O memory back":
        "While nothing is read or written, all memory for reading and writing has been given back.";
    LiveTimers, "live timers as modelled":
        "The runtime keeps exactly those timers that an independent model says are still waiting.";
    PeaksReturn, "memory back after peaks": "When a peak of timers is over, the memory it took has been given back.";
    IdleCpu, "idle takes no processor":
        "An executor with nothing to do takes next to no processor time, however many timers wait.";
    Turns, "others get their turn":
        "However much a peer sends, a producer makes, a writer writes or a blocking call takes, the others get their \
         turn after a bounded part of it.";
    ReadyAwaits, "ready awaits pause":
        "A loop over awaits that are ready at once goes back to its executor when that wants its thread.";
    LongCalls, "long calls let others run":
        "A read of hundreds of megabytes from the page cache, and the list of a long directory, leave the thread to \
         others.";
    Replacements, "replaced pools reset none":
        "When the shards that listen are replaced by others, no client's connection is reset.";
    Accepts, "busy shards stop no accepts":
        "A shard that computes keeps no other from accepting, and clients that come one after the other are shared \
         out.";
    Failures, "failed shards are seen":
        "A shard that ends with an error is in the log and is restarted, after a pause that grows if it fails again.";
    Expiries, "no expiry early":
        "No timer queue hands out a timer before its deadline, by the clock as it is at that moment.";
    Wakes, "one wake for each expiry":
        "A reactor calls exactly one waker for each timer that its queue hands out as expired.";
    NextExpiry, "next expiry kept":
        "No timer is due before its queue says that the next one is, none that is due is left behind, and no \
         executor sleeps past it.";
}

impl Invariant {
    /// In what its violations are measured, if they are not counted.
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Invariant::NothingEarly
            | Invariant::NothingLost
            | Invariant::SocketTimeouts
            | Invariant::IdleCpu
            | Invariant::Expiries => " ns",
            Invariant::PeaksReturn => " bytes",
            _ => "",
        }
    }
}

/// The checks of one executor.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    tallies: [Tally; Invariant::ALL.len()],
    first_violations: Mutex<Vec<String>>,
}

impl Ledger {
    /// Enters one check. `badness` is how far from the promise the world was, in the invariant's
    /// unit: zero if the promise held. `detail` is asked only about the first few violations.
    pub(crate) fn check(
        &self,
        invariant: Invariant,
        badness: u64,
        detail: impl FnOnce() -> String,
    ) {
        let count = Count {
            checks: 1,
            violations: (badness > 0).into(),
            worst: badness,
        };
        self.enter(invariant, count, detail);
    }

    /// Enters many checks at once.
    pub(crate) fn enter(
        &self,
        invariant: Invariant,
        count: Count,
        detail: impl FnOnce() -> String,
    ) {
        let tally = &self.tallies[invariant as usize];
        tally.checks.fetch_add(count.checks, Ordering::Relaxed);
        if count.violations > 0 {
            tally.worst.fetch_max(count.worst, Ordering::Relaxed);
            let before = tally
                .violations
                .fetch_add(count.violations, Ordering::Relaxed);
            if before < FIRST_VIOLATIONS_MAX {
                let violation = format!("{}: {}", invariant.label(), detail());
                lock(&self.first_violations).push(violation);
            }
        }
    }

    /// A check whose failure shows elsewhere: coming this far is what was promised.
    pub(crate) fn passed(&self, invariant: Invariant) {
        self.tallies[invariant as usize]
            .checks
            .fetch_add(1, Ordering::Relaxed);
    }

    /// A check that either holds or does not.
    pub(crate) fn holds(&self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        self.check(invariant, u64::from(!holds), detail);
    }

    /// The end of what has no reason to fail.
    pub(crate) fn ended<E: fmt::Debug>(
        &self,
        invariant: Invariant,
        what: &str,
        ended: Result<(), E>,
    ) {
        self.holds(invariant, ended.is_ok(), || format!("{what}: {ended:?}"));
    }

    /// Checks, violations and worst value of one invariant so far.
    pub(crate) fn count(&self, invariant: Invariant) -> Count {
        let tally = &self.tallies[invariant as usize];
        Count {
            checks: tally.checks.load(Ordering::Relaxed),
            violations: tally.violations.load(Ordering::Relaxed),
            worst: tally.worst.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn violations(&self) -> u64 {
        Invariant::ALL
            .iter()
            .map(|&invariant| self.count(invariant).violations)
            .sum()
    }

    /// The first few violations of each invariant in words.
    pub(crate) fn first_violations(&self) -> Vec<String> {
        lock(&self.first_violations).clone()
    }
}

/// The sums of one invariant, over one or more executors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) checks: u64,
    pub(crate) violations: u64,
    pub(crate) worst: u64,
}

impl Count {
    pub(crate) fn merge(self, other: Count) -> Count {
        Count {
            checks: self.checks + other.checks,
            violations: self.violations + other.violations,
            worst: self.worst.max(other.worst),
        }
    }
}

#[derive(Debug, Default)]
struct Tally {
    checks: AtomicU64,
    violations: AtomicU64,
    worst: AtomicU64,
}

/// Per invariant. A broken wheel breaks promises by the thousand; the first words tell the story.
const FIRST_VIOLATIONS_MAX: u64 = 3;
