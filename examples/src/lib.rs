//! What several programs share: the protocols of the examples `broker` and `reliable_udp`, which
//! their tests, the load generator `broker_load` and the soak test use as well, and how servers end.

#![forbid(unsafe_code)]

pub mod broker;
pub mod reliable_udp;
pub mod serving;
