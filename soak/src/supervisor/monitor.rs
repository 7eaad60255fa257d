//! The monitor: starts a worker, stops and continues it now and then, and says how it ended.
//!
//! ```text
//!   signals ──▶ thread ──┐
//!                        ├──▶ events ──▶ one loop ──▶ SIGSTOP, SIGCONT, SIGKILL
//!   wire ─────▶ thread ──┘                       └──▶ wire
//! ```
//!
//! The loop does nothing else while the worker runs, so that it is never late to tell when a stall was: the worker judges
//! lags half a second after they were seen.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use glommio::Driver;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use support::generator::{Draw, Rng, stream};

use super::worker::{ToMonitor, ToWorker, monotonic_ns};
use crate::record::{Outcome, Record, Row};

/// What a worker is started for.
pub(super) struct Job {
    pub(super) program: PathBuf,
    /// Instead of what the environment says.
    pub(super) driver: Option<Driver>,
    pub(super) arguments: Vec<OsString>,
    pub(super) duration: Duration,
    /// When the worker is stopped, if at all.
    pub(super) stalls: Option<Stalls>,
    /// How long after its time the worker may go on before it is killed.
    pub(super) grace: Duration,
}

/// How a worker ended.
pub(super) enum Ended {
    /// With a verdict.
    Judged(Box<Record>),
    /// Without one, in words; the record, if it had begun, says so.
    Died(String, Option<Box<Record>>),
    /// It was killed because the user did not want to wait.
    AtOnce,
}

enum Event {
    Said(ToMonitor),
    /// The worker has closed its end: it is gone, or about to be.
    Silent,
    /// The run is to end.
    Signal,
}

/// The signals that a user or a script sends are blocked in the monitor and, as it inherits the mask, in the worker:
/// whichever process they are sent to, the monitor alone acts on them.
pub(super) struct Monitor {
    events: Receiver<Event>,
    sender: Sender<Event>,
    interrupted_at: Option<Instant>,
}

impl Monitor {
    /// From here on the signals go nowhere else, in this thread and all that it starts.
    pub(super) fn start() -> io::Result<Self> {
        let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        signals.thread_block()?;
        let (sender, events) = mpsc::channel();
        let to_monitor = sender.clone();
        thread::spawn(move || {
            while signals.wait().is_ok() {
                // It is there for as long as this process.
                let _ = to_monitor.send(Event::Signal);
            }
        });
        Ok(Monitor {
            events,
            sender,
            interrupted_at: None,
        })
    }

    /// Whether the run was interrupted.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted_at.is_some()
    }

    /// Starts the worker and stays with it until it is gone.
    pub(super) fn supervise(&mut self, job: Job) -> io::Result<Ended> {
        let mut worker = Worker::start(job, self.sender.clone())?;
        loop {
            let wait = worker.next_act().saturating_duration_since(Instant::now());
            match self.events.recv_timeout(wait) {
                Ok(Event::Said(message)) => worker.said(message),
                Ok(Event::Silent) => break,
                Ok(Event::Signal) => self.signalled(&mut worker)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("this has a sender"),
            }
            worker.act(Instant::now())?;
        }
        let status = worker.child.wait()?;
        Ok(worker.conclude(status))
    }

    /// One Ctrl-C goes to both processes, and `timeout` signals first its child and then the whole group, so that the same
    /// request comes several times within a moment.
    fn signalled(&mut self, worker: &mut Worker) -> io::Result<()> {
        match self.interrupted_at {
            None => {
                self.interrupted_at = Some(Instant::now());
                worker.interrupt()
            }
            Some(first) if first.elapsed() >= REPEATS_FOR => worker.end(Killed::AtOnce),
            Some(_) => Ok(()),
        }
    }
}

struct Worker {
    job: Job,
    child: Child,
    wire: UnixStream,
    began: Option<Instant>,
    record: Option<Box<Record>>,
    is_judged: bool,
    still: Still,
    must_end_by: Instant,
    killed: Option<Killed>,
}

/// Whether the worker is stopped.
#[derive(Clone, Copy)]
enum Still {
    /// No stall is to come.
    Never,
    At(Instant, Duration),
    Now {
        since_ns: u64,
        until: Instant,
    },
}

#[derive(Clone, Copy)]
enum Killed {
    Overtime,
    AtOnce,
}

impl Worker {
    fn start(job: Job, events: Sender<Event>) -> io::Result<Self> {
        let (wire, theirs) = UnixStream::pair()?;
        let driver = job.driver.map(|it| ("GLOMMIO_DRIVER", it.to_string()));
        let child = Command::new(&job.program)
            .args(&job.arguments)
            .envs(driver)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()?;
        let lines = BufReader::new(wire.try_clone()?).lines();
        thread::spawn(move || {
            // A worker that dies may leave a part of a line, or bytes that it has not read.
            let messages = lines.map_while(|line| serde_json::from_str(&line.ok()?).ok());
            for message in messages.map(Event::Said).chain([Event::Silent]) {
                let _ = events.send(message);
            }
        });
        Ok(Worker {
            must_end_by: after(job.duration + job.grace),
            job,
            child,
            wire,
            began: None,
            record: None,
            is_judged: false,
            still: Still::Never,
            killed: None,
        })
    }

    fn next_act(&self) -> Instant {
        match self.still {
            Still::Never => self.must_end_by,
            Still::At(next, _) | Still::Now { until: next, .. } => next.min(self.must_end_by),
        }
    }

    fn said(&mut self, message: ToMonitor) {
        match message {
            ToMonitor::Began(record) => {
                self.began = Some(Instant::now());
                self.must_end_by = after(self.job.duration + self.job.grace);
                self.record = Some(record);
                self.still = self.next_stall();
            }
            ToMonitor::Draining => self.let_end(),
            ToMonitor::Ended(record) => {
                self.record = Some(record);
                self.is_judged = true;
            }
        }
    }

    /// Nothing but its end is to come.
    fn let_end(&mut self) {
        self.job.stalls = None;
        self.still = Still::Never;
        self.must_end_by = after(self.job.grace);
    }

    /// What is due.
    fn act(&mut self, now: Instant) -> io::Result<()> {
        match self.still {
            Still::At(from, lasts) if from <= now => {
                let since_ns = monotonic_ns()?;
                self.signal(Signal::SIGSTOP)?;
                let until = after(lasts);
                self.still = Still::Now { since_ns, until };
            }
            Still::Now { until, .. } if until <= now => self.go_on()?,
            _ => {}
        }
        if self.must_end_by <= now {
            self.end(Killed::Overtime)?;
        }
        Ok(())
    }

    /// Ends a stall, if there is one, and tells of it.
    fn go_on(&mut self) -> io::Result<()> {
        if let Still::Now { since_ns, .. } = self.still {
            self.signal(Signal::SIGCONT)?;
            let (from_ns, to_ns) = (since_ns, monotonic_ns()?);
            self.tell(ToWorker::Stall { from_ns, to_ns });
            self.still = self.next_stall();
        }
        Ok(())
    }

    fn interrupt(&mut self) -> io::Result<()> {
        self.go_on()?;
        self.let_end();
        self.tell(ToWorker::Interrupt);
        Ok(())
    }

    /// The next stall: one that is overdue, because this process did not run, is made at once.
    fn next_stall(&mut self) -> Still {
        let (Some(began), Some(stalls)) = (self.began, &mut self.job.stalls) else {
            return Still::Never;
        };
        let next = stalls.after(began.elapsed());
        next.map_or(Still::Never, |(from, lasts)| Still::At(began + from, lasts))
    }

    fn end(&mut self, killed: Killed) -> io::Result<()> {
        self.killed.get_or_insert(killed);
        self.let_end();
        self.signal(Signal::SIGKILL)
    }

    /// It is our child and we have not waited for it, so the number is still its own.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill(Pid::from_raw(self.child.id().cast_signed()), signal)?)
    }

    fn tell(&mut self, message: ToWorker) {
        let line = serde_json::to_string(&message).expect("it is plain data");
        // One that is about to be gone need not receive it. One that does not read has room for hundreds of messages.
        let _ = writeln!(self.wire, "{line}");
    }

    fn conclude(self, status: ExitStatus) -> Ended {
        let signal = status.signal().and_then(|it| Signal::try_from(it).ok());
        let how = match (self.killed, signal) {
            (Some(Killed::AtOnce), _) => return Ended::AtOnce,
            (Some(Killed::Overtime), _) => {
                format!("the soak had not ended {:?} after its time", self.job.grace)
            }
            (None, Some(signal)) => format!("the soak died of {signal}"),
            (None, None) => match self.record {
                Some(record) if self.is_judged => return Ended::Judged(record),
                _ => format!("the soak ended without a verdict ({status})"),
            },
        };
        let record = self.record.map(|mut record| {
            let ran = self.began.map(|began| began.elapsed());
            record.ran_s = ran.unwrap_or_default().as_secs_f64();
            record.outcome = Outcome::Fail;
            record.words.push(how.clone());
            record.rows.push(Row {
                invariant: "the soak itself lived".to_owned(),
                meaning: "The process that runs the executors came to its verdict.".to_owned(),
                checks: 1,
                violations: 1,
                worst: "1".to_owned(),
                bound: "0".to_owned(),
                standing: Outcome::Fail,
            });
            record
        });
        Ended::Died(how, record)
    }
}

fn after(limit: Duration) -> Instant {
    Instant::now() + limit
}

/// When the worker is stopped, and for how long, since the start of the run: drawn from the seed.
pub(super) struct Stalls {
    rng: Rng,
    window: Range<Duration>,
    reached: Duration,
}

impl Stalls {
    /// Of a run of `duration`, which is left alone at its beginning and its end.
    pub(super) fn new(seed: u64, duration: Duration) -> Self {
        let begin = ALONE_FIRST.min(duration / 8);
        Stalls {
            rng: stream(seed, STALL_STREAM),
            window: begin..duration - ALONE_LAST.min(duration / 4),
            reached: begin,
        }
    }

    /// From when and for how long the next one lasts: not before `ran`, and over in time.
    fn after(&mut self, ran: Duration) -> Option<(Duration, Duration)> {
        // However short the run is, two gaps of a third and two stalls of an eighth fit in.
        let window = self.window.end - self.window.start;
        let gap_max = GAP.end.min(window / 3);
        let gap = self.rng.uniform(GAP.start.min(gap_max / 2), gap_max);
        let lasts_max = LASTS.end.min(window / 8);
        let lasts_min = LASTS.start.min(lasts_max / 2);
        let lasts = self.rng.log_uniform(lasts_min, lasts_max);
        let from = (self.reached + gap).max(ran);
        self.reached = from + lasts;
        (self.reached <= self.window.end).then_some((from, lasts))
    }
}

/// Later than this another interrupt is a request of its own.
const REPEATS_FOR: Duration = Duration::from_secs(1);

const GAP: Range<Duration> = Duration::from_secs(3)..Duration::from_secs(8);
const LASTS: Range<Duration> = Duration::from_millis(20)..Duration::from_millis(400);

/// The executors are starting.
const ALONE_FIRST: Duration = Duration::from_secs(1);

/// Every lag is judged when the run ends, so the word of the last stall must have come by then.
const ALONE_LAST: Duration = Duration::from_secs(2);

/// Apart from whatever else draws from the same seed.
const STALL_STREAM: u64 = u64::MAX - 8;
