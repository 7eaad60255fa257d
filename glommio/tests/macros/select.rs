//! `select!`.

use glommio::select;
use glommio::task::JoinSet;
use proptest::prelude::*;

use crate::common::prelude::*;

#[run_test]
async fn one_branch_and_many() {
    let one = select! { value = ready(1) => value + 1 };
    assert_eq!(one, 2);
    let one = select! { biased; value = async { "only" } => value, };
    assert_eq!(one, "only");
    let many = select! {
        _ = pending::<()>() => 1,
        (a, [b, ..]) = async { yield_now().await; (2, [3, 4]) } => a + b,
        () = pending() => { 3 }
        _ = pending::<u8>() => 4,
        _ = pending::<u8>() => 5,
        _ = sleep(Duration::from_secs(3600)) => 6,
        _ = pending::<u8>() => 7,
    };
    assert_eq!(many, 5);
}

#[test]
#[allow(
    clippy::let_and_return,
    clippy::match_single_binding,
    clippy::never_loop,
    clippy::redundant_locals,
    reason = "what ends without a comma is what is tested"
)]
fn commas_are_those_of_a_match() {
    run(async {
        for n in 0..6 {
            let fut = |me| async move { if me == n { me } else { pending().await } };
            let won = select! {
                it = fut(0) => { it }
                it = fut(1) => if it == 1 { 1 } else { 0 }
                it = fut(2) => match it { it => it }
                it = fut(3) => loop { break it; }
                it = fut(4) => unsafe_free(it),
                it = fut(5) => { let it = it; it }.min(9)
            };
            assert_eq!(won, n);
        }
    });

    fn unsafe_free(it: i32) -> i32 {
        it
    }
}

#[run_test]
async fn directives_in_any_order() {
    mod facade {
        pub use glommio;
    }
    for _ in 0..20 {
        let first =
            select! { crate = facade::glommio; biased; _ = ready(()) => 1, _ = ready(()) => 2 };
        let second = select! { biased; crate = ::glommio; _ = ready(()) => 1, _ = ready(()) => 2 };
        assert_eq!((first, second), (1, 1));
    }
    // They are names as others.
    let won = select! { biased = ready(3) => biased };
    assert_eq!(won, 3);
}

#[run_test]
async fn bodies_and_futures_stand_in_the_callers_function() {
    async fn caller(fails: bool) -> Result<u32, String> {
        let mut rounds = 0;
        let left = 'outer: loop {
            select! {
                round = async { rounds + 1 } => {
                    rounds = round;
                    yield_now().await;
                    if rounds == 5 {
                        break 'outer rounds;
                    }
                    continue 'outer;
                }
                _ = pending::<()>() => return Err("never".into()),
            }
        };
        let number = |fails: bool| {
            if fails {
                Err("the future".to_owned())
            } else {
                Ok(ready(1))
            }
        };
        let sum = select! {
            one = number(fails)? => left + one,
            other = { yield_now().await; pending::<u32>() } => other,
        };
        select! {
            _ = ready(()) => Err::<(), _>(format!("sum {sum}"))?,
        }
        Ok(0)
    }
    assert_eq!(caller(false).await, Err("sum 6".into()));
    assert_eq!(caller(true).await, Err("the future".into()));
}

#[run_test]
async fn all_futures_are_gone_when_the_body_runs() {
    let drops = DropCount::default();
    let held = |guard| async move {
        let _guard = guard;
        pending::<()>().await;
    };
    let guard = drops.guard();
    select! {
        biased;
        _ = held(drops.guard()) => unreachable!("it is pending"),
        _ = poll_fn(move |_| { let _guard = &guard; Poll::Ready(()) }) => assert_eq!(drops.count(), 3),
        _ = held(drops.guard()) => unreachable!("it is not polled"),
    }
    assert_eq!(drops.count(), 3);
}

#[run_test]
async fn a_body_uses_what_its_branch_and_others_borrowed() {
    async fn push(list: &mut Vec<u32>) -> usize {
        list.push(1);
        list.len()
    }
    let mut list = Vec::new();
    let mut other = String::new();
    let length = select! {
        length = push(&mut list) => {
            list.push(2);
            other.push('x');
            length
        }
        _ = async { other.push('y'); pending::<()>().await } => 0,
    };
    assert!((length, &list[..]) == (1, &[1, 2]) && other.ends_with('x'));
}

#[run_test]
#[allow(
    clippy::await_holding_refcell_ref,
    reason = "the body finds the cell free, as the futures are gone"
)]
async fn temporaries_live_as_long_as_the_futures() {
    async fn length(text: &str) -> usize {
        yield_now().await;
        text.len()
    }
    let cell = RefCell::new(String::from("cell"));
    let won = select! {
        it = length(&String::from("tempo")) => { cell.borrow_mut().clear(); it }
        it = async { let text = cell.borrow(); pending::<()>().await; text.len() } => it,
    };
    assert_eq!(won, 5);
}

/// Neither `Unpin` nor fused.
#[run_test]
async fn a_future_goes_on_in_the_next_use() {
    let gate = Parking::default();
    let mut long = pin!(async {
        gate.clone().await;
        "long"
    });
    let mut rounds = 0;
    let won = loop {
        select! {
            won = &mut long => break won,
            _ = yield_now() => {
                rounds += 1;
                if rounds == 10 {
                    gate.open();
                }
            }
        }
    };
    assert_eq!((won, rounds >= 10), ("long", true));
}

#[run_test]
async fn what_can_be_made_a_future() {
    struct Answer;
    impl IntoFuture for Answer {
        type Output = u32;
        type IntoFuture = std::future::Ready<u32>;
        fn into_future(self) -> Self::IntoFuture {
            ready(42)
        }
    }
    assert_eq!(select! { it = Answer => it }, 42);
}

/// In every rhythm in which branches that are always ready are raced.
#[run_test]
async fn no_branch_starves() {
    async fn race_two(wins: &mut [u32; 2]) {
        select! {
            _ = ready(()) => wins[0] += 1,
            _ = ready(()) => wins[1] += 1,
        }
    }
    for others in 0..8 {
        let mut wins = [0; 2];
        let mut longest_run = (0, 0);
        for _ in 0..1000 {
            let before = wins[0];
            race_two(&mut wins).await;
            let first_won = wins[0] > before;
            longest_run = if first_won {
                (longest_run.0 + 1, longest_run.1)
            } else {
                (0, longest_run.1)
            };
            longest_run.1 = longest_run.1.max(longest_run.0);
            for _ in 0..others {
                race_two(&mut [0; 2]).await;
            }
        }
        assert!(
            wins.iter().all(|&wins| wins > 400),
            "{others} others: {wins:?}"
        );
        assert!(longest_run.1 < 50, "{others} others: {longest_run:?}");
    }
    let mut wins = [0; 5];
    for _ in 0..1000 {
        select! {
            _ = ready(()) => wins[0] += 1,
            _ = ready(()) => wins[1] += 1,
            _ = ready(()) => wins[2] += 1,
            _ = ready(()) => wins[3] += 1,
            _ = ready(()) => wins[4] += 1,
        }
    }
    assert!(wins.iter().all(|&wins| wins > 150), "{wins:?}");
}

#[run_test]
async fn biased_polls_in_the_order_of_the_source() {
    let log = Log::default();
    let noting = |name: &'static str, is_ready: bool| {
        let log = log.clone();
        poll_fn(move |_| {
            log.note(name);
            if is_ready {
                Poll::Ready(name)
            } else {
                Poll::Pending
            }
        })
    };
    for _ in 0..10 {
        let won = select! {
            biased;
            it = noting("a", false) => it,
            it = noting("b", true) => it,
            it = noting("c", true) => it,
        };
        assert_eq!((won, log.take()), ("b", vec!["a".into(), "b".into()]));
    }
}

#[run_test]
async fn it_nests_and_shadows_nothing() {
    // Names that a macro might use itself.
    let (cx, output, selected, first, turn, future_0) = (1, 2, 3, 4, 5, 6);
    let won = select! {
        inner = async {
            select! {
                _ = pending::<()>() => 0,
                it = async { cx + output } => it + selected,
            }
        } => select! { it = ready(inner + first) => it + turn + future_0 },
        _ = pending::<()>() => 0,
    };
    assert_eq!(won, 21);
}

#[run_test]
async fn given_up_it_drops_its_futures() {
    let drops = DropCount::default();
    let held = |guard| async move {
        let _guard = guard;
        pending::<()>().await;
    };
    {
        let raced = async {
            select! { _ = held(drops.guard()) => 1, _ = held(drops.guard()) => 2 }
        };
        let mut raced = pin!(raced);
        assert!(poll_once(raced.as_mut()).await.is_none());
        assert_eq!(drops.count(), 0);
    }
    assert_eq!(drops.count(), 2);
}

#[test]
fn a_panic_of_a_future_or_its_destructor_drops_the_others() {
    for in_destructor in [false, true] {
        let drops = DropCount::default();
        let guard = drops.guard();
        let message = panic_of(|| {
            run(async {
                let held = async {
                    let _guard = guard;
                    pending::<()>().await;
                };
                let bomb = in_destructor.then(|| on_drop(|| panic!("on purpose")));
                let bad = poll_fn(move |_| match &bomb {
                    Some(_) => Poll::Ready(()),
                    None => panic!("on purpose"),
                });
                select! {
                    biased;
                    _ = held => {}
                    _ = bad => unreachable!("its destructor panics before"),
                }
            })
        });
        assert_eq!((message.as_str(), drops.count()), ("on purpose", 1));
    }
}

/// Without an executor, and in a generic function.
#[test]
fn in_generic_code() {
    async fn either<A: Future, B: Future<Output = A::Output>>(a: A, b: B) -> A::Output {
        select! { it = a => it, it = b => it }
    }
    let won = futures_lite::future::block_on(either(pending(), async { "b" }));
    assert_eq!(won, "b");
}

/// Ready after so many polls.
struct After(u32, usize);

impl Future for After {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        if self.0 == 0 {
            return Poll::Ready(self.1);
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The branch that needs the fewest polls wins; of several, the first if it is biased.
    #[test]
    fn the_soonest_wins(polls in prop::array::uniform3(0_u32..4)) {
        run(async move {
            let [a, b, c] = polls;
            let soonest = a.min(b).min(c);
            let won = select! {
                it = After(a, 0) => it,
                it = After(b, 1) => it,
                it = After(c, 2) => it,
            };
            assert_eq!(polls[won], soonest);
            let won = select! {
                biased;
                it = After(a, 0) => it,
                it = After(b, 1) => it,
                it = After(c, 2) => it,
            };
            assert_eq!(Some(won), polls.iter().position(|&it| it == soonest));
        });
    }

    /// Consumers race a channel against a wait that ends at random, and are cancelled at random: each item is received
    /// once, by a consumer or at the end.
    #[test]
    fn random_cancellation_loses_no_item(
        cancels in prop::collection::vec((0_usize..4, 0_u32..4), 0..60),
        items in 1_u32..60,
    ) {
        run(async move {
            let (sender, receiver) = local_channel::new_unbounded();
            let receiver = Rc::new(receiver);
            let received = Rc::new(RefCell::new(Vec::new()));
            let gave_up = Rc::new(Cell::new(0_u32));
            let mut set = JoinSet::new();
            let consumer = |patience: u32| {
                let (receiver, received) = (Rc::clone(&receiver), Rc::clone(&received));
                let gave_up = Rc::clone(&gave_up);
                async move {
                    loop {
                        select! {
                            item = receiver.recv() => match item {
                                Some(item) => received.borrow_mut().push(item),
                                None => break,
                            },
                            _ = After(patience, 0) => gave_up.set(gave_up.get() + 1),
                        }
                        executor().yield_now().await;
                    }
                }
            };
            let mut handles: Vec<_> = (0..4).map(|n| set.spawn(consumer(n))).collect();
            let sending = spawn_local(async move {
                for item in 0..items {
                    sender.try_send(item).expect("it is open");
                    if item.is_multiple_of(3) {
                        yield_now().await;
                    }
                }
            });
            for (n, patience) in cancels {
                handles[n].abort();
                handles[n] = set.spawn(consumer(patience));
                yield_now().await;
            }
            sending.await;
            while set.join_next().await.is_some() {}
            let mut received = received.take();
            received.sort_unstable();
            assert_eq!(received, (0..items).collect::<Vec<_>>());
        });
    }
}
