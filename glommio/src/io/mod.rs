//! Files: past the page cache and through it, at any position and as streams, one by one and in
//! bulk.
//!
//! - [`DmaFile`] is read and written by direct I/O, in aligned [`DmaBuffer`]s; [`BufferedFile`]
//!   through the page cache. Both at any position. [`OpenOptions`] opens either.
//! - [`DmaStreamReader`] and [`DmaStreamWriter`], [`StreamReader`] and [`StreamWriter`] go through
//!   a file from its beginning to its end, with the traits of `futures-io`. [`stdin`] is a stream,
//!   too.
//! - [`ImmutableFile`] is written once and read from then on: equal reads are done once.
//! - [`DmaFile::read_many`] reads many ranges, merging those that are near to each other.
//! - [`Directory`], [`rename`], [`remove`], [`stat`], [`hard_link`], [`symlink`], [`read_link`],
//!   [`set_permissions`], [`create_dir_all`], [`remove_dir`] and [`remove_dir_all`] are about names.
//! - [`PollableFd`] waits for descriptors of any other kind.
//!
//! ```
//! use glommio::io::{BufferedFile, remove};
//!
//! # glommio::LocalExecutor::default().run(async {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("file");
//! let file = BufferedFile::create(&path).await?;
//! file.write_at(b"some data".to_vec(), 0).await?;
//! file.fdatasync().await?;
//! file.close().await?;
//! remove(&path).await?;
//! # Ok::<_, glommio::GlommioError<()>>(())
//! # }).unwrap();
//! ```
//!
//! A file belongs to the executor in which it was opened and stays on its thread; an
//! [`OwnedDmaFile`] is the form in which it travels. No operation blocks the thread, unless its
//! name or its documentation says so. Operations that io_uring cannot do asynchronously run on
//! threads of the executor, others than those for blocking calls of the program. Moving more than 1 MiB takes
//! a worker thread of the kernel. With [epoll](crate::Driver) up to 8 threads of the executor do
//! all that the page cache does not answer. All operations start when their futures are first
//! polled.
//!
//! Errors of operations on an open file are
//! [`EnhancedIoError`](crate::GlommioError::EnhancedIoError)s, which say what was attempted on
//! which file.
//!
//! # Dropped futures
//!
//! Dropping a future cancels its operation. One that was not submitted yet is not done. A submitted
//! one is cancelled if the kernel can; its buffer and its descriptor stay alive until it completes, and
//! closing the file waits for it. A file that was opened for a future that is gone is closed.
//!
//! # Costs
//!
//! With io_uring, all operations that are started in one turn of the executor share a system call. A
//! read of up to 1 MiB that the page cache can serve ([`BufferedFile::read_at`], [`StreamReader`]) is
//! one system call of its own, and done when the future is first polled, unless the task has used up
//! its slice.

mod buffered_file;
mod bulk;
mod closing;
mod directory;
mod dma_file;
mod error;
mod immutable_file;
mod limits;
mod lock;
mod long_read;
mod methods;
mod open_file;
mod open_options;
mod owned_dma_file;
mod paths;
mod pollable_fd;
mod read_dir;
mod read_result;
mod shared_read;
mod splice;
mod stat;
mod stream;
mod submit;
mod waiters;

pub use buffered_file::BufferedFile;
pub use bulk::{IoVec, MergedBufferLimit, ReadAmplificationLimit, ReadManyArgs, ReadManyResult};
pub use directory::Directory;
pub use dma_file::{CloseResult, DmaFile};
pub use immutable_file::{ImmutableFile, ImmutableFileBuilder, ImmutableFilePreSealSink};
pub use lock::{AdvisoryLockGuard, WeakAdvisoryLockGuard};
pub use open_options::OpenOptions;
pub use owned_dma_file::{OwnedDmaFile, WeakDmaFile};
pub use paths::{
    create_dir_all, hard_link, read_link, remove, remove_dir, remove_dir_all, rename,
    set_permissions, stat, symlink,
};
pub use pollable_fd::{PollState, PollableFd};
pub use read_dir::{DirEntry, EntryKind, ReadDir};
pub use read_result::ReadResult;
pub use shared_read::ScheduledSource;
pub use stat::Stat;
pub use stream::{
    DmaStreamReader, DmaStreamReaderBuilder, DmaStreamWriter, DmaStreamWriterBuilder, Stdin,
    StreamReader, StreamReaderBuilder, StreamWriter, StreamWriterBuilder, stdin,
};

pub use crate::memory::DmaBuffer;
pub use crate::sys::splice::SpliceSource;

/// What operations of this module return.
type Result<T> = crate::error::Result<T, ()>;
