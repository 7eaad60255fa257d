//! What the public types of the address families have in common, written once: methods and traits
//! that hand on to [`Stream`](super::stream::Stream), [`Acceptor`](super::accept_queue::Acceptor)
//! and [`Datagram`](super::datagram::Datagram).
//!
//! Macros, since the types are different ones to users, and traits cannot give them inherent
//! methods. There is no logic here. Each expects a type with the named fields; `addresses` is a
//! module with the functions `local_addr` and `peer_addr`, which give an `Address`.

mod datagram;
mod listener;
mod socket;
mod stream;

pub(super) use datagram::datagram_face;
pub(super) use listener::{accepted_face, listener_face};
pub(super) use socket::{addresses_face, descriptor_face, timeouts_face};
pub(super) use stream::stream_face;
