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
use crate::{Actions, Case, Cooperative, Network, Runtime, Slack, case};

/// What every runtime can run.
#[rustfmt::skip]
pub fn common<R: Runtime>() -> Vec<Case> {
    vec![
        case("spawn-one", spawn::one_by_one::<R>),
        case("spawn-batch", spawn::in_batches::<R>),
        case("timer-1k-5s", || timers::create_same::<R>("timer-1k-5s", 1_000)),
        case("timer-10k-5s", || timers::create_same::<R>("timer-10k-5s", 10_000)),
        case("timer-100k-5s", || timers::create_same::<R>("timer-100k-5s", 100_000)),
        case("timer-1k-mixed", || timers::create_mixed::<R>("timer-1k-mixed", 1_000)),
        case("timer-10k-mixed", || timers::create_mixed::<R>("timer-10k-mixed", 10_000)),
        case("timer-100k-mixed", || timers::create_mixed::<R>("timer-100k-mixed", 100_000)),
        case("timeout-yield", timers::timeout_around_yield::<R>),
        case("expire-spread", expiry::spread_over_a_second::<R>),
        case("expire-bystander", expiry::beside_large_allocations::<R>),
        case("expire-soon", expiry::spread_soon::<R>),
        case("expire-1m", expiry::a_million_over_ten_seconds::<R>),
        case("expire-burst", expiry::within_a_millisecond::<R>),
        case("overshoot", lateness::overshoot::<R>),
        case("wake-local", wakes::between_two_tasks::<R>),
        case("wake-idle", || wakes::between_idle_executors::<R>(Together)),
        case("wake-idle-apart", || wakes::between_idle_executors::<R>(Apart)),
        case("executor-start", executors::start_and_join::<R>),
        case("executor-drop", executors::drop_with_sleeping_tasks::<R>),
        case("executor-memory", executors::memory::<R>),
        case("task-memory", executors::memory_per_sleeping_task::<R>),
        case("idle-sleepers", executors::idle_with_sleepers::<R>),
        case("idle-none", executors::idle_with_nothing::<R>),
    ]
}

/// What runtimes with sockets can run besides.
pub fn network<R: Network>() -> Vec<Case> {
    vec![
        case("burst-ping", burst::ping_beside_burst::<R>),
        case("tcp", tcp::ping_pong::<R>),
        case("tcp-timeout", tcp::ping_pong_with_timeouts::<R>),
        case("tcp-unread", tcp::pieces_that_wait::<R>),
        case("udp", traffic::datagram_ping_pong::<R>),
        case("bulk", traffic::bulk::<R>),
        case("serve-echo", serve::echo::<R>),
        case("serve-echo-timeout", serve::echo_with_timeouts::<R>),
        case("serve-sink", serve::sink::<R>),
        case("serve-source", serve::source::<R>),
        case("serve-accept", serve::accept::<R>),
        case("serve-datagrams", serve::datagrams::<R>),
    ]
}

/// What runtimes whose tasks can yield properly can run besides.
pub fn cooperative<R: Cooperative>() -> Vec<Case> {
    vec![
        case("yield-now", spawn::yield_in_turn::<R>),
        case("late-yield-now", lateness::beside_self_waking_task::<R>),
        case("wake-busy-yield-now", wakes::into_self_waking_executor::<R>),
        case("yield-queue", spawn::yield_queue_in_turn::<R>),
        case(
            "late-yield-if-needed",
            lateness::beside_cooperative_task::<R>,
        ),
        case(
            "wake-busy-yield-if-needed",
            wakes::into_cooperative_executor::<R>,
        ),
    ]
}

/// What runtimes with timed actions can run besides.
pub fn actions<R: Actions>() -> Vec<Case> {
    vec![
        case("action-cancel", timers::action_cancel::<R>),
        case("action-destroy", timers::action_destroy::<R>),
        case("action-rearm", timers::action_rearm::<R>),
    ]
}

/// What runtimes that may be told to be late can run besides.
pub fn slack<R: Slack>() -> Vec<Case> {
    vec![
        case(
            "expire-slack-100us",
            expiry::spread_with_a_little_slack::<R>,
        ),
        case("expire-slack-1ms", expiry::spread_with_slack_of_a_tick::<R>),
    ]
}

/// What runtimes with channels can run besides.
#[rustfmt::skip]
pub fn channels<R: Channels>() -> Vec<Case> {
    vec![
        case("local-ping-pong", channels::local_ping_pong::<R>),
        case("local-bounded", channels::local_bounded::<R>),
        case("local-unbounded", channels::local_unbounded::<R>),
        case("shared-stream", || channels::shared_stream::<R>(Together)),
        case("shared-stream-apart", || channels::shared_stream::<R>(Apart)),
        case("shared-single", || channels::shared_single::<R>(Together)),
        case("shared-single-apart", || channels::shared_single::<R>(Apart)),
        case("shared-rtt", || channels::shared_round_trip::<R>(Together)),
        case("shared-rtt-apart", || channels::shared_round_trip::<R>(Apart)),
        case("local-memory", channels::local_memory::<R>),
        case("shared-memory", channels::shared_memory::<R>),
    ]
}

/// What runtimes that connect groups of executors can run besides.
pub fn meshes<R: Meshes>() -> Vec<Case> {
    vec![
        case("mesh-2", channels::mesh_of_2::<R>),
        case("mesh-8", channels::mesh_of_8::<R>),
    ]
}

/// What runtimes with locks can run besides.
#[rustfmt::skip]
pub fn locks<R: Locks>() -> Vec<Case> {
    vec![
        case("semaphore-alone", locks::semaphore_alone::<R>),
        case("lock-alone", locks::lock_alone::<R>),
        case("semaphore-100", locks::semaphore_of_100::<R>),
        case("lock-100", locks::lock_of_100::<R>),
    ]
}

/// What runtimes with oneshot and broadcast channels and with cancellation can run besides.
#[rustfmt::skip]
pub fn notices<R: Notices>() -> Vec<Case> {
    vec![
        case("oneshot", locks::oneshot::<R>),
        case("broadcast-1", || locks::broadcast::<R>(1, 200)),
        case("broadcast-10", || locks::broadcast::<R>(10, 50)),
        case("broadcast-100", || locks::broadcast::<R>(100, 10)),
        case("cancel-tree", locks::cancel_tree::<R>),
    ]
}

/// What runtimes with files can run besides.
#[rustfmt::skip]
pub fn files<R: Files>() -> Vec<Case> {
    vec![
        case("direct-1", || files::random_reads::<R>(Mode::Direct, 1)),
        case("direct-8", || files::random_reads::<R>(Mode::Direct, 8)),
        case("direct-32", || files::random_reads::<R>(Mode::Direct, 32)),
        case("buffered-1", || files::random_reads::<R>(Mode::Buffered, 1)),
        case("buffered-8", || files::random_reads::<R>(Mode::Buffered, 8)),
        case("buffered-32", || files::random_reads::<R>(Mode::Buffered, 32)),
        case("append-one", files::append_one_by_one::<R>),
        case("append-group", files::append_in_groups::<R>),
        case("open-stat-close", files::open_stat_close::<R>),
    ]
}

/// What runtimes with streams of files can run besides.
#[rustfmt::skip]
pub fn streams<R: Streams>() -> Vec<Case> {
    vec![
        case("stream-read-64k", || files::stream_read::<R>(files::BUFFERS[0])),
        case("stream-read-512k", || files::stream_read::<R>(files::BUFFERS[1])),
        case("stream-read-1m", || files::stream_read::<R>(files::BUFFERS[2])),
        case("stream-write-64k", || files::stream_write::<R>(files::BUFFERS[0])),
        case("stream-write-512k", || files::stream_write::<R>(files::BUFFERS[1])),
        case("stream-write-1m", || files::stream_write::<R>(files::BUFFERS[2])),
        case("cached-read-64k", files::cached_read::<R>),
        case("cached-write-64k", files::cached_write::<R>),
    ]
}

/// The same cases for those that have none.
#[rustfmt::skip]
pub fn lanes<R: Files>() -> Vec<Case> {
    vec![
        case("stream-read-64k", || files::lanes_read::<R>(files::BUFFERS[0])),
        case("stream-read-512k", || files::lanes_read::<R>(files::BUFFERS[1])),
        case("stream-read-1m", || files::lanes_read::<R>(files::BUFFERS[2])),
        case("stream-write-64k", || files::lanes_write::<R>(files::BUFFERS[0])),
        case("stream-write-512k", || files::lanes_write::<R>(files::BUFFERS[1])),
        case("stream-write-1m", || files::lanes_write::<R>(files::BUFFERS[2])),
    ]
}

/// What runtimes that list directories can run besides.
pub fn listing<R: Listing>() -> Vec<Case> {
    vec![case("list", files::list::<R>)]
}

/// What runtimes with bulk reads can run besides.
pub fn bulk_reads<R: BulkReads>() -> Vec<Case> {
    vec![case("read-many", files::read_many::<R>)]
}
