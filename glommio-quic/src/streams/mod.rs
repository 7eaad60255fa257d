//! The two halves of streams.

mod recv;
mod send;

pub use recv::RecvStream;
pub use send::SendStream;
