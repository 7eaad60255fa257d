//! The controller, with time by hand.

use std::future::pending;

use super::*;

/// Work that is as far as it is set.
struct Fake {
    expected: Cell<Duration>,
    total: Cell<u64>,
    processed: Cell<u64>,
    /// Called whenever the total is asked for.
    hook: RefCell<Option<Box<dyn Fn()>>>,
}

impl DeadlineSource for Fake {
    type Output = ();

    fn expected_duration(&self) -> Duration {
        self.expected.get()
    }

    fn action(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()> + 'static>> {
        Box::pin(pending())
    }

    fn total_units(&self) -> u64 {
        if let Some(hook) = &*self.hook.borrow() {
            hook();
        }
        self.total.get()
    }

    fn processed_units(&self) -> u64 {
        self.processed.get()
    }
}

fn fake(expected: Duration, total: u64) -> Rc<Fake> {
    Rc::new(Fake {
        expected: Cell::new(expected),
        total: Cell::new(total),
        processed: Cell::new(0),
        hook: RefCell::new(None),
    })
}

fn controller() -> Rc<Controller<()>> {
    Rc::new(Controller {
        adjustment_period: MS,
        items: RefCell::new(Slab::new()),
        law: Cell::new(Law::START),
        bumps: Cell::new(0),
        static_shares: Cell::new(None),
    })
}

/// Pushes `source` at `now`.
fn push(controller: &Rc<Controller<()>>, source: &Rc<Fake>, now: Instant) -> Entry<()> {
    let deadline = now + source.expected.get();
    let source = Rc::clone(source) as Source<()>;
    Entry::new(controller, Item { source, deadline })
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn without_progress_the_shares_rise() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let _entry = push(&controller, &source, start);
    let mut last = 0;
    for elapsed in 0..900 {
        last = controller.shares_at(start + MS * elapsed);
    }
    assert!(last > 800, "{last}");
}

#[test]
fn with_far_too_much_progress_they_fall_to_the_least() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let _entry = push(&controller, &source, start);
    for elapsed in 0..100 {
        controller.shares_at(start + MS * elapsed);
    }
    source.processed.set(1_000_000);
    assert_eq!(controller.shares_at(start + MS * 101), 1);
    assert_eq!(controller.shares_at(start + MS * 102), 1);
}

#[test]
fn with_smooth_progress_they_change_smoothly() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let _entry = push(&controller, &source, start);
    let mut before = None;
    for elapsed in 1..1000 {
        source.processed.set(u64::from(elapsed));
        let shares = controller.shares_at(start + MS * elapsed);
        if elapsed % 50 == 0 {
            let change = before
                .replace(shares)
                .map_or(0, |it: usize| it.abs_diff(shares));
            assert!(change < 200, "{change} at {elapsed} ms");
        }
    }
}

/// Beside work that takes all it can get, the work progresses by its share of the CPU. Alone it
/// would need a quarter of its time.
#[test]
fn it_converges_to_what_is_needed() {
    let (controller, start) = (controller(), Instant::now());
    let source = fake(10 * SECOND, 4_000_000);
    let _entry = push(&controller, &source, start);
    let period = MS * 250;
    let mut done = 0.0;
    let mut last = Vec::new();
    for round in 0..40 {
        let shares = controller.shares_at(start + period * round) as f64;
        done += shares / (shares + 1000.0) * 16_000_000.0 * period.as_secs_f64() / 10.0;
        source.processed.set(done as u64);
        last.push(shares);
    }
    let late = &last[20..];
    // A quarter of the CPU, as a third of the shares of the other: 333.
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!((250.0..420.0).contains(&mean), "{last:?}");
    assert!(done >= 3_900_000.0, "{done}");
}

#[test]
fn a_second_item_raises_them() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let _entry = push(&controller, &source, start);
    let mut alone = 0;
    for elapsed in 1..500 {
        source.processed.set(u64::from(elapsed));
        alone = controller.shares_at(start + MS * elapsed);
    }
    let large = fake(SECOND, 100_000);
    let _second = push(&controller, &large, start + MS * 500);
    let mut both = 0;
    for elapsed in 500..600 {
        source.processed.set(u64::from(elapsed));
        both = controller.shares_at(start + MS * elapsed);
    }
    assert!(both > alone + 300, "{alone} and then {both}");
}

#[test]
fn an_item_that_is_gone_counts_no_more() {
    let (controller, start) = (controller(), Instant::now());
    let (first, second) = (fake(SECOND, 1000), fake(SECOND, 1000));
    let entries = [
        push(&controller, &first, start),
        push(&controller, &second, start),
    ];
    let [gone, _kept] = entries;
    drop(gone);
    assert_eq!(Rc::strong_count(&first), 1);
    second.processed.set(500);
    controller.shares_at(start + MS * 500);
    assert_eq!(
        controller.law.get().error,
        0.0,
        "the other is where it should be"
    );
}

#[test]
fn an_item_that_is_six_seconds_late_gets_everything() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let _entry = push(&controller, &source, start);
    source.processed.set(1000);
    let due = start + SECOND;
    assert!(controller.shares_at(due + MS * 5999) < 1000);
    let error = controller.law.get().error;
    assert_eq!(controller.shares_at(due + MS * 6000), 1000);
    assert_eq!(controller.law.get().error, error, "only the shares change");
}

/// In 0.9 a division by zero keeps the shares at the least forever.
#[test]
fn an_expected_duration_of_zero_divides_nothing_by_zero() {
    let (controller, start) = (controller(), Instant::now());
    let hasty = fake(Duration::ZERO, 1000);
    let entry = push(&controller, &hasty, start);
    let shares = controller.shares_at(start);
    assert!(shares > 900, "all should be done by now: {shares}");
    drop(entry);
    assert!(controller.law.get().error.is_finite());
    let source = fake(SECOND, 1000);
    let _entry = push(&controller, &source, start);
    source.processed.set(1000);
    assert!(
        controller.shares_at(start + MS * 100) < shares,
        "the controller goes on"
    );
}

#[test]
fn too_little_to_go_by_changes_nothing() {
    let (controller, start) = (controller(), Instant::now());
    assert_eq!(controller.shares_at(start), 1, "nothing was pushed");
    let empty = fake(SECOND, 0);
    empty.processed.set(u64::MAX);
    let entry = push(&controller, &empty, start);
    assert_eq!(controller.shares_at(start + MS * 900), 1);
    drop(entry);
    controller.law.set(Law {
        error: 0.5,
        shares: 77.0,
    });
    assert_eq!(controller.shares_at(start + SECOND), 77);
    assert_eq!(controller.law.get().error, 0.5);
}

#[test]
fn a_duration_that_shrinks_while_it_runs_is_no_negative_time() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let _entry = push(&controller, &source, start);
    source.expected.set(MS);
    assert_eq!(
        controller.shares_at(start),
        1,
        "none of its time has gone by"
    );
}

#[test]
fn while_it_is_disabled_it_stands_still() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let _entry = push(&controller, &source, start);
    let before = controller.shares_at(start + MS * 100);
    controller.static_shares.set(Some(7));
    assert_eq!(controller.shares_at(start + MS * 200), 7);
    controller.bumps.set(1);
    assert_eq!(
        controller.shares_at(start + MS * 200),
        7,
        "a bump has no effect"
    );
    controller.bumps.set(0);
    assert_eq!(controller.law.get().shares, before as f64);
}

#[test]
fn sources_may_change_the_accounting_while_they_are_asked() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let entry = Rc::new(Cell::new(Some(push(&controller, &source, start))));
    let others = Rc::new(RefCell::new(Vec::new()));
    source.hook.replace(Some(Box::new({
        let (controller, others) = (Rc::clone(&controller), Rc::clone(&others));
        move || {
            drop(entry.take());
            let other = push(&controller, &fake(SECOND, 1), start);
            others.borrow_mut().push(other);
        }
    })));
    controller.shares_at(start + MS * 500);
    assert_eq!(controller.items.borrow().len(), 1);
    others.take();
}

/// In 0.9 it evaluates the law, and so changes its state.
#[test]
fn printing_asks_no_source_and_changes_nothing() {
    let (controller, start, source) = (controller(), Instant::now(), fake(SECOND, 1000));
    let _entry = push(&controller, &source, start);
    source
        .hook
        .replace(Some(Box::new(|| panic!("it was asked"))));
    assert!(format!("{controller:?}").contains("items: 1"));
    assert_eq!(controller.law.get().shares, 1.0);
}
