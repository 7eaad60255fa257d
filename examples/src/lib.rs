//! What several programs share: how servers begin and end, the messages of `grpc_server`, and the protocols of `broker` and
//! `reliable_udp`, which the load generator of the benches and the soak use as well.

#![forbid(unsafe_code)]

pub mod broker;
#[allow(missing_docs, reason = "a generator writes none")]
pub mod greeting;
pub mod reliable_udp;
pub mod serving;

/// The pages whose code needs more crates than the library has, compiled with the doc tests. Those of the others are in `book.rs` there.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../docs/recipes/axum.md")]
    mod axum {}
    #[doc = include_str!("../../docs/recipes/grpc.md")]
    mod grpc {}
    #[doc = include_str!("../../docs/recipes/http.md")]
    mod http {}
    #[doc = include_str!("../../docs/recipes/tls.md")]
    mod tls {}
    #[doc = include_str!("../../timelog/docs/durable.md")]
    mod timelog_durable {}
    #[doc = include_str!("../../timelog/docs/log.md")]
    mod timelog_log {}
}
