//! The standard streams of children.

use std::io::ErrorKind;

use super::*;

type Result = std::result::Result<(), GlommioError<()>>;

/// Many times what a pipe holds, and of no round length.
const LENGTH: usize = (5 << 20) + 7;

fn bytes() -> Vec<u8> {
    (0..LENGTH).map(|at| (at % 251) as u8).collect()
}

#[run_test]
async fn megabytes_go_through_a_child_unchanged() -> Result {
    let mut child = cat();
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut stdout = child.stdout.take().expect("it is piped");
    let sent = bytes();
    let mut received = Vec::new();
    let write = async {
        stdin.write_all(&sent).await?;
        stdin.close().await
    };
    let (written, read) = zip(write, stdout.read_to_end(&mut received)).await;
    written?;
    assert_eq!(read?, LENGTH);
    assert!(received == sent);
    assert!(child.wait().await?.success());
}

#[run_test]
async fn output_has_both_streams_though_each_is_longer_than_a_pipe() -> Result {
    let script =
        "yes out | head -c 1000000; yes err | head -c 2000000 >&2; yes out | head -c 1000000";
    let output = shell(script).output().await?;
    assert_eq!(output.stdout.len(), 2_000_000);
    assert_eq!(output.stderr.len(), 2_000_000);
    assert!(output.stdout.starts_with(b"out\nout\n"));
    assert!(output.stderr.starts_with(b"err\nerr\n"));
    assert!(output.status.success());
}

#[run_test]
async fn what_is_not_piped_is_empty_in_the_output() -> Result {
    let child = shell("echo out; echo err >&2")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.wait_with_output().await?;
    assert_eq!(
        (&output.stdout[..], &output.stderr[..]),
        (&b"out\n"[..], &b""[..])
    );
}

#[run_test]
async fn a_read_that_is_given_up_loses_nothing() -> Result {
    let mut child = cat();
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut stdout = child.stdout.take().expect("it is piped");
    for round in 0..100_u8 {
        let mut byte = [0];
        assert!(poll_once(stdout.read(&mut byte)).await.is_none());
        stdin.write_all(&[round]).await?;
        assert_eq!(stdout.read(&mut byte).await?, 1);
        assert_eq!(byte, [round]);
    }
    drop(stdin);
    assert_eq!(stdout.read(&mut [0]).await?, 0);
    child.wait().await?;
}

#[run_test]
async fn a_write_waits_for_a_child_that_does_not_read() -> Result {
    let mut child = shell("read line; exec cat >/dev/null")
        .stdin(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    // Without a line to read the shell takes byte after byte, and all that it is given.
    let much = vec![b'x'; 1 << 20];
    let mut writing = pin!(stdin.write_all(&much));
    assert!(poll_once(&mut writing).await.is_none(), "a pipe holds less");
    writing.await?;
    stdin.write_all(b"\n").await?;
    stdin.close().await?;
    child.wait().await?;
}

#[run_test]
async fn writing_to_a_child_that_has_ended_is_an_error_and_no_signal() -> Result {
    let mut child = Command::new("true").stdin(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    child.wait().await?;
    // What another test forks at this moment has the other end, too, until it executes.
    let error = loop {
        match stdin.write(b"h").await {
            Ok(_) => sleep(Duration::from_millis(1)).await,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[run_test]
async fn a_write_under_way_ends_when_the_child_is_killed() -> Result {
    let mut child = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().expect("it is piped");
    let writing = spawn_local(async move { stdin.write_all(&[0; 1 << 20]).await });
    child.kill().await?;
    let error = writing.await.expect_err("it was killed");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
}

#[run_test]
async fn a_closed_input_takes_nothing_more() -> Result {
    let mut child = cat();
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.close().await?;
    stdin.close().await?;
    let error = stdin.write(b"hello").await.expect_err("it was closed");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert!(stdin.into_owned_fd().is_err());
    assert!(child.wait().await?.success());
}

#[run_test]
async fn the_output_of_one_child_is_the_input_of_the_next() -> Result {
    let mut first = shell("yes | head -n 100000")
        .stdout(Stdio::piped())
        .spawn()?;
    let between = first.stdout.take().expect("it is piped");
    // In blocking mode again, or the second would fail where it has to wait.
    let mut second = Command::new("wc");
    second.arg("-l").stdin(Stdio::try_from(between)?);
    let output = second.output().await?;
    assert_eq!(output.stdout.trim_ascii(), b"100000");
    assert!(first.wait().await?.success());
}
