//! Files that are written, read back, cut, renamed and removed, and processes that are killed while
//! they append to one.
//!
//! ```text
//!   executor `files`
//!     a few files, each beside a copy of what ought to be in it      write ─▶ copy
//!     direct I/O and page cache in turn, streams, bulk reads         read ──▶ the same as the copy?
//!     between two steps nothing is under way: is all I/O memory back?
//!
//!   executor `crashes`
//!     starts a process ──▶ appends records, fdatasync, acknowledges ──▶ SIGKILL
//!                  ▲                                                       │
//!                  └── the next one recovers what is there ◀───────────────┘
//! ```
//!
//! What a killed process has left is read by the standard library, so that a defect in our reads
//! does not hide one in our writes.
//!
//! A few hundredths of a core are spent on it.

pub(crate) mod appender;
mod crash;
pub(crate) mod directory;
mod file;
#[cfg(feature = "simulation")]
pub(crate) mod power;
mod script;
mod tracked;

use std::process;

use self::script::Script;
use crate::workload::prelude::*;

/// Starts the executors.
pub(crate) fn start(plan: &mut Starter<'_>) -> Started {
    let (seed, count) = (plan.seed, plan.scaled(8, 2).min(32));
    let files_in =
        |own: PathBuf| move |checker| Script::new(checker, own, stream(seed, STREAM), count).run();
    if plan.nodes.is_some() {
        // Crashes are power cuts there, of a node of their own.
        return plan.start("files", files_in("/files".into()));
    }
    // Of this process alone: there may be files of another run.
    let directory = plan.files_in.join(process::id().to_string());
    fs::create_dir(&directory)?;
    plan.start("files", files_in(directory.join("files")))?;
    plan.start("crashes", move |checker| {
        crash::run(checker, directory, stream(seed, STREAM - 1))
    })
}

/// Apart from every other workload that draws from the same seed.
const STREAM: u64 = u64::MAX - 21;
