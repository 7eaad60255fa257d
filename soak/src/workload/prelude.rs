//! What most workloads use.

pub(super) use std::cell::{Cell, RefCell};
pub(super) use std::net::{IpAddr, SocketAddr};
pub(super) use std::path::{Path, PathBuf};
pub(super) use std::pin::Pin;
pub(super) use std::rc::Rc;
pub(super) use std::sync::Arc;
pub(super) use std::sync::atomic::Ordering;
pub(super) use std::task::{Context, Poll, Waker};
pub(super) use std::time::{Duration, Instant};
pub(super) use std::{fs, io, thread};

pub(super) use futures_lite::future::{or, yield_now, zip};
pub(super) use futures_lite::{AsyncReadExt, AsyncWriteExt};
pub(super) use glommio::net::{TcpListener, TcpStream};
pub(super) use glommio::timer::{Timer, TimerActionOnce, sleep};
pub(super) use glommio::{GlommioError, Task, executor, spawn_local};
pub(super) use support::generator::{Draw, Rng, stream};

pub(super) use crate::check::checker::{Checker, Live};
pub(super) use crate::check::executor_stats::ExecutorStats;
pub(super) use crate::check::invariants::Invariant;
pub(super) use crate::check::model::Key;
pub(super) use crate::check::probe::Timing;
pub(super) use crate::clock;
pub(super) use crate::counters::{add, bump};
pub(super) use crate::measure::{lock, nanos, process};
pub(super) use crate::workload::executor::{Started, Starter};
