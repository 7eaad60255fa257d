//! What is done to the files, step by step.

use std::collections::BTreeSet;
use std::ffi::OsString;

use futures_lite::StreamExt;
use glommio::allocate_dma_buffer;
use glommio::io::{Directory, remove};

use super::file::Result;
use super::tracked::Tracked;
use crate::workload::prelude::*;

/// The files of one executor, in a directory of their own.
pub(super) struct Script {
    checker: Rc<Checker>,
    directory: PathBuf,
    rng: Rng,
    count: usize,
    files: Vec<Tracked>,
    /// Of all files so far: no name is used twice.
    names: u64,
}

impl Script {
    pub(super) fn new(checker: Rc<Checker>, directory: PathBuf, rng: Rng, count: usize) -> Self {
        Script {
            checker,
            directory,
            rng,
            count,
            files: Vec::with_capacity(count),
            names: 0,
        }
    }

    /// Until the run drains, or an operation fails that has no reason to.
    pub(super) async fn run(mut self) {
        let io_memory = IoMemory::new();
        let mut done = self.begin().await;
        while done.is_ok() && !self.checker.control.is_draining() {
            done = self.step().await;
            io_memory.judge(&self.checker).await;
            let pause = self.rng.uniform(PAUSE_MIN, PAUSE_MAX);
            self.checker.pause(pause).await;
        }
        if done.is_ok() {
            done = self.judge_names().await;
        }
        let closed = self.end().await;
        if let Err(error) = done.and(closed) {
            self.checker
                .holds(Invariant::FileBytes, false, || error.to_string());
        }
    }

    async fn begin(&mut self) -> Result<()> {
        Directory::create(&self.directory).await?.close().await?;
        while self.files.len() < self.count {
            let path = self.new_path();
            self.files.push(Tracked::create(&self.checker, path).await?);
        }
        Ok(())
    }

    fn new_path(&mut self) -> PathBuf {
        self.names += 1;
        self.directory.join(format!("file-{}", self.names))
    }

    /// One operation on one of the files.
    async fn step(&mut self) -> Result<()> {
        let chosen = self.rng.usize(..self.files.len());
        let rng = &mut self.rng;
        match rng.u64(..24) {
            0..6 => self.files[chosen].write(rng).await,
            6..11 => self.files[chosen].read(rng).await,
            11..14 => self.files[chosen].read_many(rng).await,
            14 => self.files[chosen].sync().await,
            15..17 => self.files[chosen].truncate(rng).await,
            17 => self.files[chosen].judge_size().await,
            18..20 => self.files[chosen].reopen().await,
            20 => self.files[chosen].stream(rng).await,
            21 => {
                let path = self.new_path();
                self.files[chosen].rename(path).await
            }
            22 => self.replace(chosen).await,
            _ => self.judge_names().await,
        }
    }

    /// Removes a file and makes another.
    async fn replace(&mut self, chosen: usize) -> Result<()> {
        let path = self.new_path();
        let file = &mut self.files[chosen];
        file.close().await?;
        remove(file.path()).await?;
        *file = Tracked::create(&self.checker, path).await?;
        Ok(())
    }

    /// Compares the names in the directory.
    async fn judge_names(&self) -> Result<()> {
        process::hold_descriptors(1);
        let found = self.names().await;
        process::hold_descriptors(-1);
        let found = found?;
        let expected = self.files.iter();
        let expected: BTreeSet<OsString> = expected
            .filter_map(|file| file.path().file_name().map(OsString::from))
            .collect();
        self.checker
            .holds(Invariant::SizesAndNames, found == expected, || {
                format!("the directory has {found:?} instead of {expected:?}")
            });
        Ok(())
    }

    async fn names(&self) -> Result<BTreeSet<OsString>> {
        let directory = Directory::open(&self.directory).await?;
        let mut names = BTreeSet::new();
        let mut entries = directory.read_dir()?;
        while let Some(entry) = entries.next().await {
            names.insert(entry?.file_name().to_owned());
        }
        drop(entries);
        directory.close().await?;
        Ok(names)
    }

    async fn end(&mut self) -> Result<()> {
        let mut result = Ok(());
        for mut file in self.files.drain(..) {
            // The first that is wrong is told.
            result = result.and(file.close().await);
        }
        result
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(4);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Whether the executor that runs here has all of its I/O memory back: two buffers that share all of it between them can be had
/// only if no other is taken; else one of them comes from the ordinary allocator, and lies elsewhere.
#[derive(Debug)]
pub(super) struct IoMemory {
    /// `None`: it could not be told where it is, so nothing is judged.
    addresses: Option<[usize; 2]>,
}

impl IoMemory {
    /// Before anything has been read or written.
    pub(super) fn new() -> Self {
        let first = allocate_dma_buffer(1).as_ptr().addr();
        let whole = whole();
        let mut parts = whole.into_iter().zip(BYTES);
        let is_of_it = parts.any(|(start, bytes)| (start..start + bytes).contains(&first));
        Self {
            addresses: is_of_it.then_some(whole),
        }
    }

    /// While nothing is under way: what was given up a moment ago is waited for.
    pub(super) async fn judge(&self, checker: &Checker) {
        let Some(addresses) = self.addresses else {
            return;
        };
        let is_kept = checker.until_none(|| whole() != addresses).await;
        checker.holds(Invariant::IoMemory, !is_kept, || {
            "a buffer is taken although nothing reads or writes".to_owned()
        });
    }
}

/// Where the buffers lie that take everything.
fn whole() -> [usize; 2] {
    let buffers = BYTES.map(allocate_dma_buffer);
    buffers.each_ref().map(|buffer| buffer.as_ptr().addr())
}

/// Ten megabytes, which an executor has unless its builder is told otherwise, in powers of two.
const BYTES: [usize; 2] = [8 << 20, 2 << 20];
