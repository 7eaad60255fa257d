//! The monitor: starts a worker, stops and continues it now and then, and says how it ended.
//!
//! ```text
//!                    request       stall begins          stall is over
//!   signals ───────▶ ┌──────────────────────────────────────────────┐
//!   wire ──────────▶ │ poll: whatever comes first                   │──▶ SIGSTOP, SIGCONT, SIGKILL
//!   next stall ────▶ └──────────────────────────────────────────────┘──▶ wire
//!   must be over ──▶       until the worker is gone
//! ```
//!
//! One thread and one loop. The monitor does nothing else while the worker runs, so that it is never
//! late to tell when a stall was: the worker judges lags half a second after they were seen.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use glommio::Driver;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::Pid;

use super::signals::{Request, Signals};
use super::stalls::{Stall, Stalls};
use crate::record::{Outcome, Record, Row, RowStatus};
use crate::supervisor::wire::{self, Lines, ToMonitor, ToWorker};

/// What a worker is started for.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) program: PathBuf,
    /// Instead of what the environment says.
    pub(crate) driver: Option<Driver>,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) duration: Duration,
    /// When the worker is stopped, if at all.
    pub(crate) stalls: Option<Stalls>,
    /// How long after its time the worker may go on before it is killed.
    pub(crate) grace: Duration,
}

/// How a worker ended.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// With a verdict.
    Judged(Box<Record>),
    /// Without one: the record, if it had begun, says why.
    Died(How, Option<Box<Record>>),
    /// It was killed because the user did not want to wait.
    AtOnce,
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Signal(Signal),
    Status(ExitStatus),
    /// It went on for so long after its time, and was killed.
    Overtime(Duration),
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            How::Signal(signal) => write!(f, "the soak died of {signal}"),
            How::Status(status) => write!(f, "the soak ended without a verdict ({status})"),
            How::Overtime(grace) => {
                write!(f, "the soak had not ended {grace:?} after its time")
            }
        }
    }
}

impl Job {
    /// Starts the worker and stays with it until it is gone.
    pub(crate) fn supervise(self, signals: &mut Signals) -> io::Result<Ended> {
        let mut monitor = Monitor::start(self, signals)?;
        let status = loop {
            if let Some(status) = monitor.worker.try_wait()? {
                break status;
            }
            monitor.wait()?;
            monitor.receive()?;
            monitor.handle_requests()?;
            monitor.act(Instant::now())?;
        };
        // What it said last may still be on the wire.
        while !monitor.is_silent {
            monitor.receive()?;
        }
        Ok(monitor.conclude(status))
    }
}

struct Monitor<'a> {
    job: Job,
    signals: &'a mut Signals,
    worker: Child,
    wire: UnixStream,
    lines: Lines,
    /// The worker has closed its end: it is about to be gone.
    is_silent: bool,
    began: Option<Instant>,
    record: Option<Box<Record>>,
    is_judged: bool,
    standing: Still,
    must_end_by: Instant,
    ending: Option<Ending>,
}

/// Whether the worker is stopped.
#[derive(Clone, Copy, Debug)]
enum Still {
    /// No stall is to come.
    Never,
    At(Instant, Duration),
    Now {
        since_ns: u64,
        until: Instant,
    },
}

/// Why the worker was killed.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Overtime,
    AtOnce,
}

impl<'a> Monitor<'a> {
    fn start(job: Job, signals: &'a mut Signals) -> io::Result<Self> {
        let (wire, theirs) = UnixStream::pair()?;
        wire.set_nonblocking(true)?;
        let driver = job.driver.map(|it| ("GLOMMIO_DRIVER", it.to_string()));
        let worker = Command::new(&job.program)
            .args(&job.arguments)
            .envs(driver)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()?;
        Ok(Monitor {
            must_end_by: after(job.duration + job.grace),
            job,
            signals,
            worker,
            wire,
            lines: Lines::default(),
            is_silent: false,
            began: None,
            record: None,
            is_judged: false,
            standing: Still::Never,
            ending: None,
        })
    }

    /// Waits for a message, a signal, or the next deadline.
    fn wait(&self) -> io::Result<()> {
        let next = match self.standing {
            Still::Never => self.must_end_by,
            Still::At(next, _) | Still::Now { until: next, .. } => next.min(self.must_end_by),
        };
        let mut limit = next.saturating_duration_since(Instant::now());
        let mut polled = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        if self.is_silent {
            limit = limit.min(LOOK_EVERY);
        } else {
            polled.push(PollFd::new(self.wire.as_fd(), PollFlags::POLLIN));
        }
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        match poll(&mut polled, limit) {
            // The monitor itself was stopped and continued.
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Reads what the worker has sent, if anything.
    fn receive(&mut self) -> io::Result<()> {
        let mut piece = [0; 1 << 16];
        let length = match self.wire.read(&mut piece) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            // It died before it had read everything.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) => return Err(error),
        };
        self.is_silent = length == 0;
        for message in self.lines.messages(&piece[..length])? {
            match message {
                ToMonitor::Began(record) => {
                    let now = Instant::now();
                    self.began = Some(now);
                    self.must_end_by = after(self.job.duration + self.job.grace);
                    self.record = Some(record);
                    self.standing = self.next_stall();
                }
                ToMonitor::Draining => {
                    self.job.stalls = None;
                    self.standing = Still::Never;
                    self.must_end_by = after(self.job.grace);
                }
                ToMonitor::Ended(record) => {
                    self.record = Some(record);
                    self.is_judged = true;
                }
            }
        }
        Ok(())
    }

    /// What the user wants, if anything.
    fn handle_requests(&mut self) -> io::Result<()> {
        while let Some(request) = self.signals.next_request()? {
            match request {
                Request::End => {
                    self.go_on()?;
                    self.job.stalls = None;
                    self.standing = Still::Never;
                    self.must_end_by = after(self.job.grace);
                    self.tell(ToWorker::Interrupt);
                }
                Request::EndAtOnce => self.end(Ending::AtOnce)?,
                Request::Pause => self.pause()?,
            }
        }
        Ok(())
    }

    /// What is due.
    fn act(&mut self, now: Instant) -> io::Result<()> {
        match self.standing {
            Still::At(from, lasts) if from <= now => {
                let since_ns = wire::monotonic_ns()?;
                self.signal(Signal::SIGSTOP)?;
                let until = Instant::now() + lasts;
                self.standing = Still::Now { since_ns, until };
            }
            Still::Now { until, .. } if until <= now => self.go_on()?,
            _ => {}
        }
        if self.must_end_by <= now {
            self.end(Ending::Overtime)?;
        }
        Ok(())
    }

    /// Ends a stall, if there is one, and tells of it.
    fn go_on(&mut self) -> io::Result<()> {
        if let Still::Now { since_ns, .. } = self.standing {
            self.signal(Signal::SIGCONT)?;
            self.tell_of_stall(since_ns)?;
            self.standing = self.next_stall();
        }
        Ok(())
    }

    /// Ctrl-Z: both processes stand still until the shell continues them. For the worker that is a
    /// stall like any other.
    fn pause(&mut self) -> io::Result<()> {
        let since_ns = match self.standing {
            Still::Now { since_ns, .. } => since_ns,
            _ => wire::monotonic_ns()?,
        };
        self.signal(Signal::SIGSTOP)?;
        raise(Signal::SIGSTOP)?;
        self.signal(Signal::SIGCONT)?;
        self.tell_of_stall(since_ns)?;
        self.standing = self.next_stall();
        self.must_end_by = self.must_end_by.max(after(self.job.grace));
        Ok(())
    }

    fn tell_of_stall(&self, from_ns: u64) -> io::Result<()> {
        let to_ns = wire::monotonic_ns()?;
        self.tell(ToWorker::Stall { from_ns, to_ns });
        Ok(())
    }

    /// The next stall: one that is overdue, because this process did not run, is made at once.
    fn next_stall(&mut self) -> Still {
        let (Some(began), Some(stalls)) = (self.began, &mut self.job.stalls) else {
            return Still::Never;
        };
        stalls
            .after(began.elapsed())
            .map_or(Still::Never, |Stall { from, lasts }| {
                Still::At(began + from, lasts)
            })
    }

    fn end(&mut self, ending: Ending) -> io::Result<()> {
        self.ending.get_or_insert(ending);
        // Nothing but its death is to come.
        self.standing = Still::Never;
        self.must_end_by = after(self.job.grace);
        self.signal(Signal::SIGKILL)
    }

    /// It is our child and we have not waited for it, so the number is still its own.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        let worker = i32::try_from(self.worker.id()).map_err(io::Error::other)?;
        Ok(kill(Pid::from_raw(worker), signal)?)
    }

    fn tell(&self, message: ToWorker) {
        // A worker that is about to be gone need not receive it, and that it is gone shows
        // elsewhere. One that does not read has room for hundreds of messages.
        let _ = wire::send(&self.wire, &message);
    }

    fn conclude(self, status: ExitStatus) -> Ended {
        let how = match (self.ending, status.signal()) {
            (Some(Ending::AtOnce), _) => return Ended::AtOnce,
            (Some(Ending::Overtime), _) => How::Overtime(self.job.grace),
            (None, Some(number)) => {
                Signal::try_from(number).map_or(How::Status(status), How::Signal)
            }
            (None, None) => match (self.record, self.is_judged) {
                (Some(record), true) => return Ended::Judged(record),
                (record, _) => return died(How::Status(status), record, self.began),
            },
        };
        died(how, self.record, self.began)
    }
}

/// Enters into the record of a worker that died how it did.
fn died(how: How, record: Option<Box<Record>>, began: Option<Instant>) -> Ended {
    let record = record.map(|mut record| {
        record.ran_s = began.map_or(0.0, |began| began.elapsed().as_secs_f64());
        record.outcome = Outcome::Fail;
        record.words.push(how.to_string());
        record.rows.push(Row {
            invariant: "the soak itself lived".to_owned(),
            meaning: "The process that runs the executors came to its verdict.".to_owned(),
            checks: 1,
            violations: 1,
            worst: "1".to_owned(),
            bound: "0".to_owned(),
            standing: RowStatus::Fail,
        });
        record
    });
    Ended::Died(how, record)
}

fn after(limit: Duration) -> Instant {
    Instant::now() + limit
}

/// How often a worker that is about to be gone is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);
