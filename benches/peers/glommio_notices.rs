//! What the crates with glommio's API have besides since 0.10.

#[path = "notices.rs"]
mod notices;

mod parts {
    pub use crate::all::adapter::Glommio as Peer;
    pub use crate::rt::sync::CancellationToken;

    pub mod broadcast {
        pub use crate::rt::channels::broadcast::{Receiver, Sender, broadcast as channel};
    }

    pub mod oneshot {
        pub use crate::rt::channels::oneshot::{Receiver, Sender, oneshot as channel};
    }
}
