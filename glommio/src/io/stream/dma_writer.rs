//! Writing a file from its beginning by direct I/O, behind the producer.

mod cut;
mod state;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use futures_io::AsyncWrite;
use scopeguard::ScopeGuard;
pub(in crate::io) use state::Settings;
use state::{Phase, WriterState};

use super::is_closed;
use crate::executor::{Task, current, spawn_local, spawn_local_into};
use crate::io::Result;
use crate::io::dma_file::{DmaFile, MAX_READ_BYTES};
use crate::io::waiters::Waiters;
use crate::reactor::budget;
use crate::shares::TaskQueueHandle;

/// What a [`DmaStreamWriter`] writes to, and how.
#[derive(Debug)]
#[must_use = "it does nothing before `build`"]
pub struct DmaStreamWriterBuilder {
    file: DmaFile,
    settings: Settings,
}

impl DmaStreamWriterBuilder {
    /// Writes to `file`, from its first byte on, whatever is in it. A file opened for
    /// [appending](super::super::OpenOptions::append) puts the data elsewhere.
    pub fn new(file: DmaFile) -> DmaStreamWriterBuilder {
        DmaStreamWriterBuilder {
            file,
            settings: Settings::default(),
        }
    }

    /// How many buffers may be on their way to the device at a time. Default: 4; 0 counts as 1.
    pub fn with_write_behind(mut self, write_behind: usize) -> Self {
        self.settings.write_behind = write_behind;
        self
    }

    /// Whether closing leaves out bringing the data to the device (`fdatasync`). Default: false.
    pub fn with_sync_on_close_disabled(mut self, flush_disabled: bool) -> Self {
        self.settings.syncs_on_close = !flush_disabled;
        self
    }

    /// How many bytes are written at once, rounded up to the alignment of the file. Default: 128
    /// KiB.
    pub fn with_buffer_size(mut self, buffer_size: usize) -> Self {
        self.settings.buffer_bytes = buffer_size;
        self
    }

    /// The writer.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use futures_lite::AsyncWriteExt;
    /// use glommio::io::{DmaFile, DmaStreamWriterBuilder};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// let mut writer = DmaStreamWriterBuilder::new(DmaFile::create(&path).await?)
    ///     .with_buffer_size(64 << 10)
    ///     .with_write_behind(2)
    ///     .with_sync_on_close_disabled(true)
    ///     .build();
    /// writer.write_all(&[7; 5000]).await?;
    /// let flushed = writer.sync_aligned().await?; // whole blocks only
    /// assert_eq!(writer.current_flushed_pos(), flushed);
    /// writer.close().await?;
    /// assert_eq!(std::fs::metadata(&path)?.len(), 5000);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn build(self) -> DmaStreamWriter {
        DmaStreamWriter::new(self.file, self.settings)
    }
}

/// Writes a [`DmaFile`] from its beginning, and lets the producer go on while the data is written.
///
/// Bytes are collected in buffers, which are written when they are full. An error of a write shows
/// up in a later operation, and in all after it: what was accepted is not lost in silence. Up to
/// [`current_flushed_pos`](Self::current_flushed_pos) the file is as it was written.
///
/// Several tasks may use a writer, through references. While one flushes, the writes of the others
/// wait, and until it has seen the end of that: a flush brings what was accepted when it began, and
/// is not kept waiting by what comes after.
///
/// [`close`](AsyncWrite::poll_close) writes what is left, gives the file its exact size, brings it
/// to the device and closes it; that goes on in the background if the future is dropped, and an
/// error that it ends with is logged.
///
/// A writer that is dropped without it, or whose executor ends before it is closed, loses what was
/// not flushed. The zeros that filled its last buffer are cut off: on the spot, or when the kernel
/// is done with them. The file is not cut below the length that it had before. In a process that was
/// forked meanwhile, dropping the writer changes nothing.
///
/// If the last buffer is not full, closing cuts the file after it, so that the rest of a file that
/// was longer is gone.
///
/// # Examples
///
/// ```
/// use futures_lite::AsyncWriteExt;
/// use glommio::io::{DmaFile, DmaStreamWriterBuilder};
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// let file = DmaFile::create(&path).await?;
/// let mut writer = DmaStreamWriterBuilder::new(file)
///     .with_buffer_size(4096)
///     .build();
/// writer.write_all(&[7; 5000]).await?;
/// assert_eq!(writer.current_pos(), 5000);
/// assert_eq!(writer.flush_aligned().await?, 4096); // whole blocks only
/// assert_eq!(writer.current_flushed_pos(), 4096);
/// assert_eq!(writer.sync_aligned().await?, 4096);
/// assert_eq!(writer.sync().await?, 5000);
/// writer.close().await?;
/// assert_eq!(std::fs::read(&path)?, [7; 5000]);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
pub struct DmaStreamWriter {
    writer: Rc<Writer>,
}

/// What the writer shares with the task that closes it.
struct Writer {
    state: RefCell<WriterState>,
    waiters: Arc<Waiters>,
    /// Those of the tasks that wait in `poll_flush`, until they see its end.
    flushers: Waiters,
    /// Where these run.
    queues: RefCell<Vec<TaskQueueHandle>>,
}

impl Writer {
    /// Polls what is under way, then `look`, until that is ready or nothing moves any more. Neither
    /// wakes or drops a waker of others, so the state may be borrowed.
    fn poll<R>(
        self: &Rc<Self>,
        cx: &Context<'_>,
        mut look: impl FnMut(&mut WriterState) -> Poll<R>,
    ) -> Poll<R> {
        let polled = self.drive(|state, cx_of_all| {
            state.drive(cx_of_all);
            loop {
                let looked = look(state);
                // What `look` has started is polled, too, so that it wakes those who wait.
                if looked.is_ready() || !state.drive(cx_of_all) {
                    return looked;
                }
            }
        });
        if polled.is_pending() {
            self.waiters.add(cx.waker());
        }
        polled
    }

    /// Calls `drive`, which polls what is under way. If that finds the time over that a flush has to
    /// be seen, the timer is gone with it, and the writes are woken here.
    fn drive<R>(self: &Rc<Self>, drive: impl FnOnce(&mut WriterState, &mut Context<'_>) -> R) -> R {
        let all = Waker::from(Arc::clone(&self.waiters));
        let mut state = self.state.borrow_mut();
        let (kept_waiting, told) = (state.tells_of_flush(), state.told());
        let driven = drive(&mut state, &mut Context::from_waker(&all));
        let may_go_on = kept_waiting && !state.tells_of_flush();
        let tells = (state.told() != told).then(|| state.told());
        drop(state);
        if let Some(told) = tells {
            self.wait_for_flushers(told);
        }
        if may_go_on {
            self.waiters.wake_all();
        }
        driven
    }

    /// Finds out when those who wait for a flush, who were woken, have had their turn, which may be long
    /// after in a queue of few shares: a task that is queued behind each comes then.
    fn wait_for_flushers(self: &Rc<Self>, told: u64) {
        let last = scopeguard::guard(Rc::clone(self), move |writer| {
            writer.drive(|state, cx_of_all| {
                state.flushers_have_run(told);
                state.drive(cx_of_all);
            });
        });
        let last = Rc::new(last);
        for queue in self.queues.take() {
            let behind = Rc::clone(&last);
            current::with(|core| {
                // A queue that is gone has no tasks to wait for.
                let spawned = core.map(|_| spawn_local_into(async move { drop(behind) }, queue));
                spawned.and_then(Result::ok).map(Task::detach)
            });
        }
    }

    /// Writes what was accepted, and gives the file its exact size. Gives the file out.
    async fn finish(self: &Rc<Self>) -> Result<DmaFile> {
        poll_fn(|cx| {
            self.poll(cx, |state| {
                ready!(state.flush())?;
                state.sync_has_ended()
            })
        })
        .await?;
        let (file, padding, syncs) = {
            let mut state = self.state.borrow_mut();
            let (file, padding) = state.take_file()?;
            let is_synced = padding.is_none() && !state.has_unsynced();
            (file, padding, state.syncs_on_close() && !is_synced)
        };
        // Before the data is brought to the device, so that the size is brought there along with
        // it.
        if let Some(padding) = padding {
            file.truncate(padding.start()).await?;
            padding.was_cut();
        }
        if syncs {
            file.fdatasync().await?;
        }
        Ok(file)
    }

    async fn close(self: &Rc<Self>) {
        // The executor may end first.
        let cut_off = scopeguard::guard((), |()| self.end(None));
        let closed = match self.finish().await {
            Ok(file) => file.close().await,
            Err(error) => Err(error),
        };
        ScopeGuard::into_inner(cut_off);
        self.end(Some(closed));
    }

    fn end(&self, result: Option<Result<()>>) {
        let left = self.state.borrow_mut().end(result);
        drop(left);
        self.waiters.wake_all();
    }

    /// The task of `waker` waits for no flush any more. If none does that has ended, writes go on.
    fn leave_flush(&self, waker: &Waker) {
        self.flushers.remove(waker);
        if self.flushers.is_empty() && self.state.borrow_mut().flush_is_told() {
            self.waiters.wake_all();
        }
    }
}

impl DmaStreamWriter {
    pub(in crate::io) fn new(file: DmaFile, settings: Settings) -> Self {
        let alignment = file.alignment() as usize;
        let settings = Settings {
            write_behind: settings.write_behind.max(1),
            buffer_bytes: settings
                .buffer_bytes
                .clamp(1, MAX_READ_BYTES)
                .next_multiple_of(alignment),
            ..settings
        };
        DmaStreamWriter {
            writer: Rc::new(Writer {
                state: RefCell::new(WriterState::new(file, settings)),
                waiters: Arc::default(),
                flushers: Waiters::default(),
                queues: RefCell::default(),
            }),
        }
    }

    /// How many bytes were accepted.
    pub fn current_pos(&self) -> u64 {
        self.writer.state.borrow().position()
    }

    /// Up to where the file is written without a gap: those who open it can read that. It need not
    /// be there after a crash; see [`sync`](Self::sync).
    pub fn current_flushed_pos(&self) -> u64 {
        self.writer.drive(|state, cx_of_all| {
            state.drive(cx_of_all);
            state.flushed()
        })
    }

    /// Waits until the full buffers are written, and returns up to where the file is. Leaves a
    /// buffer that is not full alone.
    ///
    /// # Errors
    ///
    /// That of a write, also of an earlier one. After `close`, an error of kind `Other`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, writes that have begun go on.
    pub async fn flush_aligned(&self) -> Result<u64> {
        budget::consume().await;
        let mut goal = None;
        poll_fn(|cx| {
            self.writer.poll(cx, |state| {
                let goal = *goal.get_or_insert_with(|| state.aligned_position());
                state.wait_for(goal)
            })
        })
        .await
    }

    /// Waits as [`flush_aligned`](Self::flush_aligned), and brings the data to the device. Returns
    /// up to where the file was written when that began.
    ///
    /// # Errors
    ///
    /// As [`flush_aligned`](Self::flush_aligned), and what `fdatasync(2)` gives.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what has begun goes on, and later calls tell of its failure.
    pub async fn sync_aligned(&self) -> Result<u64> {
        self.flush_aligned().await?;
        self.sync_flushed().await
    }

    /// Writes what was accepted, also in a buffer that is not full, and brings it to the device.
    /// Returns up to where the file was written when that began.
    ///
    /// # Errors
    ///
    /// As [`sync_aligned`](Self::sync_aligned).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what has begun goes on, and later calls tell of its failure.
    pub async fn sync(&self) -> Result<u64> {
        budget::consume().await;
        let mut goal = None;
        poll_fn(|cx| {
            self.writer.poll(cx, |state| {
                let goal = *goal.get_or_insert_with(|| state.position());
                state.flush_to(goal)
            })
        })
        .await?;
        self.sync_flushed().await
    }

    async fn sync_flushed(&self) -> Result<u64> {
        let mut goal = None;
        poll_fn(|cx| {
            self.writer.poll(cx, |state| {
                let goal = *goal.get_or_insert_with(|| state.flushed());
                state.sync_to(goal)
            })
        })
        .await
    }

    /// Writes what was accepted, and gives the file out as it is then.
    pub(in crate::io) async fn into_file(self) -> Result<DmaFile> {
        budget::consume().await;
        let file = self.writer.finish().await?;
        let left = self.writer.state.borrow_mut().end(None);
        drop(left);
        Ok(file)
    }

    fn poll_write_ref(&self, cx: &Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(budget::poll_leave(cx));
        let at_once = self.writer.state.borrow_mut().accept_at_once(buf);
        let accepted = match at_once {
            Some(accepted) => Ok(accepted),
            None => ready!(self.poll_accepted(cx, buf)),
        };
        budget::spend();
        Poll::Ready(accepted.map_err(io::Error::from))
    }

    fn poll_accepted(&self, cx: &Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        let writer = &self.writer;
        let accepted = writer.poll(cx, |state| state.accept(buf));
        if accepted.is_pending() && writer.state.borrow().tells_of_flush() {
            // One that waited for the flush itself has given that up, or looks after it next, in
            // the same poll. It writes when it is polled again.
            writer.leave_flush(cx.waker());
        }
        accepted
    }

    fn poll_flush_ref(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let leave = budget::poll_leave(cx);
        let writer = &self.writer;
        // A flush begins without leave, as writes wait from then on: they may take all of the budget
        // in each poll before it is asked for.
        // Nor does it need leave to see its end, or the task would come behind the one that waits for it.
        let goes_first = |it: &WriterState| it.has_flush_to_begin() || it.tells_of_flush();
        if leave.is_pending() && !goes_first(&writer.state.borrow()) {
            return Poll::Pending;
        }
        let is_first = !writer.state.borrow().is_flush_awaited();
        let flushed = writer.poll(cx, |state| state.flush_told());
        if flushed.is_pending() {
            if is_first {
                // Those are of earlier flushes, which were given up.
                writer.flushers.clear();
                writer.queues.take();
            }
            writer.flushers.add(cx.waker());
            let queue = current::with(|core| core.map(|it| it.current_queue()));
            let mut queues = writer.queues.borrow_mut();
            if let Some(queue) = queue.filter(|it| !queues.contains(it)) {
                queues.push(queue);
            }
            return Poll::Pending;
        }
        writer.leave_flush(cx.waker());
        budget::spend();
        flushed.map_err(io::Error::from)
    }

    fn poll_close_ref(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        let begins = self.writer.state.borrow_mut().begin_close();
        if begins {
            let writer = Rc::clone(&self.writer);
            spawn_local(async move { writer.close().await }).detach();
        }
        ready!(budget::poll_leave(cx));
        let mut state = self.writer.state.borrow_mut();
        let ended = match state.phase() {
            Phase::Ended(result) => result.take().unwrap_or_else(|| Err(is_closed().into())),
            Phase::Open | Phase::Closing => {
                drop(state);
                self.writer.waiters.add(cx.waker());
                return Poll::Pending;
            }
        };
        drop(state);
        budget::spend();
        Poll::Ready(ended.map_err(io::Error::from))
    }
}

/// Also by reference: tasks may share a writer.
macro_rules! writes {
    ($($writer:ty),*) => {$(
        impl AsyncWrite for $writer {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.poll_write_ref(cx, bytes)
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_flush_ref(cx)
            }

            fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_close_ref(cx)
            }
        }
    )*};
}
writes!(DmaStreamWriter, &DmaStreamWriter);

/// Unless it was closed, or is being closed: gives up what is being written, and cuts off what was
/// only there to fill a buffer.
impl Drop for DmaStreamWriter {
    fn drop(&mut self) {
        let left = self.writer.state.borrow_mut().abandon();
        drop(left);
    }
}

impl_debug! { DmaStreamWriter, it:
    position: it.writer.state.borrow().position(), flushed: it.writer.state.borrow().flushed(); ..
}
