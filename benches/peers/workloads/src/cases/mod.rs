//! The cases, by subject. Each documents what its rows measure, from where to where the clock runs, and what
//! is warmed up before.

mod burst;
mod channels;
mod executors;
mod expiry;
pub mod files;
mod lateness;
mod locks;
mod serve;
mod sleepers;
mod spawn;
mod tcp;
mod timers;
mod wakes;

use crate::channels::{Channels, Locks, Meshes, Notices};
use crate::files::{BulkReads, Files, Listing, Mode, Streams};
use crate::machine::Placement::{Apart, Together};
use crate::{Actions, Case, Cooperative, Network, Runtime, Slack, case};

/// Functions that list the cases of the runtimes with a trait.
macro_rules! menus {
    ($($(#[$doc:meta])* $menu:ident: $with:ident { $($name:literal => $run:expr,)* })*) => {$(
        $(#[$doc])*
        pub fn $menu<R: $with>() -> Vec<Case> {
            vec![$(case($name, $run)),*]
        }
    )*};
}

menus! {
    /// What every runtime can run.
    common: Runtime {
        "spawn-one" => spawn::one_by_one::<R>,
        "spawn-batch" => spawn::in_batches::<R>,
        "timer-1k-5s" => || timers::create_same::<R>("timer-1k-5s", 1_000),
        "timer-10k-5s" => || timers::create_same::<R>("timer-10k-5s", 10_000),
        "timer-100k-5s" => || timers::create_same::<R>("timer-100k-5s", 100_000),
        "timer-1k-mixed" => || timers::create_mixed::<R>("timer-1k-mixed", 1_000),
        "timer-10k-mixed" => || timers::create_mixed::<R>("timer-10k-mixed", 10_000),
        "timer-100k-mixed" => || timers::create_mixed::<R>("timer-100k-mixed", 100_000),
        "timeout-yield" => timers::timeout_around_yield::<R>,
        "expire-spread" => expiry::spread_over_a_second::<R>,
        "expire-bystander" => expiry::beside_large_allocations::<R>,
        "expire-soon" => expiry::spread_soon::<R>,
        "expire-1m" => expiry::a_million_over_ten_seconds::<R>,
        "expire-burst" => expiry::within_a_millisecond::<R>,
        "overshoot" => lateness::overshoot::<R>,
        "wake-local" => wakes::between_two_tasks::<R>,
        "wake-idle" => || wakes::between_idle_executors::<R>(Together),
        "wake-idle-apart" => || wakes::between_idle_executors::<R>(Apart),
        "executor-start" => executors::start_and_join::<R>,
        "executor-drop" => executors::drop_with_sleeping_tasks::<R>,
        "executor-memory" => executors::memory::<R>,
        "task-memory" => executors::memory_per_sleeping_task::<R>,
        "idle-sleepers" => executors::idle_with_sleepers::<R>,
        "idle-none" => executors::idle_with_nothing::<R>,
    }

    /// What runtimes with sockets can run besides.
    network: Network {
        "burst-ping" => burst::ping_beside_burst::<R>,
        "tcp" => tcp::ping_pong::<R>,
        "tcp-timeout" => tcp::ping_pong_with_timeouts::<R>,
        "tcp-unread" => tcp::pieces_that_wait::<R>,
        "udp" => tcp::datagram_ping_pong::<R>,
        "bulk" => tcp::bulk::<R>,
        "serve-echo" => serve::echo::<R>,
        "serve-echo-timeout" => serve::echo_with_timeouts::<R>,
        "serve-sink" => serve::sink::<R>,
        "serve-source" => serve::source::<R>,
        "serve-accept" => serve::accept::<R>,
        "serve-datagrams" => serve::datagrams::<R>,
    }

    /// What runtimes whose tasks can yield properly can run besides.
    cooperative: Cooperative {
        "yield-now" => spawn::yield_in_turn::<R>,
        "late-yield-now" => lateness::beside_self_waking_task::<R>,
        "wake-busy-yield-now" => wakes::into_self_waking_executor::<R>,
        "yield-queue" => spawn::yield_queue_in_turn::<R>,
        "late-yield-if-needed" => lateness::beside_cooperative_task::<R>,
        "wake-busy-yield-if-needed" => wakes::into_cooperative_executor::<R>,
    }

    /// What runtimes with timed actions can run besides.
    actions: Actions {
        "action-cancel" => timers::action_cancel::<R>,
        "action-destroy" => timers::action_destroy::<R>,
        "action-rearm" => timers::action_rearm::<R>,
    }

    /// What runtimes that may be told to be late can run besides.
    slack: Slack {
        "expire-slack-100us" => expiry::spread_with_a_little_slack::<R>,
        "expire-slack-1ms" => expiry::spread_with_slack_of_a_tick::<R>,
    }

    /// What runtimes with channels can run besides.
    channels: Channels {
        "local-ping-pong" => channels::local_ping_pong::<R>,
        "local-bounded" => channels::local_bounded::<R>,
        "local-unbounded" => channels::local_unbounded::<R>,
        "shared-stream" => || channels::shared_stream::<R>(Together),
        "shared-stream-apart" => || channels::shared_stream::<R>(Apart),
        "shared-single" => || channels::shared_single::<R>(Together),
        "shared-single-apart" => || channels::shared_single::<R>(Apart),
        "shared-rtt" => || channels::shared_round_trip::<R>(Together),
        "shared-rtt-apart" => || channels::shared_round_trip::<R>(Apart),
        "local-memory" => channels::local_memory::<R>,
        "shared-memory" => channels::shared_memory::<R>,
    }

    /// What runtimes that connect groups of executors can run besides.
    meshes: Meshes {
        "mesh-2" => channels::mesh_of_2::<R>,
        "mesh-8" => channels::mesh_of_8::<R>,
    }

    /// What runtimes with locks can run besides.
    locks: Locks {
        "semaphore-alone" => locks::semaphore_alone::<R>,
        "lock-alone" => locks::lock_alone::<R>,
        "semaphore-100" => locks::semaphore_of_100::<R>,
        "lock-100" => locks::lock_of_100::<R>,
    }

    /// What runtimes with oneshot and broadcast channels and with cancellation can run besides.
    notices: Notices {
        "oneshot" => locks::oneshot::<R>,
        "broadcast-1" => || locks::broadcast::<R>(1, 200),
        "broadcast-10" => || locks::broadcast::<R>(10, 50),
        "broadcast-100" => || locks::broadcast::<R>(100, 10),
        "cancel-tree" => locks::cancel_tree::<R>,
    }

    /// What runtimes with files can run besides.
    files: Files {
        "direct-1" => || files::random_reads::<R>(Mode::Direct, 1),
        "direct-8" => || files::random_reads::<R>(Mode::Direct, 8),
        "direct-32" => || files::random_reads::<R>(Mode::Direct, 32),
        "buffered-1" => || files::random_reads::<R>(Mode::Buffered, 1),
        "buffered-8" => || files::random_reads::<R>(Mode::Buffered, 8),
        "buffered-32" => || files::random_reads::<R>(Mode::Buffered, 32),
        "append-one" => files::append_one_by_one::<R>,
        "append-group" => files::append_in_groups::<R>,
        "open-stat-close" => files::open_stat_close::<R>,
    }

    /// What runtimes with streams of files can run besides.
    streams: Streams {
        "stream-read-64k" => || files::stream_read::<R>(files::BUFFERS[0]),
        "stream-read-512k" => || files::stream_read::<R>(files::BUFFERS[1]),
        "stream-read-1m" => || files::stream_read::<R>(files::BUFFERS[2]),
        "stream-write-64k" => || files::stream_write::<R>(files::BUFFERS[0]),
        "stream-write-512k" => || files::stream_write::<R>(files::BUFFERS[1]),
        "stream-write-1m" => || files::stream_write::<R>(files::BUFFERS[2]),
        "cached-read-64k" => files::cached_read::<R>,
        "cached-write-64k" => files::cached_write::<R>,
    }

    /// The same cases for those that have none.
    lanes: Files {
        "stream-read-64k" => || files::lanes_read::<R>(files::BUFFERS[0]),
        "stream-read-512k" => || files::lanes_read::<R>(files::BUFFERS[1]),
        "stream-read-1m" => || files::lanes_read::<R>(files::BUFFERS[2]),
        "stream-write-64k" => || files::lanes_write::<R>(files::BUFFERS[0]),
        "stream-write-512k" => || files::lanes_write::<R>(files::BUFFERS[1]),
        "stream-write-1m" => || files::lanes_write::<R>(files::BUFFERS[2]),
    }

    /// What runtimes that list directories can run besides.
    listing: Listing {
        "list" => files::list::<R>,
    }

    /// What runtimes with bulk reads can run besides.
    bulk_reads: BulkReads {
        "read-many" => files::read_many::<R>,
    }
}
