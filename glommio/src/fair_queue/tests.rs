use proptest::prelude::*;

use super::*;

/// Lets members that always want to run do so for `total`, each turn of the length its own.
fn contend(members: &[(usize, Duration)], total: Duration) -> Vec<Duration> {
    let mut queue = FairQueue::new();
    let mut virtual_runtimes = vec![VirtualRuntime::default(); members.len()];
    let mut ran = vec![Duration::ZERO; members.len()];
    for (member, before) in virtual_runtimes.iter().enumerate() {
        queue.join(member, *before);
    }
    let mut clock = Duration::ZERO;
    while clock < total {
        let member = queue.take().expect("all members wait or run");
        let (weight, turn) = members[member];
        clock += turn;
        ran[member] += turn;
        virtual_runtimes[member] = virtual_runtimes[member].after_turn(turn, weight);
        queue.put_back(member, virtual_runtimes[member], false);
    }
    ran
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However long it takes, no two members are further apart than a turn of each, by weight.
    #[test]
    fn time_is_shared_by_weight(
        members in prop::collection::vec((5usize..=1000, 100u64..5000), 2..6),
        total_ms in 1u64..60_000,
    ) {
        let members: Vec<_> = members
            .into_iter()
            .map(|(weight, turn_us)| (weight, Duration::from_micros(turn_us)))
            .collect();
        let ran = contend(&members, Duration::from_millis(total_ms));
        let by_weight = |time: Duration, weight: usize| time.as_secs_f64() / weight as f64;
        for (&(weight, turn), &time) in members.iter().zip(&ran) {
            for (&(other_weight, other_turn), &other_time) in members.iter().zip(&ran) {
                let apart = by_weight(time, weight) - by_weight(other_time, other_weight);
                let bound = by_weight(turn, weight) + by_weight(other_turn, other_weight);
                // A nanosecond is lost to rounding in each turn.
                prop_assert!(apart <= bound * 1.001, "{apart} s at weight 1, at most {bound}");
            }
        }
    }
}

#[test]
fn a_member_that_was_away_goes_before_one_that_ran_alone() {
    let mut queue = FairQueue::new();
    let alone = queue.join("alone", VirtualRuntime::default());
    assert_eq!(queue.take(), Some("alone"));
    // No other waited, so the turn was not charged.
    queue.put_back("alone", alone, true);
    queue.join("woken", VirtualRuntime::default());
    queue.join("woken later", VirtualRuntime::default());
    assert_eq!(queue.take(), Some("woken"));
    queue.put_back("woken", alone.after_turn(Duration::ZERO, 1000), false);
    assert_eq!(queue.take(), Some("woken later"));
    assert_eq!(queue.take(), Some("alone"), "it is not passed over again");
}

#[test]
fn a_member_that_yields_at_once_does_not_keep_the_others_waiting() {
    let mut queue = FairQueue::new();
    let yielding = queue.join("yielding", VirtualRuntime::default());
    queue.join("other", VirtualRuntime::default());
    assert_eq!(queue.take(), Some("yielding"));
    queue.put_back("yielding", yielding.after_turn(Duration::ZERO, 1000), false);
    assert_eq!(queue.take(), Some("other"));
}

/// A member of weight 1 that had a long turn next to a busy one, and left.
fn in_debt() -> (FairQueue<&'static str>, VirtualRuntime) {
    let mut queue = FairQueue::new();
    let busy = queue.join("busy", VirtualRuntime::default());
    let light = queue.join("light", VirtualRuntime::default());
    assert_eq!(queue.take(), Some("busy"));
    queue.put_back(
        "busy",
        busy.after_turn(Duration::from_millis(1), 1000),
        false,
    );
    assert_eq!(queue.take(), Some("light"));
    let light = light.after_turn(Duration::from_millis(10), 1);
    queue.leave(light);
    assert!(queue.is_ahead(light));
    (queue, light)
}

#[test]
fn absence_is_no_loss() {
    let (mut queue, light) = in_debt();
    assert_eq!(light, VirtualRuntime(1_000_000_000), "not ten seconds");
    let early = light.after_absence(Duration::from_millis(200));
    assert_eq!(
        queue.join("light", early),
        early,
        "a fifth of the second is forgiven"
    );
    assert_eq!(queue.take(), Some("busy"));
    let (mut queue, light) = in_debt();
    let late = light.after_absence(Duration::from_secs(60));
    assert!(!queue.is_ahead(late));
    assert!(
        queue.join("light", late) <= VirtualRuntime(1_000_000),
        "level with the busy one"
    );
}

#[test]
fn a_member_waits_for_a_second_of_the_others_at_most() {
    let (mut queue, light) = in_debt();
    queue.join("light", light);
    let mut busy = VirtualRuntime(1_000_000);
    let mut waited = Duration::ZERO;
    while queue.take() == Some("busy") {
        let turn = Duration::from_millis(1);
        waited += turn;
        busy = busy.after_turn(turn, 1000);
        queue.put_back("busy", busy, false);
    }
    assert!(waited <= Duration::from_secs(1), "{waited:?}");
}

#[test]
fn members_that_come_and_go_do_not_keep_another_waiting() {
    const TURN: Duration = Duration::from_millis(2);
    for members in [2, 50] {
        let (mut queue, light) = in_debt();
        assert_eq!(queue.take(), Some("busy"));
        queue.put_back("light", light, false);
        let mut waited = Duration::ZERO;
        let mut virtual_runtimes = vec![VirtualRuntime::default(); members];
        for member in (0..members).cycle() {
            let it = &mut virtual_runtimes[member];
            *it = queue.join("one of many", *it);
            if queue.take() == Some("light") {
                break;
            }
            *it = it.after_turn(TURN, 1000);
            queue.leave(*it);
            waited += TURN;
        }
        let turns = TURN * members as u32;
        assert!(waited <= Duration::from_secs(1) + turns, "{waited:?}");
    }
}

#[test]
fn when_no_member_is_runnable_all_is_forgiven() {
    let (mut queue, light) = in_debt();
    assert_eq!(queue.take(), Some("busy"));
    queue.leave(VirtualRuntime(2_000_000));
    queue.settle_up();
    assert!(!queue.is_ahead(light));
    assert_eq!(queue.join("busy", VirtualRuntime(2_000_000)), light);
    assert_eq!(queue.join("light", light), light);
}

#[test]
fn absence_earns_no_credit() {
    let mut queue = FairQueue::new();
    let mut busy = queue.join("busy", VirtualRuntime::default());
    for _ in 0..100 {
        queue.take();
        busy = busy.after_turn(Duration::from_secs(1), 1000);
        queue.put_back("busy", busy, false);
    }
    let mut newcomer = queue.join("newcomer", VirtualRuntime::default());
    let mut turns = 0;
    while queue.take() == Some("newcomer") {
        newcomer = newcomer.after_turn(Duration::from_secs(1), 1000);
        queue.put_back("newcomer", newcomer, false);
        turns += 1;
    }
    assert!(turns <= 2, "the newcomer ran {turns} turns in a row");
}
