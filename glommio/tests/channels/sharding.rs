//! Messages routed between shards: to the right one, in order, all of them, and `close` as a
//! barrier.

use futures_lite::stream;
use glommio::channels::channel_mesh::{FullMesh, MeshBuilder};
use glommio::channels::sharding::{Handler, HandlerResult, Sharded};

use crate::common::prelude::*;

/// Notes what comes, with where it came from.
#[derive(Clone, Default)]
struct Notes {
    handled: Rc<RefCell<Vec<(usize, u64)>>>,
    yields: usize,
}

impl Handler<u64> for Notes {
    fn handle(&self, msg: u64, src_shard: usize, cur_shard: usize) -> HandlerResult {
        let notes = self.clone();
        Box::pin(async move {
            for _ in 0..notes.yields {
                executor().yield_now().await;
            }
            assert_eq!(msg as usize % 10, cur_shard, "it belongs here");
            notes.handled.borrow_mut().push((src_shard, msg));
        })
    }
}

/// The last digit says to which shard a message belongs.
fn route(message: &u64, _shards: usize) -> usize {
    *message as usize % 10
}

/// Runs `work` on so many shards.
fn on_shards<F, T>(
    shards: usize,
    size: usize,
    yields: usize,
    work: impl Fn(Sharded<u64, Notes>, Notes) -> F + Send + Clone + 'static,
) -> Vec<T>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let _watchdog = (operations() <= 1_000_000).then(watchdog);
    let mesh: FullMesh<u64> = MeshBuilder::full(shards, size);
    let executors: Vec<_> = (0..shards)
        .map(|_| {
            let (mesh, work) = (mesh.clone(), work.clone());
            let run = move || async move {
                let notes = Notes {
                    yields,
                    ..Notes::default()
                };
                let sharded = Sharded::new(mesh, route, notes.clone()).await.unwrap();
                work(sharded, notes).await
            };
            spawn_executor(run)
        })
        .collect();
    executors.into_iter().map(|it| it.join().unwrap()).collect()
}

#[test]
fn messages_come_to_where_they_belong() {
    on_shards(3, 4, 0, |mut sharded, notes| async move {
        let id = sharded.shard_id();
        assert_eq!(sharded.nr_shards(), 3);
        // By the function, and past it.
        for dst in 0..3 {
            sharded.send(100 + dst).await.unwrap();
            sharded.send_to(dst as usize, 200 + dst).await.unwrap();
        }
        sharded.close().await;
        let mut handled = notes.handled.take();
        handled.sort_unstable();
        let own = id as u64;
        let expected: Vec<_> = (0..3)
            .flat_map(|src| [(src, 100 + own), (src, 200 + own)])
            .collect();
        assert_eq!(handled, expected);
    });
}

#[test]
fn a_local_message_is_handled_when_its_send_is_done() {
    on_shards(1, 1, 3, |sharded, notes| async move {
        sharded.send(10).await.unwrap();
        assert_eq!(notes.handled.take(), [(0, 10)]);
    });
}

#[test]
fn a_shard_that_is_not_there_is_refused() {
    on_shards(2, 1, 0, |mut sharded, notes| async move {
        for sent in [sharded.send_to(2, 2).await, sharded.send(9).await] {
            let Err(GlommioError::IoError(error)) = sent else {
                panic!("there is no such shard");
            };
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        }
        // In a stream it ends the stream, and closing works.
        sharded.handle(stream::iter([10, 9, 10])).unwrap();
        sharded.close().await;
        let from_itself = notes.handled.take().contains(&(sharded.shard_id(), 10));
        assert_eq!(from_itself, sharded.shard_id() == 0);
    });
}

#[test]
fn streams_are_sent_in_order_however_slow_the_handlers() {
    let counts = on_shards(3, 1, 2, |mut sharded, notes| async move {
        // Two streams; each is in order, and neither waits for the other.
        for first in [0, 1_000_000] {
            let messages = (0..300_u64).map(move |number| first + 10 * number + number % 3);
            sharded.handle(stream::iter(messages)).unwrap();
        }
        sharded.close().await;
        let handled = notes.handled.take();
        for src in 0..3 {
            for is_second in [false, true] {
                let of = |(from, message): &&(usize, u64)| {
                    *from == src && (*message >= 1_000_000) == is_second
                };
                let messages: Vec<_> = handled.iter().filter(of).map(|it| it.1).collect();
                assert!(messages.is_sorted());
                assert_eq!(messages.len(), 100);
            }
        }
        handled.len()
    });
    assert_eq!(counts, [600; 3]);
}

#[test]
fn closing_refuses_what_comes_later_and_waits_for_what_came_before() {
    on_shards(2, 1, 0, |mut sharded, notes| async move {
        let (sender, receiver) = local_channel::new_unbounded();
        sharded.handle(receiver.into_stream()).unwrap();
        sender.try_send(0).unwrap();
        sender.try_send(1).unwrap();
        // The stream goes on: closing waits.
        assert!(poll_once(sharded.close()).await.is_none());
        let refused = sharded.handle(stream::iter([0])).unwrap_err();
        assert!(matches!(
            refused,
            GlommioError::Closed(ResourceType::Channel(_))
        ));
        let own = sharded.shard_id() as u64;
        assert_eq!(sharded.send(own).await.unwrap_err().into_inner(), Some(own));
        assert_eq!(
            sharded.send_to(0, 0).await.unwrap_err().into_inner(),
            Some(0)
        );
        // What is under way is not affected.
        sender.try_send(10).unwrap();
        sender.try_send(11).unwrap();
        drop(sender);
        sharded.close().await;
        sharded.close().await;
        let mut handled = notes.handled.take();
        handled.sort_unstable();
        assert_eq!(handled, [(0, own), (0, 10 + own), (1, own), (1, 10 + own)]);
        assert!(format!("{sharded:?}").contains("is_closed: true"));
    });
}

#[test]
fn handling_a_stream_begins_after_the_call() {
    on_shards(1, 1, 0, |mut sharded, notes| async move {
        sharded
            .handle(stream::iter((0..50).map(|it| 10 * it)))
            .unwrap();
        assert!(notes.handled.borrow().is_empty(), "it returns at once");
        sharded.close().await;
        assert_eq!(notes.handled.take().len(), 50);
    });
}

/// The stream ends when another task has run.
#[test]
fn local_messages_that_are_always_ready_let_others_run() {
    on_shards(1, 1, 0, |mut sharded, _notes| async move {
        let has_run = Rc::new(Cell::new(false));
        let is_over = Rc::clone(&has_run);
        sharded
            .handle(stream::repeat(10).take_while(move |_| !is_over.get()))
            .unwrap();
        glommio::timer::sleep(std::time::Duration::from_millis(1)).await;
        has_run.set(true);
        sharded.close().await;
    });
}

/// As many messages of another shard are handled in one poll as of any other source.
#[test]
fn messages_of_other_shards_that_are_always_ready_let_others_run() {
    let has_run = Arc::new(AtomicUsize::new(0));
    on_shards(2, 1024, 0, move |mut sharded, _notes| {
        let has_run = Arc::clone(&has_run);
        async move {
            let id = sharded.shard_id() as u64;
            if id == 1 {
                let is_over = Arc::clone(&has_run);
                let messages = stream::repeat(0);
                let messages = messages.take_while(move |_| is_over.load(Ordering::Relaxed) == 0);
                sharded.handle(messages).unwrap();
            } else {
                glommio::timer::sleep(std::time::Duration::from_millis(5)).await;
                has_run.store(1, Ordering::Relaxed);
            }
            sharded.close().await;
        }
    });
}

/// Nothing is handled after any shard has come out of `close`.
#[test]
fn closing_is_a_barrier() {
    let under_way = Arc::new(AtomicUsize::new(3));
    on_shards(3, 1, 1, move |mut sharded, notes| {
        let under_way = Arc::clone(&under_way);
        async move {
            let messages = (0..100_u64).map(|number| 10 * number + number % 3);
            sharded.handle(stream::iter(messages)).unwrap();
            if sharded.shard_id() == 0 {
                glommio::timer::sleep(std::time::Duration::from_millis(20)).await;
            }
            under_way.fetch_sub(1, Ordering::SeqCst);
            sharded.close().await;
            assert_eq!(
                under_way.load(Ordering::SeqCst),
                0,
                "all have begun to close"
            );
            assert!((99..=102).contains(&notes.handled.take().len()));
        }
    });
}

#[test]
fn a_shard_that_ends_without_closing_ends_the_others_wait() {
    on_shards(3, 1, 0, |mut sharded, _notes| async move {
        if sharded.shard_id() == 1 {
            return;
        }
        sharded
            .handle(stream::iter(std::iter::repeat_n(1, 1000)))
            .unwrap();
        sharded.close().await;
    });
}

#[test]
fn a_shard_that_is_dropped_handles_on_until_the_others_close() {
    on_shards(2, 1, 0, |mut sharded, notes| async move {
        if sharded.shard_id() == 0 {
            drop(sharded);
            while notes.handled.borrow().len() < 10 {
                executor().yield_now().await;
            }
        } else {
            sharded
                .handle(stream::iter((0..10).map(|it| 10 * it)))
                .unwrap();
            sharded.close().await;
        }
    });
}

#[test]
fn a_panicking_handler_does_not_leave_close_waiting() {
    #[derive(Clone)]
    struct Panics(Rc<Cell<bool>>);
    impl Handler<u64> for Panics {
        fn handle(&self, _: u64, _: usize, _: usize) -> HandlerResult {
            self.0.set(true);
            Box::pin(async { std::panic::resume_unwind(Box::new("a quiet panic")) })
        }
    }
    let panicked = std::panic::catch_unwind(|| {
        run(async {
            let has_run = Rc::new(Cell::new(false));
            let mesh: FullMesh<u64> = MeshBuilder::full(1, 1);
            let handler = Panics(Rc::clone(&has_run));
            let mut sharded = Sharded::new(mesh, |_, _| 0, handler).await.unwrap();
            let closing = spawn_local(async move {
                executor().yield_now().await;
                sharded.handle(stream::iter([1])).unwrap();
                sharded.close().await;
            });
            closing.await;
        });
    });
    assert!(panicked.is_err(), "a panic of a task ends `run`");
}

/// Every shard sends to all others through channels of one message, from several streams.
#[test]
fn shards_do_not_stop_each_other() {
    let each = operations() / 100;
    for shards in [2, 4, 8] {
        let counts = on_shards(shards, 1, 0, move |mut sharded, notes| async move {
            for offset in 0..2 {
                let messages =
                    (0..each).map(move |number| 10 * number + (number + offset) % shards as u64);
                sharded.handle(stream::iter(messages)).unwrap();
            }
            sharded.close().await;
            notes.handled.take().len()
        });
        assert_eq!(counts.iter().sum::<usize>(), 2 * shards * each as usize);
    }
}
