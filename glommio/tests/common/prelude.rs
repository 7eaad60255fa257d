//! The names that most tests use. A test that means another thing by one of them imports that.

pub use std::cell::{Cell, RefCell};
pub use std::collections::{BTreeMap, BTreeSet, HashSet};
pub use std::future::{pending, poll_fn, ready};
pub use std::net::{Ipv4Addr, SocketAddr};
pub use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
pub use std::panic::{AssertUnwindSafe, catch_unwind};
pub use std::path::{Path, PathBuf};
pub use std::pin::{Pin, pin};
pub use std::process::Stdio;
pub use std::rc::Rc;
pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use std::sync::{Arc, Barrier, Mutex, mpsc};
pub use std::task::{Context, Poll, Wake, Waker};
pub use std::time::{Duration, Instant};
pub use std::{fs, io, thread};

pub use futures_lite::future::{block_on, or, poll_once, yield_now, zip};
pub use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, StreamExt};
pub use glommio::channels::{local_channel, oneshot};
pub use glommio::io::{
    BufferedFile, Directory, DmaFile, DmaStreamReaderBuilder, DmaStreamWriterBuilder,
    ImmutableFileBuilder, OpenOptions, StreamReaderBuilder, StreamWriterBuilder,
};
pub use glommio::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
pub use glommio::timer::{Timer, TimerActionOnce, TimerActionRepeat, sleep};
pub use glommio::{
    BuilderErrorKind, CpuSet, ExecutorErrorKind, ExecutorJoinHandle, GlommioError, Latency,
    LocalExecutor, LocalExecutorBuilder, LocalExecutorPoolBuilder, Placement, PoolPlacement,
    QueueErrorKind, ResourceType, Shares, SharesManager, Task, TaskBuilder, TaskQueueHandle,
    executor, spawn_local, spawn_local_into, yield_if_needed,
};

pub use crate::common::hooks::{counting, on_wake};
pub use crate::common::polled::{Polled, at_once, operations, quiet_panic, rounds};
pub use crate::common::skipped::skipped;
pub use crate::common::{
    DropCount, Log, Numbers, Parking, bomb, bound, compute, descriptors, in_child, in_child_with,
    join_all, on_drop, panic_of, patient, queue, run, set_limit, spawn_executor, spawn_in,
    spin_until_preempted, thread_cpu, threads, wait_until, watchdog, with_slices_of, with_watchdog,
};
