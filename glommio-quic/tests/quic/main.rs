//! Endpoints of this crate against each other, and against quinn on tokio.

mod echo;
mod peer;
