use std::sync::Mutex;

use super::*;

/// What one audit has added. Others of this process find nothing.
fn found(act: impl FnOnce(&mut Audit)) -> [u64; 6] {
    let kinds = |counts: Counts| {
        [
            counts.early,
            counts.unordered,
            counts.unmatched_wakes,
            counts.unannounced,
            counts.left_behind,
            counts.too_long,
        ]
    };
    let before = kinds(counts());
    act(&mut Audit::default());
    let after = kinds(counts());
    std::array::from_fn(|index| after[index] - before[index])
}

const MS: Duration = Duration::from_millis(1);

/// The counts are those of the process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn each_broken_promise_is_counted() {
    let _alone = ALONE.lock();
    let now = Instant::now();
    let pass = |audit: &mut Audit, deadlines: &[Instant], has_more, next| {
        audit.passed((now, now), deadlines, has_more, next);
        deadlines.iter().for_each(|_| audit.waking());
    };
    let well = |audit: &mut Audit| {
        audit.announced(Some(now));
        audit.armed(now - MS);
        pass(audit, &[now - MS, now, now], false, Some(now + MS));
        pass(audit, &[], true, Some(now));
    };
    assert_eq!(found(well), [0, 0, 0, 0, 0, 0]);
    assert_eq!(
        found(|it| pass(it, &[now + MS], false, None)),
        [1, 0, 0, 0, 0, 0]
    );
    let unordered = [now, now - MS];
    assert_eq!(
        found(|it| pass(it, &unordered, false, None)),
        [0, 1, 0, 0, 0, 0]
    );
    assert_eq!(found(Audit::waking), [0, 0, 1, 0, 0, 0]);
    let unwoken = |audit: &mut Audit| {
        audit.passed((now, now), &[now], false, None);
        pass(audit, &[], false, None);
    };
    assert_eq!(found(unwoken), [0, 0, 1, 0, 0, 0]);
    let unannounced = |audit: &mut Audit| {
        audit.announced(None);
        pass(audit, &[now], false, None);
    };
    assert_eq!(found(unannounced), [0, 0, 0, 1, 0, 0]);
    assert_eq!(
        found(|it| pass(it, &[], false, Some(now))),
        [0, 0, 0, 0, 1, 0]
    );
    assert_eq!(found(|it| it.lasts_until(now, now)), [0; 6]);
    let too_long = |audit: &mut Audit| audit.lasts_until(now + MS, now);
    assert_eq!(found(too_long), [0, 0, 0, 0, 0, 1]);
}

#[test]
fn a_timer_that_a_pass_has_left_is_found() {
    let _alone = ALONE.lock();
    let now = Instant::now();
    let left = |act: &dyn Fn(&mut Audit)| found(act)[4];
    let pass = |audit: &mut Audit, has_more| audit.passed((now, now), &[], has_more, None);
    // Due, but set after the pass: the next one hands it out.
    let late = |audit: &mut Audit| {
        pass(audit, false);
        let passes = audit.armed(now - MS);
        audit.found(now - MS, passes);
    };
    assert_eq!(left(&late), 0);
    let behind = |deadline, has_more| {
        move |audit: &mut Audit| {
            let passes = audit.armed(deadline);
            pass(audit, has_more);
            audit.found(deadline, passes);
        }
    };
    assert_eq!(left(&behind(now, true)), 0);
    assert_eq!(left(&behind(now + MS, false)), 0);
    assert_eq!(left(&behind(now, false)), 1);
}
