//! The memory of a channel, which no method tells.

use super::*;

#[test]
fn a_peak_of_values_gives_its_memory_back() {
    const PEAK: usize = 100_000;
    let (sender, receiver) = new_unbounded();
    for number in 0..PEAK {
        sender.try_send(number).expect("there is room");
    }
    let capacity = || receiver.channel.state.borrow().items.capacity();
    assert!(capacity() >= PEAK);
    while receiver.take().is_some() {}
    assert!(capacity() < PEAK / 100, "{}", capacity());
}
