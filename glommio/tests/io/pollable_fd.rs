//! Descriptors of other kinds: what makes them ready, waits that are given up, and descriptors that
//! are closed.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

use glommio::Driver;
use glommio::io::{PollState, PollableFd};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::*;

/// Both ends of a pipe, of which neither blocks.
fn pipe_ends() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().expect("descriptors are free");
    fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("it is open");
    fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("it is open");
    (reader, writer)
}

/// Writes until no more fits.
fn fill(writer: &mut PipeWriter) {
    while writer.write(&[0; 4096]).is_ok() {}
}

#[run_test]
async fn a_pipe_is_readable_when_there_is_data() {
    let (reader, mut writer) = pipe_ends();
    let mut reader = PollableFd::new(reader)?;
    for round in 0..10_u8 {
        let waiting = async { reader.readable().await };
        let mut waiting = pin!(waiting);
        assert!(poll_once(&mut waiting).await.is_none());
        sleep(Duration::from_millis(1)).await;
        assert!(poll_once(&mut waiting).await.is_none(), "nothing has come");
        writer.write_all(&[round])?;
        waiting.await?;
        // As long as it is not read, it is there for others.
        reader.readable().await?;
        let mut byte = [0];
        assert_eq!(reader.get_ref().read(&mut byte)?, 1);
        assert_eq!(byte, [round]);
    }
    assert!(reader.get_mut().read(&mut [0]).is_err(), "it would block");
}

#[run_test]
async fn a_pipe_is_writable_when_there_is_room() {
    let (mut reader, mut writer) = pipe_ends();
    fill(&mut writer);
    let writer = PollableFd::new(writer)?;
    let mut waiting = pin!(writer.writable());
    assert!(poll_once(&mut waiting).await.is_none());
    sleep(Duration::from_millis(1)).await;
    assert!(poll_once(&mut waiting).await.is_none());
    reader.read_exact(&mut [0; 1 << 16])?;
    waiting.await
}

#[run_test]
async fn the_end_of_the_other_side_is_readiness() {
    let (reader, writer) = pipe_ends();
    let reader = PollableFd::new(reader)?;
    let mut waiting = pin!(reader.readable());
    assert!(poll_once(&mut waiting).await.is_none());
    drop(writer);
    waiting.await?;
    assert_eq!(reader.get_ref().read(&mut [0])?, 0);

    let (reader, mut writer) = pipe_ends();
    fill(&mut writer);
    let writer = PollableFd::new(writer)?;
    let mut waiting = pin!(writer.writable());
    assert!(poll_once(&mut waiting).await.is_none());
    drop(reader);
    waiting.await?;
    let error = writer.get_ref().write(&[0]).expect_err("no reader is left");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

#[run_test]
async fn an_eventfd_wakes_all_that_wait() {
    let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
    let event = EventFd::from_flags(flags).map_err(io::Error::from)?;
    let event = Rc::new(PollableFd::new(event)?);
    let wait = |_| {
        let event = Rc::clone(&event);
        spawn_local(async move { event.readable().await })
    };
    let waiting: Vec<_> = (0..8).map(wait).collect();
    event.writable().await?;
    sleep(Duration::from_millis(1)).await;
    event.get_ref().write(3).map_err(io::Error::from)?;
    for task in waiting {
        task.await?;
    }
    assert_eq!(event.get_ref().read(), Ok(3));
    assert!(poll_once(event.readable()).await.is_none());
}

/// A timer of the kernel, whose type of nix tells its number in another way.
struct KernelTimer(TimerFd);

impl AsRawFd for KernelTimer {
    fn as_raw_fd(&self) -> RawFd {
        std::os::fd::AsFd::as_fd(&self.0).as_raw_fd()
    }
}

#[run_test]
async fn a_timer_of_the_kernel_is_never_early() {
    const DELAY: Duration = Duration::from_millis(5);
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK);
    let timer = PollableFd::new(KernelTimer(timer.map_err(io::Error::from)?))?;
    for _ in 0..3 {
        let begin = Instant::now();
        let after = Expiration::OneShot(DELAY.into());
        (timer.get_ref().0)
            .set(after, TimerSetTimeFlags::empty())
            .map_err(io::Error::from)?;
        timer.readable().await?;
        assert!(begin.elapsed() >= DELAY);
        timer.get_ref().0.wait().map_err(io::Error::from)?;
    }
}

#[run_test]
async fn what_cannot_be_polled_is_ready() {
    let file = PollableFd::new(File::open("/proc/self/exe")?)?;
    file.readable().await?;
    file.writable().await
}

/// The one state goes from wait to wait, from one direction to the other and from one descriptor to
/// another.
#[run_test]
async fn a_state_serves_one_wait_after_the_other() {
    let (reader, mut writer) = pipe_ends();
    let reader = PollableFd::new(reader)?;
    let mut state = PollState::new();
    let mut readable = pin!(poll_fn(|cx| reader.poll_readable(cx, &mut state)));
    assert!(poll_once(&mut readable).await.is_none());
    writer.write_all(b"x")?;
    readable.await?;

    // Begun for another descriptor, then for another direction: both are begun anew.
    let (empty, _kept_open) = pipe_ends();
    let empty = PollableFd::new(empty)?;
    let readable = poll_fn(|cx| empty.poll_readable(cx, &mut state));
    assert!(poll_once(readable).await.is_none());
    poll_fn(|cx| reader.poll_readable(cx, &mut state)).await?;
    let writer = PollableFd::new(writer)?;
    let readable = poll_fn(|cx| writer.poll_readable(cx, &mut state));
    assert!(poll_once(readable).await.is_none());
    poll_fn(|cx| writer.poll_writable(cx, &mut state)).await
}

/// A pipe that can be taken out.
struct Place(Option<PipeReader>);

impl AsRawFd for Place {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

/// The number of the descriptor stays, but it is another file.
#[run_test(run_in_child)]
async fn an_exchanged_descriptor_is_waited_for_anew() {
    let (reader, _kept_open) = pipe_ends();
    let mut reader = PollableFd::new(Place(Some(reader)))?;
    let mut state = PollState::new();
    let readable = poll_fn(|cx| reader.poll_readable(cx, &mut state));
    assert!(poll_once(readable).await.is_none());
    // The kernel has it.
    sleep(Duration::from_millis(1)).await;
    let number = reader.as_raw_fd();
    drop(reader.get_mut().0.take());
    let (other, mut writer) = pipe_ends();
    assert_eq!(other.as_raw_fd(), number, "the lowest one that is free");
    reader.get_mut().0 = Some(other);
    writer.write_all(b"x")?;
    poll_fn(|cx| reader.poll_readable(cx, &mut state)).await
}

#[run_test(run_in_child)]
async fn dropped_waits_leave_no_descriptor() {
    yield_now().await;
    let before = descriptors();
    for round in 0..500 {
        let (reader, mut writer) = pipe_ends();
        fill(&mut writer);
        let (reader, writer) = (PollableFd::new(reader)?, PollableFd::new(writer)?);
        {
            let (mut readable, mut writable) = (pin!(reader.readable()), pin!(writer.writable()));
            for _ in 0..round % 3 {
                let _ = poll_once(&mut readable).await;
                assert!(poll_once(&mut writable).await.is_none());
                yield_now().await;
            }
        }
    }
    sleep(Duration::from_millis(1)).await;
    assert_eq!(descriptors(), before);
}

/// The other side need not wait until the executor comes round to telling the kernel.
#[run_test(in_child)]
fn the_other_side_sees_the_end_at_once() {
    // Alone: what another test forks has the writer for a moment, too.
    run(async {
        let (mut reader, writer) = pipe_ends();
        let writer = PollableFd::new(writer)?;
        // In flight, since nothing is readable there, and told to the kernel.
        let mut waiting = Box::pin(writer.readable());
        assert!(poll_once(&mut waiting).await.is_none());
        sleep(Duration::from_millis(1)).await;
        drop(waiting);
        drop(writer);
        assert_eq!(reader.read(&mut [0])?, 0, "no writer is left");

        let (mut reader, writer) = pipe_ends();
        let writer = PollableFd::new(writer)?;
        let mut waiting = Box::pin(writer.readable());
        assert!(poll_once(&mut waiting).await.is_none());
        sleep(Duration::from_millis(1)).await;
        drop(waiting);
        drop(writer.into_inner());
        assert_eq!(reader.read(&mut [0])?, 0, "no writer is left");
        Ok(())
    });
}

/// A number for which others are responsible.
struct Number(RawFd);

impl AsRawFd for Number {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

fn errno_of<T>(result: Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[run_test(run_in_child)]
async fn closed_descriptors_are_errors() {
    assert_eq!(errno_of(PollableFd::new(Number(-1))), Some(libc::EBADF));
    assert_eq!(errno_of(PollableFd::new(Number(1000))), Some(libc::EBADF));
    let (reader, writer) = pipe_ends();
    let number = PollableFd::new(Number(reader.as_raw_fd()))?;
    drop(reader);
    let error = number.readable().await.expect_err("it is closed");
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    assert!(error.to_string().contains("Polling"), "{error}");
    assert_eq!(errno_of(number.writable().await), Some(libc::EBADF));
    drop(writer);
}

/// Epoll forgets the file, as `docs/guide/drivers.md` says.
#[run_test(in_child_with(&[("GLOMMIO_DRIVER", "io_uring")]))]
fn on_io_uring_a_wait_goes_on_with_a_file_that_is_closed_behind_it() {
    if let Err(error) = LocalExecutorBuilder::default().make() {
        return skipped(format_args!("there is no io_uring: {error}"));
    }
    run(async {
        assert_eq!(executor().driver(), Driver::IoUring);
        let (reader, mut writer) = pipe_ends();
        let number = PollableFd::new(Number(reader.as_raw_fd()))?;
        let mut waiting = pin!(number.readable());
        assert!(poll_once(&mut waiting).await.is_none());
        // The ring has got it once it answers what was submitted later. A sleep, however short, may be over before that.
        PollableFd::new(Number(writer.as_raw_fd()))?
            .writable()
            .await?;
        drop(reader);
        sleep(Duration::from_millis(1)).await;
        let early = poll_once(&mut waiting).await;
        assert!(early.is_none(), "{early:?}");
        writer.write_all(b"x")?;
        waiting.await?;
        Ok(())
    });
}

#[test]
fn when_the_executor_is_gone_waits_are_errors() {
    let (reader, mut writer) = pipe_ends();
    let reader = LocalExecutor::default()
        .run(async { PollableFd::new(reader) })
        .expect("it is open");
    writer.write_all(b"x").expect("there is room");
    let result = run(async { Ok(reader.readable().await) });
    match result.expect_err("its ring is gone") {
        GlommioError::EnhancedIoError { source, .. } => {
            assert_eq!(source.kind(), io::ErrorKind::NotConnected);
        }
        error => panic!("{error}"),
    }
    let mut reader = reader.into_inner();
    assert_eq!(reader.read(&mut [0; 2]).expect("it is ours again"), 1);
}

/// A wait whose future is forgotten stays in flight, and harms nothing.
#[run_test]
async fn a_forgotten_wait_ends_with_its_executor() {
    let (reader, writer) = pipe_ends();
    let reader = PollableFd::new(reader)?;
    let mut forgotten = Box::pin(reader.readable());
    assert!(poll_once(&mut forgotten).await.is_none());
    // Not leaked for good: a leak sanitizer would see it.
    let forgotten = std::mem::ManuallyDrop::new(forgotten);
    sleep(Duration::from_millis(1)).await;
    drop(writer);
    reader.readable().await?;
    drop(std::mem::ManuallyDrop::into_inner(forgotten));
}

/// The number of a wait that the kernel has not got yet stands for another file by then.
#[run_test(run_in_child)]
async fn a_queued_wait_does_not_watch_the_next_file_of_that_number() {
    for is_forgotten in [false, true] {
        let (_reader, writer) = pipe_ends();
        let (mut other_reader, other_writer) = pipe_ends();
        let writer = PollableFd::new(writer)?;
        let number = writer.as_raw_fd();
        let mut state = PollState::new();
        let mut wait = Box::pin(writer.readable());
        if is_forgotten {
            assert!(poll_once(&mut wait).await.is_none())
        } else {
            let readable = poll_fn(|cx| writer.poll_readable(cx, &mut state));
            assert!(poll_once(readable).await.is_none());
        }
        forget(wait);
        drop(writer);
        let moved = other_writer.try_clone()?;
        assert_eq!(moved.as_raw_fd(), number, "the lowest one that is free");
        drop(other_writer);
        // The kernel has got what was queued.
        sleep(Duration::from_millis(1)).await;
        drop(moved);
        assert_eq!(other_reader.read(&mut [0])?, 0, "no writer is left");
        drop(state);
    }
}

#[run_test]
async fn a_wait_that_is_kept_does_not_keep_the_descriptor_open() {
    for is_taken_back in [false, true] {
        let (mut reader, writer) = pipe_ends();
        let writer = PollableFd::new(writer)?;
        let mut state = PollState::new();
        let mut forgotten = Box::pin(writer.readable());
        assert!(poll_once(&mut forgotten).await.is_none());
        forget(forgotten);
        let readable = poll_fn(|cx| writer.poll_readable(cx, &mut state));
        assert!(poll_once(readable).await.is_none());
        // The kernel has both.
        sleep(Duration::from_millis(1)).await;
        if is_taken_back {
            drop(writer.into_inner())
        } else {
            drop(writer)
        }
        // A child that another test starts has a copy until it runs its program.
        let read = (0..5000).find_map(|_| match reader.read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
                None
            }
            read => Some(read),
        });
        assert_eq!(read.expect("no writer is left")?, 0);
        drop(state);
    }
}

#[run_test]
async fn a_task_whose_wait_has_ended_with_its_descriptor_is_woken() {
    let (reader, mut writer) = pipe_ends();
    let mut reader = PollableFd::new(reader)?;
    let mut state = PollState::new();
    let woken = Rc::new(std::cell::Cell::new(0));
    let count = Rc::clone(&woken);
    let waker = on_wake(move || count.set(count.get() + 1));
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(reader.poll_readable(&mut cx, &mut state).is_pending());
    assert_eq!(woken.get(), 0);
    let _ = reader.get_mut();
    assert_eq!(woken.get(), 1);
    // Begun anew, and woken by what comes.
    assert!(reader.poll_readable(&mut cx, &mut state).is_pending());
    writer.write_all(b"x")?;
    while woken.get() == 1 {
        yield_now().await;
    }
    assert!(reader.poll_readable(&mut cx, &mut state).is_ready());
    assert!(reader.poll_readable(&mut cx, &mut state).is_pending());
    drop(reader);
    assert_eq!(woken.get(), 3);
}
