//! Reads that several may wait for and whose memory several look at; and which reads of a file
//! there are, so that another one within the same range need not go to the device.
//!
//! ```text
//!   ScheduledSource ──▶ SharedRead ◀── ReadResult
//!                         ▲    │
//!          range ┌──Weak──┘    └──Weak──┐ when the last is gone: forget the range
//!                │                      ▼
//!   file ──▶ FileReads ◀────────────────┘
//!                ▲
//!                └──Weak── ReadSharing, of the executor, by device and inode
//! ```
//!
//! An inode's number may be given to another file as soon as the first one is open no more. So a
//! `FileReads` belongs to the open files of its inode, and is gone before the last of them is
//! closed; what is left of its reads is found by no other.
//!
//! Sharing is no cache: a read can be found as long as a task waits for it or looks at its
//! memory.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::error::again;
use super::long_read::goes_on;
use super::submit::Submitter;
use super::waiters::Waiters;
use crate::memory::DmaBuffer;
use crate::reactor::OpHandle;
use crate::reactor::op::Read;
use crate::stats::Counted;

/// A handle on one read that was submitted. Its clones stand for the same read.
///
/// The items of the streams inside [`ReadManyResult`](super::ReadManyResult) have one; it can only
/// be passed on.
#[derive(Clone, Debug)]
pub struct ScheduledSource(pub(super) Rc<SharedRead>);

/// A read of a range of a file, from its start until its memory is used no more.
pub(super) struct SharedRead {
    position: u64,
    /// As asked for.
    len: usize,
    submitter: Submitter,
    /// What was read, once it was.
    buffer: OnceCell<DmaBuffer>,
    progress: RefCell<Progress>,
    waiters: Arc<Waiters>,
    /// Ranges that were asked for by others before it was done, to be counted.
    joined: RefCell<Vec<(u64, usize)>>,
    /// Where it can be found.
    listed: Option<Weak<FileReads>>,
}

enum Progress {
    /// With what was read before, of a read that takes several.
    InFlight(OpHandle<Read>, usize),
    Done,
    Failed(io::Error),
}

impl SharedRead {
    /// Starts a read that is not shared.
    pub(super) fn start(submitter: &Submitter, read: Read) -> io::Result<Rc<Self>> {
        Self::start_listed(submitter, read, None)
    }

    /// A read that has failed before it could be started.
    pub(super) fn failed(submitter: &Submitter, position: u64, error: io::Error) -> Rc<Self> {
        let progress = Progress::Failed(error);
        Self::with_progress(submitter, position, 0, progress, None)
    }

    fn start_listed(
        submitter: &Submitter,
        read: Read,
        listed: Option<Weak<FileReads>>,
    ) -> io::Result<Rc<Self>> {
        let (position, len) = (read.position, read.buffer.len());
        let handle = submitter.start_counted(read, Counted::Read)?;
        let progress = Progress::InFlight(handle, 0);
        Ok(Self::with_progress(
            submitter, position, len, progress, listed,
        ))
    }

    fn with_progress(
        submitter: &Submitter,
        position: u64,
        len: usize,
        progress: Progress,
        listed: Option<Weak<FileReads>>,
    ) -> Rc<Self> {
        Rc::new(SharedRead {
            position,
            len,
            submitter: submitter.clone(),
            buffer: OnceCell::new(),
            progress: RefCell::new(progress),
            waiters: Arc::default(),
            joined: RefCell::default(),
            listed,
        })
    }

    /// Waits for its end. `go_on` starts the next piece of one that takes several: into the buffer,
    /// from the byte on that it is told.
    pub(super) fn poll(
        &self,
        cx: &Context<'_>,
        go_on: impl Fn(DmaBuffer, usize) -> io::Result<OpHandle<Read>>,
    ) -> Poll<io::Result<()>> {
        if self.buffer.get().is_some() {
            return Poll::Ready(Ok(()));
        }
        self.waiters.add(cx.waker());
        let all = Waker::from(Arc::clone(&self.waiters));
        let mut progress = self.progress.borrow_mut();
        let ended = loop {
            let (handle, read) = match &mut *progress {
                Progress::InFlight(handle, read) => (handle, read),
                Progress::Done => return Poll::Ready(Ok(())),
                Progress::Failed(error) => return Poll::Ready(Err(again(error))),
            };
            let Poll::Ready(ended) = Pin::new(&mut *handle).poll(&mut Context::from_waker(&all))
            else {
                return Poll::Pending;
            };
            let (buffer, count) = match ended.and_then(|(buffer, count)| Ok((buffer, count?))) {
                Ok(ended) => ended,
                Err(error) => break Err(error),
            };
            *read += count;
            if !goes_on(*read, count, self.len) {
                break Ok((buffer, *read));
            }
            match go_on(buffer, *read) {
                Ok(next) => *handle = next,
                Err(error) => break Err(error),
            }
        };
        let result = ended.map(|(mut buffer, read)| {
            buffer.trim_to_size(read);
            let _first = self.buffer.set(buffer);
        });
        *progress = match &result {
            Ok(()) => Progress::Done,
            Err(error) => Progress::Failed(again(error)),
        };
        drop(progress);
        match &result {
            Ok(()) => self.count_joined(),
            // A request from now on reads it again.
            Err(_) => self.unlist(),
        }
        self.waiters.remove(cx.waker());
        self.waiters.wake_all();
        Poll::Ready(result)
    }

    /// What was read. Empty as long as that is not known.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get().map_or(&[], DmaBuffer::as_bytes)
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// What was asked for.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn covers(&self, position: u64, len: usize) -> bool {
        let (end, own_end) = (
            position.checked_add(len as u64),
            self.position.checked_add(self.len as u64),
        );
        // One that was cut short has found the end of the file, and with it all that there is
        // behind its start.
        let has_found_end = self.buffer.get().is_some_and(|it| it.len() < self.len);
        let is_within = end.is_some() && end <= own_end;
        let begins_within = Some(position) < own_end;
        self.position <= position && (is_within || has_found_end && begins_within)
    }

    /// Another request asks for a part of it, which is counted when it has succeeded.
    fn join(&self, position: u64, len: usize) {
        self.joined.borrow_mut().push((position, len));
        if self.buffer.get().is_some() {
            self.count_joined();
        }
    }

    fn count_joined(&self) {
        let end = self.position + self.bytes().len() as u64;
        for (position, len) in self.joined.take() {
            let bytes = (len as u64).min(end.saturating_sub(position));
            self.submitter.count(Counted::DedupedRead, bytes as usize);
        }
    }

    fn unlist(&self) {
        if let Some(file) = self.listed.as_ref().and_then(Weak::upgrade) {
            file.forget(self);
        }
    }
}

impl Drop for SharedRead {
    fn drop(&mut self) {
        self.unlist();
    }
}

impl_debug! { SharedRead, it: position, len, is_done: it.buffer.get().is_some(); .. }

/// Device and inode of an open file.
pub(super) type FileId = ((u32, u32), u64);

/// The files of one executor whose reads are shared.
#[derive(Default)]
pub(super) struct ReadSharing {
    files: RefCell<HashMap<FileId, Weak<FileReads>>>,
}

/// The reads of one file that can be found.
pub(super) struct FileReads {
    id: FileId,
    sharing: Weak<ReadSharing>,
    /// By where they begin and how long they are.
    reads: RefCell<BTreeMap<(u64, usize), Weak<SharedRead>>>,
    /// No read is longer.
    longest: Cell<usize>,
}

/// Reads that are looked at in search for one that covers a range: they begin before it, but may be
/// too short.
const MAX_LOOKS: usize = 32;

impl ReadSharing {
    /// The reads of the file `id`, which the caller has open for as long as it keeps them.
    pub(super) fn file(self: &Rc<Self>, id: FileId) -> Rc<FileReads> {
        let mut files = self.files.borrow_mut();
        if let Some(known) = files.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        let new = Rc::new(FileReads {
            id,
            sharing: Rc::downgrade(self),
            reads: RefCell::default(),
            longest: Cell::default(),
        });
        files.insert(id, Rc::downgrade(&new));
        new
    }
}

impl Drop for FileReads {
    fn drop(&mut self) {
        let Some(sharing) = self.sharing.upgrade() else {
            return;
        };
        let mut files = sharing.files.borrow_mut();
        // Another one may have taken the place.
        if files.get(&self.id).is_some_and(|it| it.strong_count() == 0) {
            files.remove(&self.id);
        }
    }
}

impl FileReads {
    /// A read that brings the `len` bytes at `position`: one that is there, or the one that `new`
    /// makes.
    pub(super) fn read(
        self: &Rc<Self>,
        submitter: &Submitter,
        position: u64,
        len: usize,
        new: impl FnOnce() -> io::Result<Read>,
    ) -> io::Result<Rc<SharedRead>> {
        if let Some(found) = self.find(position, len) {
            found.join(position, len);
            return Ok(found);
        }
        let read = SharedRead::start_listed(submitter, new()?, Some(Rc::downgrade(self)))?;
        self.longest.set(self.longest.get().max(len));
        self.reads
            .borrow_mut()
            .insert((position, len), Rc::downgrade(&read));
        Ok(read)
    }

    fn find(&self, position: u64, len: usize) -> Option<Rc<SharedRead>> {
        let reads = self.reads.borrow();
        let reach = position.saturating_sub(self.longest.get() as u64);
        let nearest_first = reads.range((reach, 0)..=(position, usize::MAX)).rev();
        nearest_first
            .take(MAX_LOOKS)
            .filter_map(|(_, read)| read.upgrade())
            .find(|read| read.covers(position, len))
    }

    fn forget(&self, read: &SharedRead) {
        let mut reads = self.reads.borrow_mut();
        let key = (read.position, read.len);
        if reads
            .get(&key)
            .is_some_and(|listed| std::ptr::eq(listed.as_ptr(), read))
        {
            reads.remove(&key);
        }
        if reads.is_empty() {
            self.longest.set(0);
        }
    }
}

impl_debug! { FileReads, it: id, reads: it.reads.borrow().len(); .. }
