//! A descriptor with several owners: a file, and the operations on it.
//!
//! An operation that waits to be handed to the kernel names a number. So the descriptor must stay
//! open until the operation is over, or the number may stand for another file by then.

#![forbid(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use super::door::closing;

/// One of the owners of a descriptor. The last one closes it, or hands it on.
#[derive(Clone, Debug)]
pub struct Descriptor(Arc<SharedDescriptor>);

struct SharedDescriptor {
    /// `None` only once it is taken out.
    fd: Option<OwnedFd>,
    on_close: Mutex<Option<OnClose>>,
}

type OnClose = Box<dyn FnOnce(OwnedFd) + Send>;

const TAKEN: &str = "the descriptor is taken out by its last owner";

impl Descriptor {
    pub(crate) fn new(fd: OwnedFd) -> Self {
        Descriptor(Arc::new(SharedDescriptor {
            fd: Some(fd),
            on_close: Mutex::new(None),
        }))
    }

    /// The descriptor, if there is no other owner.
    ///
    /// # Errors
    ///
    /// Itself, if there is one.
    pub(crate) fn into_sole(self) -> Result<OwnedFd, Self> {
        let mut shared = Arc::try_unwrap(self.0).map_err(Descriptor)?;
        Ok(shared.fd.take().expect(TAKEN))
    }

    /// Gives up this share in it. The last owner to do so gives the descriptor to `on_close`, on its
    /// thread, in place of closing it.
    pub(crate) fn on_close(self, on_close: impl FnOnce(OwnedFd) + Send + 'static) {
        let mut place = self
            .0
            .on_close
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let former = place.replace(Box::new(on_close));
        drop(place);
        drop(former);
    }
}

/// A share in a descriptor until the kernel is done with an operation on it.
#[derive(Debug)]
pub(crate) struct FdGuard(Option<Descriptor>);

impl FdGuard {
    /// The share. The number cannot be had any more.
    pub(crate) fn release(&mut self) -> Option<Descriptor> {
        self.0.take()
    }
}

/// Closes a descriptor. Whatever is returned, it is closed.
///
/// # Errors
///
/// What `close(2)` gives: data that was written before may be lost.
pub(crate) fn close(fd: OwnedFd) -> io::Result<()> {
    closing(fd.as_raw_fd());
    match nix::unistd::close(fd) {
        // Closed all the same on Linux.
        Err(nix::errno::Errno::EINTR) => Ok(()),
        closed => Ok(closed?),
    }
}

impl From<Descriptor> for FdGuard {
    fn from(descriptor: Descriptor) -> Self {
        FdGuard(Some(descriptor))
    }
}

/// # Panics
///
/// Panics if it was released.
impl AsRawFd for FdGuard {
    fn as_raw_fd(&self) -> RawFd {
        let held = self
            .0
            .as_ref()
            .expect("the kernel is asked before it is done");
        held.as_raw_fd()
    }
}

impl SharedDescriptor {
    fn fd(&self) -> &OwnedFd {
        self.fd.as_ref().expect(TAKEN)
    }
}

impl Drop for SharedDescriptor {
    fn drop(&mut self) {
        let on_close = self
            .on_close
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = self.fd.take() {
            match on_close.take() {
                Some(on_close) => on_close(fd),
                None => closing(fd.as_raw_fd()),
            }
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd().as_fd()
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.fd().as_raw_fd()
    }
}

impl fmt::Debug for SharedDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fd.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read, pipe};
    use std::sync::mpsc;

    use super::*;

    fn writing_end() -> (PipeReader, Descriptor) {
        let (reader, writer) = pipe().expect("descriptors are free");
        nix::fcntl::fcntl(
            &reader,
            nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK),
        )
        .expect("it is open");
        (reader, Descriptor::new(writer.into()))
    }

    fn is_closed(reader: &mut PipeReader) -> bool {
        reader.read(&mut [0]).is_ok_and(|read| read == 0)
    }

    #[test]
    fn the_last_owner_closes() {
        let (mut reader, descriptor) = writing_end();
        let other = descriptor.clone();
        let descriptor = descriptor.into_sole().expect_err("there is another");
        drop(descriptor);
        assert!(!is_closed(&mut reader));
        drop(other.into_sole().expect("it is the last"));
        assert!(is_closed(&mut reader));
    }

    #[test]
    fn the_callback_gets_it_from_the_last_owner_and_from_no_other() {
        let (mut reader, descriptor) = writing_end();
        let other = descriptor.clone();
        let number = descriptor.as_raw_fd();
        let (give, got) = mpsc::channel();
        descriptor.on_close(move |fd| give.send(fd).expect("the other end is there"));
        assert!(got.try_recv().is_err());
        drop(other);
        let fd = got.try_recv().expect("it was the last");
        assert_eq!(fd.as_raw_fd(), number);
        assert!(!is_closed(&mut reader));
        drop(fd);
        assert!(is_closed(&mut reader));
    }

    #[test]
    fn the_last_owner_can_leave_it_itself() {
        let (mut reader, descriptor) = writing_end();
        descriptor.on_close(drop);
        assert!(is_closed(&mut reader));
    }
}
