//! A log in files: [`Log`] keeps its rows in memory, and makes every operation durable by a
//! write-ahead log.
//!
//! ```
//! use timelog::durable::{Config, Log};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("ticks");
//! glommio::LocalExecutor::default().run(async {
//!     let (log, _) = Log::<u64>::open(&path, Config::default()).await?;
//!     let commit = log.append(1_000, 42).expect("there is no floor");
//!     assert_eq!(log.snapshot().count(..), 1); // visible at once
//!     commit.await?; // and durable from here on
//!     log.close().await?;
//!
//!     let (log, found) = Log::<u64>::open(&path, Config::default()).await?;
//!     assert_eq!((log.snapshot().count(..), found.replayed), (1, 1));
//!     log.close().await
//! })?;
//! # Ok::<(), timelog::durable::Error>(())
//! ```
//!
//! All rows are in memory: a log is as large as what fits there. It belongs to one executor of
//! [glommio], whose direct I/O, timers and task queues it uses.
//!
//! # What is promised
//!
//! - After a crash the log is as it was after some prefix of its accepted operations, in their order,
//!   with every operation whose [`Commit`] resolved. A batch is there as a whole or not at all.
//! - Opening it again, or after a crash during opening, shows the same.
//! - What a crash left half written is cut off. Any other damage is an error that names file and
//!   offset; nothing is guessed.
//! - After a failed write or sync of the write-ahead log nothing is accepted any more. A sync is never
//!   tried again.
//!
//! # How
//!
//! ```text
//!   append ──▶ MemLog (visible)
//!      └─────▶ group ──device idle, commit_delay or commit_bytes──▶ block, fdatasync ──▶ Commit
//!                                                                 wal-1 wal-2 ..
//!   maintenance, in a task queue of its own:   full wal files ──▶ checkpoint, once
//!                                              checkpoints, most of them deleted ──▶ one
//! ```
//!
//! [`Sharded`] has a log for each executor, written by key and read as one.
//!
//! `timelog/docs/files.md` in the repository describes files and recovery, `timelog/docs/damage.md` what to do
//! after [`Error::Corrupt`].

mod checkpoint;
mod commit;
mod config;
mod copy;
mod core;
mod disk;
mod error;
mod format;
mod in_flight;
mod log;
mod maintain;
mod manifest;
mod pipeline;
mod read_ahead;
mod recover;
mod replay;
mod salvage;
mod sharded;
mod wal;

pub use crate::Record;
pub use commit::Commit;
pub use config::{Config, MAX_RECORD_BYTES};
pub use copy::{Info, info, read};
pub use error::{Error, Refused};
pub use log::{Log, Stats};
pub use recover::Recovery;
pub use salvage::{Salvaged, salvage};
pub use sharded::{Mesh, ShardCommit, Sharded};
