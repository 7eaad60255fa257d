use super::*;

const MS: Duration = Duration::from_millis(1);

fn time(on_cpu: Duration, waits: libc::c_long) -> Option<ThreadTime> {
    Some(ThreadTime { on_cpu, waits })
}

fn begun() -> BatchGate {
    let gate = BatchGate::default();
    gate.begin(MS);
    gate
}

fn too_early() -> Option<ThreadTime> {
    unreachable!("it is too early for a look")
}

#[test]
fn a_batch_that_is_soon_worked_off_costs_no_system_call() {
    let gate = begun();
    assert!(gate.lasts(MS / 4 - Duration::from_nanos(1), MS, too_early));
}

#[test]
fn a_thread_without_a_cpu_is_waited_for() {
    let gate = begun();
    for second in 1..10 {
        let on_cpu = 5 * MS + MS / 10 * second;
        assert!(gate.lasts(second * 1000 * MS, MS, || time(on_cpu, 3)));
    }
    assert!(!gate.lasts(11_000 * MS, MS, || time(6 * MS + MS / 10, 3)));
    // A batch later, all begins anew.
    gate.begin(MS);
    assert!(gate.lasts(Duration::ZERO, MS, too_early));
    assert!(gate.lasts(MS, MS, || time(7 * MS, 3)));
    assert!(!gate.lasts(2 * MS, MS, || time(8 * MS, 3)));
}

#[test]
fn with_a_cpu_it_is_looked_at_twice() {
    let gate = begun();
    let (mut passed, mut looks) = (Duration::ZERO, 0);
    while gate.lasts(passed, MS, || {
        looks += 1;
        time(passed, 0)
    }) {
        passed += MS / 100;
    }
    assert_eq!((passed, looks), (MS + MS / 4, 2));
}

#[test]
fn a_thread_that_was_blocked_is_not_waited_for() {
    let gate = begun();
    assert!(gate.lasts(MS, MS, || time(MS, 3)));
    assert!(!gate.lasts(2 * MS, MS, || time(MS, 4)));
}

#[test]
fn where_the_time_is_not_told_the_clock_decides() {
    let gate = begun();
    assert!(gate.lasts(MS - Duration::from_nanos(1), MS, || None));
    assert!(!gate.lasts(MS, MS, || None));
}

#[test]
fn without_patience_nothing_waits() {
    let gate = begun();
    gate.begin(Duration::ZERO);
    assert!(!gate.lasts(Duration::ZERO, Duration::ZERO, too_early));
}
