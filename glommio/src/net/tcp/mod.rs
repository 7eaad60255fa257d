//! TCP: the listener, the stream, and the forms in which a connection changes executors.

mod accepted;
mod detached;
mod listener;
mod options;
mod send_file;
mod stream;

pub use accepted::AcceptedTcpStream;
pub use detached::DetachedTcpStream;
pub use listener::TcpListener;
pub(super) use listener::listening_socket;
pub use stream::TcpStream;
