//! Futures of many bytes, on a stack of the usual size.

use glommio::spawn_scoped_local;
use glommio::task::JoinSet;

use crate::common::prelude::*;

/// What a thread has if nothing else is said.
const STACK_BYTES: usize = 2 << 20;

/// Runs `body` on a stack of that size, in a process of its own, which an overflow would end.
fn on_a_usual_stack(body: impl FnOnce() + Send + 'static) {
    in_child(|| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(body);
        thread.expect("a thread").join().expect("it ends well");
    });
}

/// A future that holds so many bytes.
async fn large<const BYTES: usize>(value: u8) -> u8 {
    let memory = [value; BYTES];
    yield_now().await;
    memory[usize::from(value) % BYTES]
}

#[test]
fn a_future_of_200_kilobytes_fits_the_stack_however_it_is_spawned() {
    const BYTES: usize = 200 << 10;
    on_a_usual_stack(|| {
        let queue = TaskQueueHandle::default();
        let local = LocalExecutor::default();
        let early = local.spawn(large::<BYTES>(1));
        local.run(async move { assert_eq!(early.await, 1) });
        local.run(async { assert_eq!(spawn_local(large::<BYTES>(2)).await, 2) });
        local.run(async { assert_eq!(executor().spawn_local(large::<BYTES>(3)).await, 3) });
        local.run(async {
            let task = spawn_in(queue, large::<BYTES>(4));
            assert_eq!(task.await, 4);
        });
        local.run(async {
            // SAFETY: it is awaited here.
            let task = unsafe { spawn_scoped_local(large::<BYTES>(5)) };
            assert_eq!(task.await, 5);
        });
        local.run(async {
            let builder = TaskBuilder::new().name("large");
            assert_eq!(builder.spawn_local(large::<BYTES>(6)).await, 6);
        });
        local.run(async {
            let task = TaskBuilder::new().spawn_local_into(large::<BYTES>(7), queue);
            assert_eq!(task.expect("the queue exists").await, 7);
        });
        local.run(async {
            let mut set = JoinSet::new();
            set.spawn(large::<BYTES>(8));
            set.spawn_into(large::<BYTES>(8), queue).expect("it exists");
            while let Some(value) = set.join_next().await {
                assert_eq!(value.expect("it was not cancelled"), 8);
            }
        });
    });
}

/// Spawns one like itself before it first waits, and so on.
async fn link<const BYTES: usize>(left: u32, spawn: fn(u32, &Rc<Cell<u32>>), ended: Rc<Cell<u32>>) {
    let memory = [7_u8; BYTES];
    if left > 0 {
        spawn(left - 1, &ended);
    }
    yield_now().await;
    assert_eq!(memory[left as usize], 7);
    ended.set(ended.get() + 1);
}

fn spawn_link<const BYTES: usize>(left: u32, ended: &Rc<Cell<u32>>) {
    spawn_local(link::<BYTES>(left, spawn_link::<BYTES>, Rc::clone(ended))).detach();
}

fn spawn_named_link<const BYTES: usize>(left: u32, ended: &Rc<Cell<u32>>) {
    let future = link::<BYTES>(left, spawn_named_link::<BYTES>, Rc::clone(ended));
    TaskBuilder::new().name("link").spawn_local(future).detach();
}

fn spawn_member_link<const BYTES: usize>(left: u32, ended: &Rc<Cell<u32>>) {
    let mut set = JoinSet::new();
    set.spawn(link::<BYTES>(
        left,
        spawn_member_link::<BYTES>,
        Rc::clone(ended),
    ));
    set.detach_all();
}

fn chain_ends(spawn: fn(u32, &Rc<Cell<u32>>)) {
    const LINKS: u32 = 100;
    let ended = Rc::new(Cell::new(0));
    LocalExecutor::default().run(async {
        spawn(LINKS - 1, &ended);
        while ended.get() < LINKS {
            yield_now().await;
        }
    });
}

#[test]
fn large_futures_that_spawn_each_other_do_not_overflow_the_stack() {
    on_a_usual_stack(|| {
        chain_ends(spawn_link::<1024>);
        chain_ends(spawn_link::<{ 32 << 10 }>);
        chain_ends(spawn_link::<{ 100 << 10 }>);
        chain_ends(spawn_link::<{ 150 << 10 }>);
        chain_ends(spawn_named_link::<1024>);
        chain_ends(spawn_named_link::<{ 32 << 10 }>);
        chain_ends(spawn_member_link::<1024>);
        chain_ends(spawn_member_link::<{ 32 << 10 }>);
    });
}

/// The first is polled at once, however large it is; inside it, as far as there is space.
#[test]
fn how_deep_first_polls_are_nested_depends_on_the_size_of_the_futures() {
    fn noted<const BYTES: usize>(
        notes: &Log,
        name: &'static str,
        inside: impl FnOnce() + 'static,
    ) -> impl Future<Output = ()> + 'static {
        let notes = notes.clone();
        async move {
            let memory = [1_u8; BYTES];
            notes.note(format!("{name} begins"));
            inside();
            notes.note(format!("{name} waits"));
            yield_now().await;
            assert_eq!(memory[0], 1);
        }
    }
    on_a_usual_stack(|| {
        let notes = Log::default();
        LocalExecutor::default().run(async {
            let (small, other) = (notes.clone(), notes.clone());
            spawn_local(noted::<{ 150 << 10 }>(&notes, "first", move || {
                spawn_local(noted::<1>(&small, "small", || ())).detach();
                spawn_local(noted::<{ 64 << 10 }>(&other, "large", || ())).detach();
            }))
            .detach();
            notes.note("spawned");
            yield_now().await;
            yield_now().await;
        });
        assert_eq!(
            notes.take(),
            [
                "first begins",
                "first waits",
                "spawned",
                "small begins",
                "small waits",
                "large begins",
                "large waits"
            ]
        );
    });
}
