//! The timer queues from outside, and what they ask of the allocator.

use std::time::{Duration, Instant};

use staged_wheel::{ClassicQueue, StagedWheel, TimerHandle};

#[path = "../../../glommio/tests/common/counting.rs"]
mod counting;
mod load;

use counting::Allocations;
use load::{Done, Load, PAYLOAD, Payload};

const PAGE_BYTES: usize = 12 * 1024;
const TABLES_BYTES: usize = 16 * 1024;

/// The calls below, for any of the queues.
macro_rules! exercise {
    ($queue:ident) => {{
        let epoch = Instant::now();
        let at = |ms| epoch + Duration::from_millis(ms);
        let mut queue = $queue::new(epoch);
        assert!(queue.is_empty());
        assert_eq!(queue.next_expiry(), None);

        let late = queue.insert(at(300), "late");
        let soon = queue.insert(at(100), "soon");
        let tied = queue.insert(at(100), "tied");
        let gone = queue.insert(at(50), "gone");
        assert_eq!(queue.len(), 4);
        assert_eq!(queue.next_expiry(), Some(at(50)));
        assert_eq!(queue.cancel(gone), Some("gone"));
        assert_eq!(queue.cancel(gone), None);
        assert!(!queue.rearm(gone, at(1)));
        assert_eq!(queue.get_mut(gone), None);

        *queue.get_mut(late).expect("armed") = "later";
        assert!(queue.rearm(soon, at(100)));
        assert!(queue.rearm(late, at(100)));
        let mut expired = Vec::new();
        assert!(!queue.expire(at(100) - Duration::from_nanos(1), 256, &mut expired));
        assert!(expired.is_empty());
        assert!(queue.expire(at(100), 1, &mut expired));
        assert!(!queue.expire(at(100), 256, &mut expired));
        assert_eq!(expired, ["tied", "soon", "later"]);
        assert_eq!(queue.cancel(tied), None);
        assert_eq!((queue.len(), queue.next_expiry()), (0, None));
    }};
}

#[test]
fn both_queues_answer_alike() {
    exercise!(ClassicQueue);
    exercise!(StagedWheel);
}

/// With some timers and with many, for any of the queues: past, of one deadline, and never.
macro_rules! exercise_fired {
    ($queue:ident, $count:expr) => {{
        let before = Instant::now();
        let epoch = before + Duration::from_secs(1);
        let mut queue = $queue::new(epoch);
        let never = queue.insert(epoch + Duration::from_secs(1 << 36), $count);
        let past = queue.insert(before, 0);
        let deadline = |n: usize| epoch + Duration::from_nanos(n as u64 / 2 * 999);
        let mut armed = vec![(past, epoch, 0)];
        armed.extend((1..$count).map(|n| (queue.insert(deadline(n), n), deadline(n), n)));
        for &(handle, deadline, _) in &armed {
            assert_eq!(queue.deadline(handle), Some(deadline));
        }
        assert_eq!(queue.deadline(never), None);
        let mut expired = Vec::new();
        while queue.expire_fired(deadline($count), 100, &mut expired) {}
        let fired = expired
            .iter()
            .map(|it| (it.handle, it.deadline, it.payload));
        assert!(fired.eq(armed.iter().copied()));
        assert_eq!(queue.deadline(past), None);
        assert_eq!(queue.cancel(never), Some($count));
    }};
}

#[test]
fn what_has_fired_is_told_with_its_handle_and_deadline() {
    exercise_fired!(ClassicQueue, 1000);
    exercise_fired!(StagedWheel, 200);
    exercise_fired!(StagedWheel, 10_000);
}

#[test]
fn a_handle_is_eight_bytes_inside_an_option_too() {
    assert_eq!(size_of::<TimerHandle>(), 8);
    assert_eq!(size_of::<Option<TimerHandle>>(), 8);
}

#[test]
fn nothing_is_allocated_before_the_first_arm() {
    let before = Allocations::of_this_thread();
    let epoch = Instant::now();
    let mut queue = StagedWheel::<Payload>::new(epoch);
    assert_eq!(queue.next_expiry(), None);
    assert!(!queue.expire(epoch, 256, &mut Vec::new()));
    assert_eq!(Allocations::of_this_thread().since(before).calls, 0);
    queue.insert(epoch, PAYLOAD);
    let first = Allocations::of_this_thread().since(before);
    // The inline stage and a page, the wheel's tables not yet.
    assert!(first.bytes < PAGE_BYTES + 5 * 1024, "{first:?}");
}

/// A million operations, with bursts among them, over several of the windows after which unused
/// memory is given back.
#[test]
fn a_steady_state_never_calls_the_allocator() {
    let mut load = Load::new(Instant::now());
    load.run(1_000_000);
    let before = Allocations::of_this_thread();
    load.done = Done::default();
    load.run(1_000_000);
    let used = Allocations::of_this_thread().since(before);
    let done = load.done;
    assert_eq!((used.calls, used.bytes), (0, 0), "{done:?}");
    assert!(
        done.cancelled > 100_000 && done.rearmed > 50_000,
        "{done:?}"
    );
    assert!(done.fired > 300_000 && done.bursts == 40, "{done:?}");
}

/// The cancel that emptied the queue allocated the tables of the inline stage.
#[test]
fn emptying_a_queue_never_calls_the_allocator() {
    let epoch = Instant::now();
    let mut queue = StagedWheel::<Payload>::new(epoch);
    let mut handles = Vec::with_capacity(300);
    let mut after_the_first = Allocations::of_this_thread();
    for round in 0..3000 {
        let now = epoch + Duration::from_millis(20 * round);
        handles.extend((0..300).map(|ms| queue.insert(now + Duration::from_millis(ms), PAYLOAD)));
        if round == 0 {
            after_the_first = Allocations::of_this_thread();
        }
        for handle in handles.drain(..) {
            queue.cancel(handle);
        }
        assert!(queue.is_empty());
        assert!(!queue.expire(now, 256, &mut Vec::new()));
    }
    let used = Allocations::of_this_thread().since(after_the_first);
    assert_eq!((used.calls, used.bytes), (0, 0));
}

#[test]
fn a_timer_costs_48_bytes_and_a_peak_is_given_back() {
    let epoch = Instant::now();
    let before = Allocations::of_this_thread();
    let mut queue = StagedWheel::<Payload>::new(epoch);
    let used = || Allocations::of_this_thread().since(before).bytes;
    let mut handles = Vec::with_capacity(100_000);
    let handle_bytes = handles.capacity() * size_of::<TimerHandle>();
    for count in [1_025, 10_000, 100_000] {
        while handles.len() < count {
            let ms = handles.len() as u64 * 7 % 30_000;
            handles.push(queue.insert(epoch + Duration::from_millis(ms + 1), PAYLOAD));
        }
        let queue_bytes = used() - handle_bytes;
        // An entry in the page table takes 32 bytes, and the table doubles as it grows.
        let page_table_bytes = count / 4;
        assert!(
            queue_bytes <= 48 * count + page_table_bytes + PAGE_BYTES + TABLES_BYTES,
            "{queue_bytes} bytes for {count} timers"
        );
    }
    for handle in handles {
        queue.cancel(handle);
    }
    assert!(used() > 390 * PAGE_BYTES, "no page leaves but from a poll");
    let mut expired = Vec::new();
    for second in 0..60 {
        queue.expire(epoch + Duration::from_secs(second), 256, &mut expired);
    }
    assert!(
        used() <= PAGE_BYTES + TABLES_BYTES,
        "{} bytes are kept",
        used()
    );
}

/// An executor that goes idle polls no more than it is asked to; what a peak has left goes back all
/// the same.
macro_rules! gives_back_while_idle {
    ($queue:ident, $survivors:expr) => {{
        const PEAK: usize = 100_000;
        let epoch = Instant::now();
        let before = Allocations::of_this_thread();
        let mut queue = $queue::<Payload>::new(epoch);
        let used = || Allocations::of_this_thread().since(before).bytes;
        // Some fire and most are cancelled, after which nothing happens for an hour.
        let handles: Vec<_> = (0..PEAK)
            .map(|n| queue.insert(epoch + Duration::from_secs(3600 * (n % 10) as u64), PAYLOAD))
            .collect();
        let mut expired = Vec::new();
        while queue.expire(epoch, 256, &mut expired) {}
        assert_eq!(expired.len(), PEAK / 10);
        drop(expired);
        for handle in handles.into_iter().skip($survivors) {
            queue.cancel(handle);
        }
        let left = queue.len();
        assert!(used() > PEAK * 20);
        let mut polls = 0;
        let mut now = epoch;
        while let Some(at) = queue.next_upkeep() {
            now = now.max(at);
            assert!(!queue.expire(now, 256, &mut Vec::new()));
            polls += 1;
            assert!(polls < 200, "{polls} polls of an idle executor");
        }
        assert!(now < epoch + Duration::from_secs(20));
        assert!(
            used() <= 64 * 1024 + 200 * left,
            "{} bytes are kept for {left} timers",
            used()
        );
        assert_eq!(queue.len(), left);
    }};
}

#[test]
fn a_peak_is_given_back_by_an_executor_that_sleeps() {
    for survivors in [0, 100, 5_000] {
        gives_back_while_idle!(ClassicQueue, survivors);
        gives_back_while_idle!(StagedWheel, survivors);
    }
}

/// What a crowd took that was made ready goes back, too, if all of it is put off before it is due.
#[test]
fn the_keys_of_a_crowd_that_was_put_off_are_given_back() {
    const CROWD: u64 = 50_000;
    let epoch = Instant::now();
    let due = epoch + Duration::from_secs(2);
    let before = Allocations::of_this_thread();
    let used = || Allocations::of_this_thread().since(before).bytes;
    let mut queue = StagedWheel::<Payload>::new(epoch);
    let nth = |n: u64| due + Duration::from_nanos(n * 7_919 % CROWD);
    let crowd: Vec<_> = (0..CROWD).map(|n| queue.insert(nth(n), PAYLOAD)).collect();
    let armed = used();
    let mut now = epoch;
    while let Some(at) = queue.next_upkeep().filter(|&at| at < due) {
        now = now.max(at);
        queue.expire(now, 256, &mut Vec::new());
    }
    assert!(now < due && used() > armed + 16 * CROWD as usize);
    for handle in crowd {
        assert!(queue.rearm(handle, epoch + Duration::from_secs(86_400)));
    }
    let mut polls = 0;
    while let Some(at) = queue
        .next_upkeep()
        .filter(|&at| at < now + Duration::from_secs(3600))
    {
        now = now.max(at);
        queue.expire(now, 256, &mut Vec::new());
        polls += 1;
        assert!(polls < 200, "{polls} polls of an idle executor");
    }
    assert!(used() <= armed, "{} bytes more are kept", used() - armed);
}

/// A hash map that doubles in size moved all that it held: 4 MB for 100,000 timers.
#[test]
fn no_queue_grows_by_one_large_copy() {
    macro_rules! law {
        ($queue:ident) => {{
            let epoch = Instant::now();
            let mut queue = $queue::<Payload>::new(epoch);
            for n in 0..200_000 {
                let before = Allocations::of_this_thread();
                queue.insert(epoch + Duration::from_micros(n), PAYLOAD);
                let grown = Allocations::of_this_thread().since(before).bytes as isize;
                assert!(grown <= 128 * 1024, "{grown} bytes at {n} timers");
            }
        }};
    }
    law!(ClassicQueue);
    law!(StagedWheel);
}

#[test]
fn a_population_that_swings_calls_the_allocator_rarely() {
    let epoch = Instant::now();
    let mut queue = StagedWheel::<Payload>::new(epoch);
    let mut expired = Vec::with_capacity(20_000);
    let mut before = Allocations::of_this_thread();
    for second in 0..100 {
        let now = epoch + Duration::from_secs(second);
        for n in 0..20_000 {
            queue.insert(now + Duration::from_micros(n * 40), PAYLOAD);
        }
        for step in 0..=40 {
            let now = now + Duration::from_millis(step * 20);
            while queue.expire(now, 256, &mut expired) {}
            expired.clear();
        }
        assert!(queue.is_empty());
        if second == 10 {
            before = Allocations::of_this_thread();
        }
    }
    let used = Allocations::of_this_thread().since(before);
    assert!(used.calls <= 10, "{used:?}");
}
