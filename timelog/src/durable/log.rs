//! The log that programs hold.

use std::cell::RefCell;
use std::fmt;
use std::ops::RangeBounds;
use std::path::Path;
use std::rc::Rc;

use glommio::channels::oneshot;
use glommio::task::JoinHandle;
use glommio::{Latency, Shares, executor, spawn_local, spawn_local_into};

use super::commit::Commit;
use super::config::Config;
use super::copy;
use super::core::Shared;
use super::disk::Folder;
use super::error::{Error, Refused};
use super::maintain::{Backlog, Checkpointer, move_rows};
use super::pipeline::commit_groups;
use super::recover::{Recovered, Recovery, recover};
use crate::{Record, Seq, Snapshot, TimeRange, TimeUnit, Ts};

/// A log of time-stamped values in memory and in files. See the [module](super).
///
/// A clone is another handle to the same log. Without [`close`](Self::close), the last handle
/// closes it in the background: what was accepted becomes durable, unless the executor ends before.
pub struct Log<V: Record> {
    pub(super) shared: Rc<Shared<V>>,
    owner: Rc<Owner<V>>,
}

/// Closes the log when the last handle is dropped.
struct Owner<V> {
    shared: Rc<Shared<V>>,
    running: RefCell<Option<JoinHandle<Result<(), Error>>>>,
}

impl<V> Drop for Owner<V> {
    fn drop(&mut self) {
        self.shared.core.begin_closing();
    }
}

impl<V: Record> Clone for Log<V> {
    fn clone(&self) -> Self {
        Self {
            shared: Rc::clone(&self.shared),
            owner: Rc::clone(&self.owner),
        }
    }
}

impl<V: Record> fmt::Debug for Log<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("path", &self.shared.core.folder.path())
            .field("seq", &self.seq())
            .field("durable", &self.durable_seq())
            .finish_non_exhaustive()
    }
}

/// A durable log in numbers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The log in memory.
    pub memory: crate::Stats,
    /// The last operation that is durable.
    pub durable: Seq,
    /// Bytes that wait for the device.
    pub pending_bytes: usize,
    /// Full files of the write-ahead log that no checkpoint covers yet.
    pub full_wal_files: usize,
    /// Checkpoints.
    pub checkpoints: usize,
    /// Their rows, those that are deleted since included.
    pub checkpoint_rows: u64,
    /// Why maintenance could not write a checkpoint or prepare a file, if it failed the last time. It
    /// tries again; the write-ahead log grows meanwhile, and nothing is lost.
    pub maintenance_error: Option<Error>,
}

impl<V: Record> Log<V> {
    /// Opens the log in the directory `path`, which is created if it is not there, in one that is.
    /// It begins tasks on the executor of this thread.
    ///
    /// # Errors
    /// [`Error::Locked`] if another log has it open, also in another process; one that was killed may
    /// keep it locked for a moment, so this waits for a second. [`Error::Corrupt`] and
    /// [`Error::Format`] if the files are not those of such a log. [`Error::Config`], [`Error::Io`].
    /// Nothing is lost by an error.
    ///
    /// # Panics
    /// Outside of an executor.
    ///
    /// # Cancel safety
    /// Dropping it closes what was opened. The files stay as good as they were.
    pub async fn open(path: impl AsRef<Path>, config: Config) -> Result<(Self, Recovery), Error> {
        Self::open_as(path.as_ref(), config, None).await
    }

    /// `identity` is that of a log that must be there.
    pub(super) async fn open_as(
        path: &Path,
        config: Config,
        identity: Option<u64>,
    ) -> Result<(Self, Recovery), Error> {
        config.check::<V>()?;
        let folder = Folder::open(path).await?;
        let floor = config.memory.floor;
        // In a task: a write that is given up could go on when the directory is unlocked.
        let recovering = spawn_local(recover(folder, config, identity)).detach();
        let recovered = recovering.await.unwrap_or(Err(Error::Closed))?;
        let found = recovered.found.clone();
        let shared = Rc::clone(&recovered.shared);
        let running = spawn_local(run(recovered)).detach();
        let owner = Owner {
            shared: Rc::clone(&shared),
            running: RefCell::new(Some(running)),
        };
        let owner = Rc::new(owner);
        if let Some(floor) = floor {
            shared.raise_floor(floor)?;
        }
        Ok((Self { shared, owner }, found))
    }

    /// Adds a row after all rows of the same timestamp. It is visible when this returns, and durable
    /// when the [`Commit`] resolves.
    ///
    /// # Errors
    /// [`Error::Write`], [`Error::Busy`], [`Error::Poisoned`], [`Error::Closed`]; the value is given
    /// back, and nothing has changed.
    pub fn append(&self, ts: Ts, value: V) -> Result<Commit, Refused<V>> {
        self.shared.append(ts, value)
    }

    /// Adds rows in the order given: all or none, also in a crash. A batch is at most as large as
    /// [`Config::pending_bytes`].
    ///
    /// # Errors
    /// As [`append`](Self::append), with all rows.
    pub fn extend(
        &self,
        rows: impl IntoIterator<Item = (Ts, V)>,
    ) -> Result<Commit, Refused<Vec<(Ts, V)>>> {
        self.shared.extend(rows.into_iter().collect())
    }

    /// Deletes the rows of a range that were accepted before.
    ///
    /// # Errors
    /// [`Error::Write`] if the range is empty; else as [`append`](Self::append).
    pub fn delete(&self, range: impl RangeBounds<Ts>) -> Result<Commit, Error> {
        self.shared.delete(TimeRange::new(range).bounds())
    }

    /// Deletes the rows before `ts`, and refuses such rows from now on. `None` if the floor is as
    /// high already.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn raise_floor(&self, ts: Ts) -> Result<Option<Commit>, Error> {
        self.shared.raise_floor(ts)
    }

    /// All accepted rows, durable or not. It never changes.
    pub fn snapshot(&self) -> Snapshot<V> {
        self.shared.mem.borrow_mut().snapshot()
    }

    /// Waits until all that was accepted is durable, without delay.
    ///
    /// # Errors
    /// As of a [`Commit`].
    ///
    /// # Cancel safety
    /// Dropping it ends the wait, not the work.
    pub async fn sync(&self) -> Result<Seq, Error> {
        self.shared.core.sync().await
    }

    /// Writes one checkpoint of all that is visible, in the place of all others: the log is opened
    /// fastest then, and takes the least space. Maintenance does so by itself when most rows of the
    /// checkpoints are deleted.
    ///
    /// # Errors
    /// [`Error::Io`]: everything is as before. [`Error::Poisoned`], [`Error::Closed`].
    ///
    /// # Cancel safety
    /// Dropping it ends the wait, not the work.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        let core = &self.shared.core;
        core.check_open()?;
        let (done, is_done) = oneshot::oneshot();
        core.checkpoint_requests.borrow_mut().push(done);
        core.checkpoint_bell.ring();
        is_done.await.unwrap_or(Err(Error::Closed))
    }

    /// Writes a copy of the log to a directory that has none, while the log is written to: all that
    /// was accepted when this was called, as one checkpoint. Returns the last operation of it. The
    /// copy is a log of its own, and can be opened when this is done.
    ///
    /// # Errors
    /// [`Error::Io`], also if there is a log. As [`sync`](Self::sync): what is not durable here is
    /// none of a copy.
    ///
    /// # Cancel safety
    /// Dropping it leaves files behind that are no log.
    pub async fn backup(&self, path: impl AsRef<Path>) -> Result<Seq, Error> {
        self.backup_as(path.as_ref()).await.map(|(seq, _)| seq)
    }

    /// With the identity of the copy.
    pub(super) async fn backup_as(&self, path: &Path) -> Result<(Seq, u64), Error> {
        let core = &self.shared.core;
        core.check_open()?;
        let folder = Folder::open(path).await?;
        let copy = async {
            let (snapshot, floor) = {
                let mut mem = self.shared.mem.borrow_mut();
                (mem.snapshot(), mem.stats().floor)
            };
            let seq = core.sync().await?;
            let kind = core.kind.clone();
            let identity = copy::write(&folder, kind, &snapshot, seq, floor).await?;
            Ok((seq, identity))
        };
        let written = copy.await;
        folder.unlock().await?;
        written
    }

    pub(super) fn unit(&self) -> TimeUnit {
        self.shared.core.kind.unit
    }

    pub(super) fn identity(&self) -> u64 {
        self.shared.core.manifest.borrow().identity
    }

    /// The last operation that was accepted.
    pub fn seq(&self) -> Seq {
        self.shared.seq()
    }

    /// The last operation that is durable.
    pub fn durable_seq(&self) -> Seq {
        Seq(self.shared.core.durable.get())
    }

    /// The log in numbers. Costs a search for every segment and delete.
    pub fn stats(&self) -> Stats {
        let core = &self.shared.core;
        let manifest = core.manifest.borrow();
        Stats {
            memory: self.shared.mem.borrow().stats(),
            durable: self.durable_seq(),
            pending_bytes: core.pending_bytes(),
            full_wal_files: manifest.full_wals().count(),
            checkpoints: manifest.checkpoints.len(),
            checkpoint_rows: manifest.checkpoints.iter().map(|it| it.rows).sum(),
            maintenance_error: core.maintenance_error.borrow().clone(),
        }
    }

    /// Makes durable what was accepted, ends maintenance and unlocks the directory. Other handles get
    /// [`Error::Closed`] from now on.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Io`]; the log is closed all the same. [`Error::Closed`] if
    /// another handle closes it.
    ///
    /// # Cancel safety
    /// Once polled, closing goes on in the background.
    pub async fn close(self) -> Result<(), Error> {
        self.shared.core.begin_closing();
        let running = self.owner.running.take().ok_or(Error::Closed)?;
        running.await.unwrap_or(Err(Error::Closed))
    }
}

/// Everything that goes on in the background.
async fn run<V: Record>(recovered: Recovered<V>) -> Result<(), Error> {
    let Recovered { shared, wal, .. } = recovered;
    let shares = Shares::Dynamic(Rc::new(Backlog(Rc::clone(&shared))));
    let name = "timelog-maintenance";
    let queue = executor().create_task_queue(shares, Latency::NotImportant, name);
    let checkpointer = Checkpointer {
        shared: Rc::clone(&shared),
        judged: None,
    };
    let spawned = "the queue was just made";
    let moving = spawn_local_into(move_rows(Rc::clone(&shared)), queue).expect(spawned);
    let checkpointing = spawn_local_into(checkpointer.run(), queue).expect(spawned);

    let committed = commit_groups(Rc::clone(&shared), wal).await;
    // Nothing is given up: a write that goes on must not meet the next opener.
    checkpointing.await;
    moving.await;
    let _ = executor().remove_task_queue(queue);
    let closed = match committed {
        Ok(()) => {
            (shared.core)
                .change_manifest(|it| it.is_closed = true)
                .await
        }
        failed => failed,
    };
    shared.core.folder.unlock().await?;
    closed
}
