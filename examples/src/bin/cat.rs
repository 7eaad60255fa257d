//! Writes files to the standard output, one after the other, as cat(1) does.
//!
//! ```console
//! $ cargo run --release -p examples --bin cat -- README.md LICENSE-MIT | wc -c
//! ```
//!
//! A file is read in bulk, past the page cache: the list of its blocks goes into `read_many`, which
//! keeps several reads in flight and gives their data back in order. What has no size beforehand,
//! as a pipe or a file of `/proc`, is read as a stream; so is the standard input, if no file is
//! named or one is called `-`.
//!
//! The output is written by plain blocking calls. There is nothing else that this thread could do
//! meanwhile, and the reads that are in flight go on in the kernel.

#![forbid(unsafe_code)]

use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use clap::Parser;
use futures_lite::{AsyncRead, AsyncReadExt, StreamExt, stream};
use glommio::io::{
    BufferedFile, DmaFile, MergedBufferLimit, ReadAmplificationLimit, StreamReaderBuilder, stdin,
};
use glommio::{LocalExecutorBuilder, Placement};

/// Writes files to the standard output.
#[derive(Clone, Debug, Parser)]
#[command(name = "cat")]
struct Options {
    /// Which files; `-` is the standard input.
    #[arg(default_value = "-")]
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let Options { files } = Options::parse();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("cat")
        .spawn(move || async move {
            let mut status = ExitCode::SUCCESS;
            for path in &files {
                match show(path).await {
                    Ok(()) => {}
                    // The reader is gone: there is no use in going on, and nothing to say.
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                    Err(error) => {
                        eprintln!("cat: {}: {error}", path.display());
                        status = ExitCode::FAILURE;
                    }
                }
            }
            status
        });
    match executor.and_then(|executor| executor.join()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("cat: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn show(path: &Path) -> io::Result<()> {
    if path == Path::new("-") {
        return show_stream(stdin()).await;
    }
    let file = BufferedFile::open(path).await?;
    let size = file.file_size().await?;
    if size == 0 {
        let mut reader = StreamReaderBuilder::new(file)
            .with_buffer_size(BLOCK_BYTES)
            .build();
        show_stream(&mut reader).await?;
        return Ok(reader.close().await?);
    }
    file.close().await?;
    show_blocks(path, size).await
}

async fn show_blocks(path: &Path, size: u64) -> io::Result<()> {
    let file = Rc::new(DmaFile::open(path).await?);
    // Only the first `size` bytes: the file may have grown since.
    let blocks = (0..size)
        .step_by(BLOCK_BYTES)
        .map(|position| (position, BLOCK_BYTES.min((size - position) as usize)));
    let mut reads = file
        .read_many(
            stream::iter(blocks),
            // A block is as large as a read should be.
            MergedBufferLimit::NoMerging,
            ReadAmplificationLimit::NoAmplification,
        )
        .with_concurrency(IN_FLIGHT);
    let mut output = io::stdout().lock();
    while let Some(read) = reads.next().await {
        let (_block, data) = read?;
        output.write_all(&data)?;
    }
    output.flush()?;
    drop(reads);
    file.close_rc().await?;
    Ok(())
}

async fn show_stream(mut reader: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut output = io::stdout().lock();
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        match reader.read(&mut buffer).await? {
            0 => return output.flush(),
            count => output.write_all(&buffer[..count])?,
        }
    }
}

const BLOCK_BYTES: usize = 512 << 10;

/// Reads at a time: with the one that is being written, the memory that all of it takes.
const IN_FLIGHT: usize = 8;
