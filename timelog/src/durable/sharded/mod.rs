//! A log for each core, written by key and read as one.

mod group;
mod request;

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::ops::RangeBounds;
use std::path::Path;
use std::rc::Rc;

use glommio::channels::channel_mesh::{FullMesh, MeshBuilder, Senders};
use glommio::channels::oneshot::{self, SharedSender};
use glommio::channels::shared_channel::ConnectedReceiver;
use glommio::sync::Gate;
use glommio::{GlommioError, ResourceType};

use group::Group;
pub(in crate::durable) use group::directory;
pub use request::ShardCommit;
use request::{Operation, Request, Wait, serve};

use super::copy::check_empty;
use super::disk::Folder;
use super::error::{Error, Refused, of_shard};
use super::{Config, Log, Recovery};
use crate::{Record, Seq, Snapshots, TimeRange, Ts, WriteErrorKind};

/// Requests of one shard to another that wait there. More are not sent until those are done.
const CHANNEL: usize = 256;

/// How the shards of a log reach each other: made once, and cloned to each executor.
pub struct Mesh<V: Record + Send + Sync> {
    mesh: FullMesh<Request<V>>,
}

impl<V: Record + Send + Sync> Mesh<V> {
    /// For so many executors, at least one. Each calls [`Sharded::open`] once.
    pub fn new(shards: usize) -> Self {
        Self {
            mesh: MeshBuilder::full(shards, CHANNEL),
        }
    }
}

impl<V: Record + Send + Sync> Clone for Mesh<V> {
    fn clone(&self) -> Self {
        let mesh = self.mesh.clone();
        Self { mesh }
    }
}

impl<V: Record + Send + Sync> fmt::Debug for Mesh<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mesh").field(&self.mesh.nr_peers()).finish()
    }
}

/// A [`Log`] on each of several executors, the shards. A key belongs to one shard, which any shard
/// writes to; [`snapshots`](Self::snapshots) reads all of them in the order of time.
///
/// Shards are numbered as in [`channel_mesh`](glommio::channels::channel_mesh), and each has a
/// directory of its own. Rows of one shard are ordered by its log; between shards only time orders
/// them, and each operation is atomic on each shard alone.
///
/// A clone is another handle to the same shard. Without [`close`](Self::close), the last handle of a
/// shard ends its requests; the log there is closed when all other shards have ended theirs, too.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
/// use timelog::durable::{Config, Mesh, Sharded};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("ticks");
/// let mesh = Mesh::<u64>::new(2);
/// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2)).on_all_shards(|| async move {
///     let (log, _) = Sharded::open(mesh, &path, Config::default()).await?;
///     let commit = log.append("a key", 1_000, 42).await?; // on its way to the shard of the key
///     commit.await?; // and durable there from here on
///     assert!(log.snapshots().await?.count(..) >= 1);
///     log.close().await
/// })?;
/// for shard in shards.join_all() {
///     shard??;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Sharded<V: Record + Send + Sync> {
    shard: Rc<Shard<V>>,
}

struct Shard<V: Record + Send + Sync> {
    senders: Senders<Request<V>>,
    log: Log<V>,
    /// The tasks that do what other shards ask for.
    sources: Gate,
    is_closing: Cell<bool>,
}

impl<V: Record + Send + Sync> Clone for Sharded<V> {
    fn clone(&self) -> Self {
        let shard = Rc::clone(&self.shard);
        Self { shard }
    }
}

impl<V: Record + Send + Sync> fmt::Debug for Sharded<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded")
            .field("shard", &self.shard_id())
            .field("shards", &self.shards())
            .field("log", &self.shard.log)
            .finish_non_exhaustive()
    }
}

impl<V: Record + Send + Sync> Sharded<V> {
    /// Opens the log of this executor in the directory `path`, which all shards share, when all
    /// executors of the mesh have called this. The number of shards is stored there.
    ///
    /// # Errors
    /// [`Error::Shard`], from all shards alike, with the first shard whose log could not be opened and
    /// why; the others are closed again. [`Error::Format`] is the cause if there is another number of
    /// shards. [`Error::Io`] if more executors call this than the mesh has.
    ///
    /// # Panics
    /// Outside of an executor.
    ///
    /// # Cancel safety
    /// Dropping it closes what was opened here, and the other shards fail to open.
    pub async fn open(
        mesh: Mesh<V>,
        path: impl AsRef<Path>,
        config: Config,
    ) -> Result<(Self, Recovery), Error> {
        let path = path.as_ref();
        let joined = mesh.mesh.join().await;
        let (senders, mut receivers) =
            joined.map_err(|error| Error::io("join the shards of", path)(error.into()))?;
        let own = senders.peer_id();
        let sources = receivers.streams();
        let tell = async |request: &dyn Fn() -> Request<V>| {
            for (peer, _) in &sources {
                // One that has ended is found out below.
                let _ = senders.send_to(*peer, request()).await;
            }
        };
        let shards = senders.nr_consumers();
        let mut group = None;
        let begun = if own == 0 {
            let opened = Group::open::<V>(path, shards, config.memory.unit).await;
            let begun = opened.as_ref().map(Group::identities);
            let begun = begun.map_err(Clone::clone);
            group = opened.ok();
            tell(&|| Request::Begin(begun.clone())).await;
            begun
        } else {
            let first = sources.iter().find(|(peer, _)| *peer == 0);
            let (_, requests) = first.expect("each shard is joined with each other one");
            match requests.recv().await {
                Some(Request::Begin(begun)) => begun,
                _ => Err(Error::Closed),
            }
        };
        let opened = open_own(path, own, begun, config).await;
        let mut outcomes = vec![Err(Error::Closed); shards];
        outcomes[own] = match &opened {
            Ok((log, _)) => Ok(log.identity()),
            Err(error) => Err(error.clone()),
        };
        // The first shard tells how it was opened when it has written down that all were.
        if own != 0 {
            tell(&|| Request::Opened(outcomes[own].clone())).await;
        }
        for (peer, requests) in &sources {
            if let Some(Request::Opened(outcome)) = requests.recv().await {
                outcomes[*peer] = outcome;
            }
        }
        if let Some(group) = group {
            let identities: Result<Vec<u64>, Error> = outcomes.iter().cloned().collect();
            if let Err(error) = group.close(identities.ok()).await {
                outcomes[own] = Err(error);
            }
        }
        if own == 0 {
            tell(&|| Request::Opened(outcomes[own].clone())).await;
        }
        let mut outcomes = outcomes.into_iter().enumerate();
        let failed = outcomes.find_map(|(shard, outcome)| Some((shard, outcome.err()?)));
        if let Some((shard, cause)) = failed {
            if let Ok((log, _)) = opened {
                // The failure of the other one is the one to tell.
                let _ = log.close().await;
            }
            return Err(of_shard(shard)(cause));
        }
        let (log, found) = opened?;
        let gate = Gate::new();
        for (_, requests) in sources {
            serve_in(&gate, requests, log.clone());
        }
        let shard = Shard {
            senders,
            log,
            sources: gate,
            is_closing: Cell::new(false),
        };
        let shard = Rc::new(shard);
        Ok((Self { shard }, found))
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.shard.senders.nr_consumers()
    }

    /// The number of this shard.
    pub fn shard_id(&self) -> usize {
        self.shard.senders.peer_id()
    }

    /// The shard of a key: the same for the same number of shards, on every machine and by every version
    /// of the format.
    pub fn shard_of(&self, key: impl AsRef<[u8]>) -> usize {
        shard_of(key.as_ref(), self.shards())
    }

    /// The log of this shard. Rows that are written to it directly belong to this shard, whatever their
    /// key; it is closed by [`close`](Self::close).
    pub fn log(&self) -> &Log<V> {
        &self.shard.log
    }

    /// Adds a row to the shard of a key. When this is done, the row is accepted, if this shard is the
    /// one; otherwise it is on its way, after all that was sent there from here before. Waits while
    /// as much waits for the device there as its configuration allows, or for the shard.
    ///
    /// # Errors
    /// [`Error::Shard`], with the row: [`Error::Closed`] is the cause if the shard or its executor has
    /// ended, else as for [`Log::append`] on this shard.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is done, the row was not added.
    pub async fn append(
        &self,
        key: impl AsRef<[u8]>,
        ts: Ts,
        value: V,
    ) -> Result<ShardCommit<V>, Refused<Vec<(Ts, V)>>> {
        self.extend(key, [(ts, value)]).await
    }

    /// Adds rows to the shard of a key, in the order given: all or none, also in a crash. As
    /// [`append`](Self::append).
    ///
    /// # Errors
    /// As [`append`](Self::append), with all rows. The cause is [`Error::Busy`] if they are more than
    /// [`Config::pending_bytes`].
    ///
    /// # Cancel safety
    /// As [`append`](Self::append).
    pub async fn extend(
        &self,
        key: impl AsRef<[u8]>,
        rows: impl IntoIterator<Item = (Ts, V)>,
    ) -> Result<ShardCommit<V>, Refused<Vec<(Ts, V)>>> {
        let shard = self.shard_of(key);
        let operation = Operation::Rows(rows.into_iter().collect());
        self.shard.begin(shard, operation).await
    }

    /// Deletes, on all shards, the rows of a range that were accepted there before. Done when that is
    /// durable on all.
    ///
    /// # Errors
    /// [`Error::Write`] if the range is empty. [`Error::Shard`] with the first shard that failed; the
    /// others have done it.
    ///
    /// # Cancel safety
    /// Dropping it leaves it undone on some shards; to do it again is harmless.
    pub async fn delete(&self, range: impl RangeBounds<Ts>) -> Result<(), Error> {
        let range = TimeRange::new(range);
        if range.is_empty() {
            return Err(Error::Write(WriteErrorKind::EmptyRange));
        }
        self.on_all(|| Operation::Delete(range)).await
    }

    /// Deletes the rows before `ts` on all shards, and refuses such rows from now on. Done when that
    /// is durable on all.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    ///
    /// # Cancel safety
    /// As [`delete`](Self::delete).
    pub async fn raise_floor(&self, ts: Ts) -> Result<(), Error> {
        self.on_all(|| Operation::Floor(ts)).await
    }

    /// Waits until all that was accepted is durable, on all shards: what was sent from here before is
    /// accepted then.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    ///
    /// # Cancel safety
    /// Dropping it ends the wait, not the work.
    pub async fn sync(&self) -> Result<(), Error> {
        self.on_all(|| Operation::Sync).await
    }

    async fn on_all(&self, operation: impl Fn() -> Operation<V>) -> Result<(), Error> {
        let mut begun = Vec::with_capacity(self.shards());
        for shard in 0..self.shards() {
            begun.push(self.shard.begin(shard, operation()).await);
        }
        let mut outcome = Ok(Seq(0));
        for commit in begun {
            let done = match commit {
                Ok(commit) => commit.await,
                Err(refused) => Err(refused),
            };
            outcome = outcome.and(done.map_err(|refused| refused.error));
        }
        outcome.map(|_| ())
    }

    /// All accepted rows of all shards, durable or not, to be read in the order of time: by timestamp,
    /// then by shard, then by arrival. They have every row that was accepted before this was called,
    /// and every row that was sent from here before.
    ///
    /// Each shard gives a snapshot, which takes it a search and no copy of rows; these are merged
    /// where they are read, as slowly as the reader likes and without memory for rows. The rows are
    /// read from the memory of the other shards.
    ///
    /// # Errors
    /// [`Error::Shard`] with a shard that has ended. Snapshots of the others can be had from their
    /// [`log`](Self::log).
    ///
    /// # Cancel safety
    /// Nothing changes.
    pub async fn snapshots(&self) -> Result<Snapshots<V>, Error> {
        let own = async { self.shard.log.snapshot() };
        let each = self.ask(own, |_, reply| Request::Snapshot(reply)).await?;
        Ok(each.into_iter().collect())
    }

    /// What each shard answers, this one by `own`.
    async fn ask<T: Send>(
        &self,
        own: impl Future<Output = T>,
        request: impl Fn(usize, SharedSender<T>) -> Request<V>,
    ) -> Result<Vec<T>, Error> {
        let others = (0..self.shards()).filter(|shard| *shard != self.shard_id());
        let mut asked = Vec::with_capacity(self.shards());
        for shard in others {
            let (reply, answer) = oneshot::shared();
            let sent = (self.shard.senders).send_to(shard, request(shard, reply));
            sent.await.map_err(|_| of_shard(shard)(Error::Closed))?;
            asked.push((shard, answer));
        }
        let own = own.await;
        let mut answers = Vec::with_capacity(self.shards());
        for (shard, answer) in asked {
            answers.push(answer.await.map_err(|_| of_shard(shard)(Error::Closed))?);
        }
        answers.insert(self.shard_id(), own);
        Ok(answers)
    }

    /// Writes a copy of all shards to a directory that has no log, while they are written to: each has what it had
    /// accepted when it was asked. The copy can be opened as a log of as many shards when this is done.
    ///
    /// # Errors
    /// [`Error::Shard`] with a shard that failed, as [`Log::backup`]; [`Error::Io`] of the directory.
    ///
    /// # Cancel safety
    /// Dropping it leaves files behind that are no log.
    pub async fn backup(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let folder = Folder::open(path).await?;
        let written = async {
            check_empty(&folder).await?;
            let place = |shard| path.join(directory(shard));
            let own = place(self.shard_id());
            let own = async { self.shard.log.backup_as(&own).await.map(|it| it.1) };
            let copies = self.ask(own, |shard, reply| Request::Backup(place(shard), reply));
            let copies = copies.await?.into_iter().enumerate();
            let copies = copies.map(|(shard, copy)| copy.map_err(of_shard(shard)));
            let identities = copies.collect::<Result<_, _>>()?;
            Group::write::<V>(&folder, self.shard.log.unit(), identities).await?;
            Ok(())
        };
        let written = written.await;
        folder.unlock().await?;
        written
    }

    /// Ends the requests of this shard, waits until all other shards have ended theirs and have their
    /// answers, and closes the log of this one. So all shards are to be closed, or dropped: each waits
    /// for the others.
    ///
    /// # Errors
    /// [`Error::Shard`] with this shard, as [`Log::close`]; it is closed all the same.
    /// [`Error::Closed`] is the cause if another handle closes it.
    ///
    /// # Cancel safety
    /// Nothing is sent from here any more once this was polled. If it is dropped then, the log is
    /// closed when the last handle of this shard is dropped and the other shards have ended.
    pub async fn close(self) -> Result<(), Error> {
        let own = self.shard_id();
        let shard = &self.shard;
        if shard.is_closing.replace(true) {
            return Err(of_shard(own)(Error::Closed));
        }
        shard.senders.close();
        // It is closed here alone.
        let _ = shard.sources.close().await;
        shard.log.clone().close().await.map_err(of_shard(own))
    }
}

impl<V: Record + Send + Sync> Shard<V> {
    /// Does an operation here, or sends it to another shard.
    async fn begin(
        &self,
        shard: usize,
        operation: Operation<V>,
    ) -> Result<ShardCommit<V>, Refused<Vec<(Ts, V)>>> {
        if shard == self.senders.peer_id() {
            if self.is_closing.get() {
                return Err(operation.refused(of_shard(shard)(Error::Closed)));
            }
            return match operation.apply(&self.log).await {
                Ok(commit) => Ok(ShardCommit::new(shard, Wait::Here(commit))),
                Err(refused) => Err(refused.of_shard(shard)),
            };
        }
        let (reply, answer) = oneshot::shared();
        let request = Request::Do(operation, reply);
        match self.senders.send_to(shard, request).await {
            Ok(()) => Ok(ShardCommit::new(shard, Wait::There(answer))),
            Err(error) => {
                let rejected = match error {
                    GlommioError::Closed(ResourceType::Channel(request)) => request.into_rows(),
                    _ => unreachable!("there is such a shard, and it is another one"),
                };
                let error = of_shard(shard)(Error::Closed);
                Err(Refused { error, rejected })
            }
        }
    }
}

fn serve_in<V: Record + Send + Sync>(
    gate: &Gate,
    requests: ConnectedReceiver<Request<V>>,
    log: Log<V>,
) {
    let spawned = gate.spawn(serve(requests, log));
    spawned.expect("the gate is open").detach();
}

async fn open_own<V: Record>(
    path: &Path,
    shard: usize,
    identities: Result<Vec<u64>, Error>,
    config: Config,
) -> Result<(Log<V>, Recovery), Error> {
    let identity = Some(identities?[shard]).filter(|it| *it != 0);
    let path = path.join(directory(shard));
    Log::open_as(&path, config, identity).await
}

/// By the upper bits of a checksum whose bits were mixed: those of a CRC of short keys alone are not
/// spread evenly.
fn shard_of(key: &[u8], shards: usize) -> usize {
    // The finalizer of MurmurHash3 (Appleby, 2011).
    let mut hash = u64::from(crc32fast::hash(key)) | (key.len() as u64) << 32;
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ hash >> 33).wrapping_mul(factor);
    }
    ((u128::from(hash ^ hash >> 33) * shards as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::shard_of;

    /// Stored rows depend on it.
    #[test]
    fn keys_stay_where_they_are() {
        let found = ["", "a", "AAPL", "MSFT", "a longer key of thirty bytes.."];
        let found = found.map(|key| shard_of(key.as_bytes(), 1000));
        assert_eq!(found, [0, 517, 572, 604, 237]);
    }

    #[test]
    fn keys_are_spread_evenly() {
        for shards in [1, 2, 3, 7, 16] {
            let mut counts = vec![0_usize; shards];
            for key in 0..16_000_u32 {
                counts[shard_of(&key.to_le_bytes(), shards)] += 1;
                counts[shard_of(key.to_string().as_bytes(), shards)] += 1;
            }
            let wanted = 32_000 / shards;
            for count in counts {
                assert!(count.abs_diff(wanted) < wanted / 10, "{count} of {wanted}");
            }
        }
    }
}
