//! Readiness as poll(2) reports it.

pub(super) const READABLE: i16 = libc::POLLIN | libc::POLLRDNORM;
pub(super) const WRITABLE: i16 = libc::POLLOUT | libc::POLLWRNORM;
/// What sockets of datagrams and Unix sockets report in addition.
pub(super) const WRITABLE_BAND: i16 = WRITABLE | libc::POLLWRBAND;
pub(super) const PEER_CLOSED: i16 = libc::POLLRDHUP;
pub(super) const HANG_UP: i16 = libc::POLLHUP;
pub(super) const FAILED: i16 = libc::POLLERR;
