//! Published timer queues, each behind the same trait as ours and used as its documentation says.

use crate::columns::{Column, timer_queue};

mod bitwheel;
mod delay_queue;
mod glommio_ng;
mod hash_wheel;
mod nexus;
mod slab_wheel;
mod spare;
mod timeout_queue;

/// A column for each.
pub fn columns() -> [Column; 7] {
    [
        timer_queue::<glommio_ng::Wheel>(false),
        timer_queue::<nexus::Wheel>(false),
        timeout_queue::column(),
        timer_queue::<slab_wheel::Wheel>(false),
        timer_queue::<bitwheel::Wheel>(false),
        timer_queue::<delay_queue::Delays>(false),
        timer_queue::<hash_wheel::Wheel>(false),
    ]
}
