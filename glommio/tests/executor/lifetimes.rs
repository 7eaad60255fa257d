//! Executors come and go without leaving anything behind.

use crate::common::prelude::*;
use crate::common::resident_bytes;
use crate::counting::Allocations;

/// The address sanitizer keeps freed memory for a while: less of it, where memory is counted.
const KEEP_LITTLE: (&str, &str) = ("ASAN_OPTIONS", "quarantine_size_mb=1");

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Another thread, which wakes tasks of executors that are gone. Allocates nothing.
#[derive(Default)]
struct LateWaker {
    wakers: Mutex<Vec<Waker>>,
    is_asked: AtomicBool,
    is_done: AtomicBool,
}

impl LateWaker {
    /// How many wakers are kept before all of them are woken.
    const KEPT: usize = 100;

    fn keep(&self, waker: Waker) {
        let mut wakers = self.wakers.lock().unwrap();
        wakers.push(waker);
        if wakers.len() == Self::KEPT {
            drop(wakers);
            self.is_asked.store(true, Ordering::SeqCst);
            wait_until(|| !self.is_asked.load(Ordering::SeqCst));
            self.wakers.lock().unwrap().clear();
        }
    }

    fn serve(&self) {
        while !self.is_done.load(Ordering::SeqCst) {
            if self.is_asked.load(Ordering::SeqCst) {
                self.wakers
                    .lock()
                    .unwrap()
                    .iter()
                    .for_each(Waker::wake_by_ref);
                self.is_asked.store(false, Ordering::SeqCst);
            }
            thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Spawns tasks that never end, and counts those whose destructors ran where they should.
#[derive(Default)]
struct Endless {
    spawned: usize,
    drops: DropCount,
}

impl Endless {
    /// `future`, with a guard that sees its end: on this thread, with this executor current.
    fn with_guard(&mut self, future: impl Future + 'static) -> impl Future<Output = ()> + 'static {
        self.spawned += 1;
        let (counted, id, home) = (self.drops.guard(), executor().id(), thread::current().id());
        let guard = on_drop(move || {
            assert_eq!((executor().id(), thread::current().id()), (id, home));
            drop(counted);
        });
        async move {
            let _guard = guard;
            future.await;
            unreachable!("nothing ends this task");
        }
    }

    fn spawn(&mut self, future: impl Future + 'static) {
        spawn_local(self.with_guard(future)).detach();
    }

    /// A read, a datagram and an accept, for each of which nothing is sent.
    async fn spawn_sockets(&mut self) {
        let (listener, address) = bound().expect("a port is free");
        let client = TcpStream::connect(address).await.expect("it listens");
        let server = listener.accept().await.expect("there is one");
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        for mut stream in [client, server] {
            self.spawn(async move { stream.read(&mut [0; 64]).await });
        }
        self.spawn(async move { datagrams.recv_from(&mut [0; 64]).await });
        self.spawn(async move { listener.accept().await });
    }

    /// Two tasks in queues of their own, each of which owns the handle of the other and waits for
    /// it.
    async fn spawn_cycle(&mut self) {
        let slots: [Rc<RefCell<Option<Task<()>>>>; 2] = Default::default();
        for i in 0..2 {
            let (own, other) = (Rc::clone(&slots[i]), Rc::clone(&slots[1 - i]));
            let queue = queue("of one");
            let waits = self.with_guard(async move {
                let _own = own;
                yield_now().await;
                let task = other.borrow_mut().take().expect("taken once");
                task.await;
            });
            let task = spawn_in(queue, waits);
            *slots[i].borrow_mut() = Some(task);
        }
    }
}

/// One executor with a bit of everything under way when it is dropped.
fn live_and_die(late_waker: &LateWaker, with_blocking_calls: bool) {
    let made = LocalExecutor::default();
    let mut endless = Endless::default();
    let parking = Parking::default();
    let kept = made.run(async {
        for hours in 1..4 {
            endless.spawn(sleep(AN_HOUR * hours));
        }
        endless.spawn(parking.clone());
        endless.spawn_sockets().await;
        endless.spawn_cycle().await;
        if with_blocking_calls {
            // The second waits behind the first, and may not have started at the end.
            for _ in 0..2 {
                let call = executor().spawn_blocking(|| thread::sleep(Duration::from_micros(50)));
                spawn_local(call).detach();
            }
        }
        // Until all of them wait, and the kernel knows.
        for _ in 0..3 {
            sleep(Duration::from_nanos(1)).await;
        }
        spawn_local(parking.clone())
    });
    let waker = parking.waker().expect("a task waits there");
    waker.wake_by_ref();
    assert_eq!(endless.drops.count(), 0);
    drop(made);
    assert_eq!(endless.drops.count(), endless.spawned);
    late_waker.keep(waker);
    drop(kept);
}

fn assert_nothing_grows(executors: usize, with_blocking_calls: bool) {
    let late_waker = LateWaker::default();
    late_waker.wakers.lock().unwrap().reserve(LateWaker::KEPT);
    thread::scope(|scope| {
        scope.spawn(|| late_waker.serve());
        let _ends = on_drop(|| late_waker.is_done.store(true, Ordering::SeqCst));
        let threads_before = threads();
        let settled = || {
            // Threads of the blocking pools end by themselves.
            wait_until(|| threads() <= threads_before);
            (
                descriptors(),
                resident_bytes(),
                Allocations::of_this_thread(),
            )
        };
        let live =
            |executors| (0..executors).for_each(|_| live_and_die(&late_waker, with_blocking_calls));
        live(executors / 10);
        let (fds, resident, allocated) = settled();
        live(executors);
        let (fds_after, resident_after, allocated_after) = settled();
        assert_eq!(fds_after, fds);
        if !with_blocking_calls {
            // A call's memory is freed by the pool's thread. All else is freed where it was
            // allocated.
            assert_eq!(
                allocated_after.since(allocated).bytes,
                0,
                "bytes stay behind"
            );
        }
        let grown = resident_after.saturating_sub(resident);
        // One leaked task per executor would show as several megabytes, one ring as gigabytes.
        assert!(grown < 8 << 20, "{grown} bytes over {executors} executors");
    });
}

#[run_test(in_child_with(&[KEEP_LITTLE]))]
fn thousands_of_executors_leave_no_descriptor_thread_or_byte() {
    assert_nothing_grows(rounds(2_000), false)
}

#[test]
fn executors_with_blocking_calls_under_way_leave_nothing_either() {
    in_child_with(&[KEEP_LITTLE], || assert_nothing_grows(rounds(2_000), true));
}

#[run_test(in_child_with(&[KEEP_LITTLE]))]
fn many_tasks_one_after_the_other_leave_nothing_in_a_running_executor() {
    LocalExecutor::default().run(async {
        let live = async |count: u32| {
            for i in 0..count {
                match i % 4 {
                    0 => spawn_local(async {}).await,
                    1 => spawn_local(yield_now()).await,
                    2 => drop(spawn_local(sleep(AN_HOUR))),
                    _ => drop(spawn_local(yield_now()).detach()),
                }
                if i % 1000 == 0 {
                    executor().spawn_blocking(|| ()).await;
                }
            }
        };
        live(50_000).await;
        let before = (descriptors(), resident_bytes());
        live(rounds(250_000) as u32).await;
        assert_eq!(descriptors(), before.0);
        let grown = resident_bytes().saturating_sub(before.1);
        assert!(grown < 8 << 20, "{grown} bytes");
    });
}
