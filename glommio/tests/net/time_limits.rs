//! Which wait the time of a limit belongs to: the one that goes on, or the next.
//!
//! How late a limit strikes is counted in ticks, of which each begins when the one before is over.
//! On a machine that stands still there are fewer of them, and never more.

use futures_lite::io::{AsyncRead, AsyncWrite};
use glommio::timer::timeout;
use glommio::unconstrained;

use super::udp::local_pair;
use super::unix_datagram::unconnected_pair;
use super::unix_listener::Place;
use super::{AGES, PATIENCE, Result, aged_pair, pair, run};
use crate::common::prelude::*;

const TICK: Duration = Duration::from_millis(5);
const TICKS: u32 = 12;
const LIMIT: Duration = TICK.saturating_mul(TICKS);

/// Ends when its time limit is over (true), or when it made progress after all.
type Operation = Pin<Box<dyn Future<Output = bool>>>;

/// A direction of a socket with a time limit in which nothing moves.
struct Stuck {
    name: String,
    begin: Box<dyn Fn() -> Operation>,
}

impl Stuck {
    fn new<F: Future<Output = io::Result<usize>> + 'static>(
        name: impl Into<String>,
        begin: impl Fn() -> F + 'static,
    ) -> Self {
        Stuck {
            name: name.into(),
            begin: Box::new(move || {
                let operation = begin();
                Box::pin(async move {
                    match operation.await {
                        // The kernel still finds room for a few bytes now and then.
                        Ok(count) => {
                            assert_ne!(count, 0, "the peer is there and sends nothing");
                            false
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
                            true
                        }
                    }
                })
            }),
        }
    }

    /// Reads `stream`, whose peer sends nothing and is kept.
    fn read<S: AsyncRead + Unpin + 'static, P: 'static>(name: String, stream: S, peer: P) -> Self {
        let pair = Rc::new((RefCell::new(stream), peer));
        Stuck::new(name, move || {
            let pair = Rc::clone(&pair);
            poll_fn(move |cx| Pin::new(&mut *pair.0.borrow_mut()).poll_read(cx, &mut [0; 8]))
        })
    }

    /// Writes to `stream`, whose peer reads nothing and is kept.
    /// It is filled before it has the limit, which would pass meanwhile on a machine that stands
    /// still.
    async fn write<S: AsyncWrite + Unpin + 'static, P: 'static>(
        name: &str,
        mut stream: S,
        peer: P,
        set_limit: impl Fn(&S, Option<Duration>) -> Result<()>,
    ) -> Result<Self> {
        super::stream::fill(&mut stream).await;
        is_polled_otherwise().await;
        set_limit(&stream, Some(LIMIT))?;
        let pair = Rc::new((RefCell::new(stream), peer));
        Ok(Stuck::new(name, move || {
            let pair = Rc::clone(&pair);
            poll_fn(move |cx| Pin::new(&mut *pair.0.borrow_mut()).poll_write(cx, &[0; 4096]))
        }))
    }

    /// `call` of a datagram socket, which is kept with its peer.
    fn datagram<S: 'static, F: Future<Output = Result<usize>> + 'static>(
        name: &str,
        sockets: S,
        call: impl Fn(Rc<S>) -> F + 'static,
    ) -> Self {
        let sockets = Rc::new(sockets);
        Stuck::new(name, move || {
            let call = call(Rc::clone(&sockets));
            async move {
                call.await.map_err(|error| match error {
                    GlommioError::IoError(error) => error,
                    other => panic!("not an I/O error: {other}"),
                })
            }
        })
    }

    fn begin(&self) -> Operation {
        (self.begin)()
    }

    /// Begins anew until `wait` was over without progress.
    async fn until_it_times_out<T>(&self, mut wait: impl AsyncFnMut() -> (bool, T)) -> T {
        let started = Instant::now();
        loop {
            let (has_timed_out, told) = wait().await;
            if has_timed_out {
                return told;
            }
            assert!(started.elapsed() < PATIENCE, "{} goes on", self.name);
        }
    }
}

/// One at a time, since others would wake the task, too.
type Make = fn() -> Pin<Box<dyn Future<Output = Result<Stuck>>>>;

/// What waits in a stream: the limit is the stream's, and all waits of a direction share it.
const STREAMS: &[Make] = &[
    || Box::pin(tcp_read(AGES[0])),
    || Box::pin(tcp_read(AGES[1])),
    || Box::pin(tcp_write()),
    || Box::pin(unix_read()),
    || Box::pin(unix_write()),
];

/// What waits in a datagram socket: the limit is that of the call.
const DATAGRAMS: &[Make] = &[
    || Box::pin(udp_receive()),
    || Box::pin(udp_send()),
    || Box::pin(unix_receive()),
    || Box::pin(unix_send()),
];

fn all() -> impl Iterator<Item = &'static Make> {
    STREAMS.iter().chain(DATAGRAMS)
}

async fn tcp_read(age: usize) -> Result<Stuck> {
    let (stream, peer) = aged_pair(age).await?;
    stream.set_read_timeout(Some(LIMIT))?;
    let name = format!("a read of TCP after {age} others");
    Ok(Stuck::read(name, stream, peer))
}

async fn tcp_write() -> Result<Stuck> {
    let (stream, peer) = pair().await?;
    Stuck::write("a write to TCP", stream, peer, |it, limit| {
        it.set_write_timeout(limit)
    })
    .await
}

async fn unix_read() -> Result<Stuck> {
    let (stream, peer) = UnixStream::pair()?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(Stuck::read("a read of a Unix socket".into(), stream, peer))
}

async fn unix_write() -> Result<Stuck> {
    let (stream, peer) = UnixStream::pair()?;
    let set_limit = |it: &UnixStream, limit| it.set_write_timeout(limit);
    Stuck::write("a write to a Unix socket", stream, peer, set_limit).await
}

async fn udp_receive() -> Result<Stuck> {
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    udp.set_read_timeout(Some(LIMIT))?;
    let receive = async |udp: Rc<UdpSocket>| Ok(udp.recv_from(&mut [0; 8]).await?.0);
    Ok(Stuck::datagram("receiving by UDP", udp, receive))
}

async fn udp_send() -> Result<Stuck> {
    let (full, peer) = local_pair()?;
    while poll_once(unconstrained(full.send(b"full"))).await.is_some() {}
    full.set_write_timeout(Some(LIMIT))?;
    let send = async |pair: Rc<(UdpSocket, UdpSocket)>| pair.0.send(b"late").await;
    Ok(Stuck::datagram("sending by UDP", (full, peer), send))
}

async fn unix_receive() -> Result<Stuck> {
    let pair = UnixDatagram::pair()?;
    pair.0.set_read_timeout(Some(LIMIT))?;
    let receive = async |pair: Rc<(UnixDatagram, _)>| pair.0.recv(&mut [0; 8]).await;
    Ok(Stuck::datagram("receiving by a Unix socket", pair, receive))
}

async fn unix_send() -> Result<Stuck> {
    let (place, receiver, sender) = unconnected_pair()?;
    let fill = || unconstrained(sender.send_to(b"full", place.path()));
    while poll_once(fill()).await.is_some() {}
    sender.set_write_timeout(Some(LIMIT))?;
    let send =
        async |all: Rc<(Rc<UnixDatagram>, Place, _)>| all.0.send_to(b"late", all.1.path()).await;
    let sockets = (sender, place, receiver);
    Ok(Stuck::datagram("sending by a Unix socket", sockets, send))
}

/// What the task does at each tick: spawning polls the other task at once, in the middle of this
/// one.
async fn tick() -> Option<bool> {
    sleep(TICK).await;
    spawn_local(async {}).await;
    None
}

/// Awaits what `next` gives beside a tick, each time anew. Returns how it ended and how many ticks
/// went by.
async fn beside_ticks(is_tick_first: bool, mut next: impl AsyncFnMut() -> bool) -> (bool, u32) {
    let mut ticks = 0;
    loop {
        let wait = async { Some(next().await) };
        let ended = if is_tick_first {
            or(tick(), wait).await
        } else {
            or(wait, tick()).await
        };
        match ended {
            Some(has_timed_out) => return (has_timed_out, ticks),
            None => ticks += 1,
        }
        assert!(TICK * ticks < PATIENCE, "the limit never strikes");
    }
}

/// The limit strikes at the first poll after its time: not before, and after no more ticks than
/// fit.
async fn strikes_in_time(stuck: &Stuck, mut wait: impl AsyncFnMut() -> (bool, u32)) {
    let timed = async || {
        let began = Instant::now();
        let (has_timed_out, ticks) = wait().await;
        (has_timed_out, (ticks, began.elapsed()))
    };
    let (ticks, took) = stuck.until_it_times_out(timed).await;
    assert!(took >= LIMIT, "{} ended after {took:?}", stuck.name);
    // The first tick may have begun before the wait.
    assert!(
        ticks <= TICKS + 1,
        "{} took {ticks} ticks of {TICKS}",
        stuck.name
    );
}

#[run_test]
async fn a_wait_beside_a_tick_has_exactly_its_time() {
    for make in all() {
        let stuck = make().await?;
        for is_tick_first in [false, true] {
            strikes_in_time(&stuck, async || {
                let mut wait = stuck.begin();
                beside_ticks(is_tick_first, async || (&mut wait).await).await
            })
            .await;
        }
    }
}

/// Its loop drops the read at each tick and begins another one.
#[run_test]
async fn a_loop_that_reads_anew_at_each_tick_notices_a_silent_peer() {
    for make in STREAMS {
        let stuck = make().await?;
        for is_tick_first in [false, true] {
            let anew = async || stuck.begin().await;
            strikes_in_time(&stuck, async || beside_ticks(is_tick_first, anew).await).await;
        }
    }
}

/// Waits for half the time, gives up, and does something else.
async fn give_up(stuck: &Stuck, pause: Duration) {
    let half = timeout(LIMIT / 2, async { Ok(stuck.begin().await) });
    // On a thread that was delayed it has had the whole time.
    drop(half.await);
    sleep(pause).await;
}

/// The task is polled once and waits for nothing else in it.
async fn is_polled_otherwise() {
    for _ in 0..2 {
        executor().yield_now().await;
    }
}

/// A whole time for a wait that begins now.
async fn has_its_whole_time(stuck: &Stuck) {
    let wait = async || {
        let began = Instant::now();
        (stuck.begin().await, began.elapsed())
    };
    let took = stuck.until_it_times_out(wait).await;
    assert!(took >= LIMIT, "{} ended after {took:?}", stuck.name);
}

/// As long as it lives, its executor is never idle.
fn restless() -> Task<()> {
    spawn_local(async {
        loop {
            executor().yield_task_queue_now().await;
        }
    })
}

/// Before the time of the wait that was given up is over, with it, and after.
const PAUSES: [Duration; 3] = [TICK, TICK.saturating_mul(TICKS / 2), LIMIT];

#[run_test]
async fn a_wait_after_one_that_was_given_up_has_its_whole_time() {
    for is_idle in [true, false] {
        let _restless = (!is_idle).then(restless);
        for make in all() {
            let stuck = make().await?;
            for pause in PAUSES {
                give_up(&stuck, pause).await;
                has_its_whole_time(&stuck).await;
            }
        }
    }
}

/// The timer of the wait and that of the pause expire in one pass, so that the task is not polled
/// between them.
#[run_test]
async fn a_read_does_not_end_with_the_limit_of_one_given_up_before_a_pause() {
    for make in STREAMS {
        let stuck = make().await?;
        for pause in [LIMIT / 4, LIMIT, 2 * LIMIT] {
            let _ = poll_once(stuck.begin()).await;
            let block = spawn_local(async move {
                executor().yield_now().await;
                std::thread::sleep(3 * LIMIT);
            });
            sleep(pause).await;
            has_its_whole_time(&stuck).await;
            block.await;
        }
    }
}

/// As `select!` of `futures` polls its branches.
#[run_test]
async fn a_loop_that_polls_in_any_order_notices_a_silent_peer() {
    for make in STREAMS {
        let stuck = make().await?;
        let began = Instant::now();
        let mut ticks = 0;
        let anew = async || loop {
            let (mut wait, mut tick) = (stuck.begin(), Box::pin(sleep(TICK)));
            let mut is_tick_first = false;
            let has_ticked = poll_fn(|cx| {
                for is_tick in [is_tick_first, !is_tick_first] {
                    let polled = if is_tick {
                        tick.as_mut().poll(cx).map(|()| None)
                    } else {
                        wait.as_mut().poll(cx).map(Some)
                    };
                    if polled.is_ready() {
                        return polled;
                    }
                }
                is_tick_first = !is_tick_first;
                Poll::Pending
            });
            match has_ticked.await {
                Some(has_timed_out) => return (has_timed_out, ()),
                None => ticks += 1,
            }
            assert!(TICK * ticks < PATIENCE, "the limit never strikes");
        };
        stuck.until_it_times_out(anew).await;
        assert!(began.elapsed() >= LIMIT);
    }
}

/// A part of a task, with a waker of its own: polled when that was woken, and not each time that
/// the task is.
struct Part<F> {
    future: Pin<Box<F>>,
    bell: Arc<PartBell>,
}

#[derive(Default)]
struct PartBell {
    is_quiet: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl<F: Future> Part<F> {
    fn new(future: F) -> Self {
        Part {
            future: Box::pin(future),
            bell: Arc::default(),
        }
    }
}

impl Wake for PartBell {
    fn wake(self: Arc<Self>) {
        self.is_quiet.store(false, Ordering::Relaxed);
        let task = self.task.lock().expect("nothing panics").clone();
        task.into_iter().for_each(Waker::wake);
    }
}

impl<F: Future> Future for Part<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        *self.bell.task.lock().expect("nothing panics") = Some(cx.waker().clone());
        if self.bell.is_quiet.swap(true, Ordering::Relaxed) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&self.bell));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

/// The task is polled at each tick, the part that waits is not.
#[run_test]
async fn a_wait_in_a_part_of_a_task_has_exactly_its_time() {
    for make in all() {
        let stuck = make().await?;
        for is_tick_first in [false, true] {
            for wakes_every in [u32::MAX, 3] {
                strikes_in_time(&stuck, async || {
                    let mut part = Part::new(stuck.begin());
                    let mut polls = 0;
                    beside_ticks(is_tick_first, async || {
                        polls += 1;
                        if polls % wakes_every == 0 {
                            Arc::clone(&part.bell).wake();
                        }
                        (&mut part).await
                    })
                    .await
                })
                .await;
            }
        }
    }
}

#[run_test]
async fn a_wait_that_changes_from_part_to_part_has_exactly_its_time() {
    for make in all() {
        let stuck = make().await?;
        for is_tick_first in [false, true] {
            strikes_in_time(&stuck, async || {
                let mut wait = stuck.begin();
                beside_ticks(is_tick_first, async || Part::new(&mut wait).await).await
            })
            .await;
        }
    }
}

#[run_test]
async fn a_wait_after_the_alarm_of_one_that_a_part_gave_up_has_its_whole_time() {
    for make in all() {
        let stuck = make().await?;
        Part::new(async {
            give_up(&stuck, 2 * LIMIT).await;
            has_its_whole_time(&stuck).await;
        })
        .await;
    }
}

/// The new task may lie where the old one did, and is polled as often.
#[run_test]
async fn a_wait_of_another_task_has_its_whole_time() {
    for make in STREAMS {
        let stuck = Rc::new(make().await?);
        let was_given_up = Rc::new(Cell::new(false));
        for _ in 0..2 {
            let stuck = Rc::clone(&stuck);
            let was_given_up = Rc::clone(&was_given_up);
            let wait = spawn_local(async move {
                if was_given_up.get() {
                    return has_its_whole_time(&stuck).await;
                }
                let first = Part::new(stuck.begin());
                was_given_up.set(poll_once(first).await.is_none());
            });
            wait.await;
            sleep(LIMIT / 2).await;
        }
    }
}

/// The one that waited when the limit was set was given up.
#[run_test]
async fn a_limit_that_is_set_after_a_wait_was_given_up_is_that_of_the_next() {
    let (stream, _peer) = UnixStream::pair()?;
    let stream = Rc::new(RefCell::new(stream));
    let read = || {
        let stream = Rc::clone(&stream);
        poll_fn(move |cx| Pin::new(&mut *stream.borrow_mut()).poll_read(cx, &mut [0; 8]))
    };
    for pause in PAUSES {
        stream.borrow().set_read_timeout(None)?;
        assert!(poll_once(read()).await.is_none());
        is_polled_otherwise().await;
        stream.borrow().set_read_timeout(Some(LIMIT))?;
        sleep(LIMIT / 2).await;
        sleep(pause).await;
        let began = Instant::now();
        let error = read().await.expect_err("nothing is sent");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= LIMIT);
    }
}
