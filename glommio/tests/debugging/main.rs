//! The feature `debugging`: what tasks wait for, and in which circles.

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod cycles;
mod requests;
mod resources;
mod tasks;

use glommio::debugging::{Dump, Resource, TaskDump, TaskState, dump};

use crate::common::prelude::*;

/// Spawns a task of that name.
fn named<T: 'static>(name: &'static str, future: impl Future<Output = T> + 'static) -> Task<T> {
    TaskBuilder::new().name(name).spawn_local(future)
}

/// The task of that name, which is there.
fn task<'a>(dump: &'a Dump, name: &str) -> &'a TaskDump {
    let mut named = (dump.tasks.iter()).filter(|task| task.name.as_deref() == Some(name));
    let found = named.next().unwrap_or_else(|| panic!("no {name}: {dump}"));
    assert!(named.next().is_none(), "two of {name}: {dump}");
    found
}

/// What the waiting task of that name waits for, which is one thing.
fn resource(dump: &Dump, name: &str) -> Resource {
    let task = task(dump, name);
    assert_eq!(task.state, TaskState::Waiting, "{task}");
    match &task.waits_for[..] {
        [resource] if task.more == 0 => resource.clone(),
        _ => panic!("not one thing: {task}"),
    }
}

/// Lets the others run until none is runnable but the one that calls it.
async fn settle() -> Dump {
    loop {
        executor().yield_now().await;
        let dump = dump();
        let is_runnable = |task: &TaskDump| task.state == TaskState::Runnable;
        if !dump.tasks.iter().any(is_runnable) {
            return dump;
        }
    }
}
