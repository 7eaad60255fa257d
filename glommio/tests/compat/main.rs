//! What programs written for 0.9 rely on at compile time: names, the types of other crates in our
//! signatures, and which types may leave their thread. Most of it is checked by building this file.

mod auto_traits;
mod names;
mod other_crates;
