//! Maintenance: two tasks in a task queue of their own, whose shares rise with the backlog.
//!
//! One moves rows in memory and deletes by age and size; the other turns full files of the
//! write-ahead log into checkpoints, merges checkpoints, and prepares files.

use std::rc::Rc;
use std::time::Duration;

use glommio::{SharesManager, executor};

use super::checkpoint::{self, Content};
use super::core::Shared;
use super::error::Error;
use super::manifest::{CheckpointFile, WalFile};
use super::replay::Replay;
use super::wal;
use crate::{Progress, Record, Ts};

/// Rows that are moved at once: some 20 µs.
const STEP_ROWS: usize = 1024;
/// Checkpoints that are small because the log was opened often.
const SMALL_CHECKPOINTS: u64 = 16;
/// Full files of the write-ahead log at which maintenance gets all shares. So many are not left for
/// the next opening either.
const MOST_CLOSED: usize = 4;

/// The shares of maintenance: 50, and up to 1,000 with the square of what waits.
pub(super) struct Backlog<V>(pub Rc<Shared<V>>);

impl<V> SharesManager for Backlog<V> {
    fn shares(&self) -> usize {
        let core = &self.0.core;
        let memory = &core.config.memory;
        let most = memory.memtable_bytes.saturating_mul(memory.sealed_runs);
        let rows = core.backlog.get() as f64 / most as f64;
        let files = core.full_wals() as f64 / MOST_CLOSED as f64;
        let load = rows.max(files).min(1.0);
        50 + (950.0 * load * load) as usize
    }

    fn adjustment_period(&self) -> Duration {
        Duration::from_millis(10)
    }
}

/// Moves rows in memory until the log is closed.
pub(super) async fn move_rows<V: Record>(shared: Rc<Shared<V>>) {
    let core = &shared.core;
    while !core.is_closing.get() {
        delete_old(&shared);
        loop {
            let progress = shared.mem.borrow_mut().step(STEP_ROWS);
            if progress == Progress::Idle || core.is_closing.get() {
                break;
            }
            executor().yield_task_queue_now().await;
        }
        core.backlog.set(0);
        core.step_bell.wait_for(core.config.wake_up).await;
    }
}

/// Raises the floor by age and by size. What is refused is tried again at the next wake-up.
fn delete_old<V: Record>(shared: &Shared<V>) {
    let config = &shared.core.config;
    if config.keep.is_none() && config.keep_bytes.is_none() {
        return;
    }
    let snapshot = shared.mem.borrow_mut().snapshot();
    let (Some(first), Some(last)) = (snapshot.first(), snapshot.last()) else {
        return;
    };
    let mut floor = Ts::MIN;
    if let Some(age) = config.keep {
        let ticks = config.memory.unit.ticks(age);
        let oldest = config.memory.unit.now().min(last).saturating_sub(ticks);
        // Each raise is an operation: not for less than a hundredth of the age.
        if first < oldest.saturating_sub(ticks / 100) {
            floor = oldest;
        }
    }
    if let Some(bytes) = config.keep_bytes {
        let most = (bytes / shared.row_bytes()) as u64;
        if snapshot.count(..) > most + most / 100 {
            floor = floor.max(least(first, last, |ts| snapshot.count(ts..) <= most));
        }
    }
    if floor > first {
        let _ = shared.raise_floor(floor);
    }
}

/// The least timestamp of which something holds, of those from which on it does; or the last one.
fn least(first: Ts, last: Ts, holds: impl Fn(Ts) -> bool) -> Ts {
    let (mut low, mut high) = (first, last);
    while low < high {
        // Between any two timestamps, whose sum or difference may be none; never `high`.
        let middle = low.wrapping_add((high.abs_diff(low) / 2) as Ts);
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Writes checkpoints.
pub(super) struct Checkpointer<V> {
    pub shared: Rc<Shared<V>>,
    /// The last operation when it was last found that no merge of these is due.
    pub judged: Option<u64>,
}

impl<V: Record> Checkpointer<V> {
    /// Writes checkpoints until the log is closed.
    pub async fn run(mut self) {
        loop {
            let core = &self.shared.core;
            if core.is_closing.get() {
                if core.full_wals() >= MOST_CLOSED {
                    // If it fails, the files stay for the next opening.
                    let _ = self.convert().await;
                }
                break;
            }
            let requests = core.checkpoint_requests.take();
            let (merged, turned) = self.turn(!requests.is_empty()).await;
            let core = &self.shared.core;
            // What failed is tried again at the next wake-up.
            *core.maintenance_error.borrow_mut() = turned.err();
            for request in requests {
                let _ = request.send(merged.clone());
            }
            core.checkpoint_bell.wait_for(core.config.wake_up).await;
        }
        let requests = self.shared.core.checkpoint_requests.take();
        for request in requests {
            let _ = request.send(Err(Error::Closed));
        }
    }

    /// How the merge that is wanted has ended, and everything.
    async fn turn(&mut self, is_merge_wanted: bool) -> (Result<(), Error>, Result<(), Error>) {
        let converted = self.convert().await;
        // If a file is damaged, what was in it is in memory still.
        let is_damaged = matches!(converted, Err(Error::Corrupt { .. }));
        let mut merged = Ok(());
        if is_merge_wanted || is_damaged || self.is_merge_due() {
            merged = self.merge().await;
        }
        let prepared = self.prepare().await;
        let converted = if is_damaged { Ok(()) } else { converted };
        (merged.clone(), converted.and(merged).and(prepared))
    }

    async fn prepare(&self) -> Result<(), Error> {
        let core = &self.shared.core;
        // Until a file is begun that is ready, none is listed beyond the one that is written to.
        if core.lacks_next_wal() {
            wal::prepare(core).await?;
        }
        Ok(())
    }

    /// Turns the full files of the write-ahead log into a checkpoint.
    async fn convert(&mut self) -> Result<(), Error> {
        let shared = Rc::clone(&self.shared);
        let core = &shared.core;
        let (from, files): (_, Vec<WalFile>) = {
            let manifest = core.manifest.borrow();
            (manifest.covered(), manifest.full_wals().copied().collect())
        };
        let Some(last) = files.last() else {
            return Ok(());
        };
        let to = last.end - 1;
        // A merge may have gone beyond it: it has all that is visible.
        if to <= from {
            return self.list(None).await;
        }
        let config = crate::Config::default().unit(core.kind.unit);
        let mut replay = Replay::<V>::new(config, &core.kind, from, true)?;
        for file in &files {
            let open = core.folder.open_existing(&file.name()).await?;
            replay.wal(Rc::new(open), file.salt, Some(file.end)).await?;
        }
        let content = Content {
            from,
            to,
            snapshot: &replay.mem().snapshot(),
            deletes: replay.deletes.take().unwrap_or_default(),
            floor: replay.floor,
        };
        self.publish(content).await
    }

    /// Writes one checkpoint of all that is visible, in the place of all others.
    async fn merge(&mut self) -> Result<(), Error> {
        let shared = Rc::clone(&self.shared);
        let (snapshot, to, floor) = {
            let mut mem = shared.mem.borrow_mut();
            (mem.snapshot(), mem.seq().0, mem.stats().floor)
        };
        let is_merged =
            matches!(shared.core.manifest.borrow().checkpoints[..], [only] if only.to == to);
        if to == 0 || is_merged {
            return Ok(());
        }
        self.publish(Content {
            from: 0,
            to,
            snapshot: &snapshot,
            deletes: Vec::new(),
            floor,
        })
        .await
    }

    /// Writes a checkpoint in the place of all that it covers, unless the log is closed meanwhile.
    async fn publish(&mut self, content: Content<'_, V>) -> Result<(), Error> {
        let core = &self.shared.core;
        let is_stopped = || core.is_closing.get() && core.full_wals() < MOST_CLOSED;
        let manifest = core.manifest.borrow().clone();
        let written = checkpoint::write(&core.folder, &manifest, content, is_stopped).await?;
        match written {
            Some(written) => self.list(Some(written)).await,
            None => Ok(()),
        }
    }

    /// Has a checkpoint listed in the place of all that it covers, and reuses or removes that.
    async fn list(&mut self, written: Option<CheckpointFile>) -> Result<(), Error> {
        let core = &self.shared.core;
        let manifest = core.manifest.borrow().clone();
        let covered = written.map_or(manifest.covered(), |it| it.to);
        let is_replaced = |it: &CheckpointFile| written.is_some_and(|by| it.from >= by.from);
        let is_covered = |it: &WalFile| it.end > 0 && it.end <= covered + 1;
        let replaced = manifest.checkpoints.into_iter().filter(is_replaced);
        let (replaced, wals): (Vec<_>, _) = (replaced.collect(), manifest.wals.into_iter());
        let covered: Vec<_> = wals.filter(is_covered).collect();
        core.change_manifest(|manifest| {
            manifest.checkpoints.retain(|it| !is_replaced(it));
            manifest.checkpoints.extend(written);
            manifest.wals.retain(|it| !covered.contains(it));
        })
        .await?;
        self.judged = None;
        for checkpoint in replaced {
            core.folder.remove(&checkpoint.name()).await?;
        }
        for file in covered {
            wal::retire(core, file).await?;
        }
        Ok(())
    }

    /// Whether most of what is in checkpoints is not visible any more, or they are many.
    fn is_merge_due(&mut self) -> bool {
        let last = self.shared.seq().0;
        if self.judged == Some(last) {
            return false;
        }
        self.judged = Some(last);
        let wal_file_rows = self.shared.core.config.wal_file_bytes / self.shared.row_bytes() as u64;
        let live = self.shared.mem.borrow_mut().snapshot().count(..);
        let manifest = self.shared.core.manifest.borrow();
        let stored: u64 = manifest.checkpoints.iter().map(|it| it.rows).sum();
        let most = SMALL_CHECKPOINTS + live / wal_file_rows.max(1);
        stored > 2 * live + 4 * wal_file_rows || manifest.checkpoints.len() as u64 > most
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::least;
    use crate::Ts;

    /// Below zero, above, and where the difference of two timestamps is none.
    #[test]
    fn retention_by_size_ends_over_all_of_time() {
        let mut random = Rng::with_seed(1);
        let mut ts = || match random.u8(..6) {
            0 => Ts::MIN + random.i64(0..3),
            1 => Ts::MAX - random.i64(0..3),
            2 => random.i64(-3..3),
            3 => random.i64(-1000..0),
            _ => random.i64(..),
        };
        for _ in 0..20_000 {
            let mut sorted = [ts(), ts(), ts()];
            sorted.sort_unstable();
            let [first, wanted, last] = sorted;
            let mut calls = 0;
            let calls = std::cell::Cell::from_mut(&mut calls);
            let found = least(first, last, |ts| {
                calls.set(calls.get() + 1);
                assert!(
                    calls.get() < 100,
                    "between {first} and {last} it does not end"
                );
                ts >= wanted
            });
            assert_eq!(found, wanted, "between {first} and {last}");
            // What never holds leaves the last one, and the rows there.
            assert_eq!(least(first, last, |_| false), last);
        }
    }
}
