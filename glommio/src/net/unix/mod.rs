//! Unix domain sockets: the listener, the stream, the forms in which a connection changes executors,
//! and datagrams, and the credentials of peers.
//!
//! Addresses are paths. One that begins with a NUL byte names an abstract socket, which Linux keeps
//! apart from the file system; to bind an empty path is to have the kernel choose such a name.

mod accepted;
mod address;
mod credentials;
mod datagram;
mod detached;
mod full_receiver;
mod listener;
mod options;
mod stream;

pub use accepted::AcceptedUnixStream;
pub use credentials::UCred;
pub use datagram::UnixDatagram;
pub use detached::DetachedUnixStream;
pub use listener::UnixListener;
pub use stream::UnixStream;
