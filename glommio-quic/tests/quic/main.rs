//! Endpoints of this crate against each other, and against quinn on tokio.

mod chunks;
mod echo;
mod handshakes;
mod interop;
mod limits;
mod lives;
mod networks;
mod peer;
#[cfg(feature = "qlog")]
mod qlog;
mod shards;
#[cfg(feature = "simulation")]
mod simulated;
mod takeovers;
mod updates;
