//! Sets of signals, as the kernel takes them: blocked for a thread, and read from a descriptor.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// A set of signals that can be blocked.
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of `signals`.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a number that is no signal, and for `SIGKILL` and `SIGSTOP`, which no
    /// thread can block.
    pub(crate) fn of(signals: &[libc::c_int]) -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the call writes a set to `set`, which has room for one, and cannot fail
        // otherwise.
        let mut set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            set.assume_init()
        };
        for &signal in signals {
            if matches!(signal, libc::SIGKILL | libc::SIGSTOP) {
                return Err(refused(signal, "can be neither blocked nor received"));
            }
            // SAFETY: `set` is a set of signals. Of a number that is no signal, and of one that the
            // C library keeps for itself, the call says so and changes nothing.
            let failed = unsafe { libc::sigaddset(&raw mut set, signal) };
            if failed != 0 {
                return Err(refused(signal, "is not a signal number"));
            }
        }
        Ok(SignalSet(set))
    }

    /// Blocks these signals for the calling thread, in addition to those that are blocked already.
    ///
    /// # Errors
    ///
    /// What `pthread_sigmask(3)` gives; none is known.
    pub(crate) fn block(&self) -> io::Result<()> {
        // SAFETY: the call reads a set of signals, which is borrowed for it, and is not asked for
        // the mask that was there before.
        let errno = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const self.0, std::ptr::null_mut())
        };
        match errno {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// A descriptor in non-blocking mode from which these signals are read while they are blocked.
    ///
    /// # Errors
    ///
    /// What `signalfd(2)` gives, for instance `EMFILE`.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        const NEW: libc::c_int = -1;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the call reads a set of signals, which is borrowed for it.
        let fd = unsafe { libc::signalfd(NEW, &raw const self.0, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened it, and nothing else knows it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// Takes the next pending signal from a descriptor that [`SignalSet::open`] has made.
///
/// # Errors
///
/// What `read(2)` gives.
pub(crate) fn read(descriptor: impl AsFd) -> io::Result<Option<libc::c_int>> {
    /// The signal's number is the first field of the record.
    const NUMBER_BYTES: usize = size_of::<u32>();
    let mut record = [0; size_of::<libc::signalfd_siginfo>()];
    loop {
        match nix::unistd::read(&descriptor, &mut record) {
            Ok(_) => break,
            Err(nix::errno::Errno::EINTR) => {}
            Err(nix::errno::Errno::EAGAIN) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
    let (number, _) = record
        .split_first_chunk::<NUMBER_BYTES>()
        .expect("a record is longer than its first field");
    // The kernel reports `int`s in these 32 bits.
    Ok(Some(u32::from_ne_bytes(*number).cast_signed()))
}

/// A descriptor that becomes readable with each `signal` from now on, on whatever thread it comes, and
/// holds an eventfd's number of those that were not read. It stays so for good.
///
/// # Errors
///
/// `InvalidInput` for a number that is no signal, and for one that cannot or must not be handled; what
/// `eventfd(2)` gives.
#[cfg(feature = "debugging")]
pub(crate) fn count(signal: libc::c_int) -> io::Result<std::sync::Arc<OwnedFd>> {
    use std::os::fd::AsRawFd;

    if signal_hook_registry::FORBIDDEN.contains(&signal) {
        return Err(refused(signal, "must not be handled"));
    }
    let flags = nix::sys::eventfd::EfdFlags::EFD_CLOEXEC;
    let eventfd = nix::sys::eventfd::EventFd::from_flags(flags)?;
    let count = std::sync::Arc::new(OwnedFd::from(eventfd));
    let counted = std::sync::Arc::clone(&count);
    let add = move || {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: `write(2)` may be called in a handler, and reads no more than these bytes. It changes
        // `errno`, which the registry restores.
        unsafe { libc::write(counted.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    };
    // SAFETY: the action allocates nothing and takes no lock: it makes one system call.
    match unsafe { signal_hook_registry::register(signal, add) } {
        Ok(_) => Ok(count),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Err(refused(signal, "cannot be handled"))
        }
        Err(error) => Err(error),
    }
}

fn refused(signal: libc::c_int, why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("signal {signal} {why}"),
    )
}
