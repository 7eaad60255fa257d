//! The slab: handles outlive everything, and pages go back in good time.

use crate::wheel::entry::{PAGE, TimerHandle};
use crate::wheel::reclaim::ReclaimingSlab;

const SECOND: u64 = 1_000_000_000;

fn fill(memory: &mut ReclaimingSlab<usize>, count: usize) -> Vec<TimerHandle> {
    (0..count).map(|n| memory.insert(0, 0, n)).collect()
}

fn drain(memory: &mut ReclaimingSlab<usize>, handles: &[TimerHandle]) {
    for handle in handles {
        let index = memory.slab.find(*handle).expect("armed above");
        memory.release(index);
    }
}

#[test]
fn a_record_is_retired_before_its_generations_repeat() {
    let mut memory = ReclaimingSlab::<usize>::new();
    let first = memory.insert(0, 0, 0);
    memory.release(first.index);
    memory.slab.age(0, u32::MAX - 3);
    let mut spent = vec![first];
    for n in 0..4 {
        let handle = memory.insert(0, 0, n);
        assert_eq!(handle.index, first.index);
        assert_eq!(memory.payload_mut(handle), Some(&mut { n }));
        assert!(spent.iter().all(|&old| memory.slab.find(old).is_none()));
        memory.release(handle.index);
        spent.push(handle);
        memory.check_invariants();
    }
    assert_eq!(
        spent.last().map(|handle| handle.generation.get()),
        Some(u32::MAX)
    );
    for n in 0..PAGE {
        let handle = memory.insert(0, 0, n);
        assert_ne!(handle.index, first.index);
        assert!(spent.iter().all(|&old| memory.slab.find(old).is_none()));
    }
    memory.check_invariants();
}

#[test]
fn a_page_whose_generations_are_spent_never_comes_back() {
    let mut memory = ReclaimingSlab::<usize>::new();
    let mut spent = fill(&mut memory, 3 * PAGE);
    drain(&mut memory, &spent);
    memory.slab.age(1, u32::MAX);
    let last = fill(&mut memory, 3 * PAGE);
    drain(&mut memory, &last);
    spent.extend(last);
    for poll in 0..20 {
        memory.review(poll * SECOND);
        memory.check_invariants();
    }
    assert_eq!(memory.resident_pages(), 1);
    let again = fill(&mut memory, 3 * PAGE);
    memory.check_invariants();
    let is_on_page_1 = |handle: &&TimerHandle| handle.index as usize / PAGE == 1;
    assert_eq!(again.iter().filter(is_on_page_1).count(), 0);
    assert!(spent.iter().all(|&old| memory.slab.find(old).is_none()));
    assert!(again.iter().all(|&new| memory.slab.find(new).is_some()));
}

#[test]
fn a_handle_does_not_fit_the_page_that_came_back() {
    let mut memory = ReclaimingSlab::<usize>::new();
    let mut spent = Vec::new();
    for round in 0..4 {
        let handles = fill(&mut memory, 48 * PAGE);
        assert_eq!(memory.resident_pages(), 48);
        assert!(spent.iter().all(|&old| memory.slab.find(old).is_none()));
        drain(&mut memory, &handles);
        assert_eq!(
            memory.resident_pages(),
            48,
            "no page leaves but from a poll"
        );
        spent.extend(handles);
        for poll in 0..20 {
            let before = memory.resident_pages();
            memory.review((round * 20 + poll) * SECOND);
            assert!(before - memory.resident_pages() <= 16, "a few at a time");
            memory.check_invariants();
        }
        assert_eq!(memory.resident_pages(), 1);
        assert!(spent.iter().all(|&old| memory.slab.find(old).is_none()));
    }
    assert_eq!(memory.slab.table_len(), 1, "page numbers are used again");
}

/// Of a page that is away nothing is read, and of one that came back only what was written since.
#[test]
fn a_handle_names_no_record_that_is_still_to_be_written() {
    let mut memory = ReclaimingSlab::<usize>::new();
    let handles = fill(&mut memory, 4 * PAGE);
    let (spent, kept) = handles.split_at(3 * PAGE);
    drain(&mut memory, spent);
    for poll in 0..20 {
        memory.review(poll * SECOND);
    }
    assert!(memory.resident_pages() <= 2);
    let names_nothing = |memory: &ReclaimingSlab<usize>| {
        assert!(spent.iter().all(|&old| memory.slab.find(old).is_none()));
    };
    names_nothing(&memory);
    for page in 0..3 {
        for _ in 0..20 {
            fill(&mut memory, 1);
            names_nothing(&memory);
        }
        fill(&mut memory, PAGE - 20);
        assert!(memory.resident_pages() <= page + 2);
    }
    names_nothing(&memory);
    assert!(kept.iter().all(|&old| memory.slab.find(old).is_some()));
}

/// Polls see only what is left of each burst.
#[test]
fn pages_stay_when_bursts_come_and_go_between_polls() {
    let mut memory = ReclaimingSlab::<usize>::new();
    for poll in 0..50 {
        let handles = fill(&mut memory, 10 * PAGE);
        drain(&mut memory, &handles);
        memory.review(poll * SECOND / 2);
        assert_eq!(memory.resident_pages(), 10);
    }
}

#[test]
fn pages_stay_while_the_population_swings() {
    let mut memory = ReclaimingSlab::<usize>::new();
    for poll in 0..200 {
        let handles = fill(&mut memory, 10 * PAGE);
        memory.review(poll * SECOND);
        drain(&mut memory, &handles);
        memory.review(poll * SECOND + SECOND / 2);
        assert_eq!(memory.resident_pages(), 10);
    }
}

#[test]
fn half_of_the_pages_are_slack() {
    let mut memory = ReclaimingSlab::<usize>::new();
    let handles = fill(&mut memory, 10 * PAGE);
    drain(&mut memory, &handles[5 * PAGE..]);
    for poll in 0..30 {
        memory.review(poll * SECOND);
    }
    assert_eq!(memory.resident_pages(), 10);
    drain(&mut memory, &handles[4 * PAGE..5 * PAGE]);
    for poll in 30..60 {
        memory.review(poll * SECOND);
    }
    assert_eq!(memory.resident_pages(), 4);
}

#[test]
fn a_population_scattered_by_a_peak_is_gathered_while_it_turns_over() {
    let mut memory = ReclaimingSlab::<usize>::new();
    let mut handles = fill(&mut memory, 40 * PAGE);
    // One timer is left on each page, and is replaced every now and then.
    let mut live: Vec<TimerHandle> = handles.iter().copied().step_by(PAGE).collect();
    handles.retain(|handle| !(handle.index as usize).is_multiple_of(PAGE));
    drain(&mut memory, &handles);
    for turn in 0..4000 {
        memory.review(turn * SECOND / 50);
        let oldest = turn as usize % live.len();
        let index = memory.slab.find(live[oldest]).expect("replaced below");
        memory.release(index);
        live[oldest] = memory.insert(0, 0, 0);
    }
    memory.check_invariants();
    assert!(
        memory.resident_pages() <= 2,
        "{} pages for 40 timers",
        memory.resident_pages()
    );
}

/// Every poll looked through the pages that the survivors of a peak hold on to.
#[test]
fn survivors_on_every_page_leave_polls_nothing_to_do() {
    const PAGES: usize = 200;
    let mut memory = ReclaimingSlab::<usize>::new();
    let mut handles = fill(&mut memory, PAGES * PAGE);
    let is_survivor = |handle: &TimerHandle| (handle.index as usize).is_multiple_of(PAGE);
    let survivors: Vec<TimerHandle> = handles.iter().copied().filter(is_survivor).collect();
    handles.retain(|handle| !is_survivor(handle));
    drain(&mut memory, &handles);
    let polls_of_a_sweep = PAGES.div_ceil(64);
    let mut now_ns = 0;
    for window in 0..10 {
        let mut busy_polls = 0;
        for _ in 0..1000 {
            busy_polls += usize::from(now_ns >= memory.next_review_ns());
            memory.review(now_ns);
            now_ns += 5 * SECOND / 1000;
        }
        // One or two windows end in five seconds, each with a sweep.
        assert!(
            busy_polls <= 2 * polls_of_a_sweep,
            "{busy_polls} polls had something to do in window {window}"
        );
    }
    memory.check_invariants();
    assert_eq!(memory.resident_pages(), PAGES);
    // They are let out as soon as they are gone, all but one.
    drain(&mut memory, &survivors[1..]);
    for _ in 0..100 {
        memory.review(now_ns);
        now_ns += SECOND;
    }
    memory.check_invariants();
    assert_eq!(memory.resident_pages(), 1);
}
