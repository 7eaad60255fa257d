//! Measures a disk: streams and random reads and writes, past the page cache and through it.
//!
//! ```console
//! $ cargo run --release -p examples --bin storage -- /var/tmp --size-mib 1024 --seconds 3
//! ```
//!
//! It writes a file of that size, `storage-PID.tmp`, into the directory, and removes it at the end,
//! but not if it is interrupted. Each case runs for `--seconds`, streams for one pass. Figures past
//! the page cache are those of the device and its caches; figures through the page cache are those
//! of memory, as long as the file fits into it.
//!
//! `depth` is the number of operations in flight: as many tasks, each of which waits for its own.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Parser;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::io::{
    BufferedFile, DmaFile, DmaStreamReaderBuilder, DmaStreamWriterBuilder, OpenOptions,
    StreamReaderBuilder, StreamWriterBuilder, remove,
};
use glommio::{GlommioError, LocalExecutorBuilder, Placement, spawn_local};
use indicatif::{ProgressBar, ProgressStyle};

/// Measures the disk that a directory is on.
#[derive(Clone, Debug, Parser)]
#[command(name = "storage")]
struct Options {
    /// Where the file is written that is measured.
    #[arg(default_value = ".")]
    directory: PathBuf,

    /// MiB of the file.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(4..=1 << 20))]
    size_mib: u32,

    /// How long each case of random reads or writes takes.
    #[arg(long, default_value_t = 2.0, value_parser = parse_seconds)]
    seconds: f64,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("this wants a number from 0.01 to 3600".to_owned()),
    }
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("storage: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let name = format!("storage-{}.tmp", process::id());
    let path = options.directory.join(name);
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("storage")
        .spawn(move || async move {
            let measured = measure(&options, &path).await;
            let removed = remove(&path).await;
            measured.and(removed)
        })?;
    executor.join()??;
    Ok(())
}

type Result<T, E = GlommioError<()>> = std::result::Result<T, E>;

async fn measure(options: &Options, path: &Path) -> Result<()> {
    let bytes = u64::from(options.size_mib) << 20;
    let lasts = Duration::from_secs_f64(options.seconds);
    let bench = Bench {
        path: path.to_owned(),
        bytes,
        lasts,
        progress: progress_bar(),
    };
    println!(
        "{} MiB in {}",
        options.size_mib,
        options.directory.display()
    );
    println!(
        "{:<34}{:>8}{:>11}{:>11}{:>11}{:>11}",
        "", "depth", "MB/s", "ops/s", "p50 µs", "p99 µs"
    );
    // The first one makes the file.
    bench
        .stream("write, 1 MiB, direct", Stream::WriteDirect)
        .await?;
    bench
        .stream("read, 1 MiB, direct", Stream::ReadDirect)
        .await?;
    bench
        .stream("write, 1 MiB, buffered, fdatasync", Stream::WriteBuffered)
        .await?;
    bench
        .stream("read, 1 MiB, buffered", Stream::ReadBuffered)
        .await?;
    for depth in [1, 8, 32] {
        bench
            .random("random read, 4 KiB, direct", depth, Kind::ReadDirect)
            .await?;
    }
    bench
        .random("random read, 4 KiB, buffered", 1, Kind::ReadBuffered)
        .await?;
    for depth in [1, 8, 32] {
        bench
            .random("random write, 4 KiB, direct", depth, Kind::WriteDirect)
            .await?;
    }
    bench
        .random("same, fdatasync after each", 1, Kind::WriteAndSync)
        .await?;
    Ok(())
}

/// Shown on terminals, and removed when a case has ended.
fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:34} {wide_bar} {percent:>3} %");
    let bar = ProgressBar::new(0);
    bar.set_style(style.expect("the template is sound"));
    bar
}

/// What all cases share.
struct Bench {
    path: PathBuf,
    bytes: u64,
    lasts: Duration,
    progress: ProgressBar,
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    WriteDirect,
    ReadDirect,
    WriteBuffered,
    ReadBuffered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ReadDirect,
    ReadBuffered,
    WriteDirect,
    WriteAndSync,
}

impl Bench {
    fn begin(&self, name: &'static str, length: u64) {
        self.progress.reset();
        self.progress.set_length(length);
        self.progress.set_message(name);
    }

    fn end(&self, line: &str) {
        // So that the line and the bar do not write over each other.
        self.progress.suspend(|| println!("{line}"));
    }

    /// One pass over the file.
    async fn stream(&self, name: &'static str, stream: Stream) -> Result<()> {
        self.begin(name, self.bytes);
        let begin = Instant::now();
        match stream {
            Stream::WriteDirect => {
                let file = DmaFile::create(&self.path).await?;
                let mut writer = DmaStreamWriterBuilder::new(file)
                    .with_buffer_size(PIECE_BYTES)
                    .build();
                self.write(&mut writer).await?;
            }
            Stream::WriteBuffered => {
                let file = BufferedFile::create(&self.path).await?;
                let mut writer = StreamWriterBuilder::new(file)
                    .with_buffer_size(PIECE_BYTES)
                    .build();
                self.write(&mut writer).await?;
            }
            Stream::ReadDirect => {
                let file = DmaFile::open(&self.path).await?;
                let mut reader = DmaStreamReaderBuilder::new(file)
                    .with_buffer_size(PIECE_BYTES)
                    .build();
                loop {
                    // In the memory that the device has written to.
                    match reader.get_buffer_aligned(PIECE_BYTES as u64).await?.len() {
                        0 => break,
                        count => self.progress.inc(count as u64),
                    }
                }
                reader.close().await?;
            }
            Stream::ReadBuffered => {
                let file = BufferedFile::open(&self.path).await?;
                let mut reader = StreamReaderBuilder::new(file)
                    .with_buffer_size(PIECE_BYTES)
                    .build();
                let mut piece = vec![0; PIECE_BYTES];
                loop {
                    match reader.read(&mut piece).await? {
                        0 => break,
                        count => self.progress.inc(count as u64),
                    }
                }
                reader.close().await?;
            }
        }
        let rate = self.bytes as f64 / 1e6 / begin.elapsed().as_secs_f64();
        self.end(&format!(
            "{name:<34}{:>8}{rate:>11.0}{:>11}{:>11}{:>11}",
            "", "", "", ""
        ));
        Ok(())
    }

    /// Both kinds of writers sync when they are closed.
    async fn write(&self, mut writer: impl AsyncWriteExt + Unpin) -> Result<()> {
        // Not zeros, which some disks do not store.
        let mut piece = vec![0; PIECE_BYTES];
        fastrand::Rng::with_seed(1).fill(&mut piece);
        for _ in 0..self.bytes / PIECE_BYTES as u64 {
            writer.write_all(&piece).await?;
            self.progress.inc(PIECE_BYTES as u64);
        }
        writer.close().await?;
        Ok(())
    }

    /// Reads or writes blocks at random places until the time is over.
    async fn random(&self, name: &'static str, depth: usize, kind: Kind) -> Result<()> {
        self.begin(name, self.lasts.as_millis() as u64);
        let file = Rc::new(File::open(&self.path, kind).await?);
        let begin = Instant::now();
        let taken = Rc::new(RefCell::new(Vec::with_capacity(1 << 16)));
        let shown = Rc::new(Cell::new(begin));
        let tasks: Vec<_> = (0..depth)
            .map(|lane| {
                let (file, taken) = (Rc::clone(&file), Rc::clone(&taken));
                let (shown, progress) = (Rc::clone(&shown), self.progress.clone());
                let (blocks, lasts) = (self.bytes / BLOCK_BYTES as u64, self.lasts);
                spawn_local(async move {
                    let mut random = fastrand::Rng::with_seed(lane as u64 + 1);
                    let mut now = Instant::now();
                    // Once at least, however short the time is.
                    loop {
                        file.once(random.u64(..blocks) * BLOCK_BYTES as u64).await?;
                        let asked = std::mem::replace(&mut now, Instant::now());
                        taken.borrow_mut().push((now - asked).as_nanos() as u64);
                        if now - shown.get() > SHOWN_EVERY {
                            shown.set(now);
                            progress.set_position((now - begin).as_millis() as u64);
                        }
                        if now - begin >= lasts {
                            return Ok::<_, GlommioError<()>>(());
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let mut taken = taken.take();
        taken.sort_unstable();
        let count = taken.len() as f64;
        let us = |fraction: f64| taken[(fraction * (count - 1.0)) as usize] as f64 / 1e3;
        self.end(&format!(
            "{name:<34}{depth:>8}{:>11.0}{:>11.0}{:>11.1}{:>11.1}",
            count * BLOCK_BYTES as f64 / 1e6 / seconds,
            count / seconds,
            us(0.5),
            us(0.99),
        ));
        Ok(())
    }
}

/// The file, open for what is done to it.
enum File {
    Read(DmaFile),
    Cached(BufferedFile),
    Write(DmaFile),
    WriteAndSync(DmaFile),
}

impl File {
    async fn open(path: &Path, kind: Kind) -> Result<File> {
        let writable = || OpenOptions::new().write(true).clone();
        Ok(match kind {
            Kind::ReadDirect => File::Read(DmaFile::open(path).await?),
            Kind::ReadBuffered => File::Cached(BufferedFile::open(path).await?),
            Kind::WriteDirect => File::Write(writable().dma_open(path).await?),
            Kind::WriteAndSync => File::WriteAndSync(writable().dma_open(path).await?),
        })
    }

    async fn once(&self, position: u64) -> Result<()> {
        match self {
            File::Read(file) => drop(file.read_at_aligned(position, BLOCK_BYTES).await?),
            File::Cached(file) => drop(file.read_at(position, BLOCK_BYTES).await?),
            File::Write(file) | File::WriteAndSync(file) => {
                let mut buffer = file.alloc_dma_buffer(BLOCK_BYTES);
                buffer.as_bytes_mut().fill(position as u8 | 1);
                file.write_at(buffer, position).await?;
            }
        }
        if let File::WriteAndSync(file) = self {
            file.fdatasync().await?;
        }
        Ok(())
    }
}

/// Of streams.
const PIECE_BYTES: usize = 1 << 20;

/// Of random reads and writes: what any device takes.
const BLOCK_BYTES: usize = 4096;

const SHOWN_EVERY: Duration = Duration::from_millis(50);
