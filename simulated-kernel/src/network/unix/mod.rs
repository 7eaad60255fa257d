//! Unix sockets. What is sent is in the queue of the receiver at once, and counts against the send
//! buffer of the sender until it is read.

mod calls;
mod readiness;
mod transfer;
