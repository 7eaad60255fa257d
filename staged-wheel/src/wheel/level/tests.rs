//! What tests ask of the levels.

use super::*;

impl Levels {
    /// Asserts the invariants of the module and returns how many records are listed.
    pub(in crate::wheel) fn check_invariants<T>(&self, slab: &Slab<T>, cursor: Tick) -> usize {
        let mut listed = 0;
        let mut active = 0;
        for (place, slot) in self.slots.as_flattened().iter().enumerate() {
            let is_occupied = self.occupied[place / SLOTS] >> (place % SLOTS) & 1 == 1;
            assert_eq!(is_occupied, !slot.is_empty());
            if !is_occupied {
                assert_eq!((slot.head, slot.tail, slot.len), (NIL, NIL, 0));
                assert!(!slot.is_stale);
                continue;
            }
            active |= 1 << (place / SLOTS);
            let at = Self::position_of(place as u16, cursor);
            assert_eq!(Self::place(at), place);
            assert!(Self::covers(at, slot.min_ns));
            let mut count = 0;
            let mut has_min = false;
            let (mut prev, mut index) = (NIL, slot.head);
            while index != NIL {
                let record = slab.at(index);
                assert_eq!(record.state, RecordState::Listed);
                assert_eq!(record.place as usize, place);
                let link = *slab.link(index);
                assert_eq!(link.prev, prev);
                assert!(link.deadline_ns >= slot.min_ns);
                assert!(Tick::of(link.deadline_ns) > cursor);
                has_min |= link.deadline_ns == slot.min_ns;
                (prev, index) = (index, link.next);
                count += 1;
                assert!(count <= slot.len, "a circle of records");
            }
            assert_eq!(slot.tail, prev);
            assert_eq!(slot.len, count);
            assert!(has_min || slot.is_stale);
            listed += count as usize;
        }
        assert_eq!(active, self.active);
        listed
    }
}
