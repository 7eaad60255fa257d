//! Blocking calls, each of which runs on the thread of its simulation. One that waits for another call never returns,
//! and the simulation never goes on. It cannot say so itself: a thread does.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock;

/// How long a call may take, in real time, before that is told.
const PATIENCE: Duration = Duration::from_secs(5);

/// The calls of a simulation that have not returned.
pub(super) struct BlockingCalls(Arc<Mutex<State>>);

struct State {
    seed: u64,
    number: u64,
    names: BTreeMap<u64, String>,
    /// The number of that which runs, and since when it does.
    running: Option<(u64, Instant)>,
}

/// One of them, until it is dropped.
struct Call(Arc<Mutex<State>>, u64);

static SIMULATIONS: Mutex<Vec<Weak<Mutex<State>>>> = Mutex::new(Vec::new());
static WATCH: Once = Once::new();

impl BlockingCalls {
    pub(super) fn new(seed: u64) -> Self {
        BlockingCalls(Arc::new(Mutex::new(State {
            seed,
            number: 0,
            names: BTreeMap::new(),
            running: None,
        })))
    }

    /// `call` under the name by which it is told.
    pub(super) fn add(&self, name: String, call: Box<dyn FnOnce()>) -> Box<dyn FnOnce()> {
        let mut state = locked(&self.0);
        let number = state.number;
        state.number += 1;
        state.names.insert(number, name);
        drop(state);
        if number == 0 {
            locked(&SIMULATIONS).push(Arc::downgrade(&self.0));
            WATCH.call_once(|| {
                // Without a thread the simulation does the same.
                let thread = thread::Builder::new().name("glommio-watch".into());
                drop(thread.spawn(watch));
            });
        }
        let watched = Call(Arc::clone(&self.0), number);
        Box::new(move || {
            locked(&watched.0).running = Some((watched.1, clock::real()));
            call();
        })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut state = locked(&self.0);
        state.names.remove(&self.1);
        state.running.take_if(|(number, _)| *number == self.1);
    }
}

fn watch() {
    loop {
        thread::sleep(Duration::from_secs(1));
        locked(&SIMULATIONS).retain(|it| {
            let simulation = it.upgrade();
            simulation.iter().for_each(|it| locked(it).tell());
            simulation.is_some()
        });
    }
}

impl State {
    /// Tells, once, that a call has not returned.
    fn tell(&mut self) {
        let is_late = |(_, since): &mut (u64, Instant)| clock::real() - *since >= PATIENCE;
        let Some((number, _)) = self.running.take_if(is_late) else {
            return;
        };
        let (name, seed) = (&self.names[&number], self.seed);
        let others = self.names.iter().filter(|it| *it.0 != number);
        let others: Vec<&str> = others.map(|(_, name)| &**name).collect();
        let others = match &*others {
            [] => "no other call is under way".to_owned(),
            others => format!("it cannot wait for {}, made after it", others.join(" or ")),
        };
        eprintln!(
            "a simulation stands still: the blocking call {name} has not returned for {PATIENCE:?} of real time; \
             {others}. The seed is {seed}"
        );
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
