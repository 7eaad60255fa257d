//! Descriptors that go over a Unix stream.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::common::prelude::*;

type Result = std::result::Result<(), GlommioError<()>>;

fn file(text: &str) -> File {
    let mut file = tempfile::tempfile().expect("there is space");
    file.write_all(text.as_bytes()).expect("there is space");
    file
}

fn text(fd: OwnedFd) -> String {
    let mut file = File::from(fd);
    let mut text = String::new();
    file.rewind().expect("a file");
    file.read_to_string(&mut text).expect("text");
    text
}

#[run_test]
async fn a_descriptor_that_is_received_names_what_was_sent_and_is_closed_on_exec() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    let sent = file("content");
    assert_eq!(here.send_with_fds(b"x", &[sent.as_fd()]).await?, 1);
    let (bytes, mut fds) = there.recv_with_fds(&mut [0; 8]).await?;
    assert_eq!((bytes, fds.len()), (1, 1));
    let received = fds.pop().expect("one");
    assert_ne!(received.as_raw_fd(), sent.as_raw_fd());
    let flags = fcntl(&received, FcntlArg::F_GETFD).expect("it is open");
    assert!(FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));
    assert_eq!(text(received), "content");
}

#[run_test]
async fn descriptors_keep_their_order_and_their_bytes() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    let files: Vec<_> = (0..10).map(|number| file(&number.to_string())).collect();
    for pair in files.chunks(2) {
        let fds = [pair[0].as_fd(), pair[1].as_fd()];
        assert_eq!(here.send_with_fds(b"pair", &fds).await?, 4);
        here.write_all(b"plain").await?;
    }
    drop(here);
    let (mut bytes, mut texts) = (Vec::new(), Vec::new());
    loop {
        let mut buf = [0; 64];
        let (count, fds) = there.recv_with_fds(&mut buf).await?;
        if count == 0 {
            assert!(fds.is_empty());
            break;
        }
        assert!(fds.len() <= 2, "of one send at a time");
        bytes.extend_from_slice(&buf[..count]);
        texts.extend(fds.into_iter().map(text));
    }
    assert_eq!(bytes, b"pairplain".repeat(5));
    let expected: Vec<_> = (0..10).map(|number| number.to_string()).collect();
    assert_eq!(texts, expected);
}

#[run_test]
async fn they_come_with_the_first_byte_however_small_the_buffer() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    here.send_with_fds(b"abc", &[file("one").as_fd()]).await?;
    let mut buf = [0; 1];
    let (_, fds) = there.recv_with_fds(&mut buf).await?;
    assert_eq!((&buf, fds.len()), (b"a", 1));
    let (_, fds) = there.recv_with_fds(&mut buf).await?;
    assert_eq!((&buf, fds.len()), (b"b", 0));
    let mut rest = [0; 1];
    there.read_exact(&mut rest).await?;
    assert_eq!(&rest, b"c");
}

/// A read ends at descriptors although more bytes are there, so a short one does not say that the stream is empty.
#[run_test]
async fn a_stream_that_waits_often_reads_what_follows_descriptors() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    let mut buf = [0; 8];
    for _ in 0..20 {
        let mut read = there.read(&mut buf);
        assert!(poll_once(&mut read).await.is_none());
        here.write_all(b"x").await?;
        assert_eq!(read.await?, 1);
    }
    here.send_with_fds(b"a", &[file("").as_fd()]).await?;
    here.write_all(b"b").await?;
    for expected in [b'a', b'b'] {
        assert_eq!((there.read(&mut buf).await?, buf[0]), (1, expected));
    }
}

#[run_test]
async fn nothing_is_sent_or_received_by_an_empty_buffer() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    let refused = here.send_with_fds(b"", &[file("").as_fd()]).await;
    let refused = std::io::Error::from(refused.expect_err("no byte"));
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    here.send_with_fds(b"x", &[file("").as_fd()]).await?;
    let (bytes, fds) = there.recv_with_fds(&mut []).await?;
    assert_eq!((bytes, fds.len()), (0, 0));
    assert_eq!(there.recv_with_fds(&mut [0; 8]).await?.1.len(), 1);
}

#[run_test]
async fn more_than_the_kernel_takes_is_an_error_and_nothing_is_sent() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    let file = file("");
    let error = here.send_with_fds(b"x", &[file.as_fd(); 254]).await;
    let error = std::io::Error::from(error.expect_err("253 at most"));
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert_eq!(here.send_with_fds(b"y", &[file.as_fd(); 253]).await?, 1);
    let mut buf = [0; 8];
    let (bytes, fds) = there.recv_with_fds(&mut buf).await?;
    assert_eq!((&buf[..bytes], fds.len()), (&b"y"[..], 253));
}

#[run_test]
async fn a_receiver_waits_and_one_that_gives_up_loses_nothing() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    for _ in 0..10 {
        assert!(poll_once(there.recv_with_fds(&mut [0; 8])).await.is_none());
    }
    let sent = file("late");
    let mut buf = [0; 8];
    let (received, sent) = zip(there.recv_with_fds(&mut buf), async {
        executor().yield_task_queue_now().await;
        here.send_with_fds(b"x", &[sent.as_fd()]).await
    })
    .await;
    assert_eq!(sent?, 1);
    let (_, mut fds) = received?;
    assert_eq!(text(fds.pop().expect("one")), "late");
}

#[run_test]
async fn a_sender_waits_for_space_and_one_that_gives_up_has_sent_nothing() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    let mut filled = 0;
    while let Some(sent) = poll_once(here.send_with_fds(&[0; 1024], &[])).await {
        filled += sent?;
    }
    let file = file("");
    for _ in 0..10 {
        let sent = poll_once(here.send_with_fds(b"x", &[file.as_fd()])).await;
        assert!(sent.is_none());
    }
    drop(here);
    let mut received = 0;
    loop {
        let (bytes, fds) = there.recv_with_fds(&mut [0; 4096]).await?;
        assert!(fds.is_empty());
        if bytes == 0 {
            break;
        }
        received += bytes;
    }
    assert_eq!(received, filled);
}

/// In a process of its own: it counts descriptors, and limits them.
#[run_test(in_child)]
fn without_descriptors_those_that_came_are_closed_and_it_is_an_error() {
    run(async {
        let (mut here, mut there) = UnixStream::pair()?;
        let file = file("");
        // So that what the executor opens once is there.
        here.send_with_fds(b"x", &[file.as_fd()]).await?;
        drop(there.recv_with_fds(&mut [0; 8]).await?);
        let before = descriptors();

        here.send_with_fds(b"x", &[file.as_fd(); 8]).await?;
        let highest = here
            .as_raw_fd()
            .max(there.as_raw_fd())
            .max(file.as_raw_fd());
        let unlimited = limit_descriptors(highest as u64 + 4);
        let error = there.recv_with_fds(&mut [0; 8]).await;
        limit_descriptors(unlimited);
        let error = std::io::Error::from(error.expect_err("no room for eight"));
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
        assert_eq!(descriptors(), before);

        // Those that nothing receives go with the stream; a plain read drops its own.
        here.send_with_fds(b"x", &[file.as_fd(); 8]).await?;
        there.read_exact(&mut [0; 1]).await?;
        assert_eq!(descriptors(), before);
        here.send_with_fds(b"y", &[file.as_fd(); 8]).await?;
        drop((here, there));
        assert_eq!(descriptors(), before - 2);
        Ok::<_, GlommioError<()>>(())
    })
    .expect("it passes");
}

/// Returns the limit before.
fn limit_descriptors(most: u64) -> u64 {
    let (before, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a process has limits");
    setrlimit(Resource::RLIMIT_NOFILE, most, hard).expect("below the hard limit");
    before
}

#[run_test]
async fn a_flood_of_descriptors_leaves_others_their_turns() -> Result {
    let (mut here, mut there) = UnixStream::pair()?;
    let file = file("");
    let sender = glommio::spawn_local(async move {
        for _ in 0..2000 {
            here.send_with_fds(b"x", &[file.as_fd()]).await?;
        }
        Ok::<_, GlommioError<()>>(())
    });
    let mut received = 0;
    while received < 2000 {
        received += there.recv_with_fds(&mut [0; 64]).await?.1.len();
    }
    assert_eq!(received, 2000);
    sender.await
}
