//! What is counted in each executor, and the sums over the whole run: one list of both.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::counts::{bytes, grouped};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Of one executor, since its start unless it says otherwise.
        #[derive(Debug, Default)]
        pub(crate) struct Gauges {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)*
            /// Futures handed to the timer queue and not dropped yet. Signed: one that is dropped twice shows as a
            /// negative number instead of a huge one.
            pub(crate) live_timers: AtomicI64,
            /// Messages published and not settled now, as their clients see it.
            pub(crate) in_flight: AtomicU64,
            /// Connections that are still to be opened. They take memory, which is judged later.
            pub(crate) quic_connections_to_come: AtomicU64,
        }

        /// Over the whole run.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) struct Totals {
            $($(#[$doc])* pub(crate) $name: u64,)*
            pub(crate) live_timers_max: u64,
            pub(crate) in_flight_max: u64,
            /// Times the whole process was stopped.
            pub(crate) stalls: u64,
            pub(crate) violations: u64,
        }

        impl Totals {
            pub(crate) fn add(&mut self, gauges: &Gauges) {
                $(self.$name += gauges.$name.load(Ordering::Relaxed);)*
            }

            /// Adds what another run has done.
            #[cfg(feature = "simulation")]
            pub(crate) fn join(&mut self, other: &Totals) {
                $(self.$name += other.$name;)*
                self.live_timers_max = self.live_timers_max.max(other.live_timers_max);
                self.in_flight_max = self.in_flight_max.max(other.in_flight_max);
            }
        }
    };
}

counters! {
    timers_armed,
    timers_rearmed,
    timers_cancelled,
    timers_fired,
    messages_published,
    /// In time.
    messages_acked,
    messages_redelivered,
    /// Deadlines of messages that passed.
    message_timeouts,
    /// Given up after their last try.
    messages_dead,
    datagrams_sent,
    /// Not sent, on purpose.
    datagrams_lost,
    /// Sent again because no acknowledgement came.
    datagrams_repeated,
    bytes_delivered,
    file_bytes_written,
    file_bytes_read,
    file_syncs,
    /// Processes that were killed while they appended to a file.
    crashes,
    /// Shards that were asked to die.
    shards_killed,
    /// Changes of the shard that answers on a connection.
    connections_moved,
    /// By an overloaded shard.
    requests_refused,
    quic_connections,
    /// Streams that came back whole.
    quic_streams,
    /// Changes of the address of a client.
    quic_moves,
}

/// Adds one to a gauge.
pub(crate) fn bump(gauge: &AtomicU64) {
    add(gauge, 1);
}

/// Adds to a gauge.
pub(crate) fn add(gauge: &AtomicU64, count: u64) {
    gauge.fetch_add(count, Ordering::Relaxed);
}

/// What was done, in a few lines: one for each kind of which anything was done, and that of the timers in any case.
#[rustfmt::skip]
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: [(&str, &[(u64, &str)]); 6] = [
            ("timers:", &[
                (self.timers_armed, "armed"), (self.timers_rearmed, "re-armed"), (self.timers_cancelled, "cancelled"),
                (self.timers_fired, "fired"), (self.live_timers_max, "live at the most"),
            ]),
            ("queue: ", &[
                (self.messages_published, "messages published"), (self.messages_acked, "acked"),
                (self.messages_redelivered, "redelivered"), (self.messages_dead, "dead"),
                (self.in_flight_max, "in flight at the most"),
            ]),
            ("udp:   ", &[
                (self.datagrams_sent, "datagrams sent"), (self.datagrams_repeated, "of them again"),
                (self.datagrams_lost, "lost on purpose"), (self.bytes_delivered, "bytes delivered"),
            ]),
            ("files: ", &[
                (self.file_bytes_written, "bytes written"), (self.file_bytes_read, "bytes read"),
                (self.file_syncs, "syncs"), (self.crashes, "processes killed while they appended"),
            ]),
            ("shards:", &[
                (self.shards_killed, "killed"), (self.connections_moved, "connections moved"),
                (self.requests_refused, "requests refused"),
            ]),
            ("quic:  ", &[
                (self.quic_connections, "connections"), (self.quic_streams, "streams came back whole"),
                (self.quic_moves, "moves of a hundred connections"),
            ]),
        ];
        for (head, counts) in lines {
            if counts[0].0 > 0 || head == "timers:" {
                let counts = counts.iter().map(|&(count, what)| match what.strip_prefix("bytes ") {
                    Some(what) => format!("{} {what}", bytes(count)),
                    None => format!("{} {what}", grouped(count)),
                });
                writeln!(f, "{head} {}", counts.collect::<Vec<_>>().join(", "))?;
            }
        }
        match self.stalls {
            0 => Ok(()),
            stalls => writeln!(f, "stalls: the process was stopped {stalls} times"),
        }
    }
}
