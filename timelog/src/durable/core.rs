//! What the handles and tasks of a log share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use glommio::channels::local_channel::{LocalReceiver, LocalSender, new_bounded};
use glommio::channels::oneshot;
use glommio::future::timeout;

use super::commit::{Commit, Tail, payload_bytes};
use super::config::Config;
use super::disk::{File, Folder};
use super::error::{Error, Refused};
use super::format::{delete, floor};
use super::in_flight::InFlight;
use super::manifest::{Kind, Manifest, WalFile};
use crate::{Appended, MemLog, Record, Seq, Ts, WriteError, WriteErrorKind};

/// Wakes a task, now or when it waits next.
#[derive(Debug)]
pub(super) struct Bell {
    ring: LocalSender<()>,
    wait: LocalReceiver<()>,
}

impl Bell {
    fn new() -> Self {
        let (ring, wait) = new_bounded(1);
        Self { ring, wait }
    }

    pub fn ring(&self) {
        // If it is full, the task has not heard it yet.
        let _ = self.ring.try_send(());
    }

    pub async fn wait(&self) {
        self.wait.recv().await;
    }

    /// Whether it rang in time.
    pub async fn wait_for(&self, period: Duration) -> bool {
        timeout(period, self.wait()).await.is_ok()
    }
}

/// The file that becomes the next one: zeros, or a file that a checkpoint covers. A block that is
/// written to blocks of the device that were written before changes nothing but data, which
/// makes a sync much cheaper.
pub(super) type Next = Option<(File, WalFile)>;

/// All but the rows.
#[derive(Debug)]
pub(super) struct Core {
    pub folder: Folder,
    pub kind: Kind,
    pub config: Config,
    pub tail: RefCell<Tail>,
    pub in_flight: RefCell<InFlight>,
    pub durable: Cell<u64>,
    pub failed: RefCell<Option<Error>>,
    pub is_closing: Cell<bool>,
    /// A group is there, or durable; it is not to wait any longer; one is written; there are rows to
    /// maintain; files to convert.
    pub commit_bell: Bell,
    pub hurry_bell: Bell,
    pub sync_bell: Bell,
    pub step_bell: Bell,
    pub checkpoint_bell: Bell,
    /// As on the device, but for the ends of files that became full since it was written.
    pub manifest: RefCell<Manifest>,
    pub next_wal: RefCell<Next>,
    /// Bytes of rows that came since maintenance had nothing to do.
    pub backlog: Cell<usize>,
    pub checkpoint_requests: RefCell<Vec<oneshot::Sender<Result<(), Error>>>>,
    /// The last failure of maintenance, until it succeeds.
    pub maintenance_error: RefCell<Option<Error>>,
}

impl Core {
    pub fn new(folder: Folder, config: Config, manifest: Manifest, applied: u64) -> Self {
        Self {
            tail: RefCell::new(Tail::new(applied + 1, config.commit_bytes)),
            folder,
            kind: manifest.kind.clone(),
            config,
            in_flight: RefCell::default(),
            durable: Cell::new(applied),
            failed: RefCell::default(),
            is_closing: Cell::new(false),
            commit_bell: Bell::new(),
            hurry_bell: Bell::new(),
            sync_bell: Bell::new(),
            step_bell: Bell::new(),
            checkpoint_bell: Bell::new(),
            manifest: RefCell::new(manifest),
            next_wal: RefCell::default(),
            backlog: Cell::new(0),
            checkpoint_requests: RefCell::default(),
            maintenance_error: RefCell::default(),
        }
    }

    /// Changes the manifest, on the device first. Not twice at the same time.
    pub async fn change_manifest(&self, change: impl Fn(&mut Manifest)) -> Result<(), Error> {
        let mut next = self.manifest.borrow().clone();
        change(&mut next);
        next.edition += 1;
        next.last = self.durable.get();
        next.stage(&self.folder).await?;
        if let Err(error) = next.publish(&self.folder).await {
            // It is not known which one is there, so nothing that depends on it may be done.
            let failure = self.fail(error);
            self.commit_bell.ring();
            return Err(failure);
        }
        let mut manifest = self.manifest.borrow_mut();
        change(&mut manifest);
        manifest.edition = next.edition;
        Ok(())
    }

    /// The identity and the number that the next file of the write-ahead log has.
    pub fn next_place(&self) -> (u64, u64) {
        let manifest = self.manifest.borrow();
        (manifest.identity, manifest.next_number())
    }

    pub fn full_wals(&self) -> usize {
        self.manifest.borrow().full_wals().count()
    }

    pub fn failure(&self) -> Option<Error> {
        let cause = self.failed.borrow().clone()?;
        let cause = Arc::new(cause);
        Some(Error::Poisoned { cause })
    }

    /// Nothing is accepted from now on; what waits fails, with what is returned.
    pub fn fail(&self, error: Error) -> Error {
        self.failed.borrow_mut().get_or_insert(error);
        let failure = self.failure().expect("it was just set");
        self.end_groups(failure.clone());
        failure
    }

    /// Lets fail what waits.
    pub fn end_groups(&self, error: Error) {
        let in_flight = self.in_flight.borrow().groups();
        for group in in_flight {
            group.finish(Err(error.clone()));
        }
        loop {
            // Nothing is added any more. What gathers is told also if it is empty: it is what `sync`
            // waits for.
            let gathered = self.tail.borrow_mut().take();
            gathered.group.finish(Err(error.clone()));
            if self.tail.borrow().is_empty() {
                break;
            }
        }
    }

    /// Bytes that wait for the device.
    pub fn pending_bytes(&self) -> usize {
        self.tail.borrow().bytes() + self.in_flight.borrow().bytes()
    }

    pub fn begin_closing(&self) {
        self.is_closing.set(true);
        let bells = [
            &self.commit_bell,
            &self.hurry_bell,
            &self.step_bell,
            &self.checkpoint_bell,
        ];
        bells.into_iter().for_each(Bell::ring);
    }

    /// Whether it takes anything.
    pub fn check_open(&self) -> Result<(), Error> {
        match self.failure() {
            Some(failure) => Err(failure),
            None if self.is_closing.get() => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Whether so many bytes of operations may be accepted.
    pub fn admit(&self, bytes: usize) -> Result<(), Error> {
        self.check_open()?;
        let needed_bytes = (self.pending_bytes()).saturating_add(payload_bytes(bytes));
        let limit_bytes = self.config.pending_bytes;
        if needed_bytes > limit_bytes {
            return Err(Error::Busy {
                needed_bytes,
                limit_bytes,
            });
        }
        Ok(())
    }

    /// Adds an operation to the group that gathers.
    fn log(&self, add: impl FnOnce(&mut Tail) -> Commit) -> Commit {
        let mut tail = self.tail.borrow_mut();
        let before = tail.bytes();
        let commit = add(&mut tail);
        let limit = self.config.commit_bytes;
        let is_full = before < limit && limit <= tail.bytes();
        if before == 0 || is_full {
            self.commit_bell.ring();
        }
        if is_full {
            self.hurry_bell.ring();
        }
        commit
    }

    /// Waits for all operations so far, of which none is delayed any longer.
    pub fn sync(&self) -> Commit {
        self.hurry_bell.ring();
        self.tail.borrow().commit()
    }

    pub fn lacks_next_wal(&self) -> bool {
        self.next_wal.borrow().is_none()
    }
}

/// A log: rows in memory, and what makes them durable.
#[derive(Debug)]
pub(super) struct Shared<V> {
    pub core: Core,
    pub mem: RefCell<MemLog<V>>,
    encoded: RefCell<Vec<u8>>,
}

impl<V: Record> Shared<V> {
    #[inline]
    pub fn row_bytes(&self) -> usize {
        self.core.kind.row_bytes::<V>()
    }

    pub fn new(core: Core, mem: MemLog<V>) -> Rc<Self> {
        Rc::new(Self {
            core,
            mem: RefCell::new(mem),
            encoded: RefCell::default(),
        })
    }

    /// Whether a write may be done, of which so many bytes are to be logged.
    fn admit(&self, bytes: usize) -> Result<(), Error> {
        self.core.admit(bytes)?;
        // They differ if a value panicked after it was taken in and before it was logged.
        if self.mem.borrow().seq() != self.core.tail.borrow().last() {
            self.core.fail(Error::Interrupted);
            return self.core.admit(bytes);
        }
        Ok(())
    }

    pub fn append(&self, ts: Ts, value: V) -> Result<Commit, Refused<V>> {
        let encode = |bytes: &mut _, value: &V| self.encode_rows(bytes, [(ts, value)].into_iter());
        self.write(1, value, encode, |mem, value| mem.append(ts, value))
    }

    pub fn extend(&self, rows: Vec<(Ts, V)>) -> Result<Commit, Refused<Vec<(Ts, V)>>> {
        let encode = |bytes: &mut _, rows: &Vec<(Ts, V)>| {
            self.encode_rows(bytes, rows.iter().map(|(ts, value)| (*ts, value)));
        };
        self.write(rows.len(), rows, encode, MemLog::extend)
    }

    fn write<T>(
        &self,
        count: usize,
        rows: T,
        encode: impl FnOnce(&mut [u8], &T),
        take: impl FnOnce(&mut MemLog<V>, T) -> Result<Appended, WriteError<T>>,
    ) -> Result<Commit, Refused<T>> {
        if let Err(error) = self.admit(count.saturating_mul(self.row_bytes())) {
            let rejected = rows;
            return Err(Refused { error, rejected });
        }
        if count == 0 {
            return Ok(self.core.tail.borrow().commit());
        }
        let mut encoded = self.encoded.take();
        encoded.resize(count * self.row_bytes(), 0);
        encode(&mut encoded, &rows);
        let taken = take(&mut self.mem.borrow_mut(), rows);
        let commit = match taken {
            Ok(_) => Ok((self.core).log(|tail| tail.rows(count as u32, &encoded))),
            Err(refused) => Err(Refused {
                error: Error::Write(refused.kind),
                rejected: refused.rejected,
            }),
        };
        self.written(encoded);
        commit
    }

    /// Counts what is to be maintained, and keeps the memory for the next write.
    fn written(&self, mut encoded: Vec<u8>) {
        const KEPT: usize = 1 << 20;
        let before = self.core.backlog.get();
        let after = before + encoded.len();
        self.core.backlog.set(after);
        let limit = self.core.config.memory.memtable_bytes;
        if before < limit && limit <= after {
            self.core.step_bell.ring();
        }
        encoded.clear();
        if encoded.capacity() <= KEPT {
            *self.encoded.borrow_mut() = encoded;
        }
    }

    pub fn delete(&self, range: Option<(Ts, Ts)>) -> Result<Commit, Error> {
        let (first, last) = range.ok_or(Error::Write(WriteErrorKind::EmptyRange))?;
        self.admit(2 * size_of::<Ts>())?;
        let deleted = self.mem.borrow_mut().delete(first..=last);
        deleted.map_err(|refused| Error::Write(refused.kind))?;
        Ok((self.core).log(|tail| tail.operation(&delete(first, last))))
    }

    pub fn raise_floor(&self, ts: Ts) -> Result<Option<Commit>, Error> {
        self.admit(size_of::<Ts>())?;
        if self.mem.borrow_mut().raise_floor(ts).is_none() {
            return Ok(None);
        }
        Ok(Some(self.core.log(|tail| tail.operation(&floor(ts)))))
    }

    /// Fills in the bytes of rows, which are zeros.
    fn encode_rows<'r>(&self, bytes: &mut [u8], rows: impl Iterator<Item = (Ts, &'r V)>) {
        let places = bytes.chunks_exact_mut(self.row_bytes());
        for (place, (ts, value)) in places.zip(rows) {
            let (at_ts, at_value) = place.split_at_mut(size_of::<Ts>());
            at_ts.copy_from_slice(&ts.to_le_bytes());
            value.encode(at_value);
        }
    }

    pub fn seq(&self) -> Seq {
        self.core.tail.borrow().last()
    }
}
