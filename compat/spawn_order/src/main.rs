//! Whether a task is polled inside the call that spawns it, and its place among others, for each form of
//! spawning that glommio 0.9.0 has: there and here.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// What has happened, in its order.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<&'static str>>>);

impl Log {
    fn note(&self, what: &'static str) {
        self.0.borrow_mut().push(what);
    }

    /// A task that notes its first poll, and is over with it.
    fn noted(&self, what: &'static str) -> impl Future<Output = ()> + 'static {
        let log = self.clone();
        async move { log.note(what) }
    }
}

/// When a task is polled that is spawned between two that are queued.
macro_rules! order {
    ($glommio:ident, |$task:ident| $spawn:expr) => {{
        let log = Log::default();
        let queue = $glommio::executor().current_task_queue();
        let before = $glommio::spawn_local_into(log.noted("one before it"), queue);
        let $task = log.noted("the task");
        let spawned = $spawn;
        log.note("the call returns");
        let after = $glommio::spawn_local_into(log.noted("one after it"), queue);
        spawned.await;
        before.expect("the queue is there").await;
        after.expect("the queue is there").await;
        log.0.take()
    }};
}

/// Whether an action without a delay runs inside the call that sets it.
macro_rules! order_of_action {
    (|$task:ident| $set:expr) => {{
        let log = Log::default();
        let $task = log.noted("the action");
        let action = $set;
        log.note("the call returns");
        action.join().await;
        log.0.take()
    }};
}

macro_rules! orders {
    ($glommio:ident) => {
        $glommio::LocalExecutor::default().run(async {
            use $glommio::sync::Gate;
            use $glommio::timer::{TimerActionOnce, TimerActionRepeat};
            use $glommio::{executor, spawn_local, spawn_local_into};
            use $glommio::{spawn_scoped_local, spawn_scoped_local_into};
            let queue = executor().current_task_queue();
            let gate = Gate::new();
            let once = |action| TimerActionOnce::do_in(Duration::ZERO, action);
            vec![
                ("spawn_local", order!($glommio, |task| spawn_local(task))),
                (
                    "spawn_local_into",
                    order!($glommio, |task| spawn_local_into(task, queue).unwrap()),
                ),
                (
                    "spawn_scoped_local",
                    // SAFETY: it is awaited in `order`, and borrows nothing.
                    order!($glommio, |task| unsafe { spawn_scoped_local(task) }),
                ),
                (
                    "spawn_scoped_local_into",
                    // SAFETY: as above.
                    order!($glommio, |task| unsafe {
                        spawn_scoped_local_into(task, queue).unwrap()
                    }),
                ),
                (
                    "Gate::spawn",
                    order!($glommio, |task| gate.spawn(task).unwrap()),
                ),
                (
                    "Gate::spawn_into",
                    order!($glommio, |task| gate.spawn_into(task, queue).unwrap()),
                ),
                ("TimerActionOnce", order_of_action!(|task| once(task))),
                (
                    "TimerActionRepeat",
                    order_of_action!(|task| {
                        let task = Cell::new(Some(task));
                        TimerActionRepeat::repeat(move || {
                            let task = task.take();
                            async move {
                                task.expect("once").await;
                                None
                            }
                        })
                    }),
                ),
            ]
        })
    };
}

fn main() {
    let (ours, published) = (orders!(ours), orders!(published));
    for ((form, ours), (_, published)) in ours.iter().zip(&published) {
        assert_eq!(ours, published, "{form}: here, and in 0.9.0");
        eprintln!("{form}: {}", ours.join(", "));
    }
    println!("{} forms", ours.len());
}
