//! Published timer queues, each behind the same trait as ours and used as its documentation says.

use crate::columns::{Column, timer_queue};

mod bitwheel;
mod delay_queue;
mod glommio_ng;
mod hash_wheel;
mod nexus;
mod spare;

/// A column for each.
pub fn columns() -> [Column; 5] {
    [
        timer_queue::<glommio_ng::Wheel>(false),
        timer_queue::<nexus::Wheel>(false),
        timer_queue::<bitwheel::Wheel>(false),
        timer_queue::<delay_queue::Delays>(false),
        timer_queue::<hash_wheel::Wheel>(false),
    ]
}
