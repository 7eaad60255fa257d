//! Groups on their way to the device: one is written while those before it are synced.
//!
//! ```text
//!   Tail ──▶ write_groups ──▶ InFlight: being written │ written ──▶ sync_groups ──▶ durable
//! ```
//!
//! They become durable in their order: a sync makes durable what was written before it began, and a
//! group is written after all groups before it. A full group is written whatever is in flight. One that
//! is not waits until nothing is: so those that come meanwhile share its write and its sync.

use std::rc::Rc;

use glommio::spawn_local;

use super::core::{Core, Shared};
use super::error::Error;
use super::wal::Wal;
use crate::Record;

/// Fails what waits, should the executor end before.
struct Ended<'c>(&'c Core);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.begin_closing();
        self.0.end_groups(Error::Closed);
    }
}

/// Writes and syncs groups until the log is closed or one of both fails.
pub(super) async fn commit_groups<V: Record>(
    shared: Rc<Shared<V>>,
    mut wal: Wal,
) -> Result<(), Error> {
    let core = &shared.core;
    let _ended = Ended(core);
    let syncing = spawn_local(sync_groups(Rc::clone(&shared))).detach();
    let written = write_groups(core, &mut wal).await;
    core.in_flight.borrow_mut().end();
    core.sync_bell.ring();
    // What is written is synced and confirmed before all else is told of a failure.
    let synced = syncing.await.unwrap_or(Err(Error::Closed));
    if let Err(error) = written.and(synced) {
        return Err(core.fail(error));
    }
    let next = core.tail.borrow().next_first();
    wal.end(core, next).await
}

async fn write_groups(core: &Core, wal: &mut Wal) -> Result<(), Error> {
    let delay = core.config.commit_delay;
    let limit = core.config.commit_bytes;
    let has_full_group = || core.tail.borrow().bytes() >= limit;
    let is_idle = || core.in_flight.borrow().is_empty();
    loop {
        let is_empty = || core.tail.borrow().is_empty();
        until(core, || !is_empty() || core.is_closing.get()).await?;
        if is_empty() {
            return Ok(());
        }
        if !delay.is_zero() && !has_full_group() && !core.is_closing.get() {
            core.hurry_bell.wait_for(delay).await;
        }
        until(core, || is_idle() || has_full_group()).await?;
        if wal.ends_before(core, core.tail.borrow().next_bytes()) {
            until(core, is_idle).await?;
            let first = core.tail.borrow().next_first();
            wal.begin_next(core, first).await?;
        }
        let mut group = core.tail.borrow_mut().take();
        let in_flight = core.in_flight.borrow_mut().push(wal.file(), &group);
        wal.write(&mut group, in_flight).await?;
        core.tail.borrow_mut().reuse(group.block);
        core.in_flight.borrow_mut().wrote();
        core.sync_bell.ring();
    }
}

/// Waits until something holds. All that comes and all that becomes durable is a reason to look again.
async fn until(core: &Core, holds: impl Fn() -> bool) -> Result<(), Error> {
    loop {
        if let Some(failure) = core.failure() {
            return Err(failure);
        }
        if holds() {
            return Ok(());
        }
        core.commit_bell.wait().await;
    }
}

async fn sync_groups<V: Record>(shared: Rc<Shared<V>>) -> Result<(), Error> {
    let core = &shared.core;
    loop {
        let to_sync = core.in_flight.borrow().to_sync();
        let Some((file, count)) = to_sync else {
            if core.in_flight.borrow().is_over() {
                return Ok(());
            }
            core.sync_bell.wait().await;
            continue;
        };
        if let Err(error) = file.sync().await {
            // At once: nothing more is to be written.
            let failure = core.fail(error);
            core.commit_bell.ring();
            return Err(failure);
        }
        drop(file);
        let (synced, last) = core.in_flight.borrow_mut().synced(count);
        if let Some(last) = last {
            core.durable.set(last);
        }
        core.commit_bell.ring();
        for group in synced {
            group.finish(Ok(()));
        }
    }
}
