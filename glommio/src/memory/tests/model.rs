//! The free blocks against one bit for each block.
//!
//! The free runs follow from the set of free blocks alone, so the model can say after every step
//! which ones there must be: that covers overlaps, blocks lost, blocks found twice, and buddies
//! left apart.

use proptest::prelude::*;

use crate::memory::free_blocks::FreeBlocks;

#[derive(Debug, Clone)]
enum Step {
    /// Take so many blocks.
    Take(u32),
    /// Give back what was taken as the so-many-th, among what is still held.
    GiveBack(prop::sample::Index),
    /// Look at the runs, for which the last blocks that were given back join them.
    Look,
}

/// Mostly small requests; now and then one of any size, also beyond the region.
fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..=9u32).prop_map(Step::Take),
        1 => (1..=200u32).prop_map(Step::Take),
        1 => prop_oneof![Just(1 << 31), Just((1 << 31) + 1), Just(u32::MAX)].prop_map(Step::Take),
        4 => any::<prop::sample::Index>().prop_map(Step::GiveBack),
        2 => Just(Step::Look),
    ]
}

/// The largest free run that starts at `block` and is a power of two at a multiple of its length.
fn run_at(is_free: &[bool], block: usize) -> Option<u32> {
    (0..32)
        .take_while(|&order| {
            let length = 1usize << order;
            block.is_multiple_of(length)
                && is_free
                    .get(block..block + length)
                    .is_some_and(|run| run.iter().all(|&free| free))
        })
        .last()
}

/// The runs that there must be.
fn runs(is_free: &[bool]) -> Vec<(u32, u32)> {
    let mut runs = Vec::new();
    let mut block = 0;
    while block < is_free.len() {
        match run_at(is_free, block) {
            Some(order) => {
                runs.push((block as u32, order));
                block += 1 << order;
            }
            None => block += 1,
        }
    }
    runs
}

/// Marks the blocks, which all are the other way now.
fn set(is_free: &mut [bool], (start, count): (u32, u32), free: bool) {
    for block in start..start + count {
        assert_eq!(is_free[block as usize], !free, "block {block}");
        is_free[block as usize] = free;
    }
}

proptest! {
    #[test]
    fn free_blocks_are_those_of_a_bitmap(
        count in 0..150u32,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut blocks = FreeBlocks::new(count);
        let mut is_free = vec![true; count as usize];
        let mut held = Vec::new();
        // What was given back last, with nothing asked for since: the same fits there again, also if a
        // power of two of blocks would not.
        let mut last = None;
        prop_assert_eq!(blocks.runs(), runs(&is_free));

        for step in steps {
            match step {
                Step::Take(wanted) => {
                    let length = wanted.checked_next_power_of_two();
                    let has_space = length.is_some_and(|length| {
                        runs(&is_free).iter().any(|&(_, order)| 1 << order >= length)
                    });
                    let start = blocks.take(wanted);
                    match last.take() {
                        Some((place, count)) if count == wanted => {
                            prop_assert_eq!(start, Some(place));
                        }
                        _ => prop_assert_eq!(start.is_some(), has_space),
                    }
                    if let (Some(start), Some(length)) = (start, length) {
                        prop_assert!(start.is_multiple_of(length));
                        set(&mut is_free, (start, wanted), false);
                        held.push((start, wanted));
                    }
                }
                Step::GiveBack(which) if !held.is_empty() => {
                    let (start, count) = held.swap_remove(which.index(held.len()));
                    blocks.give_back(start, count);
                    set(&mut is_free, (start, count), true);
                    last = Some((start, count));
                }
                Step::GiveBack(_) => {}
                Step::Look => {
                    prop_assert_eq!(blocks.runs(), runs(&is_free));
                    last = None;
                }
            }
        }

        for (start, count) in held {
            blocks.give_back(start, count);
        }
        prop_assert_eq!(blocks.runs(), runs(&vec![true; count as usize]));
    }
}

/// The shortest run that is long enough, so that long ones last.
#[test]
fn a_long_run_is_kept_for_those_who_need_it() {
    let mut blocks = FreeBlocks::new(24);
    assert_eq!(blocks.runs(), [(0, 4), (16, 3)]);
    assert_eq!(blocks.take(3), Some(16));
    assert_eq!(blocks.take(1), Some(19));
    assert_eq!(blocks.take(16), Some(0));
}

/// What was used last is likeliest to be in the cache, and the rest of a region to be untouched.
#[test]
fn blocks_given_back_are_the_first_to_be_taken() {
    let mut blocks = FreeBlocks::new(1 << 10);
    for round in 0..100 {
        let start = blocks.take(1).expect("there is space");
        assert_eq!(start, 0, "round {round}");
        blocks.give_back(start, 1);
    }
}

/// A large arena costs address space, but no time: nothing is written for blocks that are not in
/// use.
#[test]
fn a_large_region_is_one_run() {
    let most = 1 << 26;
    let mut blocks = FreeBlocks::new(most + 3);
    for _ in 0..2 {
        assert_eq!(blocks.take(most), Some(0));
        assert_eq!(blocks.take(3), None);
        assert_eq!(blocks.take(2), Some(most));
        blocks.give_back(0, most);
        blocks.give_back(most, 2);
    }
}
