//! Waiting for descriptors that this crate has no type for.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::{fmt, io, mem};

use slab::Slab;

use super::Result;
use super::error::enhanced;
use super::submit::Submitter;
use crate::reactor::{OpHandle, PollOnce, budget, wake};
use crate::sys::raw_fd::check_open;

/// A descriptor of any kind, whose readiness can be awaited: an inotify or timer descriptor, a
/// device node, a socket of a C library.
///
/// The value owns what it is made of, and never reads or writes by itself: a task waits until the
/// descriptor is [readable](Self::readable) or [writable](Self::writable), and then makes its own
/// system calls on [`get_ref`](Self::get_ref). Those should not block, so the descriptor should be
/// in non-blocking mode: data may be gone when the task comes to it, if others read, too.
///
/// Each wait looks at the state of the descriptor when it begins. There is no readiness to clear, as
/// there is with tokio's `AsyncFd`.
///
/// Descriptors that the kernel cannot poll, such as regular files, count as ready at once.
///
/// # Examples
///
/// ```
/// use std::io::{Read, Write};
/// use glommio::io::PollableFd;
///
/// glommio::LocalExecutor::default().run(async {
///     let (reader, mut writer) = std::io::pipe()?;
///     let mut reader = PollableFd::new(reader)?;
///     writer.write_all(b"hello")?;
///
///     reader.readable().await?;
///     let mut bytes = [0; 5];
///     // There is data, so that this does not block.
///     reader.get_mut().read_exact(&mut bytes)?;
///     assert_eq!(&bytes, b"hello");
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct PollableFd<T: AsRawFd> {
    // Before the descriptor: what is in flight has to go before that is closed.
    waits: Waits,
    inner: T,
}

/// The waits for one descriptor, which end with it: one that is queued would watch the next file
/// with that number, and one that the kernel has keeps the file open.
#[derive(Debug)]
struct Waits {
    submitter: Submitter,
    list: Rc<WaitList>,
}

/// The operations of the waits. In here and not with those who wait, who may have forgotten them.
#[derive(Debug, Default)]
struct WaitList(RefCell<Slab<Option<OpHandle<PollOnce>>>>);

impl Waits {
    /// Gives all waits up. Who still waits is woken, to find that out.
    fn end(&mut self) {
        let list = mem::take(&mut self.list);
        let operations: Vec<_> = list.0.borrow_mut().drain().flatten().collect();
        let waiting: Vec<Waker> = operations.iter().filter_map(OpHandle::waiting).collect();
        scopeguard::defer! { waiting.into_iter().for_each(wake) }
        drop(operations);
        if let Ok(reactor) = self.submitter.reactor() {
            // The kernel holds a descriptor open as long as it was not told of this.
            reactor.cancel_now();
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.end();
    }
}

impl WaitList {
    fn insert(&self, operation: OpHandle<PollOnce>) -> usize {
        self.0.borrow_mut().insert(Some(operation))
    }

    /// Takes an operation out, to be polled with nothing borrowed: that may be user code.
    fn take(&self, key: usize) -> Option<OpHandle<PollOnce>> {
        self.0.borrow_mut().get_mut(key)?.take()
    }

    fn put_back(&self, key: usize, operation: OpHandle<PollOnce>) {
        if let Some(place) = self.0.borrow_mut().get_mut(key) {
            *place = Some(operation);
        }
    }

    fn remove(&self, key: usize) -> Option<OpHandle<PollOnce>> {
        self.0.borrow_mut().try_remove(key)?
    }
}

impl<T: AsRawFd> PollableFd<T> {
    /// Takes `inner`, whose descriptor must not change from here on, but by
    /// [`get_mut`](Self::get_mut).
    ///
    /// # Errors
    ///
    /// `EBADF` if its descriptor is not open.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub fn new(inner: T) -> Result<Self> {
        let submitter = Submitter::current();
        let fd = inner.as_raw_fd();
        check_open(fd).map_err(|source| enhanced(source, "Watching", None, Some(fd)))?;
        Ok(PollableFd {
            waits: Waits {
                submitter,
                list: Rc::default(),
            },
            inner,
        })
    }

    /// Waits until a read would not block: there is data, or the end of it, or an error, or the
    /// other side has hung up. Any number of tasks may wait.
    ///
    /// # Errors
    ///
    /// `EBADF` if the descriptor was closed behind this value before the wait began. Closed
    /// meanwhile, the wait goes on with io_uring, which keeps the file, and never ends with
    /// [epoll](crate::Driver). Kind `NotConnected` if the executor is gone.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped: the wait is given up.
    pub async fn readable(&self) -> Result<()> {
        let mut state = PollState::new();
        poll_fn(|cx| self.poll_readable(cx, &mut state)).await
    }

    /// Waits until a write would not block: there is space, or an error, or the other side has hung
    /// up.
    ///
    /// # Errors
    ///
    /// As [`readable`](Self::readable).
    ///
    /// # Cancel safety
    ///
    /// As [`readable`](Self::readable).
    pub async fn writable(&self) -> Result<()> {
        let mut state = PollState::new();
        poll_fn(|cx| self.poll_writable(cx, &mut state)).await
    }

    /// As [`readable`](Self::readable), for callers that keep no future but a [`PollState`].
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::io::{PollState, PollableFd};
    /// use std::future::poll_fn;
    /// use std::io::Write;
    ///
    /// glommio::LocalExecutor::default().run(async {
    ///     let (reader, writer) = std::io::pipe()?;
    ///     let (reader, writer) = (PollableFd::new(reader)?, PollableFd::new(writer)?);
    ///     writer.writable().await?;
    ///     let mut room = PollState::new();
    ///     poll_fn(|cx| writer.poll_writable(cx, &mut room)).await?;
    ///     writer.get_ref().write_all(b"!")?;
    ///     let mut state = PollState::new();
    ///     poll_fn(|cx| reader.poll_readable(cx, &mut state)).await?;
    ///     drop(reader.into_inner());
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn poll_readable(&self, cx: &mut Context<'_>, state: &mut PollState) -> Poll<Result<()>> {
        budget::counted(cx, |cx| self.poll(libc::POLLIN, cx, state))
    }

    /// As [`writable`](Self::writable), for callers that keep no future but a [`PollState`].
    ///
    /// # Errors
    ///
    /// As [`readable`](Self::readable).
    pub fn poll_writable(&self, cx: &mut Context<'_>, state: &mut PollState) -> Poll<Result<()>> {
        budget::counted(cx, |cx| self.poll(libc::POLLOUT, cx, state))
    }

    fn poll(
        &self,
        events: libc::c_short,
        cx: &mut Context<'_>,
        state: &mut PollState,
    ) -> Poll<Result<()>> {
        let fd = self.inner.as_raw_fd();
        let failed = |source| enhanced(source, "Polling", None, Some(fd));
        loop {
            let wait = match &mut state.wait {
                Some(wait) if wait.is_of(&self.waits, fd, events) => wait,
                other => {
                    // Another one's, if any: it is given up.
                    *other = None;
                    let operation = self.waits.submitter.start(PollOnce { fd, events });
                    other.insert(Wait {
                        key: self.waits.list.insert(operation.map_err(failed)?),
                        list: Rc::clone(&self.waits.list),
                        fd,
                        events,
                    })
                }
            };
            // It is not there if polling it has panicked: then it begins anew.
            let polled = match wait.list.take(wait.key) {
                Some(mut operation) => match Pin::new(&mut operation).poll(cx) {
                    Poll::Ready(polled) => Some(polled),
                    Poll::Pending => {
                        wait.list.put_back(wait.key, operation);
                        return Poll::Pending;
                    }
                },
                None => None,
            };
            state.wait = None;
            match polled {
                Some(Ok(_)) => return Poll::Ready(Ok(())),
                Some(Err(error)) if !tells_nothing(&error) => {
                    return Poll::Ready(Err(failed(error)));
                }
                Some(Err(_)) | None => {}
            }
        }
    }

    /// What this was made of.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// What this was made of. It may be exchanged for another one: waits end, tasks that wait with
    /// a [`PollState`] are woken, and their next poll begins anew.
    pub fn get_mut(&mut self) -> &mut T {
        self.waits.end();
        &mut self.inner
    }

    /// Gives back what this was made of. All waits end: nothing is in flight for the descriptor
    /// from here on.
    pub fn into_inner(self) -> T {
        let PollableFd { waits, inner } = self;
        drop(waits);
        inner
    }
}

/// Whether the poll ended without finding anything out, as when a signal comes.
fn tells_nothing(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED)
    )
}

impl<T: AsRawFd> AsRawFd for PollableFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

impl<T: AsRawFd + AsFd> AsFd for PollableFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl_debug! { [T: AsRawFd + fmt::Debug] PollableFd[T], it: inner; .. }

/// A wait of [`PollableFd::poll_readable`] or [`PollableFd::poll_writable`], one value for each:
/// two waits that share one give each other up.
///
/// The wait ends with the [`PollableFd`], whose descriptor is closed though there is a state, and
/// its task is woken.
#[derive(Debug, Default)]
pub struct PollState {
    wait: Option<Wait>,
}

impl PollState {
    /// No wait so far.
    pub fn new() -> Self {
        Self::default()
    }
}

#[derive(Debug)]
struct Wait {
    /// That of the [`PollableFd`], unless its waits have ended.
    list: Rc<WaitList>,
    key: usize,
    fd: RawFd,
    events: libc::c_short,
}

impl Wait {
    fn is_of(&self, waits: &Waits, fd: RawFd, events: libc::c_short) -> bool {
        Rc::ptr_eq(&self.list, &waits.list) && (self.fd, self.events) == (fd, events)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let given_up = self.list.remove(self.key);
        drop(given_up);
    }
}
