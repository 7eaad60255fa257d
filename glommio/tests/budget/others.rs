use glommio::controllers::{DeadlineQueue, DeadlineSource};
use glommio::overload::LoadShedder;
use glommio::process::Command;
use glommio::signal::{Signals, ctrl_c};

use super::*;

#[run_test]
async fn signals() {
    let signals = Signals::new(&[libc::SIGUSR2]).unwrap();
    is_refused("Signals::recv", signals.recv()).await;
    is_refused("ctrl_c", ctrl_c()).await;
}

#[run_test]
async fn children() {
    counts!(
        "Command::status",
        Command::new("/nothing/here")
            .status()
            .await
            .expect_err("no such program")
    );
    counts!(
        "Command::output",
        Command::new("/nothing/here")
            .output()
            .await
            .expect_err("no such program")
    );
    let mut cat = Command::new("cat");
    cat.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = cat.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let (mut output, mut errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    counts!("ChildStdin, flushing", input.flush().await.unwrap());
    is_refused("ChildStdin, writing", input.write(b"x")).await;
    is_refused("ChildStdout", output.read(&mut [0; 1])).await;
    is_refused("ChildStderr", errors.read(&mut [0; 1])).await;
    counts!("ChildStdin, closing", input.close().await.unwrap());
    assert!(child.wait().await.unwrap().success());
    counts!(
        "Child::wait",
        assert!(child.wait().await.unwrap().success())
    );
    counts!("Child::kill", child.kill().await.unwrap());
    is_refused("Child::wait_with_output", child.wait_with_output()).await;
}

#[run_test]
async fn overload() {
    // However late this machine is.
    let shed = LoadShedder::builder()
        .target(Duration::from_secs(3600))
        .build();
    counts!("LoadShedder::ready", shed.ready().await);
}

struct Long;

impl DeadlineSource for Long {
    type Output = ();

    fn expected_duration(&self) -> Duration {
        Duration::MAX
    }

    fn action(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()> + 'static>> {
        Box::pin(async {})
    }

    fn total_units(&self) -> u64 {
        1
    }

    fn processed_units(&self) -> u64 {
        0
    }
}

#[run_test]
async fn queues_with_deadlines() {
    let queue = DeadlineQueue::new("deadlines", Duration::from_millis(250));
    counts!(
        "DeadlineQueue::push_work",
        queue
            .push_work(Rc::new(Long))
            .await
            .expect_err("no deadline")
    );
}
