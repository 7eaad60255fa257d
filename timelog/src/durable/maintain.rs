//! Maintenance: two tasks in a task queue of their own, whose shares rise with the backlog.
//!
//! One moves rows in memory and deletes by age and size; the other turns full files of the
//! write-ahead log into checkpoints, merges checkpoints, and prepares files.

use std::rc::Rc;
use std::time::Duration;

use glommio::{SharesManager, executor};

use super::Record;
use super::checkpoint::{self, Checkpoint, Content, Stretch};
use super::core::Shared;
use super::error::Error;
use super::replay::Replay;
use super::wal::{self, Next};
use crate::{Progress, Ts};

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
        let files = core.closed.borrow().len() as f64 / MOST_CLOSED as f64;
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
        core.step_bell.wait_for(core.config.limits.wake_up).await;
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
        let most = (bytes / Shared::<V>::ROW_BYTES) as u64;
        if snapshot.count(..) > most + most / 100 {
            let (mut low, mut high) = (first, last);
            // The least timestamp from which on no more rows are there, or the last one.
            while low < high {
                let middle = low.midpoint(high);
                if snapshot.count(middle..) <= most {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            floor = floor.max(low);
        }
    }
    if floor > first {
        let _ = shared.raise_floor(floor);
    }
}

/// What checkpoints there are.
pub(super) struct Checkpointer<V> {
    pub shared: Rc<Shared<V>>,
    pub checkpoints: Vec<Checkpoint>,
    pub covered: u64,
    /// The last operation when it was last found that no merge of these is due.
    pub judged: Option<u64>,
}

impl<V: Record> Checkpointer<V> {
    /// Writes checkpoints until the log is closed.
    pub async fn run(mut self) {
        loop {
            let core = &self.shared.core;
            let counts = (
                self.checkpoints.len(),
                self.checkpoints.iter().map(|it| it.rows).sum(),
            );
            core.checkpoints.set(counts);
            if core.is_closing.get() {
                if core.closed.borrow().len() >= MOST_CLOSED {
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
            core.checkpoint_bell
                .wait_for(core.config.limits.wake_up)
                .await;
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
        let bytes = core.config.limits.wal_file_bytes;
        if core.lacks_next_wal()
            && let Some(file) = wal::prepare(core, bytes).await?
        {
            core.next_wal.replace(Next::Ready(file));
        }
        Ok(())
    }

    /// Turns the full files of the write-ahead log into a checkpoint.
    async fn convert(&mut self) -> Result<(), Error> {
        let shared = Rc::clone(&self.shared);
        let core = &shared.core;
        let files = core.closed.borrow().clone();
        let Some(last) = files.last() else {
            return Ok(());
        };
        let to = last.end - 1;
        if to > self.covered {
            let config = crate::Config::default().unit(core.kind.unit);
            let mut replay = Replay::<V>::new(config, self.covered, true)?;
            for file in &files {
                let open = core.folder.open_existing(&wal::name(file.number)).await?;
                replay.wal(Rc::new(open), core.kind, Some(file.end)).await?;
            }
            let content = Content {
                stretch: Stretch {
                    from: self.covered,
                    to,
                },
                snapshot: &replay.mem().snapshot(),
                deletes: replay.deletes.take().unwrap_or_default(),
                floor: replay.floor,
            };
            if !self.publish(content).await? {
                return Ok(());
            }
        }
        self.retire().await
    }

    /// Writes one checkpoint of all that is visible, in the place of all others.
    async fn merge(&mut self) -> Result<(), Error> {
        let shared = Rc::clone(&self.shared);
        let (snapshot, to, floor) = {
            let mut mem = shared.mem.borrow_mut();
            (mem.snapshot(), mem.seq().0, mem.stats().floor)
        };
        let is_merged = matches!(self.checkpoints[..], [only] if only.stretch.to == to);
        if to == 0 || is_merged {
            return Ok(());
        }
        let before = std::mem::take(&mut self.checkpoints);
        let content = Content {
            stretch: Stretch { from: 0, to },
            snapshot: &snapshot,
            deletes: Vec::new(),
            floor,
        };
        match self.publish(content).await {
            Ok(true) => {}
            failed => {
                self.checkpoints = before;
                return failed.map(|_| ());
            }
        }
        for checkpoint in before {
            shared
                .core
                .folder
                .remove(&checkpoint.stretch.name())
                .await?;
        }
        self.retire().await
    }

    /// Whether it was written: not if the log is closed meanwhile.
    async fn publish(&mut self, content: Content<'_, V>) -> Result<bool, Error> {
        let core = &self.shared.core;
        let to = content.stretch.to;
        let is_stopped = || core.is_closing.get() && core.closed.borrow().len() < MOST_CLOSED;
        let written = checkpoint::write(&core.folder, core.kind, content, is_stopped).await?;
        let Some(checkpoint) = written else {
            return Ok(false);
        };
        self.checkpoints.push(checkpoint);
        self.covered = to;
        self.judged = None;
        Ok(true)
    }

    /// Reuses or removes the files that checkpoints cover.
    async fn retire(&self) -> Result<(), Error> {
        let core = &self.shared.core;
        loop {
            let oldest = core.closed.borrow().first().copied();
            let Some(oldest) = oldest.filter(|file| file.end <= self.covered + 1) else {
                return Ok(());
            };
            core.closed.borrow_mut().remove(0);
            wal::retire(core, oldest.number).await?;
        }
    }

    /// Whether most of what is in checkpoints is not visible any more, or they are many.
    fn is_merge_due(&mut self) -> bool {
        let last = self.shared.seq().0;
        if self.judged == Some(last) {
            return false;
        }
        self.judged = Some(last);
        let wal_file_rows =
            self.shared.core.config.limits.wal_file_bytes / Shared::<V>::ROW_BYTES as u64;
        let live = self.shared.mem.borrow_mut().snapshot().count(..);
        let stored: u64 = self.checkpoints.iter().map(|it| it.rows).sum();
        let most = SMALL_CHECKPOINTS + live / wal_file_rows.max(1);
        stored > 2 * live + 4 * wal_file_rows || self.checkpoints.len() as u64 > most
    }
}
