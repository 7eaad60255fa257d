//! Who is at the other end of a connection.

#![forbid(unsafe_code)]

use std::os::fd::AsFd;

use super::UnixStream;
use crate::net::{Result, RxBuf};
use crate::sys::socket::peer_credentials;

/// The process at the other end of a [`UnixStream`], as the kernel knows it: what it was when it
/// connected or began to listen, or made the pair. See [`UnixStream::peer_cred`].
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::net::UnixStream;
///
/// let (here, _there) = UnixStream::pair()?;
/// let peer = here.peer_cred()?;
/// # // SAFETY: these calls take nothing.
/// # let (own_uid, own_gid) = unsafe { (libc::geteuid(), libc::getegid()) };
/// assert_eq!((peer.uid(), peer.gid()), (own_uid, own_gid));
/// assert_eq!(peer.pid(), i32::try_from(std::process::id()).ok());
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UCred {
    uid: u32,
    gid: u32,
    pid: Option<i32>,
}

impl UCred {
    /// The effective user.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The effective group.
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// The number of the process, which may have ended since; `None` if it has none here, as one in
    /// another PID namespace.
    pub fn pid(&self) -> Option<i32> {
        self.pid
    }
}

impl<B: RxBuf> UnixStream<B> {
    /// The process at the other end: by its user a server can tell who may do what.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives; none is known.
    pub fn peer_cred(&self) -> Result<UCred> {
        let (uid, gid, pid) = peer_credentials(self.socket().as_fd())?;
        Ok(UCred {
            uid,
            gid,
            pid: Some(pid).filter(|&pid| pid != 0),
        })
    }
}
