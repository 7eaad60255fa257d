//! Where buffers lie, and that no other buffer overlaps them.

use proptest::prelude::*;

use crate::memory::{Arena, BLOCK_BYTES, DmaBuffer};

const ARENA_BYTES: usize = 40 * BLOCK_BYTES;

/// Whether the buffer lies inside the arena's region; it may not lie across its border.
fn is_inside(arena: &Arena, buffer: &DmaBuffer) -> bool {
    let Some(region) = arena.reserved() else {
        return false;
    };
    let extent = region.extent().as_ptr();
    let start = extent.cast::<u8>().addr();
    let end = start + extent.len();
    let (first, last) = (
        buffer.as_ptr().addr(),
        buffer.as_ptr().addr() + buffer.len(),
    );
    assert!(last <= start || first >= end || (first >= start && last <= end));
    first >= start && first < end
}

fn region_bytes(arena: &Arena) -> Option<usize> {
    Some(arena.reserved()?.extent().len())
}

/// How many blocks of the region are free.
fn free_blocks(arena: &Arena) -> usize {
    let region = arena.reserved().expect("it was reserved");
    region.free_runs().iter().map(|(_, order)| 1 << order).sum()
}

#[test]
fn the_size_is_rounded_up_to_blocks_and_never_tiny() {
    for (asked, got) in [
        (0, 65536),
        (1, 65536),
        (65536, 65536),
        (65537, 65536 + 4096),
        (10 << 20, 10 << 20),
        ((10 << 20) + 4095, (10 << 20) + 4096),
    ] {
        let arena = Arena::new(asked);
        let _buffer = arena.allocate(1);
        assert_eq!(region_bytes(&arena), Some(got), "asked for {asked}");
    }
}

/// More address space than there is: the executor works without the arena.
#[test]
fn an_arena_that_cannot_be_reserved_does_without() {
    for bytes in [usize::MAX, usize::MAX - 4096, 1 << 50] {
        let arena = Arena::new(bytes);
        for _ in 0..2 {
            let buffer = arena.allocate(5000);
            assert_eq!(buffer.as_bytes(), [0; 5000]);
            assert!(arena.reserved().is_none());
        }
    }
}

#[test]
fn what_finds_no_room_comes_from_the_heap_and_room_is_found_again() {
    let arena = Arena::new(16 * BLOCK_BYTES);
    let mut buffers: Vec<_> = (0..16).map(|_| arena.allocate(BLOCK_BYTES)).collect();
    assert!(buffers.iter().all(|buffer| is_inside(&arena, buffer)));
    assert_eq!(free_blocks(&arena), 0);

    let on_heap = arena.allocate(1);
    assert!(!is_inside(&arena, &on_heap));
    assert_eq!(on_heap.as_ptr().addr() % BLOCK_BYTES, 0);

    buffers.truncate(8);
    assert!(is_inside(&arena, &arena.allocate(1)));
    drop(buffers);
    assert!(is_inside(&arena, &arena.allocate(16 * BLOCK_BYTES)));
    drop(on_heap);
    assert_eq!(free_blocks(&arena), 16);
}

#[derive(Debug, Clone)]
enum Step {
    Allocate(usize),
    Trim(prop::sample::Index, prop::sample::Index),
    Drop(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        3 => (0..3 * BLOCK_BYTES).prop_map(Step::Allocate),
        2 => (0..=ARENA_BYTES + 1).prop_map(Step::Allocate),
        1 => (place(), place()).prop_map(|(which, to)| Step::Trim(which, to)),
        3 => place().prop_map(Step::Drop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each buffer is filled with a value of its own; none of them ever sees another's.
    #[test]
    fn no_buffer_is_written_through_another(steps in prop::collection::vec(step(), 0..60)) {
        let arena = Arena::new(ARENA_BYTES);
        let mut buffers: Vec<(u8, DmaBuffer)> = Vec::new();
        for (step, mark) in steps.into_iter().zip(1..) {
            match step {
                Step::Allocate(size) => {
                    let mut buffer = arena.allocate(size);
                    prop_assert_eq!(buffer.len(), size);
                    prop_assert_eq!(buffer.is_empty(), size == 0);
                    prop_assert_eq!(buffer.as_ptr().addr() % BLOCK_BYTES, 0);
                    is_inside(&arena, &buffer);
                    buffer.as_bytes_mut().fill(mark);
                    buffers.push((mark, buffer));
                }
                Step::Trim(which, to) if !buffers.is_empty() => {
                    let count = buffers.len();
                    let (_, buffer) = &mut buffers[which.index(count)];
                    let size = to.index(buffer.len() + 1);
                    buffer.trim_to_size(size);
                    prop_assert_eq!(buffer.len(), size);
                }
                Step::Drop(which) if !buffers.is_empty() => {
                    let count = buffers.len();
                    drop(buffers.swap_remove(which.index(count)));
                }
                Step::Trim(..) | Step::Drop(_) => {}
            }
            for (mark, buffer) in &buffers {
                prop_assert!(buffer.as_bytes().iter().all(|byte| byte == mark));
            }
        }
        drop(buffers);
        if arena.reserved().is_some() {
            prop_assert_eq!(free_blocks(&arena), ARENA_BYTES / BLOCK_BYTES);
        }
    }
}
