//! What several programs share: how servers begin and end, and the protocols of the examples `broker` and `reliable_udp`, which
//! the load generator of the benches and the soak use as well.

#![forbid(unsafe_code)]

pub mod broker;
pub mod reliable_udp;
pub mod serving;

/// The recipes whose code needs more crates than the library has, compiled with the doc tests. Those of the others are in `book.rs` there.
#[cfg(doctest)]
mod recipes {
    #[doc = include_str!("../../docs/recipes/axum.md")]
    mod axum {}
    #[doc = include_str!("../../docs/recipes/http.md")]
    mod http {}
    #[doc = include_str!("../../docs/recipes/tls.md")]
    mod tls {}
}
