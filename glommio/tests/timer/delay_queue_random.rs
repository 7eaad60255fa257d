//! `DelayQueue` under random inserts, resets, removals and waits that are given up, against a
//! sorted map.

use glommio::timer::DelayQueue;
use glommio::timer::delay_queue::{Expired, Key};
use proptest::prelude::*;

use crate::common::prelude::*;
use crate::harness::{HOUR, hog};

#[derive(Clone, Debug)]
enum Step {
    Insert(Duration),
    /// Into the past.
    InsertLate(Duration),
    Reset(usize, Duration),
    Remove(usize),
    /// One poll for the next item, given up if there is none.
    Poll,
    Yield,
    Hog(Duration),
    Sleep(Duration),
    Clear,
}

fn wait() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (0..300_u64).prop_map(Duration::from_micros),
        2 => (0..2000_u64).prop_map(Duration::from_nanos),
        1 => Just(HOUR),
        1 => Just(Duration::MAX),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => wait().prop_map(Step::Insert),
        2 => (0..5000_u64).prop_map(|ns| Step::InsertLate(Duration::from_nanos(ns))),
        6 => (any::<usize>(), wait()).prop_map(|(n, wait)| Step::Reset(n, wait)),
        8 => any::<usize>().prop_map(Step::Remove),
        12 => Just(Step::Poll),
        3 => Just(Step::Yield),
        2 => (0..200_u64).prop_map(|us| Step::Hog(Duration::from_micros(us))),
        1 => (0..500_u64).prop_map(|us| Step::Sleep(Duration::from_micros(us))),
        1 => Just(Step::Clear),
    ]
}

/// What the queue should hold.
#[derive(Default)]
struct Model {
    /// By number of the item.
    items: BTreeMap<u64, Known>,
    armings: u64,
    numbers: u64,
    /// The item that came out last.
    last: Option<Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    key: Key,
    deadline: Instant,
    /// How many items were inserted or reset before this was.
    arming: u64,
    armed_at: Instant,
}

impl Model {
    fn arm(&mut self, queue: &DelayQueue<u64>, number: u64, key: Key) {
        self.armings += 1;
        let known = Known {
            key,
            deadline: queue.deadline(key).expect("it was just armed"),
            arming: self.armings,
            armed_at: Instant::now(),
        };
        self.items.insert(number, known);
    }

    fn any(&self, n: usize) -> Option<u64> {
        let count = self.items.len().max(1);
        self.items.keys().nth(n % count).copied()
    }

    fn came(&mut self, expired: &Expired<u64>) {
        let known = self.items.remove(expired.get_ref());
        let known = known.expect("it was there, and comes once");
        assert_eq!(
            (known.key, known.deadline),
            (expired.key(), expired.deadline())
        );
        assert!(known.deadline <= Instant::now(), "early");
        if let Some(last) = self.last {
            // The only way to come behind a later deadline is to be armed when that had passed.
            assert!(
                (last.deadline, last.arming) < (known.deadline, known.arming)
                    || known.armed_at >= last.deadline,
                "out of order: {last:?} before {known:?}"
            );
        }
        self.last = Some(known);
    }

    async fn follow(&mut self, queue: &DelayQueue<u64>, step: Step) {
        match step {
            Step::Insert(wait) => {
                let number = self.numbers;
                self.numbers += 1;
                let key = queue.insert(number, wait);
                self.arm(queue, number, key);
            }
            Step::InsertLate(by) => {
                let number = self.numbers;
                self.numbers += 1;
                let now = Instant::now();
                let key = queue.insert_at(number, now.checked_sub(by).unwrap_or(now));
                self.arm(queue, number, key);
            }
            Step::Reset(n, wait) => {
                if let Some(number) = self.any(n) {
                    let key = self.items[&number].key;
                    assert!(queue.reset(key, wait));
                    self.arm(queue, number, key);
                }
            }
            Step::Remove(n) => {
                if let Some(number) = self.any(n) {
                    let known = self.items.remove(&number).expect("it is there");
                    assert_eq!(queue.remove(known.key), Some(number));
                    assert_eq!(queue.remove(known.key), None);
                    assert!(!queue.reset(known.key, HOUR));
                }
            }
            Step::Poll => {
                if let Some(expired) = poll_once(queue.next_expired()).await {
                    self.came(&expired);
                }
            }
            Step::Yield => executor().yield_now().await,
            Step::Hog(time) => hog(time),
            Step::Sleep(time) => sleep(time).await,
            Step::Clear => {
                queue.clear();
                self.items.clear();
            }
        }
        assert_eq!(queue.len(), self.items.len());
    }

    /// All that are due before long come.
    async fn finish(&mut self, queue: &DelayQueue<u64>) {
        let soon = Instant::now() + HOUR / 2;
        while self.items.values().any(|it| it.deadline < soon) {
            let expired = queue.next_expired().await;
            self.came(&expired);
        }
        assert_eq!(queue.len(), self.items.len());
        assert!(poll_once(queue.next_expired()).await.is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_a_sorted_map(steps in prop::collection::vec(step(), 0..1500)) {
        run(async move {
            let queue = DelayQueue::new();
            let mut model = Model::default();
            for step in steps {
                model.follow(&queue, step).await;
            }
            model.finish(&queue).await;
        });
    }
}
