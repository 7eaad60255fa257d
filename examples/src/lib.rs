//! What several programs share: how servers begin and end, and the protocols of the examples `broker` and `reliable_udp`, which
//! the load generator of the benches and the soak use as well.

#![forbid(unsafe_code)]

pub mod broker;
pub mod reliable_udp;
pub mod serving;
