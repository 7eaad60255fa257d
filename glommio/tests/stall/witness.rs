//! What the cases share: a handler that remembers, and code that stalls until the signal has come.

use std::fmt;
use std::sync::Once;

use glommio::{StallDetection, StallDetectionHandler};

use crate::common::prelude::*;

/// What was told of one stall.
#[derive(Clone, Debug)]
pub struct Seen {
    pub executor: usize,
    pub queue: TaskQueueHandle,
    pub queue_name: String,
    pub task_name: Option<String>,
    pub budget: Duration,
    pub overage: Duration,
    /// The names of the frames.
    pub stack: Vec<String>,
    pub frames: usize,
    pub text: String,
}

impl Seen {
    pub fn was_in(&self, function: &str) -> bool {
        self.stack.iter().any(|name| name.contains(function))
    }

    /// Whether the stack was taken where a test stalls, and not on the way there.
    pub fn is_meant(&self) -> bool {
        self.was_in("stall_until_signalled")
    }
}

type Threshold = dyn Fn(TaskQueueHandle, Duration) -> Option<Duration> + Send + Sync;

/// A handler that remembers what it is told. Clones share their memory.
#[derive(Clone)]
pub struct Witness {
    signal: u8,
    threshold: Arc<Threshold>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Witness {
    pub fn new(
        signal: libc::c_int,
        threshold: impl Fn(TaskQueueHandle, Duration) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        Witness {
            signal: u8::try_from(signal).expect("the numbers of signals are small"),
            threshold: Arc::new(threshold),
            seen: Arc::default(),
        }
    }

    /// Allows every queue 10 ms beyond the preemption interval.
    pub fn of(signal: libc::c_int) -> Self {
        Witness::new(signal, |_, _| Some(Duration::from_millis(10)))
    }

    pub fn boxed(&self) -> Box<dyn StallDetectionHandler> {
        Box::new(self.clone())
    }

    /// An executor with short slices and this handler.
    pub fn executor(&self) -> LocalExecutor {
        LocalExecutorBuilder::default()
            .preempt_timer(INTERVAL)
            .detect_stalls(Some(self.boxed()))
            .make()
            .expect("an executor")
    }

    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().expect("no thread panics holding it"))
    }

    /// The only stall that was told of.
    pub fn the_one(&self) -> Seen {
        let mut seen = self.take();
        assert_eq!(seen.len(), 1, "{seen:#?}");
        seen.remove(0)
    }

    /// The stack of a stall in [`stall_until_signalled`], which `turn` calls in the only turn that
    /// outlasts its budget. On a busy machine a budget may end before the call; that is tried
    /// again.
    pub fn stack_of(&self, mut turn: impl FnMut()) -> Seen {
        const TRIES: usize = 20;
        let mut tries = std::iter::repeat_with(|| {
            turn();
            self.the_one()
        });
        tries
            .by_ref()
            .take(TRIES)
            .find(Seen::is_meant)
            .expect("a stack is taken while the task stalls")
    }

    /// How many clones of this there are.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.seen)
    }
}

/// The slice of [`Witness::executor`].
pub const INTERVAL: Duration = Duration::from_millis(10);

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").finish_non_exhaustive()
    }
}

impl StallDetectionHandler for Witness {
    fn threshold(&self, queue: TaskQueueHandle, interval: Duration) -> Option<Duration> {
        let threshold = (self.threshold)(queue, interval);
        let budget = threshold.map_or(Duration::ZERO, |it| interval.saturating_add(it));
        TURN.set((signals(), budget));
        threshold
    }

    fn signal(&self) -> u8 {
        self.signal
    }

    fn stall_in_task(&self, task: &str, detection: StallDetection<'_>) {
        self.stall(detection);
        let mut seen = self.seen.lock().expect("no thread panics holding it");
        let last = seen.last_mut().expect("it was put there just now");
        last.task_name = Some(task.to_owned());
    }

    fn stall(&self, detection: StallDetection<'_>) {
        let symbols = detection.trace.frames().iter().flat_map(|it| it.symbols());
        let stack = symbols
            .filter_map(|symbol| Some(symbol.name()?.to_string()))
            .collect();
        self.seen
            .lock()
            .expect("no thread panics holding it")
            .push(Seen {
                executor: detection.executor,
                queue: detection.queue_handle,
                queue_name: detection.queue_name.to_owned(),
                task_name: None,
                budget: detection.budget,
                overage: detection.overage,
                stack,
                frames: detection.trace.frames().len(),
                text: detection.to_string(),
            });
    }
}

thread_local! {
    static SIGNALS: AtomicUsize = const { AtomicUsize::new(0) };
    /// The signals before the turn that is being timed, and its budget.
    static TURN: Cell<(usize, Duration)> = const { Cell::new((0, Duration::ZERO)) };
}

/// Counts the signals that come to each thread, before the traps that are set from now on see them.
pub fn count_signals(signal: libc::c_int) {
    static ONCE: [Once; 65] = [const { Once::new() }; 65];
    ONCE[usize::try_from(signal).expect("it is positive")].call_once(|| {
        let count = || {
            SIGNALS.with(|signals| signals.fetch_add(1, Ordering::SeqCst));
        };
        // SAFETY: the action touches an atomic in a thread-local that needs no initialisation.
        unsafe { signal_hook_registry::register(signal, count) }.expect("it can be handled");
    });
}

/// Signals that the calling thread got so far.
pub fn signals() -> usize {
    SIGNALS.with(|signals| signals.load(Ordering::SeqCst))
}

/// Has [`stall_until_signalled`] wait for one more.
pub fn ignore_signals_so_far() {
    TURN.set((signals(), TURN.get().1));
}

/// Keeps the thread until its budget is over and it has got a signal that is counted.
#[inline(never)]
pub fn stall_until_signalled() {
    let started = Instant::now();
    let (before, budget) = TURN.get();
    while signals() == before || started.elapsed() < budget {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Called at the end of a function that calls another, keeps its frame from being reused for the
/// call, and the function from being merged with one that does the same.
pub fn has_a_frame(function: &str) {
    std::hint::black_box(function);
}

/// Sends the calling thread a signal, which has been handled when this returns.
pub fn raise(signal: libc::c_int) {
    // SAFETY: the tests have a handler for the signal in place.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}
