//! Published timer queues, each behind the same trait as ours and used as its documentation says.

use benches::bench::Column;

use crate::menu::{self, column};
use crate::queues::TimerQueue;

mod bitwheel;
mod delay_queue;
mod glommio_ng;
mod hash_wheel;
mod nexus;
mod slab_wheel;
mod spare;

/// A column for each.
pub fn columns(is_small: bool) -> [Column; 7] {
    fn all<Q: TimerQueue>(is_small: bool) -> Column {
        column::<Q>(menu::all::<Q>(is_small))
    }
    [
        all::<glommio_ng::Wheel>(is_small),
        all::<nexus::Wheel>(is_small),
        column::<nexus::Timeouts>(menu::fixed::<nexus::Timeouts>(is_small)),
        all::<slab_wheel::Wheel>(is_small),
        all::<bitwheel::Wheel>(is_small),
        all::<delay_queue::Delays>(is_small),
        all::<hash_wheel::Wheel>(is_small),
    ]
}
