//! Copies a file, past the page cache.
//!
//! ```console
//! $ head -c 30000000 /dev/urandom >large.img
//! $ cargo run --release -p examples --bin copy -- large.img copy.img --sync && cmp large.img copy.img
//! 30000000 bytes in .. s, .. MB/s
//! ```
//!
//! ```text
//!   read_many ──▶ block, in the memory that the device has written to
//!                   │
//!                   ▼
//!                 write_at ──▶ the device reads from the same memory
//! ```
//!
//! Several blocks are being read while several others are being written, and no byte is copied by
//! the processor. At the end the file gets its exact size, since writes past the page cache come in
//! whole blocks. It is not faster than cp(1), which leaves everything in the page cache, to be written
//! some time later; what it saves is that cache, for others.
//!
//! Without `--sync` the data is on the device, as far as that tells, but the file's new size and
//! place may not be.

#![forbid(unsafe_code)]

use std::error::Error;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;
use std::{fs, io};

use clap::Parser;
use futures_lite::{StreamExt, stream};
use glommio::io::{
    DmaBuffer, DmaFile, MergedBufferLimit, OpenOptions, ReadAmplificationLimit, ReadResult,
};
use glommio::task::JoinSet;
use glommio::{GlommioError, LocalExecutorBuilder, Placement};

/// Copies a file.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// What to copy.
    source: PathBuf,

    /// Where to. A file that is there is overwritten.
    destination: PathBuf,

    /// Wait until the copy would survive a power failure.
    #[arg(long)]
    sync: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("copy")
        // Beyond this, buffers come from the ordinary allocator, which has to clear them.
        .io_memory((2 * DEPTH + 2) * BLOCK_BYTES)
        .spawn(move || async move {
            let begin = Instant::now();
            let bytes = copy(&options).await?;
            let seconds = begin.elapsed().as_secs_f64();
            let rate = bytes as f64 / 1e6 / seconds;
            println!("{bytes} bytes in {seconds:.3} s, {rate:.0} MB/s");
            Ok::<_, GlommioError<()>>(())
        })?;
    executor.join()??;
    Ok(())
}

/// With the operation and the file, which an `io::Error` cannot tell.
type Result<T, E = GlommioError<()>> = std::result::Result<T, E>;

async fn copy(options: &Options) -> Result<u64> {
    // Attributes of a file are in memory as a rule, and nothing else waits for this thread.
    let metadata = fs::metadata(&options.source)?;
    if !metadata.is_file() {
        let text = format!("{} is not a file with a size", options.source.display());
        return Err(io::Error::other(text).into());
    }
    let source = Rc::new(DmaFile::open(&options.source).await?);
    let size = source.file_size().await?;
    // Not truncated yet: it may be the source.
    let destination = OpenOptions::new()
        .write(true)
        .create(true)
        .mode(metadata.permissions().mode() & 0o777)
        .dma_open(&options.destination)
        .await?;
    if destination.is_same(&source) {
        return Err(io::Error::other("source and destination are the same file").into());
    }
    let destination = Rc::new(destination);
    if size > 0 {
        // Space in one piece, where the filesystem can do that.
        let _ = destination.pre_allocate(size, true).await;
    }
    copy_blocks(&source, &destination, size).await?;
    destination.truncate(size).await?;
    if options.sync {
        destination.fsync().await?;
    }
    destination.close_rc().await?;
    source.close_rc().await?;
    Ok(size)
}

async fn copy_blocks(source: &Rc<DmaFile>, destination: &Rc<DmaFile>, size: u64) -> Result<()> {
    let blocks = (0..size)
        .step_by(BLOCK_BYTES)
        .map(|position| (position, BLOCK_BYTES.min((size - position) as usize)));
    let mut reads = source
        .read_many(
            stream::iter(blocks),
            MergedBufferLimit::NoMerging,
            ReadAmplificationLimit::NoAmplification,
        )
        .with_concurrency(DEPTH);
    let mut writes = JoinSet::new();
    while let Some(read) = reads.next().await {
        let ((position, length), data) = read?;
        if data.len() < length {
            return Err(io::Error::other("the source has become shorter").into());
        }
        while writes.len() >= DEPTH {
            let written = writes.join_next().await.expect("there are some");
            written.map_err(io::Error::other)??;
        }
        let destination = Rc::clone(destination);
        writes.spawn(async move { write(&destination, data, position).await });
    }
    while let Some(written) = writes.join_next().await {
        written.map_err(io::Error::other)??;
    }
    Ok(())
}

async fn write(destination: &DmaFile, data: ReadResult, position: u64) -> Result<()> {
    let length = data.len();
    let whole = destination.align_up(length as u64) as usize;
    let buffer = if whole == length {
        // The same memory: nothing else refers to it.
        DmaBuffer::from(data)
    } else {
        // The end of the file, filled up with zeros, which are cut off later.
        let mut padded = destination.alloc_dma_buffer(whole);
        padded.as_bytes_mut()[..length].copy_from_slice(&data);
        padded.as_bytes_mut()[length..].fill(0);
        padded
    };
    destination.write_all_at(buffer, position).await
}

/// A multiple of what any device asks for.
const BLOCK_BYTES: usize = 1 << 20;

/// Blocks that are read at a time, and blocks that are written at a time.
const DEPTH: usize = 8;
