//! A file and a copy of what ought to be in it.
//!
//! Each operation is done to the file, then to the copy; each read is compared with the copy at
//! once. Between two operations nothing is under way.

use futures_lite::future::poll_once;
use futures_lite::{AsyncWrite, StreamExt, stream};
use glommio::io::{
    BufferedFile, DmaFile, DmaStreamReaderBuilder, DmaStreamWriterBuilder, MergedBufferLimit,
    ReadAmplificationLimit, ReadResult, StreamReaderBuilder, StreamWriterBuilder, stat,
};

use super::file::{File, Result};
use crate::workload::prelude::*;

/// A file, and what is in it.
pub(super) struct Tracked {
    checker: Rc<Checker>,
    path: PathBuf,
    /// `None` while it is closed.
    open: Option<Rc<File>>,
    /// What is in it. Its space is for the largest that there may be, so that it costs the same
    /// all the time.
    copy: Vec<u8>,
}

impl Tracked {
    /// Makes an empty file.
    pub(super) async fn create(checker: &Rc<Checker>, path: PathBuf) -> Result<Self> {
        let mut file = Tracked {
            checker: Rc::clone(checker),
            path,
            open: None,
            copy: Vec::with_capacity(FILE_BYTES_MAX),
        };
        file.open(true).await?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file past the page cache, or through it.
    async fn open(&mut self, is_direct: bool) -> Result<()> {
        let open = File::open(&self.path, is_direct).await?;
        process::hold_descriptors(1);
        self.open = Some(Rc::new(open));
        Ok(())
    }

    /// Closes it, and waits for that.
    pub(super) async fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        // After an error a task may have it for a moment more, and closes it.
        let closed = match Rc::into_inner(open) {
            Some(file) => file.close().await,
            None => Ok(()),
        };
        process::hold_descriptors(-1);
        closed
    }

    /// Closes it, and opens it the other way: what was written past the page cache is read through it next, and the other
    /// way round.
    pub(super) async fn reopen(&mut self) -> Result<()> {
        let is_direct = self.opened().is_direct();
        self.close().await?;
        self.open(!is_direct).await
    }

    fn opened(&self) -> Rc<File> {
        Rc::clone(self.open.as_ref().expect("it is open between two steps"))
    }

    /// Writes somewhere in the file, or at its end: several pieces side by side, all at once.
    pub(super) async fn write(&mut self, rng: &mut Rng) -> Result<()> {
        let open = self.opened();
        let unit = open.unit();
        let start = rng.usize(..=self.copy.len()) / unit * unit;
        let mut at = start.min(FILE_BYTES_MAX - WRITE_BYTES_MAX * PIECES_MAX);
        let mut writes: Vec<(usize, Vec<u8>, Task<Result<usize>>)> = Vec::new();
        for _ in 0..rng.usize(1..=PIECES_MAX) {
            let mut data = vec![0; rng.usize(1..=WRITE_BYTES_MAX / unit) * unit];
            rng.fill(&mut data);
            let (open, piece) = (Rc::clone(&open), data.clone());
            let write = spawn_local(async move { open.write_at(piece, at as u64).await });
            let next = at + data.len();
            writes.push((at, data, write));
            at = next;
        }
        let mut result = Ok(());
        for (at, data, write) in writes {
            match write.await {
                // Fewer if the disk is full.
                Ok(count) => self.wrote(at, &data[..count]),
                Err(error) => result = Err(error),
            }
        }
        result
    }

    fn wrote(&mut self, at: usize, data: &[u8]) {
        let end = at + data.len();
        if end > self.copy.len() {
            self.copy.resize(end, 0);
        }
        self.copy[at..end].copy_from_slice(data);
        let gauges = &self.checker.stats.gauges;
        add(&gauges.file_bytes_written, data.len() as u64);
    }

    /// Reads ranges of any position and length all at once, and gives up one of them.
    pub(super) async fn read(&mut self, rng: &mut Rng) -> Result<()> {
        let open = self.opened();
        let ranges: Vec<_> = (0..rng.usize(1..=READS_MAX))
            .map(|_| self.range(rng))
            .collect();
        let reads: Vec<Task<Result<ReadResult>>> = ranges
            .iter()
            .map(|&(at, size)| {
                let open = Rc::clone(&open);
                spawn_local(async move { open.read_at(at, size).await })
            })
            .collect();
        let (at, size) = self.range(rng);
        drop(poll_once(open.read_at(at, size)).await);
        for ((at, size), read) in ranges.into_iter().zip(reads) {
            self.judge(at, size, &read.await?);
        }
        Ok(())
    }

    /// Reads ranges in bulk, some of them near to each other.
    pub(super) async fn read_many(&mut self, rng: &mut Rng) -> Result<()> {
        let open = self.opened();
        let File::Direct(file) = &*open else {
            return self.read(rng).await;
        };
        let mut ranges = Vec::new();
        while ranges.len() < BULK {
            let (mut at, size) = self.range(rng);
            for _ in 0..rng.usize(1..=4) {
                ranges.push((at, size.min(1_500)));
                at += rng.u64(..3_000);
            }
        }
        let gap = ReadAmplificationLimit::Custom(rng.usize(..2_000));
        let limit = MergedBufferLimit::Custom(rng.usize(..64 << 10));
        let mut reads = file.read_many(stream::iter(ranges), limit, gap);
        while let Some(read) = reads.next().await {
            let ((at, size), data) = read?;
            self.judge(at, size, &data);
        }
        Ok(())
    }

    /// A range that begins in the file, or a little after its end.
    fn range(&self, rng: &mut Rng) -> (u64, usize) {
        let at = rng.usize(..=self.copy.len() + 100);
        let size = if rng.chance(1, 4) {
            rng.usize(..=READ_BYTES_MAX)
        } else {
            rng.usize(..=5_000)
        };
        (at as u64, size)
    }

    fn judge(&self, at: u64, size: usize, found: &[u8]) {
        let start = self.copy.len().min(at as usize);
        let end = self.copy.len().min(start + size);
        let expected = &self.copy[start..end];
        let gauges = &self.checker.stats.gauges;
        add(&gauges.file_bytes_read, found.len() as u64);
        self.checker.holds(Invariant::FileBytes, found == expected, || {
            let differs = found.iter().zip(expected).position(|(a, b)| a != b);
            let is_open = match self.open.as_deref() {
                None => "as a stream",
                Some(File::Direct(_)) => "past the page cache",
                Some(File::Buffered(_)) => "through the page cache",
            };
            format!(
                "{} read {is_open}: {} bytes at {at} instead of {}, the first that differs at {:?}",
                self.path.display(),
                found.len(),
                expected.len(),
                differs.map(|offset| at + offset as u64),
            )
        });
    }

    /// Brings to the device what was written.
    pub(super) async fn sync(&mut self) -> Result<()> {
        self.opened().fdatasync().await?;
        bump(&self.checker.stats.gauges.file_syncs);
        Ok(())
    }

    /// Makes the file shorter, or longer by zeros.
    pub(super) async fn truncate(&mut self, rng: &mut Rng) -> Result<()> {
        let bytes = rng.usize(..=FILE_BYTES_MAX);
        self.opened().truncate(bytes as u64).await?;
        self.copy.resize(bytes, 0);
        self.judge_size().await
    }

    /// Compares the file's size.
    pub(super) async fn judge_size(&self) -> Result<()> {
        let found = self.opened().size().await?;
        let expected = self.copy.len() as u64;
        let (checker, path) = (&self.checker, self.path.display());
        checker.holds(Invariant::SizesAndNames, found == expected, || {
            format!("{path} has {found} bytes instead of {expected}")
        });
        Ok(())
    }

    /// Gives it another name.
    pub(super) async fn rename(&mut self, to: PathBuf) -> Result<()> {
        let open = self.open.as_mut().and_then(Rc::get_mut);
        let open = open.expect("it is open between two steps, and no task has it any more");
        open.rename(&to).await?;
        let old = std::mem::replace(&mut self.path, to);
        let (gone, there) = (stat(&old).await, stat(&self.path).await);
        let is_there = there.is_ok_and(|stat| stat.file_size == self.copy.len() as u64);
        let is_renamed = gone.is_err() && is_there;
        self.checker
            .holds(Invariant::SizesAndNames, is_renamed, || {
                let (old, new) = (old.display(), self.path.display());
                format!("{old} is there although it was renamed, or {new} is not")
            });
        Ok(())
    }

    /// Writes the file anew, from its beginning to its end, then reads it so.
    pub(super) async fn stream(&mut self, rng: &mut Rng) -> Result<()> {
        self.close().await?;
        self.copy.resize(rng.usize(..=FILE_BYTES_MAX), 0);
        rng.fill(&mut self.copy);
        let is_direct = rng.chance(1, 2);
        let buffer_bytes = rng.usize(1..=8) * 4096;
        process::hold_descriptors(1);
        let streamed = async {
            self.stream_in(is_direct, buffer_bytes).await?;
            self.stream_out(!is_direct, buffer_bytes).await
        };
        let streamed = streamed.await;
        process::hold_descriptors(-1);
        self.judge(0, FILE_BYTES_MAX, &streamed?);
        self.open(is_direct).await
    }

    async fn stream_in(&self, is_direct: bool, buffer_bytes: usize) -> Result<()> {
        let mut writer: Box<dyn AsyncWrite + Unpin> = if is_direct {
            let file = DmaFile::create(&self.path).await?;
            let writer = DmaStreamWriterBuilder::new(file).with_buffer_size(buffer_bytes);
            Box::new(writer.with_write_behind(3).build())
        } else {
            let file = BufferedFile::create(&self.path).await?;
            let writer = StreamWriterBuilder::new(file).with_buffer_size(buffer_bytes);
            Box::new(writer.build())
        };
        for piece in self.copy.chunks(7_000) {
            writer.write_all(piece).await?;
        }
        writer.close().await?;
        let gauges = &self.checker.stats.gauges;
        add(&gauges.file_bytes_written, self.copy.len() as u64);
        Ok(())
    }

    async fn stream_out(&self, is_direct: bool, buffer_bytes: usize) -> Result<Vec<u8>> {
        let mut found = Vec::with_capacity(self.copy.len());
        if is_direct {
            let file = DmaFile::open(&self.path).await?;
            let reader = DmaStreamReaderBuilder::new(file).with_buffer_size(buffer_bytes);
            let mut reader = reader.with_read_ahead(3).build();
            reader.read_to_end(&mut found).await?;
            reader.close().await?;
        } else {
            let file = BufferedFile::open(&self.path).await?;
            let reader = StreamReaderBuilder::new(file).with_buffer_size(buffer_bytes);
            let mut reader = reader.build();
            reader.read_to_end(&mut found).await?;
            reader.close().await?;
        }
        Ok(found)
    }
}

const FILE_BYTES_MAX: usize = 256 << 10;

/// Of one write of several.
const WRITE_BYTES_MAX: usize = 16 << 10;
const PIECES_MAX: usize = 4;

const READ_BYTES_MAX: usize = 64 << 10;
const READS_MAX: usize = 6;

/// Ranges that are read in bulk, at the least.
const BULK: usize = 24;
