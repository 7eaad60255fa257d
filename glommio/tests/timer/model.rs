//! Timers made, moved and dropped at random, across the threshold between the two stages and back,
//! against what the law says: each fires once, in order of deadline and then of arming.

use crate::common::prelude::*;
use crate::harness::{HOUR, ms, poll, until};

/// Live timers by number, and what has fired.
#[derive(Default)]
struct Model {
    timers: RefCell<Vec<Option<Armed>>>,
    live: RefCell<BTreeSet<usize>>,
    /// Deadline and arming of each timer that fired, in the order of the wakes.
    fired: RefCell<Vec<(Instant, u64)>>,
    armings: RefCell<u64>,
}

struct Armed {
    timer: Timer,
    arming: u64,
}

impl Model {
    fn next_arming(&self) -> u64 {
        let mut armings = self.armings.borrow_mut();
        *armings += 1;
        *armings
    }

    fn arm(self: &Rc<Self>, wait: Duration) {
        let n = self.timers.borrow().len();
        let model = Rc::downgrade(self);
        let waker = on_wake(move || {
            if let Some(model) = model.upgrade() {
                model.fire(n);
            }
        });
        let mut timer = Timer::new(wait);
        if poll(&mut timer, &waker).is_pending() {
            let arming = self.next_arming();
            self.timers.borrow_mut().push(Some(Armed { timer, arming }));
            self.live.borrow_mut().insert(n);
        }
    }

    fn fire(&self, n: usize) {
        assert!(
            self.live.borrow_mut().remove(&n),
            "fired twice, or after its drop"
        );
        let armed = self.timers.borrow_mut()[n].take();
        let mut armed = armed.expect("live timers are there");
        match poll(&mut armed.timer, Waker::noop()) {
            Poll::Ready(deadline) => {
                assert!(deadline <= Instant::now());
                self.fired.borrow_mut().push((deadline, armed.arming));
            }
            Poll::Pending => panic!("woken before its deadline"),
        }
    }

    fn any_live(&self, numbers: &mut Numbers) -> Option<usize> {
        let live = self.live.borrow();
        let last = *live.last()?;
        let start = numbers.below(last as u64 + 1) as usize;
        live.range(start..).next().copied()
    }

    fn reset(&self, n: usize, wait: Duration) {
        let arming = self.next_arming();
        let mut timers = self.timers.borrow_mut();
        let armed = timers[n].as_mut().expect("live timers are there");
        armed.timer.reset(wait);
        armed.arming = arming;
    }

    fn drop_one(&self, n: usize) {
        self.live.borrow_mut().remove(&n);
        let armed = self.timers.borrow_mut()[n].take();
        drop(armed);
    }

    fn population(&self) -> usize {
        self.live.borrow().len()
    }
}

fn some_wait(numbers: &mut Numbers) -> Duration {
    match numbers.below(10) {
        0 => Duration::from_nanos(numbers.below(2000)),
        1..4 => Duration::from_micros(numbers.below(3000)),
        4..7 => Duration::from_micros(numbers.below(70_000)),
        7 => ms(numbers.below(400)),
        8 => HOUR + ms(numbers.below(100_000)),
        _ => Duration::from_secs(numbers.below(1 << 33)) + ms(200),
    }
}

/// Up to `peak` timers, then down to none.
async fn rise_and_fall(model: &Rc<Model>, numbers: &mut Numbers, peak: usize) {
    while model.population() < peak {
        model.arm(some_wait(numbers));
        disturb(model, numbers, 12).await;
    }
    while let Some(n) = model.any_live(numbers) {
        match numbers.below(3) {
            0 => model.drop_one(n),
            1 => model.reset(n, Duration::from_micros(numbers.below(500))),
            _ => {}
        }
        disturb(model, numbers, 6).await;
    }
}

/// Resets or drops a timer, or lets the executor have a look, once in a while.
async fn disturb(model: &Rc<Model>, numbers: &mut Numbers, seldom: u64) {
    match numbers.below(seldom) {
        0 => {
            if let Some(n) = model.any_live(numbers) {
                model.reset(n, some_wait(numbers));
            }
        }
        1 => {
            if let Some(n) = model.any_live(numbers) {
                model.drop_one(n);
            }
        }
        2 => executor().yield_now().await,
        3 if numbers.below(50) == 0 => sleep(Duration::from_micros(numbers.below(3000))).await,
        _ => {}
    }
}

#[test]
fn up_and_down_across_the_threshold() {
    for seed in 1..=6 {
        run(async move {
            let mut numbers = Numbers::new(seed);
            let model = Rc::new(Model::default());
            for peak in [1000, 20, 257, 256, 255, 3000, 1, 1000] {
                rise_and_fall(&model, &mut numbers, peak).await;
                let fired = model.fired.take();
                assert!(fired.is_sorted(), "seed {seed}, peak {peak}: out of order");
            }
        });
    }
}

/// Many small crowds and one large one, never empty in between: the queue stays in one stage.
#[test]
fn a_crowd_that_comes_and_goes_beside_one_that_stays() {
    for stays in [1, 255, 256, 1000] {
        run(async move {
            let mut numbers = Numbers::new(stays);
            let (residents, model) = (Rc::new(Model::default()), Rc::new(Model::default()));
            for n in 0..stays {
                residents.arm(HOUR + ms(n));
            }
            for peak in [10, 700, 3, 300] {
                rise_and_fall(&model, &mut numbers, peak).await;
                assert!(model.fired.take().is_sorted());
            }
            assert_eq!(residents.population() as u64, stays);
            for n in 0..stays {
                residents.reset(n as usize, Duration::ZERO);
            }
            until(|| residents.population() == 0).await;
            let armings: Vec<_> = residents.fired.take().iter().map(|it| it.1).collect();
            assert!(armings.is_sorted(), "all were reset in turn");
        });
    }
}

/// Each population around the threshold, due at one go in an order that is not that of creation.
#[run_test]
async fn every_population_around_the_threshold_fires_in_order() {
    for count in (1..8).chain(248..264).chain([511, 512, 513]) {
        let log = Log::default();
        let mut timers: Vec<_> = (0..count).map(|_| Timer::new(HOUR)).collect();
        for (n, timer) in timers.iter_mut().enumerate() {
            let log = log.clone();
            assert!(poll(timer, &on_wake(move || log.push(n))).is_pending());
        }
        let order: Vec<_> = (0..count).map(|n| n * 7919 % count).collect();
        for &n in &order {
            timers[n].reset(Duration::ZERO);
        }
        until(|| log.len() == count).await;
        assert_eq!(log.entries(), order);
    }
}

/// The threshold is crossed while timers are due and wait for their pass.
#[run_test]
async fn crossing_the_threshold_with_timers_due() {
    for (before, after) in [(100, 400), (255, 2), (250, 1000), (256, 256)] {
        let log = Log::default();
        let arm = |n: usize| {
            let log = log.clone();
            let mut timer = Timer::new(HOUR);
            assert!(poll(&mut timer, &on_wake(move || log.push(n))).is_pending());
            timer
        };
        let mut timers: Vec<_> = (0..before).map(arm).collect();
        for timer in &mut timers {
            timer.reset(Duration::ZERO);
        }
        timers.extend((before..before + after).map(arm));
        for timer in &mut timers[before..] {
            timer.reset(Duration::ZERO);
        }
        until(|| log.len() == before + after).await;
        assert_eq!(log.entries(), (0..before + after).collect::<Vec<_>>());
    }
}
