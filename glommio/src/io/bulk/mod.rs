//! Many reads of one file: a stream of requests becomes a stream of data.
//!
//! ```text
//!   requests ──▶ Coalesced: merge neighbours, start reads ──▶ ReadManyResult: wait for the oldest ──▶ data
//!                   group │ ready                               queue, by request
//! ```
//!
//! Requests come in any number and are taken as long as reads may be started. What is merged so far
//! is read as soon as no further request is there: a stream that is slow delays nothing.

mod merge;

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
pub use merge::{MergedBufferLimit, ReadAmplificationLimit};
use merge::{Merging, Range};

use super::Result;
use super::dma_file::{DmaFile, widen};
use super::long_read::to_allocate_now;
use super::read_result::ReadResult;
use super::shared_read::ScheduledSource;
use crate::reactor::budget;

/// A request to read: a range of bytes of a file.
pub trait IoVec {
    /// How many bytes the range has.
    fn size(&self) -> usize;

    /// Where it begins.
    fn pos(&self) -> u64;
}

/// Position and size.
impl IoVec for (u64, usize) {
    fn size(&self) -> usize {
        self.1
    }

    fn pos(&self) -> u64 {
        self.0
    }
}

/// A request, and the read that brings its data.
///
/// The items of the streams inside [`ReadManyResult`] have one. As an [`IoVec`] it is the read.
#[derive(Clone, Debug)]
pub struct ReadManyArgs<V: IoVec + Unpin> {
    user_read: V,
    system_read: (u64, usize),
}

impl<V: IoVec + Unpin> IoVec for ReadManyArgs<V> {
    fn pos(&self) -> u64 {
        self.system_read.pos()
    }

    fn size(&self) -> usize {
        self.system_read.size()
    }
}

/// Requests merged at most before they are read, so that ones that all lie in each other do not
/// collect forever.
const MAX_GROUP: usize = 1024;

/// Requests whose data was not taken yet.
const MAX_QUEUED: usize = 4096;

impl DmaFile {
    /// Reads many ranges of the file: a stream of requests becomes a stream of each request with
    /// its data, in the same order.
    ///
    /// Requests that follow each other are merged into one read, if the gap between them is no
    /// longer than `read_amp_limit` and the read no longer than `buffer_limit`. Several reads
    /// are in flight at a time: see [`with_concurrency`](ReadManyResult::with_concurrency).
    ///
    /// # Cancel safety
    ///
    /// A `next` that is dropped loses nothing. With the stream, the reads that it has begun are given
    /// up, and their memory is freed when the kernel is done with it.
    pub fn read_many<V, S>(
        self: &Rc<DmaFile>,
        iovs: S,
        buffer_limit: MergedBufferLimit,
        read_amp_limit: ReadAmplificationLimit,
    ) -> ReadManyResult<V, impl Stream<Item = (ScheduledSource, ReadManyArgs<V>)> + Unpin + use<V, S>>
    where
        V: IoVec + Unpin,
        S: Stream<Item = V> + Unpin,
    {
        read_many(Rc::clone(self), iovs, buffer_limit, read_amp_limit)
    }
}

/// See [`DmaFile::read_many`].
fn read_many<V, S>(
    file: Rc<DmaFile>,
    iovs: S,
    buffer_limit: MergedBufferLimit,
    read_amp_limit: ReadAmplificationLimit,
) -> ReadManyResult<V, Coalesced<V, S>>
where
    V: IoVec + Unpin,
    S: Stream<Item = V> + Unpin,
{
    let merging = Merging::new(buffer_limit, read_amp_limit, file.limits());
    let concurrency = file
        .submitter()
        .reactor()
        .map_or(1, |reactor| reactor.ring_entries());
    ReadManyResult {
        file: Rc::clone(&file),
        reads: Coalesced {
            file,
            requests: iovs,
            has_ended: false,
            merging,
            range: Range::of(0, 0),
            group: Vec::new(),
            ready: VecDeque::new(),
            last: None,
        },
        has_ended: false,
        queue: VecDeque::new(),
        in_flight: 0,
        bytes: 0,
        concurrency,
        memory_limit: None,
        is_polled: false,
    }
}

/// Requests on their way to reads. Starts these when it is polled.
#[derive(Debug)]
pub(super) struct Coalesced<V: IoVec + Unpin, S> {
    file: Rc<DmaFile>,
    requests: S,
    has_ended: bool,
    merging: Merging,
    /// Of the requests in `group`.
    range: Range,
    group: Vec<V>,
    ready: VecDeque<(ScheduledSource, ReadManyArgs<V>)>,
    /// The last read: the next one may be the same.
    last: Option<((u64, usize), ScheduledSource)>,
}

impl<V: IoVec + Unpin, S> Coalesced<V, S> {
    /// Takes a request in. Those that it cannot be merged with are read.
    fn add(&mut self, request: V) {
        let next = Range::of(request.pos(), request.size());
        let joined = match self.group.len() {
            0 => Some(next),
            MAX_GROUP.. => None,
            _ => self.merging.join(self.range, next),
        };
        if joined.is_none() {
            self.read_group();
        }
        self.range = joined.unwrap_or(next);
        self.group.push(request);
    }

    /// Reads what is merged.
    fn read_group(&mut self) {
        if self.group.is_empty() {
            return;
        }
        let Range { start, .. } = self.range;
        let len = to_allocate_now(self.file.file(), start, self.range.len() as usize);
        let alignment = self.file.limits().alignment;
        let read = widen(start, len, alignment);
        let source = match &self.last {
            Some((known, source)) if *known == read => source.clone(),
            _ => self.file.schedule_read(read.0, read.1),
        };
        self.last = Some((read, source.clone()));
        let requests = self.group.drain(..).map(|user_read| ReadManyArgs {
            user_read,
            system_read: read,
        });
        self.ready
            .extend(requests.map(|request| (source.clone(), request)));
    }
}

impl<V, S> Stream for Coalesced<V, S>
where
    V: IoVec + Unpin,
    S: Stream<Item = V> + Unpin,
{
    type Item = (ScheduledSource, ReadManyArgs<V>);

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(ready) = this.ready.pop_front() {
                return Poll::Ready(Some(ready));
            }
            let polled = if this.has_ended {
                Poll::Ready(None)
            } else {
                Pin::new(&mut this.requests).poll_next(cx)
            };
            match polled {
                Poll::Ready(Some(request)) => this.add(request),
                Poll::Ready(None) => {
                    this.has_ended = true;
                    if this.group.is_empty() {
                        this.last = None;
                        return Poll::Ready(None);
                    }
                    this.read_group();
                }
                Poll::Pending if this.group.is_empty() => return Poll::Pending,
                Poll::Pending => this.read_group(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let here = self.ready.len() + self.group.len();
        let (least, most) = if self.has_ended {
            (0, Some(0))
        } else {
            self.requests.size_hint()
        };
        (
            least.saturating_add(here),
            most.and_then(|most| most.checked_add(here)),
        )
    }
}

/// The stream that [`DmaFile::read_many`] and
/// [`ImmutableFile::read_many`](super::ImmutableFile::read_many) make: each request with its data,
/// in the order of the requests.
///
/// A request gets the bytes that the file has of it, none if it is beyond its end. If a read fails,
/// each of its requests gets the error, and the stream goes on. All results of one read share its
/// memory, which is freed with the last of them.
///
/// Dropping the stream gives up the reads that are in flight.
#[derive(Debug)]
#[must_use = "streams do nothing unless they are polled"]
pub struct ReadManyResult<V, S>
where
    V: IoVec + Unpin,
    S: Stream<Item = (ScheduledSource, ReadManyArgs<V>)> + Unpin,
{
    file: Rc<DmaFile>,
    reads: S,
    has_ended: bool,
    queue: VecDeque<(ScheduledSource, ReadManyArgs<V>)>,
    /// Reads that those in the queue wait for.
    in_flight: usize,
    /// What these read.
    bytes: usize,
    concurrency: usize,
    memory_limit: Option<usize>,
    is_polled: bool,
}

impl<V, S> ReadManyResult<V, S>
where
    V: IoVec + Unpin,
    S: Stream<Item = (ScheduledSource, ReadManyArgs<V>)> + Unpin,
{
    /// How many reads are under way at most, those included whose data was not taken yet. Default: the
    /// [`ring_depth`](crate::LocalExecutorBuilder::ring_depth) of the executor, rounded up to a power
    /// of two.
    ///
    /// # Panics
    ///
    /// Panics for 0, and if the stream was polled before.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::{StreamExt, stream};
    /// use glommio::io::{DmaFile, MergedBufferLimit, ReadAmplificationLimit};
    /// use std::rc::Rc;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// std::fs::write(&path, [7; 100_000])?;
    /// let file = Rc::new(DmaFile::open(&path).await?);
    /// let blocks = stream::iter((0..10).map(|block| (block * 10_000, 10_000)));
    /// let mut reads = file
    ///     .read_many(blocks, MergedBufferLimit::NoMerging, ReadAmplificationLimit::default())
    ///     .with_concurrency(4)
    ///     .with_memory_limit(Some(64 << 10));
    /// let mut bytes = 0;
    /// while let Some(read) = reads.next().await {
    ///     bytes += read?.1.len();
    /// }
    /// assert_eq!(bytes, 100_000);
    /// drop(reads);
    /// file.close_rc().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    #[must_use = "this returns the stream"]
    pub fn with_concurrency(mut self, concurrency: usize) -> Self {
        assert!(concurrency > 0, "a concurrency of 0 would read nothing");
        self.assert_unpolled();
        self.concurrency = concurrency;
        self
    }

    /// How many bytes may be under way when another read is started. So at most that many are under
    /// way, and those of one read more. Default: any number.
    ///
    /// # Panics
    ///
    /// Panics for `Some(0)`, and if the stream was polled before.
    #[must_use = "this returns the stream"]
    pub fn with_memory_limit(mut self, limit: Option<usize>) -> Self {
        assert!(limit != Some(0), "a memory limit of 0 would read nothing");
        self.assert_unpolled();
        self.memory_limit = limit;
        self
    }

    fn assert_unpolled(&self) {
        assert!(
            !self.is_polled,
            "limits are set before the stream is polled first"
        );
    }

    fn may_start(&self) -> bool {
        !self.has_ended
            && self.in_flight < self.concurrency
            && self.memory_limit.is_none_or(|limit| self.bytes <= limit)
            && self.queue.len() < MAX_QUEUED
    }

    fn push(&mut self, item: (ScheduledSource, ReadManyArgs<V>)) {
        let last = self.queue.back().map(|(source, _)| source);
        if last.is_none_or(|last| !Rc::ptr_eq(&last.0, &item.0.0)) {
            self.in_flight += 1;
            self.bytes += item.0.0.len();
        }
        self.queue.push_back(item);
    }

    fn pop(&mut self) -> Option<(ScheduledSource, ReadManyArgs<V>)> {
        let (source, request) = self.queue.pop_front()?;
        let next = self.queue.front().map(|(source, _)| source);
        if next.is_none_or(|next| !Rc::ptr_eq(&next.0, &source.0)) {
            self.in_flight -= 1;
            self.bytes -= source.0.len();
        }
        Some((source, request))
    }
}

impl<V, S> Stream for ReadManyResult<V, S>
where
    V: IoVec + Unpin,
    S: Stream<Item = (ScheduledSource, ReadManyArgs<V>)> + Unpin,
{
    type Item = Result<(V, ReadResult)>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        ready!(budget::poll_leave(cx));
        let this = self.get_mut();
        this.is_polled = true;
        while this.may_start() {
            match Pin::new(&mut this.reads).poll_next(cx) {
                Poll::Ready(Some(read)) => this.push(read),
                Poll::Ready(None) => this.has_ended = true,
                // It wakes the task, as does the oldest read.
                Poll::Pending => break,
            }
        }
        let Some((oldest, _)) = this.queue.front() else {
            if this.has_ended {
                budget::spend();
                return Poll::Ready(None);
            }
            return Poll::Pending;
        };
        let read = ready!(this.file.poll_scheduled(oldest, cx));
        budget::spend();
        let (source, ReadManyArgs { user_read, .. }) = this.pop().expect("it was looked at above");
        Poll::Ready(Some(read.map(|()| {
            // What was merged, or what another one reads, may begin earlier.
            let offset = user_read.pos() - source.0.position();
            let size = user_read.size();
            let data = ReadResult::of_shared(&source.0, offset as usize, size);
            (user_read, data)
        })))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = if self.has_ended {
            (0, Some(0))
        } else {
            self.reads.size_hint()
        };
        let queued = self.queue.len();
        (
            least.saturating_add(queued),
            most.and_then(|most| most.checked_add(queued)),
        )
    }
}
