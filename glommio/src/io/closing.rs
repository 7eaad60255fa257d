//! Closing a file, whose descriptor operations may still have.
//!
//! An operation that was given up has a share in the descriptor until it is over: while it waits to
//! be handed over, and while the kernel has it. The close begins after that.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use super::Result;
use super::error::enhanced;
use super::submit::{Submitter, close_later};
use crate::error::GlommioError;
use crate::panic;
use crate::reactor::OpHandle;
use crate::reactor::op::Close;
use crate::stats::Counted;
use crate::sys::descriptor::Descriptor;

/// A close that is under way. It goes on if it is dropped.
pub(super) struct Closing {
    stage: Stage,
    /// For what an error says.
    number: Option<RawFd>,
}

enum Stage {
    /// Operations have a share in the descriptor.
    InUse(Submitter, Arc<Left>),
    InKernel(OpHandle<Close>),
    /// With the result, until it is taken.
    Done(Option<Result<()>>),
}

/// Where a descriptor goes when the last operation lets go of it.
struct Left(Mutex<Place>);

struct Place {
    fd: Option<OwnedFd>,
    path: Option<PathBuf>,
    waker: Option<Waker>,
}

impl Closing {
    /// Closes `fd`, which no file has any more.
    pub(super) fn begin(fd: Descriptor, submitter: Submitter, path: Option<PathBuf>) -> Self {
        let number = Some(fd.as_raw_fd());
        let stage = match fd.into_sole() {
            Ok(fd) => Stage::close(&submitter, Close::new(fd, path)),
            Err(used) => {
                let left = Arc::new(Left(Mutex::new(Place {
                    fd: None,
                    path,
                    waker: None,
                })));
                let heir = Arc::clone(&left);
                used.on_close(move |fd| heir.take_in(fd));
                Stage::InUse(submitter, left)
            }
        };
        Closing { stage, number }
    }

    /// One that cannot begin.
    pub(super) fn refused(error: GlommioError<()>) -> Self {
        Closing {
            stage: Stage::Done(Some(Err(error))),
            number: None,
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let result = loop {
            match &mut self.stage {
                Stage::Done(result) => break result.take().unwrap_or(Ok(())),
                Stage::InKernel(close) => {
                    let closed = ready!(Pin::new(close).poll(cx));
                    let (result, path) = match closed {
                        Ok(closed) => closed.into_result(),
                        Err(error) => (Err(error), None),
                    };
                    let path = path.as_deref();
                    break result.map_err(|error| enhanced(error, "Closing", path, self.number));
                }
                Stage::InUse(submitter, left) => {
                    let close = ready!(left.poll(cx));
                    self.stage = Stage::close(submitter, close);
                }
            }
        };
        self.stage = Stage::Done(None);
        Poll::Ready(result)
    }
}

impl Stage {
    fn close(submitter: &Submitter, close: Close) -> Self {
        match submitter.start_counted(close, Counted::Close) {
            Ok(close) => Stage::InKernel(close),
            // The executor is gone; the operation was dropped, which has closed the descriptor.
            Err(_) => Stage::Done(Some(Ok(()))),
        }
    }
}

impl Left {
    /// The last operation is over.
    fn take_in(self: Arc<Self>, fd: OwnedFd) {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.fd = Some(fd);
        let waker = place.waker.take();
        drop(place);
        waker.into_iter().for_each(panic::wake);
    }

    fn poll(&self, cx: &Context<'_>) -> Poll<Close> {
        // Cloned with nothing borrowed, as is the one before dropped: both are user code.
        let waker = cx.waker().clone();
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = place.fd.take() {
            return Poll::Ready(Close::new(fd, place.path.take()));
        }
        let former = place.waker.replace(waker);
        drop(place);
        drop(former);
        Poll::Pending
    }
}

/// Nothing waits for the close any more.
impl Drop for Left {
    fn drop(&mut self) {
        let place = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = place.fd.take() {
            close_later(fd, place.path.take());
        }
    }
}
