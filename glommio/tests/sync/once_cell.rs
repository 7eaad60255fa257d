use glommio::sync::OnceCell;
use proptest::prelude::*;

use crate::common::prelude::*;

/// A future that is done when `stage` holds something.
fn until<T: Clone>(stage: &RefCell<Option<T>>) -> impl Future<Output = T> {
    poll_fn(|_| match &*stage.borrow() {
        Some(value) => Poll::Ready(value.clone()),
        None => Poll::Pending,
    })
}

/// References to the value were given out: it must stay, and the initialiser's is dropped.
#[test]
fn a_value_that_is_set_during_initialisation_stays() {
    let dropped = DropCount::default();
    let cell = OnceCell::new();
    let stage = RefCell::new(None);
    let mut init = Polled::waiting(cell.get_or_init(|| {
        let (stage, guard) = (&stage, dropped.guard());
        async move { (until(stage).await, Some(guard)) }
    }));
    let mut waiting = Polled::waiting(cell.get_or_init(async || unreachable!("there is a value")));
    assert!(cell.set((1, None)).is_ok());
    let lent = cell.get().unwrap();
    assert_eq!(
        waiting.finish().0,
        1,
        "it does not wait for the initialiser"
    );
    stage.replace(Some(2));
    match init.poll() {
        Poll::Ready(value) => assert!(std::ptr::eq(value, lent)),
        Poll::Pending => panic!("it is done"),
    }
    assert_eq!((lent.0, dropped.count()), (1, 1));
    assert_eq!(cell.set((3, None)).map_err(|it| it.0), Err(3));
}

#[test]
fn an_initialiser_may_set_the_cell() {
    let cell = OnceCell::new();
    let value = at_once(cell.get_or_init(async || {
        cell.set(1).unwrap();
        2
    }));
    assert_eq!(*value, 1);
}

#[test]
fn it_prints_its_value() {
    let cell = OnceCell::<u8>::default();
    assert_eq!(format!("{cell:?}"), "OnceCell(None)");
    assert!(!cell.is_initialized());
    cell.set(7).unwrap();
    assert!(cell.is_initialized());
    assert_eq!(format!("{cell:?}"), "OnceCell(Some(7))");
}

/// Callers come, go, fail and set at random. At most one initialiser runs, the value never changes,
/// and no waiting task is forgotten.
fn random(seed: u64, operations: u64) {
    type Init = Rc<RefCell<Option<Result<u64, ()>>>>;
    /// What its initialiser results in, whether that runs, and the call.
    type Caller = (
        Init,
        Rc<Cell<bool>>,
        Polled<'static, Result<&'static u64, ()>>,
    );
    let mut numbers = Numbers::new(seed);
    let mut done = 0;
    while done < operations {
        let cell: &'static OnceCell<u64> = Box::leak(Box::new(OnceCell::new()));
        let mut callers: Vec<Caller> = Vec::new();
        let mut value = None;
        let rounds = numbers.below(60);
        done += rounds + 1;
        for round in 0..rounds {
            let pick = numbers.below(64) as usize % callers.len().max(1);
            match numbers.below(8) {
                0..=2 => {
                    let (init, runs) = (Init::default(), Rc::new(Cell::new(false)));
                    let (theirs, running) = (Rc::clone(&init), Rc::clone(&runs));
                    let caller = cell.get_or_try_init(move || async move {
                        running.set(true);
                        until(&theirs).await
                    });
                    let is_loud = round.is_multiple_of(5);
                    let mut caller = Polled::hooked(caller, move || {
                        let _ = cell.get();
                        if is_loud {
                            quiet_panic();
                        }
                    });
                    match caller.poll() {
                        Poll::Ready(found) => assert_eq!(found.ok().copied(), value),
                        Poll::Pending => callers.push((init, runs, caller)),
                    }
                }
                3 if !callers.is_empty() => drop(callers.swap_remove(pick)),
                4 if numbers.below(8) == 0 && cell.set(round).is_ok() => value = Some(round),
                _ if !callers.is_empty() => {
                    let (init, runs, caller) = &mut callers[pick];
                    let outcome = if numbers.below(4) > 0 {
                        Err(())
                    } else {
                        Ok(round)
                    };
                    let is_turn = runs.get() || caller.is_woken();
                    init.replace(Some(outcome));
                    if let Poll::Ready(found) = caller.poll() {
                        assert!(is_turn);
                        if let Ok(found) = found {
                            assert_eq!(*value.get_or_insert(*found), *found);
                        }
                        callers.swap_remove(pick);
                    } else {
                        init.take();
                    }
                }
                _ => {}
            }
            assert_eq!(cell.get().copied(), value);
            // Each who could go on runs or was woken.
            let is_served = |(_, runs, it): &Caller| runs.get() || it.is_woken();
            let running = callers.iter().filter(|it| it.1.get()).count();
            let served = callers.iter().filter(|it| is_served(it)).count();
            assert!(running <= 1, "two initialisers run");
            match value {
                None => assert!(callers.is_empty() || served == 1, "nobody has the turn"),
                Some(_) => assert_eq!(served, callers.len(), "a wake-up was lost"),
            }
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_the_law(seed in any::<u64>()) {
        random(seed, 60);
    }
}

#[test]
fn nobody_is_forgotten_in_a_long_run() {
    random(1, operations());
}
