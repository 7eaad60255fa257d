//! What `#[test]` expands to with arguments of the feature `simulation`.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use super::support::run_in;
use crate::executor::LocalExecutorBuilder;
use crate::executor::placement::Placement;
use crate::simulation::Simulation;

/// Runs the body of a test with `start_paused = true`.
#[track_caller]
pub fn run_paused<T>(placement: Placement, body: impl Future<Output = T>) -> T {
    run_in(
        LocalExecutorBuilder::new(placement).start_paused(true),
        body,
    )
}

/// Runs the body of a test with `simulated`.
///
/// # Panics
///
/// Panics if the simulation fails, with all that it tells.
#[track_caller]
pub fn run_simulated<F>(body: impl FnOnce() -> F + 'static) -> F::Output
where
    F: Future<Output: 'static> + 'static,
{
    let output = Rc::new(Cell::new(None));
    let (body, place) = (Cell::new(Some(body)), Rc::clone(&output));
    let client = Simulation::builder().client("test", move || {
        let body = body.take().expect("a test starts once");
        let place = Rc::clone(&place);
        async move { place.set(Some(body().await)) }
    });
    match client.run() {
        Ok(_) => output.take().expect("the test is over"),
        Err(failure) => panic!("{failure}"),
    }
}
