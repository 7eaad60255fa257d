use super::*;

const MS: Duration = Duration::from_millis(1);

fn time(on_cpu: Duration, waits: libc::c_long) -> Option<ThreadTime> {
    Some(ThreadTime { on_cpu, waits })
}

fn begun() -> BatchGate {
    let patience = BatchGate::default();
    patience.begin(MS);
    patience
}

fn too_early() -> Option<ThreadTime> {
    unreachable!("it is too early for a look")
}

#[test]
fn a_batch_that_is_soon_worked_off_costs_no_system_call() {
    let patience = begun();
    assert!(patience.lasts(MS / 4 - Duration::from_nanos(1), MS, too_early));
}

#[test]
fn a_thread_without_a_cpu_is_waited_for() {
    let patience = begun();
    for second in 1..10 {
        let on_cpu = 5 * MS + MS / 10 * second;
        assert!(patience.lasts(second * 1000 * MS, MS, || time(on_cpu, 3)));
    }
    assert!(!patience.lasts(11_000 * MS, MS, || time(6 * MS + MS / 10, 3)));
    // A batch later, all begins anew.
    patience.begin(MS);
    assert!(patience.lasts(Duration::ZERO, MS, too_early));
    assert!(patience.lasts(MS, MS, || time(7 * MS, 3)));
    assert!(!patience.lasts(2 * MS, MS, || time(8 * MS, 3)));
}

#[test]
fn with_a_cpu_it_is_looked_at_twice() {
    let patience = begun();
    let (mut passed, mut looks) = (Duration::ZERO, 0);
    while patience.lasts(passed, MS, || {
        looks += 1;
        time(passed, 0)
    }) {
        passed += MS / 100;
    }
    assert_eq!((passed, looks), (MS + MS / 4, 2));
}

#[test]
fn a_thread_that_was_blocked_is_not_waited_for() {
    let patience = begun();
    assert!(patience.lasts(MS, MS, || time(MS, 3)));
    assert!(!patience.lasts(2 * MS, MS, || time(MS, 4)));
}

#[test]
fn where_the_time_is_not_told_the_clock_decides() {
    let patience = begun();
    assert!(patience.lasts(MS - Duration::from_nanos(1), MS, || None));
    assert!(!patience.lasts(MS, MS, || None));
}

#[test]
fn without_patience_nothing_waits() {
    let patience = begun();
    patience.begin(Duration::ZERO);
    assert!(!patience.lasts(Duration::ZERO, Duration::ZERO, too_early));
}
