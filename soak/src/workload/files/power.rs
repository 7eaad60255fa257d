//! In a simulation: a node that appends records, and loses its power again and again.
//!
//! As processes that are killed, with the same file, the same records and the same promise; but a
//! power cut also takes what was not synced, and tears what was on its way to the disk.

use glommio::io::Directory;

use super::appender::{Records, append};
use super::file::File;
use crate::workload::prelude::*;

/// What is known of the file outside of the node.
#[derive(Debug)]
pub(crate) struct Appended {
    stats: Arc<ExecutorStats>,
    records: Records,
    /// Records that are there whatever happens.
    safe: Cell<u64>,
    has_lived: Cell<bool>,
}

impl Appended {
    pub(crate) fn new(stats: Arc<ExecutorStats>, seed: u64) -> Rc<Self> {
        // By turns past the page cache and through it.
        let bytes = if seed.is_multiple_of(2) { 4096 } else { 1000 };
        Rc::new(Appended {
            stats,
            records: Records { seed, bytes },
            safe: Cell::new(0),
            has_lived: Cell::new(false),
        })
    }

    /// One life of the node, which ends with its power.
    pub(crate) async fn live(self: Rc<Self>) -> Result<(), GlommioError<()>> {
        let path = Path::new("/records");
        // So that its name is there after a power cut.
        File::open(path, false).await?.close().await?;
        let directory = Directory::open("/").await?;
        directory.sync().await?;
        directory.close().await?;
        let mut is_first = true;
        append(path, self.records, |count| {
            if std::mem::take(&mut is_first) {
                if self.has_lived.replace(true) {
                    bump(&self.stats.gauges.crashes);
                }
                let safe = self.safe.get();
                let lost = safe.saturating_sub(count);
                self.stats.ledger.check(Invariant::Records, lost, || {
                    format!("{lost} of {safe} records are gone or torn after a power cut")
                });
            }
            // What is found after a power cut is on the medium.
            self.safe.set(self.safe.get().max(count));
            Ok(())
        })
        .await
    }
}
