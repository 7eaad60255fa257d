//! A thread-per-core async runtime for Linux, on io_uring or epoll.
//!
//! One [`LocalExecutor`] runs on one thread: it polls its tasks without locks, shares an io_uring with
//! the kernel (or uses [epoll](Driver) where that is forbidden), and sleeps when there is nothing to do. A
//! program that uses several cores runs several executors, which exchange messages through channels.
//!
//! ```
//! use glommio::{LocalExecutor, spawn_local, timer::sleep};
//! use std::time::Duration;
//!
//! let sum = LocalExecutor::default().run(async {
//!     let slow = spawn_local(async {
//!         sleep(Duration::from_millis(1)).await;
//!         1
//!     });
//!     slow.await + 1
//! });
//! assert_eq!(sum, 2);
//! ```
//!
//! # A tour
//!
//! | to | see |
//! |---|---|
//! | make an executor, or one for each core | [`LocalExecutorBuilder`], [`LocalExecutorPoolBuilder`], [`Placement`] |
//! | spawn tasks, await them, cancel them | [`spawn_local`], [`Task`], [`task`] |
//! | wait, tick, limit the time that something takes | [`timer`], [`future`] |
//! | communicate over TCP, UDP and Unix sockets | [`net`] |
//! | read and write files, past the page cache and through it | [`io`] |
//! | pass values between tasks and between executors | [`channels`] |
//! | lock, count, close, cancel | [`sync`] |
//! | divide the time of a thread | [`Shares`], [`Latency`], [`controllers`] |
//! | refuse requests when there are too many | [`overload`] |
//! | make blocking calls | [`ExecutorProxy::spawn_blocking`] |
//! | finish on `SIGTERM` or Ctrl-C | [`signal`] |
//! | start other programs | [`process`] |
//! | find out what the executor does | [`executor()`], [`ExecutorStats`], [`StallDetectionHandler`], the features `metrics` and `debugging` |
//! | test, in a time that the test moves | [`time`], the feature `simulation` |
//!
//! Most methods that need an executor find that of the calling thread, through [`executor()`]. They
//! panic with `no LocalExecutor is running on this thread` where there is none.
//!
//! # A turn
//!
//! ```text
//!   ┌─▶ submit ────────▶ completions ─▶ timers ────▶ wakes ───────▶ tasks ─────────────┐
//!   │   what tasks       wake their     that are     from other     by task queue,     │
//!   │   started; sleep   tasks          due, up to   threads        until preempted or │
//!   │   if none is                      256                         none is runnable   │
//!   │   runnable                                                                       │
//!   └──────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! With io_uring, the executor enters the kernel at most once in an ordinary turn, to submit and to
//! sleep. Sockets are read and written in the tasks themselves, by one system call for each `recv`
//! and `send`, and use the driver only to wait until they are ready. Nothing interrupts a task
//! between two awaits: a loop that runs for long calls [`yield_if_needed`].
//!
//! # Features
//!
//! All are off by default.
//!
//! | feature | adds |
//! |---|---|
//! | `timing-wheel` | timers in a staged timing wheel (an inline vector under 256 timers, a hierarchical wheel above) instead of an ordered map |
//! | `macros` | `#[glommio::main]`, `#[glommio::test]`, `select!`, `join!` and `try_join!` |
//! | `metrics` | counters of each executor, for any thread to read: `glommio::metrics` |
//! | `debugging` | what every task waits for: `debugging`; counting and tracing of tasks: `task::debugging` |
//! | `simulation` | `simulation`: nodes, a network, disks and faults, as a seed decides; a clock that tests pause and move: `time` |
//! | `native-tls`, `nightly` | nothing; accepted for manifests written for 0.9 |
//!
//! `audit` and `bench` are for the tests and benchmarks of this crate. [`BUILD`] says which
//! features a build has.
//!
//! # Compatibility
//!
//! It is a drop-in replacement for glommio 0.9 and independent of it: all that a program needs is a
//! `[patch.crates-io]` entry in its root manifest. `docs/compatibility.md` in the repository lists the intended
//! differences; `docs/SUMMARY.md` is the table of contents of the book.

#![deny(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(target_os = "linux"))]
compile_error!("glommio needs Linux: it waits with io_uring or epoll");

#[cfg(test)]
#[macro_use(run_test)]
extern crate glommio_macros;

#[macro_use]
mod impl_debug;

#[cfg(feature = "audit")]
#[doc(hidden)]
pub mod audit;
mod blocking;
#[cfg(doctest)]
mod book;
pub mod channels;
mod clock;
pub mod controllers;
#[cfg(feature = "debugging")]
#[cfg_attr(docsrs, doc(cfg(feature = "debugging")))]
pub mod debugging;
mod error;
mod executor;
mod fair_queue;
pub mod future;
pub mod io;
mod loom;
mod macros;
mod mailbox;
mod memory;
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub mod metrics;
pub mod net;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod nop;
mod noted;
pub mod overload;
mod panic;
pub mod process;
mod random;
mod reactor;
mod ring;
mod shares;
pub mod signal;
#[cfg(feature = "simulation")]
mod simulated;
#[cfg(feature = "simulation")]
#[cfg_attr(docsrs, doc(cfg(feature = "simulation")))]
pub mod simulation;
mod slice_ext;
mod stats;
pub mod sync;
mod sys;
pub mod task;
pub mod time;
pub mod timer;
mod timer_queue;
mod tuning;
mod version;
mod wait_queue;
mod waiters;

pub use enclose::enclose;
pub use scopeguard::defer;

pub use crate::error::{
    BuilderErrorKind, ExecutorErrorKind, GlommioError, PanicPayload, QueueErrorKind,
    ReactorErrorKind, ResourceType, Result,
};
pub use crate::executor::placement::{CpuLocation, CpuSet, Placement, PoolPlacement};
pub use crate::executor::{
    DefaultStallDetectionHandler, ExecutorJoinHandle, ExecutorProxy, LocalExecutor,
    LocalExecutorBuilder, LocalExecutorPoolBuilder, PanicPolicy, PoolThreadHandles, ScopedTask,
    ShardExitPolicy, StallDetection, StallDetectionHandler, Task, TaskBuilder, Unconstrained,
    allocate_dma_buffer, consume_budget, executor, spawn_local, spawn_local_into,
    spawn_scoped_local, spawn_scoped_local_into, unconstrained, yield_if_needed,
};
#[doc(hidden)]
pub use crate::macros::buggify as __buggify;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use crate::macros::support as __private;
#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
pub use crate::macros::{main, select, test};
pub use crate::memory::allocate_dma_buffer_global;
pub use crate::random::rng_seed;
pub use crate::reactor::TimerPrecision;
pub use crate::ring::Driver;
pub use crate::shares::{Latency, Shares, SharesManager, TaskQueueHandle};
pub use crate::slice_ext::{ByteSliceExt, ByteSliceMutExt};
pub use crate::stats::{ExecutorStats, IoStats, RingIoStats, TaskQueueStats};
#[doc(hidden)]
pub use crate::sys::door::is_simulated as __is_simulated;
// Measured beside other ways to the kernel.
#[cfg(feature = "bench")]
#[doc(hidden)]
pub use crate::sys::socket as bare_socket;
pub use crate::version::BUILD;

#[doc(hidden)]
#[deprecated = "renamed to `ShardExitPolicy`"]
pub type ShardEnd = ShardExitPolicy;
#[doc(hidden)]
#[deprecated = "renamed to `PanicPolicy`"]
pub type TaskPanic = PanicPolicy;

/// The names that most programs use, to be imported with `use glommio::prelude::*`.
pub mod prelude {
    pub use crate::{
        ByteSliceExt, ByteSliceMutExt, ExecutorProxy, GlommioError, IoStats, Latency,
        LocalExecutor, LocalExecutorBuilder, LocalExecutorPoolBuilder, Placement, PoolPlacement,
        PoolThreadHandles, RingIoStats, Shares, TaskQueueHandle, executor, spawn_local,
        spawn_local_into, yield_if_needed,
    };
}

/// Prepares the process for executors. Has no effect, as the sleep protocol needs no registration;
/// kept for compatibility with 0.9.
///
/// # Examples
///
/// ```
/// glommio::early_init();
/// ```
pub fn early_init() {}
