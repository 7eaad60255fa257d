//! A writer that never pauses, and a flush beside it, which is to end all the same.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::AsyncWriteExt;
use futures_lite::future::zip;
use glommio::GlommioError;
use glommio::io::{DmaFile, DmaStreamWriterBuilder};
use glommio::timer::sleep;

use super::sizes::Sizes;
use super::turns::Turns;
use crate::check::checker::Checker;
use crate::check::executor_stats::add;
use crate::check::invariants::Invariant;
use crate::measure::process;

/// Round after round, until the run drains.
pub(super) async fn run(
    checker: Rc<Checker>,
    turns: Rc<Turns>,
    path: PathBuf,
    sizes: Sizes,
) -> Result<(), GlommioError<()>> {
    while !checker.control.is_draining() {
        process::hold_descriptors(1);
        let file = DmaFile::create(&path).await?;
        let writer = DmaStreamWriterBuilder::new(file)
            .with_buffer_size(BUFFER)
            .with_write_behind(WRITE_BEHIND)
            .with_sync_on_close_disabled(true)
            .build();
        let is_flushed = Cell::new(false);
        let writing = async {
            let mut written = 0;
            while !is_flushed.get() && written < MOST {
                (&writer).write_all(&[7; PIECE]).await?;
                written += PIECE as u64;
                turns.operation();
            }
            add(&checker.stats.gauges.file_bytes_written, written);
            Ok(())
        };
        let flushing = async {
            for _ in 0..FLUSHES {
                sleep(Duration::from_micros(200)).await;
                let before = writer.current_pos();
                let flushed = (&writer).flush().await;
                let accepted = writer.current_pos() - before;
                let ledger = &checker.stats.ledger;
                let too_much = accepted.saturating_sub(ACCEPTED_MAX);
                ledger.check(Invariant::Turns, too_much / PIECE as u64, || {
                    format!("{accepted} bytes were accepted while a flush waited")
                });
                flushed?;
            }
            is_flushed.set(true);
            Ok(())
        };
        let (written, flushed): (std::io::Result<()>, std::io::Result<()>) =
            zip(writing, flushing).await;
        written.and(flushed)?;
        (&writer).close().await?;
        process::hold_descriptors(-1);
        sleep(sizes.every * 2).await;
    }
    Ok(())
}

const PIECE: usize = 4 << 10;
const BUFFER: usize = 64 << 10;
const WRITE_BEHIND: usize = 2;
const FLUSHES: usize = 4;

/// The writer ends here, whatever the flushes do.
const MOST: u64 = 16 << 20;

/// What fills the buffers, with what is written in the poll in which the flush begins: 32 pieces, once
/// the slice of the task is over. One that does not keep writes waiting sees all of [`MOST`].
const ACCEPTED_MAX: u64 = MOST / 16;
