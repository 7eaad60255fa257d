//! What programs written for 0.9 rely on at compile time: names, the types of other crates in our
//! signatures, and which types may leave their thread. Most of it is checked by building this file.

#[path = "compat/auto_traits.rs"]
mod auto_traits;
#[path = "compat/names.rs"]
mod names;
#[path = "compat/other_crates.rs"]
mod other_crates;
