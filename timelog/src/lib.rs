//! A log of time-stamped records, kept in time order while records arrive late, and read by time
//! range.
//!
//! [`MemLog`] is a multimap from `i64` timestamps to values: rows arrive in any order, mostly
//! rising; reads go by range in both directions; deletes go by range and by age. A [`Snapshot`]
//! never changes.
//!
//! ```
//! use timelog::{Config, MemLog};
//!
//! let mut log = MemLog::new(Config::default())?;
//! log.extend([(1_000, "open"), (3_000, "fill"), (2_000, "late")])?;
//!
//! let snapshot = log.snapshot();
//! assert_eq!(snapshot.count(1_500..), 2);
//! for (ts, value) in snapshot.range(..).rev() {
//!     println!("{ts}: {value}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Order
//!
//! Every accepted row and delete takes one [`Seq`], from 1, without gaps. A snapshot sees the
//! operations up to its own. A row is visible if no delete that was accepted after it, and is seen
//! by the snapshot, covers its timestamp. Rows of one timestamp are read in the order of their
//! arrival, whatever was flushed or merged meanwhile.
//!
//! # Layers
//!
//! Each imports only from those below it.
//!
//! ```text
//!   keyed  dump  many logs; rows to files and back
//!   mem_log      the log: writes, deletes, maintenance
//!   write        memtable; flush and compaction as jobs in steps
//!   version      what is held at one moment; snapshots
//!   read         cursors, merge, rows, spans, windows
//!   column  search  segment  segments  list  tombstones
//!   ts  range  seq  record  layout  config  stats  error  work
//! ```
//!
//! Nothing of this reads a clock (but [`TimeUnit::now`]), opens a file or starts a thread. With the
//! feature `durable`, the module `durable` keeps a log in files as well, on the runtime glommio.
//!
//! The published Timelog, whose benchmark cases this crate measures itself by, is another project;
//! this crate shares no code with it and is not affiliated with it.

#![forbid(unsafe_code)]

#[cfg(target_endian = "big")]
compile_error!("timelog supports little-endian targets only");

mod column;
mod config;
pub mod dump;
#[cfg(feature = "durable")]
pub mod durable;
mod error;
mod keyed;
mod layout;
mod list;
mod mem_log;
mod range;
mod read;
mod record;
mod search;
mod segment;
mod segments;
mod seq;
mod stats;
mod tombstones;
mod ts;
mod version;
mod work;
mod write;

pub use column::{Batch, Span};
pub use config::{Busy, Config, Window};
pub use error::{Broken, ConfigError, WriteError, WriteErrorKind};
pub use keyed::Keyed;
pub use layout::{Column, Layout, Scalar};
pub use mem_log::{Appended, MemLog, Progress, Reader};
pub use range::TimeRange;
pub use read::{Bucket, Buckets, Every, Number, Rows, Spans};
pub use record::{Raw, Record};
pub use seq::Seq;
pub use stats::Stats;
pub use ts::{TimeUnit, Ts};
pub use version::{IntoRows, Snapshot, Snapshots};
