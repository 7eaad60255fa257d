//! What every task waits for: of one executor, by [`dump`], or of all, by [`dump_all`] and on a signal.
//!
//! With the feature `debugging` only. For a program that hangs:
//!
//! ```
//! use glommio::{LocalExecutor, debugging, spawn_local, sync::Mutex};
//! use std::rc::Rc;
//!
//! LocalExecutor::default().run(async {
//!     let [one, other] = [1, 2].map(|it| Rc::new(Mutex::new(it)));
//!     let both = |first: &Rc<Mutex<i32>>, second: &Rc<Mutex<i32>>| {
//!         let (first, second) = (Rc::clone(first), Rc::clone(second));
//!         async move {
//!             let _first = first.lock().await;
//!             glommio::executor().yield_now().await;
//!             let _second = second.lock().await;
//!         }
//!     };
//!     let _tasks = [spawn_local(both(&one, &other)), spawn_local(both(&other, &one))];
//!     glommio::executor().yield_now().await;
//!     let dump = debugging::dump();
//!     assert_eq!(dump.cycles.len(), 1);
//!     println!("{dump}"); // names the locks, who holds them, and the cycle
//! });
//! ```
//!
//! # Cost
//!
//! Without the feature, nothing. With it, a task takes about 300 bytes more, and each of its polls, and
//! each future that has to wait in one, notes a few words. Moments are those of the rounds in which
//! things happened, which spares a look at the clock.

pub use crate::executor::{
    Dump, NoDump, Resource, TaskDump, TaskState, dump, dump_all, dump_on_signal,
};
