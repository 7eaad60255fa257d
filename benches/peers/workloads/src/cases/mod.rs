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
mod traffic;
mod wakes;

use crate::channels::{Channels, Locks, Meshes, Notices};
use crate::files::{BulkReads, Files, Listing, Mode, Streams};
use crate::machine::Placement::{Apart, Together};
use crate::{Actions, Case, Cooperative, Network, Runtime, Slack};

/// What every runtime can run.
pub fn common<R: Runtime>() -> Vec<Case> {
    vec![
        Case {
            name: "spawn-one",
            run: spawn::one_by_one::<R>,
        },
        Case {
            name: "spawn-batch",
            run: spawn::in_batches::<R>,
        },
        Case {
            name: "timer-1k-5s",
            run: timers::create_1k_same::<R>,
        },
        Case {
            name: "timer-10k-5s",
            run: timers::create_10k_same::<R>,
        },
        Case {
            name: "timer-100k-5s",
            run: timers::create_100k_same::<R>,
        },
        Case {
            name: "timer-1k-mixed",
            run: timers::create_1k_mixed::<R>,
        },
        Case {
            name: "timer-10k-mixed",
            run: timers::create_10k_mixed::<R>,
        },
        Case {
            name: "timer-100k-mixed",
            run: timers::create_100k_mixed::<R>,
        },
        Case {
            name: "timeout-yield",
            run: timers::timeout_around_yield::<R>,
        },
        Case {
            name: "expire-spread",
            run: expiry::spread_over_a_second::<R>,
        },
        Case {
            name: "expire-bystander",
            run: expiry::beside_large_allocations::<R>,
        },
        Case {
            name: "expire-soon",
            run: expiry::spread_soon::<R>,
        },
        Case {
            name: "expire-1m",
            run: expiry::a_million_over_ten_seconds::<R>,
        },
        Case {
            name: "expire-burst",
            run: expiry::within_a_millisecond::<R>,
        },
        Case {
            name: "overshoot",
            run: lateness::overshoot::<R>,
        },
        Case {
            name: "wake-local",
            run: wakes::between_two_tasks::<R>,
        },
        Case {
            name: "wake-idle",
            run: || wakes::between_idle_executors::<R>(Together),
        },
        Case {
            name: "wake-idle-apart",
            run: || wakes::between_idle_executors::<R>(Apart),
        },
        Case {
            name: "executor-start",
            run: executors::start_and_join::<R>,
        },
        Case {
            name: "executor-drop",
            run: executors::drop_with_sleeping_tasks::<R>,
        },
        Case {
            name: "executor-memory",
            run: executors::memory::<R>,
        },
        Case {
            name: "task-memory",
            run: executors::memory_per_sleeping_task::<R>,
        },
        Case {
            name: "idle-sleepers",
            run: executors::idle_with_sleepers::<R>,
        },
        Case {
            name: "idle-none",
            run: executors::idle_with_nothing::<R>,
        },
    ]
}

/// What runtimes with sockets can run besides.
pub fn network<R: Network>() -> Vec<Case> {
    vec![
        Case {
            name: "burst-ping",
            run: burst::ping_beside_burst::<R>,
        },
        Case {
            name: "tcp",
            run: tcp::ping_pong::<R>,
        },
        Case {
            name: "tcp-timeout",
            run: tcp::ping_pong_with_timeouts::<R>,
        },
        Case {
            name: "udp",
            run: traffic::datagram_ping_pong::<R>,
        },
        Case {
            name: "bulk",
            run: traffic::bulk::<R>,
        },
        Case {
            name: "serve-echo",
            run: serve::echo::<R>,
        },
        Case {
            name: "serve-echo-timeout",
            run: serve::echo_with_timeouts::<R>,
        },
        Case {
            name: "serve-sink",
            run: serve::sink::<R>,
        },
        Case {
            name: "serve-source",
            run: serve::source::<R>,
        },
        Case {
            name: "serve-accept",
            run: serve::accept::<R>,
        },
        Case {
            name: "serve-datagrams",
            run: serve::datagrams::<R>,
        },
    ]
}

/// What runtimes whose tasks can yield properly can run besides.
pub fn cooperative<R: Cooperative>() -> Vec<Case> {
    vec![
        Case {
            name: "yield-now",
            run: spawn::yield_in_turn::<R>,
        },
        Case {
            name: "late-yield-now",
            run: lateness::beside_self_waking_task::<R>,
        },
        Case {
            name: "wake-busy-yield-now",
            run: wakes::into_self_waking_executor::<R>,
        },
        Case {
            name: "yield-queue",
            run: spawn::yield_queue_in_turn::<R>,
        },
        Case {
            name: "late-yield-if-needed",
            run: lateness::beside_cooperative_task::<R>,
        },
        Case {
            name: "wake-busy-yield-if-needed",
            run: wakes::into_cooperative_executor::<R>,
        },
    ]
}

/// What runtimes with timed actions can run besides.
pub fn actions<R: Actions>() -> Vec<Case> {
    vec![
        Case {
            name: "action-cancel",
            run: timers::action_cancel::<R>,
        },
        Case {
            name: "action-destroy",
            run: timers::action_destroy::<R>,
        },
        Case {
            name: "action-rearm",
            run: timers::action_rearm::<R>,
        },
    ]
}

/// What runtimes that may be told to be late can run besides.
pub fn slack<R: Slack>() -> Vec<Case> {
    vec![
        Case {
            name: "expire-slack-100us",
            run: expiry::spread_with_a_little_slack::<R>,
        },
        Case {
            name: "expire-slack-1ms",
            run: expiry::spread_with_slack_of_a_tick::<R>,
        },
    ]
}

/// What runtimes with channels can run besides.
pub fn channels<R: Channels>() -> Vec<Case> {
    vec![
        Case {
            name: "local-ping-pong",
            run: channels::local_ping_pong::<R>,
        },
        Case {
            name: "local-bounded",
            run: channels::local_bounded::<R>,
        },
        Case {
            name: "local-unbounded",
            run: channels::local_unbounded::<R>,
        },
        Case {
            name: "shared-stream",
            run: || channels::shared_stream::<R>(Together),
        },
        Case {
            name: "shared-stream-apart",
            run: || channels::shared_stream::<R>(Apart),
        },
        Case {
            name: "shared-single",
            run: || channels::shared_single::<R>(Together),
        },
        Case {
            name: "shared-single-apart",
            run: || channels::shared_single::<R>(Apart),
        },
        Case {
            name: "shared-rtt",
            run: || channels::shared_round_trip::<R>(Together),
        },
        Case {
            name: "shared-rtt-apart",
            run: || channels::shared_round_trip::<R>(Apart),
        },
        Case {
            name: "local-memory",
            run: channels::local_memory::<R>,
        },
        Case {
            name: "shared-memory",
            run: channels::shared_memory::<R>,
        },
    ]
}

/// What runtimes that connect groups of executors can run besides.
pub fn meshes<R: Meshes>() -> Vec<Case> {
    vec![
        Case {
            name: "mesh-2",
            run: channels::mesh_of_2::<R>,
        },
        Case {
            name: "mesh-8",
            run: channels::mesh_of_8::<R>,
        },
    ]
}

/// What runtimes with locks can run besides.
pub fn locks<R: Locks>() -> Vec<Case> {
    vec![
        Case {
            name: "semaphore-alone",
            run: locks::semaphore_alone::<R>,
        },
        Case {
            name: "lock-alone",
            run: locks::lock_alone::<R>,
        },
        Case {
            name: "semaphore-100",
            run: locks::semaphore_of_100::<R>,
        },
        Case {
            name: "lock-100",
            run: locks::lock_of_100::<R>,
        },
    ]
}

/// What runtimes with oneshot and broadcast channels and with cancellation can run besides.
pub fn notices<R: Notices>() -> Vec<Case> {
    vec![
        Case {
            name: "oneshot",
            run: locks::oneshot::<R>,
        },
        Case {
            name: "broadcast-1",
            run: locks::broadcast_to_1::<R>,
        },
        Case {
            name: "broadcast-10",
            run: locks::broadcast_to_10::<R>,
        },
        Case {
            name: "broadcast-100",
            run: locks::broadcast_to_100::<R>,
        },
        Case {
            name: "cancel-tree",
            run: locks::cancel_tree::<R>,
        },
    ]
}

/// What runtimes with files can run besides.
pub fn files<R: Files>() -> Vec<Case> {
    vec![
        Case {
            name: "direct-1",
            run: || files::random_reads::<R>(Mode::Direct, 1),
        },
        Case {
            name: "direct-8",
            run: || files::random_reads::<R>(Mode::Direct, 8),
        },
        Case {
            name: "direct-32",
            run: || files::random_reads::<R>(Mode::Direct, 32),
        },
        Case {
            name: "buffered-1",
            run: || files::random_reads::<R>(Mode::Buffered, 1),
        },
        Case {
            name: "buffered-8",
            run: || files::random_reads::<R>(Mode::Buffered, 8),
        },
        Case {
            name: "buffered-32",
            run: || files::random_reads::<R>(Mode::Buffered, 32),
        },
        Case {
            name: "append-one",
            run: files::append_one_by_one::<R>,
        },
        Case {
            name: "append-group",
            run: files::append_in_groups::<R>,
        },
        Case {
            name: "open-stat-close",
            run: files::open_stat_close::<R>,
        },
    ]
}

/// What runtimes with streams of files can run besides.
pub fn streams<R: Streams>() -> Vec<Case> {
    vec![
        Case {
            name: "stream-read-64k",
            run: || files::stream_read::<R>(files::BUFFERS[0]),
        },
        Case {
            name: "stream-read-512k",
            run: || files::stream_read::<R>(files::BUFFERS[1]),
        },
        Case {
            name: "stream-read-1m",
            run: || files::stream_read::<R>(files::BUFFERS[2]),
        },
        Case {
            name: "stream-write-64k",
            run: || files::stream_write::<R>(files::BUFFERS[0]),
        },
        Case {
            name: "stream-write-512k",
            run: || files::stream_write::<R>(files::BUFFERS[1]),
        },
        Case {
            name: "stream-write-1m",
            run: || files::stream_write::<R>(files::BUFFERS[2]),
        },
        Case {
            name: "cached-read-64k",
            run: files::cached_read::<R>,
        },
        Case {
            name: "cached-write-64k",
            run: files::cached_write::<R>,
        },
    ]
}

/// The same cases for those that have none.
pub fn lanes<R: Files>() -> Vec<Case> {
    vec![
        Case {
            name: "stream-read-64k",
            run: || files::lanes_read::<R>(files::BUFFERS[0]),
        },
        Case {
            name: "stream-read-512k",
            run: || files::lanes_read::<R>(files::BUFFERS[1]),
        },
        Case {
            name: "stream-read-1m",
            run: || files::lanes_read::<R>(files::BUFFERS[2]),
        },
        Case {
            name: "stream-write-64k",
            run: || files::lanes_write::<R>(files::BUFFERS[0]),
        },
        Case {
            name: "stream-write-512k",
            run: || files::lanes_write::<R>(files::BUFFERS[1]),
        },
        Case {
            name: "stream-write-1m",
            run: || files::lanes_write::<R>(files::BUFFERS[2]),
        },
    ]
}

/// What runtimes that list directories can run besides.
pub fn listing<R: Listing>() -> Vec<Case> {
    vec![Case {
        name: "list",
        run: files::list::<R>,
    }]
}

/// What runtimes with bulk reads can run besides.
pub fn bulk_reads<R: BulkReads>() -> Vec<Case> {
    vec![Case {
        name: "read-many",
        run: files::read_many::<R>,
    }]
}
