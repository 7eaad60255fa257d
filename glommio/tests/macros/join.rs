//! `join!` and `try_join!`.

use glommio::{join, try_join};

use crate::common::prelude::*;

#[run_test]
async fn one_and_many_outputs() {
    assert_eq!(join!(ready(1)), (1,));
    assert_eq!(
        join!(ready(1), async { "two" }, ready(3.0),),
        (1, "two", 3.0)
    );
    let many = join!(
        ready(1),
        ready(2),
        ready(3),
        ready(4),
        ready(5),
        ready(6),
        ready(7),
        ready(8),
        ready(9)
    );
    assert_eq!(many.8, 9);
    let gates = [Parking::default(), Parking::default()];
    let opener = async {
        yield_now().await;
        gates[1].open();
        yield_now().await;
        gates[0].open();
    };
    join!(gates[0].clone(), gates[1].clone(), opener);
}

#[run_test]
async fn they_run_at_once() {
    let before = Instant::now();
    let nap = || sleep(Duration::from_millis(20));
    join!(nap(), nap(), nap());
    let passed = before.elapsed();
    assert!(passed >= Duration::from_millis(20));
    let log = Log::default();
    let noting = |name: &'static str| {
        let log = log.clone();
        async move {
            for _ in 0..2 {
                log.note(name);
                yield_now().await;
            }
        }
    };
    join!(noting("a"), noting("b"));
    assert_eq!(log.take(), ["a", "b", "a", "b"]);
}

#[run_test]
async fn a_future_is_dropped_when_it_is_done_and_not_polled_again() {
    let drops = DropCount::default();
    let guard = drops.guard();
    let polls = Cell::new(0);
    let quick = poll_fn(move |_| {
        let _guard = &guard;
        Poll::Ready(())
    });
    let slow = async {
        for _ in 0..3 {
            polls.set(polls.get() + 1);
            yield_now().await;
            assert_eq!(drops.count(), 1);
        }
    };
    join!(quick, slow);
    assert_eq!((polls.get(), drops.count()), (3, 1));
}

#[run_test]
async fn the_first_error_wins_and_the_others_are_dropped() {
    let drops = DropCount::default();
    let held = || {
        let guard = drops.guard();
        async move {
            let _guard = guard;
            pending::<Result<(), &str>>().await
        }
    };
    let late = async {
        yield_now().await;
        Err::<u8, _>("late")
    };
    let done_before = async { Ok(drops.guard()) };
    let result = try_join!(held(), late, done_before, held());
    assert_eq!(result.err(), Some("late"));
    assert_eq!(drops.count(), 3);
    assert_eq!(
        try_join!(ready(Ok::<_, ()>(1)), ready(Ok("two"))),
        Ok((1, "two"))
    );
}

#[run_test]
async fn errors_go_out_by_the_question_mark() {
    async fn all(n: i32) -> Result<i32, String> {
        let check = |n: i32| async move { if n > 0 { Ok(n) } else { Err(format!("{n}")) } };
        let (a, b) = try_join!(check(1), check(n))?;
        Ok(a + b)
    }
    assert_eq!(all(2).await, Ok(3));
    assert_eq!(all(-2).await, Err("-2".into()));
}

#[run_test]
async fn futures_may_borrow_temporaries_and_locals() {
    async fn length(text: &str) -> usize {
        yield_now().await;
        text.len()
    }
    let local = RefCell::new(vec![1]);
    let (one, two, ()) = join!(length(&String::from("tem")), length("po"), async {
        local.borrow_mut().push(2);
    });
    assert_eq!((one, two, local.into_inner()), (3, 2, vec![1, 2]));
    let mut kept = pin!(async { yield_now().await });
    join!(kept.as_mut(), ready(()));
}

#[run_test]
async fn given_up_it_drops_all() {
    let drops = DropCount::default();
    let held = |guard| async move {
        let _guard = guard;
        pending::<()>().await
    };
    {
        let joined = async { join!(held(drops.guard()), async { drops.guard() }) };
        let mut joined = pin!(joined);
        assert!(poll_once(joined.as_mut()).await.is_none());
        assert_eq!(drops.count(), 0);
    }
    assert_eq!(drops.count(), 2);
}

#[test]
fn a_panic_drops_the_others() {
    let drops = DropCount::default();
    let guard = drops.guard();
    let message = panic_of(|| {
        run(async {
            let held = async {
                let _guard = guard;
                pending::<()>().await;
            };
            join!(held, async { panic!("on purpose") });
        })
    });
    assert_eq!((message.as_str(), drops.count()), ("on purpose", 1));
}

/// A future that was ready panics when it is dropped: its output is dropped, too.
#[test]
fn a_destructor_that_panics() {
    let drops = Rc::new(DropCount::default());
    let guard = drops.guard();
    let message = panic_of(|| {
        run(async {
            let bomb = on_drop(|| panic!("destructor"));
            let mut guard = Some(guard);
            let ready = poll_fn(move |_| {
                let _bomb = &bomb;
                Poll::Ready(guard.take())
            });
            join!(ready);
        })
    });
    assert_eq!((message.as_str(), drops.count()), ("destructor", 1));
}

#[run_test]
async fn joins_nest_in_joins() {
    async fn three() -> (i32, i32, i32) {
        join!(ready(1), ready(2), ready(3))
    }
    fn is_future<F: Future>(future: F) -> F {
        future
    }
    let nested = join!(is_future(three()), async { join!(three(), three()) });
    assert_eq!(nested, ((1, 2, 3), ((1, 2, 3), (1, 2, 3))));
}
