//! TCP: the listener, the stream, and the form in which a connection changes executors.

mod accepted;
mod listener;
mod options;
mod send_file;
mod stream;

pub use accepted::AcceptedTcpStream;
pub use listener::TcpListener;
pub use stream::TcpStream;
