//! The soak test.
fn main() {}
