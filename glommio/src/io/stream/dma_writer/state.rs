//! What a writer has accepted, what of it is on its way, and what is written.
//!
//! ```text
//!   0 ─────── synced ─────── flushed ──────────────────── position ──▶
//!                            │ chunk │ chunk │ chunk │ current │
//!                              written  writing         ▲
//!                                                       └─ padded chunk, to flush it
//! ```
//!
//! Chunks are in the order of the file and may be written in any; `flushed` is the end of those
//! before the first that is not. A flush has the current buffer written as well, padded with zeros
//! to its whole length; the buffer stays, and its region is written again when it is full. The two
//! must not be under way together: while a flush is, nothing is accepted, and a flush that no task
//! waits for any more ends all the same.
//!
//! A task that waits in `poll_flush` tells no goal of its own, and a flush that begins anew looks
//! like one that goes on. So when it has ended, nothing is accepted until those who waited have
//! looked ([`WriterState::tells_of_flush`]): a flush ends, however fast others write. Who has had a turn since
//! and has not looked within [`PATIENCE`] has given it up.
//!
//! Padding is cut off at the end: not before the kernel is done with the write that brings it, and
//! no part of what the file had before.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::super::{DEFAULT_BUFFER_BYTES, is_closed};
use super::cut::Padding;
use crate::clock;
use crate::error::GlommioError;
use crate::io::Result;
use crate::io::dma_file::DmaFile;
use crate::io::error::again_enhanced;
use crate::io::open_file::StatHandle;
use crate::memory::DmaBuffer;
use crate::panic;
use crate::reactor::op::{Bytes, Sync, Write, Written};
use crate::reactor::{OpHandle, TimerEntry};

/// How a stream writes.
#[derive(Clone, Copy, Debug)]
pub(in crate::io) struct Settings {
    pub(in crate::io) write_behind: usize,
    pub(in crate::io) syncs_on_close: bool,
    pub(in crate::io) buffer_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            write_behind: 4,
            syncs_on_close: true,
            buffer_bytes: DEFAULT_BUFFER_BYTES,
        }
    }
}

/// Where the life of a writer stands.
pub(super) enum Phase {
    Open,
    Closing,
    /// With a result that was not taken yet.
    Ended(Option<Result<()>>),
}

pub(super) struct WriterState {
    settings: Settings,
    /// Until it is given out or closed.
    file: Option<DmaFile>,
    phase: Phase,
    position: u64,
    flushed: u64,
    synced: u64,
    /// Up to where writes that have ended may have put padding.
    padded_to: u64,
    /// How long the file was, as far as that could be told at once: else before the first padding.
    had: Option<u64>,
    stat: Option<StatHandle>,
    current: Option<DmaBuffer>,
    filled: usize,
    chunks: VecDeque<Chunk>,
    is_flushing: bool,
    /// A task waits in `poll_flush`.
    is_flush_awaited: bool,
    /// Such a flush has ended, and the tasks are to see that.
    telling: Option<Telling>,
    /// How many have.
    told: u64,
    /// How much was flushed when it began.
    syncing: Option<(u64, OpHandle<Sync>)>,
    /// The first one. Everything fails from then on.
    error: Option<GlommioError<()>>,
}

/// How long nothing is accepted for a flush that has ended, from the turn on of those who waited for it, if
/// they do not look: they have given it up, and do not say so.
const PATIENCE: Duration = Duration::from_millis(1);

struct Telling {
    /// Since they have had their turn.
    until: Option<Instant>,
    timer: TimerEntry,
}

/// What a buffer's end leaves behind: to be dropped when nothing is borrowed.
pub(super) type Left = (Option<Padding>, Option<DmaFile>, VecDeque<Chunk>);

/// A buffer on its way.
pub(super) struct Chunk {
    start: u64,
    bytes: usize,
    /// Where the data in it ends, which may be before the buffer does.
    data_end: u64,
    /// As much of the buffer is written.
    written: usize,
    /// `None` when it has ended.
    write: Option<OpHandle<Write>>,
    /// If it has padding: the place for what cuts that off when the kernel is done with the buffer.
    guard: Option<Rc<OnceCell<Padding>>>,
}

impl WriterState {
    pub(super) fn new(file: DmaFile, settings: Settings) -> Self {
        WriterState {
            settings,
            had: file.file().size_now(),
            file: Some(file),
            phase: Phase::Open,
            position: 0,
            flushed: 0,
            synced: 0,
            padded_to: 0,
            stat: None,
            current: None,
            filled: 0,
            chunks: VecDeque::new(),
            is_flushing: false,
            is_flush_awaited: false,
            telling: None,
            told: 0,
            syncing: None,
            error: None,
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn flushed(&self) -> u64 {
        self.flushed
    }

    pub(super) fn syncs_on_close(&self) -> bool {
        self.settings.syncs_on_close
    }

    /// The end of the last buffer that is full.
    pub(super) fn aligned_position(&self) -> u64 {
        let partial = self.position % self.settings.buffer_bytes as u64;
        self.position - partial
    }

    pub(super) fn phase(&mut self) -> &mut Phase {
        &mut self.phase
    }

    pub(super) fn has_unsynced(&self) -> bool {
        self.synced < self.flushed
    }

    /// The file, all of which is flushed, and the padding in it beyond what was accepted.
    pub(super) fn take_file(&mut self) -> Result<(DmaFile, Option<Padding>)> {
        let file = self.file.take().ok_or_else(is_closed)?;
        let has_excess = self.padded_to > self.position;
        let padding = has_excess.then(|| Padding::new(&file, self.position));
        Ok((file, padding))
    }

    /// From now on nothing is accepted. Whether that is new.
    pub(super) fn begin_close(&mut self) -> bool {
        let begins = matches!(self.phase, Phase::Open);
        if begins {
            self.phase = Phase::Closing;
        }
        begins
    }

    /// Nothing is written any more. If the file was not taken out, padding is cut off: now, or when
    /// the kernel is done with it.
    pub(super) fn end(&mut self, result: Option<Result<()>>) -> Left {
        self.phase = Phase::Ended(result);
        self.telling = None;
        let (file, chunks) = (self.file.take(), std::mem::take(&mut self.chunks));
        let last = chunks.back();
        let on_its_way = last.filter(|it| it.write.as_ref().is_some_and(|it| !it.is_queued()));
        let guard = on_its_way.and_then(|it| it.guard.as_ref().map(|guard| (it.end(), guard)));
        let padded_to = guard.map_or(self.padded_to, |(end, _)| end.max(self.padded_to));
        let data_end = self.flushed.max(self.had.unwrap_or(0));
        let padding = file
            .as_ref()
            .filter(|_| padded_to > data_end)
            .map(|file| Padding::new(file, data_end));
        let padding = match guard {
            Some((_, guard)) => padding.and_then(|it| guard.set(it).err()),
            None => padding,
        };
        (padding, file, chunks)
    }

    /// The writer is dropped. What is being closed goes on.
    pub(super) fn abandon(&mut self) -> Left {
        match self.phase {
            Phase::Open => self.end(None),
            Phase::Closing | Phase::Ended(_) => (None, None, VecDeque::new()),
        }
    }

    /// Polls what is under way. Whether anything has ended.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut has_moved = false;
        for at in 0..self.chunks.len() {
            while let Some(write) = &mut self.chunks[at].write
                && let Poll::Ready(ended) = Pin::new(write).poll(cx)
            {
                has_moved = true;
                let chunk = &mut self.chunks[at];
                chunk.write = None;
                if chunk.guard.is_some() {
                    self.padded_to = self.padded_to.max(chunk.end());
                }
                if let Err(error) = ended.and_then(|it| self.continue_chunk(at, it)) {
                    self.fail(error, "Writing");
                }
            }
        }
        while self.chunks.front().is_some_and(Chunk::is_written) {
            let chunk = self.chunks.pop_front().expect("it was looked at above");
            self.flushed = self.flushed.max(chunk.data_end);
        }
        if let Some((goal, sync)) = &mut self.syncing
            && let Poll::Ready(ended) = Pin::new(sync).poll(cx)
        {
            has_moved = true;
            let goal = *goal;
            self.syncing = None;
            match ended {
                Ok(()) => self.synced = self.synced.max(goal),
                Err(error) => self.fail(error, "Syncing"),
            }
        }
        if self.flushed >= self.position || self.error.is_some() {
            self.is_flushing = false;
            if std::mem::take(&mut self.is_flush_awaited) && self.error.is_none() {
                self.tell_of_flush();
            }
        }
        if let Some(telling) = &mut self.telling
            && let Some(until) = telling.until
            && telling.timer.is_past_or_arm(until, cx.waker())
        {
            has_moved = true;
            self.telling = None;
        }
        if self.is_flushing && self.had.is_none() {
            has_moved |= self.look_at_size(cx);
        }
        if self.error.is_none() {
            self.start_what_may();
        }
        has_moved
    }

    /// Finds out how long the file is, of which padding is to be written. Whether it is known now.
    fn look_at_size(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(file) = &self.file else {
            return false;
        };
        match file.file().poll_size(&mut self.stat, cx) {
            Poll::Ready(Ok(size)) => self.had = Some(size),
            Poll::Ready(Err(error)) => self.error = self.error.take().or(Some(error)),
            Poll::Pending => return false,
        }
        true
    }

    fn tell_of_flush(&mut self) {
        let Some(file) = &self.file else { return };
        self.told += 1;
        self.telling = Some(Telling {
            until: None,
            timer: TimerEntry::new(file.submitter().weak()),
        });
    }

    /// How many flushes have ended that tasks waited for.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Those who waited for the flush that was the `told`th have had their turn.
    pub(super) fn flushers_have_run(&mut self, told: u64) {
        if let Some(telling) = self.telling.as_mut().filter(|_| told == self.told) {
            telling.until = Some(clock::now() + PATIENCE);
        }
    }

    /// Whether a flush has ended and nothing is accepted, so that those who wait for it see that.
    pub(super) fn tells_of_flush(&self) -> bool {
        self.telling.is_some()
    }

    /// All who waited for the flush have seen its end. Whether that was waited for.
    pub(super) fn flush_is_told(&mut self) -> bool {
        self.telling.take().is_some()
    }

    /// Whether a task waits in `poll_flush` for the flush under way.
    pub(super) fn is_flush_awaited(&self) -> bool {
        self.is_flush_awaited
    }

    /// Whether a flush would have to wait, and none is under way.
    pub(super) fn has_flush_to_begin(&self) -> bool {
        self.error.is_none() && !self.is_flushing && self.flushed < self.position
    }

    /// A write has ended: the rest of its buffer is written, if there is one.
    fn continue_chunk(&mut self, at: usize, ended: Written) -> io::Result<()> {
        let Written { bytes, count } = ended;
        let count = count?;
        let file = self.file.as_ref().ok_or_else(is_closed)?;
        let chunk = &mut self.chunks[at];
        let written = chunk.written + count;
        if written >= chunk.bytes {
            chunk.written = chunk.bytes;
            return Ok(());
        }
        // Direct I/O begins at aligned positions only.
        let start = file.align_down(written as u64) as usize;
        if start <= chunk.written {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                "the file took no more bytes: the device may be full",
            ));
        }
        chunk.written = start;
        chunk.write = Some(file.start_write(bytes, start, chunk.start + start as u64)?);
        Ok(())
    }

    fn fail(&mut self, error: io::Error, op: &'static str) {
        if self.error.is_none() {
            self.error = Some(match &self.file {
                Some(file) => file.file().error(error, op),
                None => error.into(),
            });
        }
    }

    /// Starts to write the current buffer, if it is full or to be flushed.
    fn start_what_may(&mut self) {
        let bytes = self.settings.buffer_bytes;
        if self.filled == bytes && self.chunks.len() < self.settings.write_behind {
            let start = self.position - bytes as u64;
            if let Some(buffer) = self.current.take() {
                self.filled = 0;
                self.start_chunk(Bytes::Dma(buffer), start, None);
            }
        }
        let is_on_its_way = self
            .chunks
            .back()
            .map_or(self.flushed, |last| last.data_end)
            >= self.position;
        if self.is_flushing && !is_on_its_way && self.filled < bytes && self.had.is_some() {
            let Some(file) = &self.file else { return };
            let mut padded = file.alloc_dma_buffer(bytes);
            let (data, padding) = padded.as_bytes_mut().split_at_mut(self.filled);
            if let Some(current) = &self.current {
                data.copy_from_slice(&current.as_bytes()[..self.filled]);
            }
            padding.fill(0);
            let start = self.position - self.filled as u64;
            let guard = Rc::<OnceCell<Padding>>::default();
            let padded = Bytes::Guarded(padded, Rc::clone(&guard) as _);
            self.start_chunk(padded, start, Some(guard));
        }
    }

    /// Starts to write a buffer, in which all is that was accepted from `start` on.
    fn start_chunk(&mut self, buffer: Bytes, start: u64, guard: Option<Rc<OnceCell<Padding>>>) {
        let Some(file) = &self.file else { return };
        let bytes = buffer.as_slice().len();
        match file.start_write(buffer, 0, start) {
            Ok(write) => self.chunks.push_back(Chunk {
                start,
                bytes,
                data_end: self.position,
                written: 0,
                write: Some(write),
                guard,
            }),
            Err(error) => self.fail(error, "Writing"),
        }
    }

    /// What keeps the writer from doing anything.
    fn check(&self) -> Result<()> {
        match (&self.error, &self.phase) {
            (Some(error), Phase::Open | Phase::Closing) => Err(again_enhanced(error)),
            (_, Phase::Ended(_)) => Err(is_closed().into()),
            (None, Phase::Open | Phase::Closing) => Ok(()),
        }
    }

    /// As [`accept`](Self::accept), where there is room without any more ado.
    pub(super) fn accept_at_once(&mut self, buf: &[u8]) -> Option<usize> {
        let is_plain = matches!(self.phase, Phase::Open) && self.error.is_none();
        let fits = self.current.is_some() && buf.len() < self.settings.buffer_bytes - self.filled;
        let may = is_plain && !self.is_flushing && self.telling.is_none();
        (may && fits).then(|| self.fill(buf))
    }

    /// Takes in as much of `buf` as there is room for.
    pub(super) fn accept(&mut self, buf: &[u8]) -> Poll<Result<usize>> {
        self.check()?;
        if let Phase::Closing = self.phase {
            return Poll::Ready(Err(is_closed().into()));
        }
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if self.is_flushing || self.telling.is_some() {
            return Poll::Pending;
        }
        let mut accepted = 0;
        while accepted < buf.len() && self.error.is_none() {
            if self.filled == self.settings.buffer_bytes {
                break;
            }
            accepted += self.fill(&buf[accepted..]);
            self.start_what_may();
        }
        match accepted {
            0 => Poll::Pending,
            _ => Poll::Ready(Ok(accepted)),
        }
    }

    /// Copies as much of `buf` as the current buffer has room for.
    fn fill(&mut self, buf: &[u8]) -> usize {
        let bytes = self.settings.buffer_bytes;
        let file = &self.file;
        let current = self.current.get_or_insert_with(|| match file {
            Some(file) => file.alloc_dma_buffer(bytes),
            None => DmaBuffer::of_any_size(bytes),
        });
        let count = buf.len().min(bytes - self.filled);
        current.as_bytes_mut()[self.filled..][..count].copy_from_slice(&buf[..count]);
        self.filled += count;
        self.position += count as u64;
        count
    }

    /// Waits until all is written up to `goal`, which was accepted.
    pub(super) fn wait_for(&self, goal: u64) -> Poll<Result<u64>> {
        self.check()?;
        if self.flushed >= goal {
            Poll::Ready(Ok(self.flushed))
        } else {
            Poll::Pending
        }
    }

    /// Has all written that was accepted, if that is needed to reach `goal`.
    pub(super) fn flush_to(&mut self, goal: u64) -> Poll<Result<u64>> {
        if self.flushed < goal && !self.is_flushing && self.error.is_none() {
            self.is_flushing = true;
            self.start_what_may();
        }
        self.wait_for(goal)
    }

    /// Has all written that was accepted.
    pub(super) fn flush(&mut self) -> Poll<Result<()>> {
        self.flush_to(self.position)
            .map(|flushed| flushed.map(drop))
    }

    /// As [`flush`](Self::flush), for a task that may wait and says so in no other way.
    pub(super) fn flush_told(&mut self) -> Poll<Result<()>> {
        let flushed = self.flush();
        self.is_flush_awaited |= flushed.is_pending();
        flushed
    }

    /// Has the device take what is written up to `goal`.
    pub(super) fn sync_to(&mut self, goal: u64) -> Poll<Result<u64>> {
        self.check()?;
        if self.synced >= goal {
            return Poll::Ready(Ok(goal));
        }
        if self.syncing.is_none()
            && let Some(file) = &self.file
        {
            match file.file().start_sync(true) {
                Ok(sync) => self.syncing = Some((self.flushed, sync)),
                Err(error) => self.fail(error, "Syncing"),
            }
            self.check()?;
        }
        Poll::Pending
    }

    /// Waits for a sync that is under way, though none may wait for it any more: what is lost if it
    /// fails, a later one that succeeds does not bring back.
    pub(super) fn sync_has_ended(&self) -> Poll<Result<()>> {
        self.check()?;
        match self.syncing {
            Some(_) => Poll::Pending,
            None => Poll::Ready(Ok(())),
        }
    }
}

/// An error of a close that no task has heard of.
impl Drop for WriterState {
    fn drop(&mut self) {
        if let Phase::Ended(Some(Err(error))) = &self.phase {
            panic::log(|| {
                tracing::error!(
                    "closing a file in the background failed, and data may be lost: {error}"
                );
            });
        }
    }
}

impl Chunk {
    /// Where its buffer ends.
    fn end(&self) -> u64 {
        self.start + self.bytes as u64
    }

    fn is_written(&self) -> bool {
        self.write.is_none() && self.written == self.bytes
    }
}
