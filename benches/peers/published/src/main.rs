//! The published glommio 0.9.0, the yardstick.

#[path = "../../glommio_all.rs"]
mod all;
#[path = "../../published_listing.rs"]
mod listing;

use glommio as rt;

fn main() {
    workloads::main(&[&all::menu()]);
}
