//! Endpoints of this crate against each other, and against quinn on tokio.

mod echo;
mod handshakes;
mod interop;
mod lives;
mod networks;
mod peer;
mod shards;
