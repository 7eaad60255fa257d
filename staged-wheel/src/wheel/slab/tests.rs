//! What tests ask of a slab.

use super::*;

impl<T> Slab<T> {
    /// Makes every free record of a page as old as `generation`, and the records to come.
    pub(in crate::wheel) fn age(&mut self, number: usize, generation: u32) {
        let page = &mut self.table[number];
        page.floor = generation.max(page.floor);
        for record in page.memory.iter_mut().flat_map(|it| &mut it.records) {
            if record.state == RecordState::Free {
                record.generation = generation.max(record.generation);
            }
        }
    }

    /// Records in `state`, counted one by one.
    pub(in crate::wheel) fn count(&self, state: RecordState) -> usize {
        let open = self.table.iter().filter_map(|page| page.memory.as_ref());
        let records = open.flat_map(|memory| &memory.records);
        records.filter(|record| record.state == state).count()
    }

    pub(in crate::wheel) fn check_invariants(&self) {
        let mut rooms = vec![false; self.table.len()];
        let mut prev = NIL;
        let mut number = self.room.first;
        while number != NIL {
            let page = &self.table[number as usize];
            assert!(
                !std::mem::replace(&mut rooms[number as usize], true),
                "a circle of pages"
            );
            assert_eq!(page.prev, prev);
            prev = number;
            number = page.next;
        }
        let (mut live, mut resident) = (0, 0);
        for (page, has_room) in self.table.iter().zip(rooms) {
            assert_eq!(has_room, page.free != FULL);
            let (mut armed, mut free) = (0, 0);
            for record in page.memory.iter().flat_map(|it| &it.records) {
                let is_armed = !matches!(record.state, RecordState::Free | RecordState::Retired);
                assert_eq!(record.payload.is_some(), is_armed);
                armed += u32::from(is_armed);
                free += u32::from(record.state == RecordState::Free);
            }
            let mut listed = 0;
            let mut local = page.free;
            while local != FULL {
                let record = &page.memory().records[local as usize];
                assert_eq!(record.state, RecordState::Free);
                assert_ne!(record.generation, 0);
                local = u32::from(record.place);
                listed += 1;
                assert!(listed <= FULL, "a circle of free records");
            }
            assert_eq!(listed, free);
            assert_eq!(page.live, armed);
            live += armed as usize;
            resident += usize::from(page.memory.is_some());
        }
        assert_eq!(live, self.live);
        assert_eq!(resident, self.resident);
    }
}
