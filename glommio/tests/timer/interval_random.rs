//! An interval whose ticks are given up at random, against what it may do next.

use glommio::future;
use glommio::timer::{Interval, MissedTickBehavior, interval};
use proptest::prelude::*;

use crate::common::prelude::*;
use crate::harness::hog;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// One poll, and the tick is given up if it is not there.
    Poll,
    /// A wait that is given up after so long.
    Race(Duration),
    Tick,
    Behave(MissedTickBehavior),
    Yield,
    Sleep(Duration),
    Hog(Duration),
}

fn micros(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_micros)
}

fn step() -> impl Strategy<Value = Step> {
    let behavior = prop_oneof![
        Just(MissedTickBehavior::Burst),
        Just(MissedTickBehavior::Delay),
        Just(MissedTickBehavior::Skip),
    ];
    prop_oneof![
        6 => Just(Step::Poll),
        6 => micros(0..600).prop_map(Step::Race),
        2 => Just(Step::Tick),
        2 => behavior.prop_map(Step::Behave),
        2 => Just(Step::Yield),
        2 => micros(0..300).prop_map(Step::Sleep),
        2 => micros(0..3_000).prop_map(Step::Hog),
    ]
}

/// The tick that was delivered last.
struct Last {
    scheduled: Instant,
    /// It was delivered between these.
    since: Instant,
    until: Instant,
    behavior: MissedTickBehavior,
}

/// As documented for `MissedTickBehavior::Delay`.
const LATE: Duration = Duration::from_millis(5);

impl Last {
    /// Checks that `next` may come next.
    fn allows(&self, next: Instant, period: Duration) {
        let Last {
            scheduled,
            since,
            until,
            behavior,
        } = *self;
        let is_regular = next == scheduled + period;
        let late = |at: Instant| at.saturating_duration_since(scheduled);
        let fits = match behavior {
            MissedTickBehavior::Burst => is_regular,
            MissedTickBehavior::Delay if is_regular => late(since) < period.min(LATE),
            MissedTickBehavior::Delay => {
                late(until) >= period.min(LATE) && (since + period..=until + period).contains(&next)
            }
            MissedTickBehavior::Skip => {
                let distance = next.saturating_duration_since(scheduled).as_nanos();
                distance > 0
                    && distance.is_multiple_of(period.as_nanos())
                    && next > since
                    && next <= until.max(scheduled) + period
            }
        };
        assert!(
            fits,
            "{behavior:?} every {period:?}: {:?} after the tick before, which was delivered {:?} to {:?} late",
            next.saturating_duration_since(scheduled),
            late(since),
            late(until)
        );
    }
}

async fn follow(ticks: &mut Interval, step: Step) -> Option<Instant> {
    match step {
        Step::Poll => poll_once(ticks.tick()).await,
        Step::Race(limit) => future::timeout(limit, ticks.tick()).await.ok(),
        Step::Tick => Some(ticks.tick().await),
        Step::Behave(behavior) => {
            ticks.set_missed_tick_behavior(behavior);
            None
        }
        Step::Yield => {
            executor().yield_now().await;
            None
        }
        Step::Sleep(time) => {
            sleep(time).await;
            None
        }
        Step::Hog(time) => {
            hog(time);
            None
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// No tick is lost by a wait that is given up, none comes twice and none is early.
    #[test]
    fn no_tick_is_lost(
        steps in prop::collection::vec(step(), 0..150),
        period in prop_oneof![9 => micros(50..2_000), 1 => Just(Duration::from_millis(6))],
    ) {
        run(async move {
            let mut ticks = interval(period);
            let mut last: Option<Last> = None;
            for step in steps {
                let behavior = ticks.missed_tick_behavior();
                let since = Instant::now();
                let Some(tick) = follow(&mut ticks, step).await else {
                    continue;
                };
                let until = Instant::now();
                assert!(until >= tick, "early");
                if let Some(last) = &last {
                    last.allows(tick, period);
                }
                last = Some(Last { scheduled: tick, since, until, behavior });
            }
        });
    }
}
