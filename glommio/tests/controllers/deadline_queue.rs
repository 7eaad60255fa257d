use glommio::controllers::{ControllerStatus, DeadlineQueue, DeadlineSource};

use crate::common::prelude::*;

/// Work that is done when its parking is opened.
struct Work {
    name: &'static str,
    expected: Duration,
    parking: Parking,
    log: Log,
    total: u64,
    processed: Cell<u64>,
}

impl DeadlineSource for Work {
    type Output = &'static str;

    fn expected_duration(&self) -> Duration {
        self.expected
    }

    fn action(self: Rc<Self>) -> Pin<Box<dyn Future<Output = Self::Output> + 'static>> {
        Box::pin(async move {
            self.log.note(format!("{} begins", self.name));
            self.parking.clone().await;
            if self.name == "panics" {
                panic!("the action panics");
            }
            self.log.note(format!("{} ends", self.name));
            self.name
        })
    }

    fn total_units(&self) -> u64 {
        self.total
    }

    fn processed_units(&self) -> u64 {
        self.processed.get()
    }
}

fn work(name: &'static str, log: &Log) -> Rc<Work> {
    Rc::new(Work {
        name,
        expected: Duration::from_secs(3600),
        parking: Parking::default(),
        log: log.clone(),
        total: 10,
        processed: Cell::new(0),
    })
}

/// Work that is done at once.
fn quick(expected: Duration) -> Rc<Work> {
    let mut work = work("quick", &Log::default());
    Rc::get_mut(&mut work).expect("it is new").expected = expected;
    work.parking.open();
    work
}

fn queue() -> DeadlineQueue<&'static str> {
    DeadlineQueue::new("work", Duration::from_millis(1))
}

/// Lets the worker run, whose queue may have few shares.
async fn settle() {
    for _ in 0..3 {
        sleep(Duration::from_millis(1)).await;
    }
}

/// So many notes, when they are there.
async fn notes(log: &Log, count: usize) -> Vec<String> {
    let mut notes = log.take();
    while notes.len() < count {
        settle().await;
        notes.extend(log.take());
    }
    notes
}

#[run_test]
async fn work_is_done_one_after_the_other_in_its_queue() {
    let (queue, log) = (Rc::new(queue()), Log::default());
    let works = ["first", "second"].map(|name| work(name, &log));
    let tasks = works.clone().map(|work| {
        let queue = Rc::clone(&queue);
        spawn_local(async move { queue.push_work(work).await.unwrap() })
    });
    works[1].parking.open();
    assert_eq!(notes(&log, 1).await, ["first begins"]);
    settle().await;
    works[0].parking.open();
    let [first, second] = tasks;
    assert_eq!(zip(first, second).await, ("first", "second"));
    assert_eq!(log.take(), ["first ends", "second begins", "second ends"]);
    let stats = executor().task_queue_stats(queue.task_queue()).unwrap();
    assert!(stats.queue_selected() > 0);
}

#[run_test]
async fn a_source_is_dropped_when_its_output_is_there() {
    let queue = queue();
    let work = quick(Duration::from_secs(1));
    queue.push_work(work.clone()).await.unwrap();
    assert_eq!(Rc::strong_count(&work), 1);
}

#[run_test]
async fn deadlines_must_not_decrease() {
    let queue = queue();
    queue
        .push_work(quick(Duration::from_secs(2000)))
        .await
        .unwrap();
    let error = queue
        .push_work(quick(Duration::from_secs(1000)))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let error = queue.push_work(quick(Duration::MAX)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    queue
        .push_work(quick(Duration::from_secs(2000)))
        .await
        .unwrap();
}

#[run_test]
async fn no_units_and_no_time_are_legal() {
    let queue = queue();
    let mut work = quick(Duration::ZERO);
    Rc::get_mut(&mut work).expect("it is new").total = 0;
    assert_eq!(queue.push_work(work).await.unwrap(), "quick");
    assert_eq!(
        queue
            .push_work(quick(Duration::from_secs(1)))
            .await
            .unwrap(),
        "quick"
    );
}

/// In 0.9 the next caller gets its answer.
#[run_test]
async fn a_caller_that_is_gone_takes_its_answer_along() {
    let (queue, log) = (queue(), Log::default());
    let (given_up, next) = (work("given up", &log), work("next", &log));
    let mut first = Box::pin(queue.push_work(given_up.clone()));
    assert!(poll_once(&mut first).await.is_none());
    let mut noted = notes(&log, 1).await;
    drop(first);
    next.parking.open();
    let mut second = Box::pin(queue.push_work(next));
    assert!(poll_once(&mut second).await.is_none());
    given_up.parking.open();
    assert_eq!(second.await.unwrap(), "next");
    noted.extend(log.take());
    assert_eq!(
        noted,
        [
            "given up begins",
            "given up ends",
            "next begins",
            "next ends"
        ]
    );
}

/// In 0.9 it stays in the accounting, and others are taken out in its place.
#[run_test]
async fn work_that_is_given_up_before_it_began_is_forgotten() {
    let (queue, log) = (queue(), Log::default());
    let works = ["first", "given up", "last"].map(|name| work(name, &log));
    let mut pushed = works
        .clone()
        .map(|work| Some(Box::pin(queue.push_work(work))));
    for push in pushed.iter_mut().flatten() {
        assert!(poll_once(push).await.is_none());
    }
    settle().await;
    drop(pushed[1].take());
    assert_eq!(Rc::strong_count(&works[1]), 1, "out of the accounting");
    works.iter().for_each(|work| work.parking.open());
    let [first, _, last] = pushed;
    assert_eq!(first.expect("kept").await.unwrap(), "first");
    assert_eq!(last.expect("kept").await.unwrap(), "last");
    assert!(!log.take().concat().contains("given up"));
}

#[run_test]
async fn shares_follow_the_work() {
    let queue = queue();
    let shares = || {
        let stats = executor().task_queue_stats(queue.task_queue());
        stats.expect("the queue is there").current_shares()
    };
    assert!(matches!(queue.status(), ControllerStatus::Enabled));
    queue.disable(5000);
    assert!(matches!(queue.status(), ControllerStatus::Disabled(1000)));
    queue.disable(0);
    assert!(matches!(queue.status(), ControllerStatus::Disabled(1)));
    queue.disable(777);
    // The scheduler asks when the queue gets to run after the adjustment period.
    let nudge = async || {
        sleep(Duration::from_millis(3)).await;
        let task = glommio::spawn_local_into(async {}, queue.task_queue());
        task.expect("the queue is there").await;
    };
    nudge().await;
    assert_eq!(shares(), 777);
    queue.enable();
    queue.enable();
    nudge().await;
    assert_eq!(shares(), 1, "where it was, since nothing is to be done");
    let mut late = work("late", &Log::default());
    Rc::get_mut(&mut late).expect("it is new").expected = Duration::from_millis(1);
    let mut push = Box::pin(queue.push_work(late));
    assert!(poll_once(&mut push).await.is_none());
    while shares() < 900 {
        nudge().await;
    }
}

#[run_test]
async fn bumps_raise_the_least_shares_until_the_last_is_dropped() {
    let queue = queue();
    // Twice as fast as it should be, all the time.
    struct Ahead(Instant, Parking);
    impl DeadlineSource for Ahead {
        type Output = &'static str;
        fn expected_duration(&self) -> Duration {
            Duration::from_secs(3600)
        }
        fn action(self: Rc<Self>) -> Pin<Box<dyn Future<Output = Self::Output>>> {
            Box::pin(async move {
                self.1.clone().await;
                "ahead"
            })
        }
        fn total_units(&self) -> u64 {
            3_600_000_000
        }
        fn processed_units(&self) -> u64 {
            2 * self.0.elapsed().as_micros() as u64
        }
    }
    let ahead = Ahead(Instant::now(), Parking::default());
    let mut push = Box::pin(queue.push_work(Rc::new(ahead)));
    assert!(poll_once(&mut push).await.is_none());
    let shares = async || {
        // The scheduler asks when the queue gets to run after the adjustment period.
        sleep(Duration::from_millis(3)).await;
        let task = glommio::spawn_local_into(async {}, queue.task_queue());
        task.expect("the queue is there").await;
        let stats = executor().task_queue_stats(queue.task_queue());
        stats.expect("the queue is there").current_shares()
    };
    let (first, second) = (queue.bump_priority(), queue.bump_priority());
    while shares().await < 250 {}
    drop(first);
    for _ in 0..5 {
        assert!(shares().await >= 250, "there is another");
    }
    drop(second);
    while shares().await >= 250 {}
}

#[run_test]
fn an_action_that_panics_ends_the_worker_and_leaves_errors() {
    let executor = LocalExecutor::default();
    let kept: RefCell<Option<Rc<DeadlineQueue<&'static str>>>> = RefCell::default();
    let answers = Rc::new(RefCell::new(Vec::new()));
    let message = panic_of(|| {
        executor.run(async {
            let (queue, log) = (Rc::new(queue()), Log::default());
            kept.replace(Some(Rc::clone(&queue)));
            for name in ["panics", "behind"] {
                let (queue, answers, work) =
                    (Rc::clone(&queue), Rc::clone(&answers), work(name, &log));
                work.parking.open();
                spawn_local(async move {
                    let answer = queue.push_work(work).await;
                    answers.borrow_mut().push(answer.map_err(|it| it.kind()));
                })
                .detach();
            }
            std::future::pending::<()>().await;
        })
    });
    assert_eq!(message, "the action panics");
    executor.run(async {
        while answers.borrow().len() < 2 {
            settle().await;
        }
        let other = Err(io::ErrorKind::Other);
        assert_eq!(*answers.borrow(), [other, other]);
        let queue = kept.take().expect("it was made");
        let error = queue
            .push_work(quick(Duration::from_secs(7200)))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    });
}

#[run_test]
async fn the_worker_outlives_the_queue_until_its_work_is_done() {
    let (queue, log) = (queue(), Log::default());
    let handle = queue.task_queue();
    let work = work("work", &log);
    let mut push = Box::pin(queue.push_work(work.clone()));
    assert!(poll_once(&mut push).await.is_none());
    settle().await;
    drop(push);
    drop(queue);
    work.parking.open();
    settle().await;
    assert_eq!(log.take(), ["work begins", "work ends"]);
    executor()
        .remove_task_queue(handle)
        .expect("the worker is over");
}

#[run_test]
async fn it_prints_its_state() {
    let queue = queue();
    let bump = queue.bump_priority();
    let source: Rc<dyn DeadlineSource<Output = _>> = quick(Duration::ZERO);
    assert_eq!(format!("{source:?}"), "DeadlineSource(0/10)");
    assert!(format!("{queue:?}").contains("bumps: 1"));
    assert!(format!("{bump:?}").contains("PriorityBump"));
    assert!(format!("{:?}", queue.status()).contains("Enabled"));
}
