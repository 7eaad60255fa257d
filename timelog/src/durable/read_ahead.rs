//! A file that is read from its beginning to its end, a few reads ahead.

use std::collections::VecDeque;
use std::rc::Rc;

use glommio::io::ReadResult;
use glommio::{Task, executor, spawn_local};

use super::disk::File;
use super::error::Error;
use super::format::{PAGE_BYTES, UNIT};

/// Read at once: a page of a checkpoint; next to other tasks less, as the kernel does not let others
/// run while it takes hold of the memory.
const CHUNK: u64 = PAGE_BYTES as u64;
const BACKGROUND_CHUNK: u64 = 128 << 10;
/// Besides the one that is waited for: the device is not to wait while a chunk is decoded.
const AHEAD: usize = 4;

pub(super) struct ReadAhead {
    file: Rc<File>,
    size: u64,
    is_background: bool,
    /// Chunks are counted from the end of the header.
    chunk: Option<(u64, ReadResult)>,
    /// Those after it.
    ahead: VecDeque<(u64, Task<Result<ReadResult, Error>>)>,
    /// What lies in several chunks.
    joined: Vec<u8>,
}

impl ReadAhead {
    /// If it `is_background`, other tasks run after each chunk of what lies in several.
    pub fn new(file: Rc<File>, size: u64, is_background: bool) -> Self {
        Self {
            file,
            size,
            is_background,
            chunk: None,
            ahead: VecDeque::new(),
            joined: Vec::new(),
        }
    }

    fn chunk_bytes(&self) -> u64 {
        if self.is_background {
            BACKGROUND_CHUNK
        } else {
            CHUNK
        }
    }

    /// The header.
    pub async fn head(&self) -> Result<ReadResult, Error> {
        self.file.read(0, UNIT).await
    }

    /// What there is of `length` bytes at `offset`, behind the header.
    pub async fn at(&mut self, offset: u64, length: usize) -> Result<&[u8], Error> {
        let end = (offset + length as u64).min(self.size);
        if offset >= end {
            return Ok(&[]);
        }
        let chunk_bytes = self.chunk_bytes();
        let position = |offset: u64| {
            let at = offset - UNIT as u64;
            (at / chunk_bytes, (at % chunk_bytes) as usize)
        };
        let ((first, start), (last, _)) = (position(offset), position(end - 1));
        let length = (end - offset) as usize;
        if first == last {
            let chunk = self.load(first).await?;
            return Ok(chunk.get(start..start + length).unwrap_or(&[]));
        }
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        for index in first..=last {
            let chunk = self.load(index).await?;
            let from = if index == first { start } else { 0 };
            let wanted = (length - joined.len()).min(chunk.len().saturating_sub(from));
            joined.extend_from_slice(chunk.get(from..from + wanted).unwrap_or(&[]));
            if self.is_background {
                executor().yield_task_queue_now().await;
            }
        }
        self.joined = joined;
        Ok(&self.joined)
    }

    async fn load(&mut self, index: u64) -> Result<&[u8], Error> {
        if self.chunk.as_ref().is_none_or(|(held, _)| *held != index) {
            // What is given up here is waited for when the file is closed.
            while self.ahead.front().is_some_and(|(held, _)| *held != index) {
                self.ahead.pop_front();
            }
            self.read_ahead(index);
            let (_, read) = self.ahead.pop_front().expect("it was asked for");
            // Before this task waits, so that they begin while it does.
            self.read_ahead(index + 1);
            self.chunk = Some((index, read.await?));
        }
        let (_, bytes) = self.chunk.as_ref().expect("it was just read");
        Ok(bytes)
    }

    /// Begins to read the chunks from `index` on that are not being read.
    fn read_ahead(&mut self, index: u64) {
        let chunk_bytes = self.chunk_bytes();
        let mut next = self.ahead.back().map_or(index, |(held, _)| held + 1);
        while self.ahead.len() < AHEAD {
            let offset = UNIT as u64 + next * chunk_bytes;
            if offset >= self.size {
                return;
            }
            let file = Rc::clone(&self.file);
            let length = (self.size - offset).min(chunk_bytes) as usize;
            let read = spawn_local(async move { file.read(offset, length).await });
            self.ahead.push_back((next, read));
            next += 1;
        }
    }
}
