//! The protocol of the example `broker`, from the connection up to what the frames mean.
//!
//! The soak test has frames of its own on the same connections: its messages are in flight for as
//! long as each of them says.

pub mod frames;
pub mod link;
pub mod protocol;
