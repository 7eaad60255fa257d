//! A kernel that has no memory for completions, and says that it has dropped some.

use crate::common::prelude::*;
use crate::faults::{ON_RING, deny};

#[run_test(in_child_with(&ON_RING))]
fn completions_that_the_kernel_has_dropped_are_reported_and_not_waited_for() {
    let executor = LocalExecutor::default();
    executor.run(async {
        spawn_local(async {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
            let received = socket.recv_from(&mut [0; 8]).await;
            unreachable!("no datagram is sent: {received:?}");
        })
        .detach();
        sleep(Duration::from_millis(1)).await;
    });
    deny(libc::SYS_io_uring_enter, libc::EBADR);
    for _ in 0..3 {
        let message = panic_of(|| executor.run(pending::<()>()));
        assert!(
            message.contains("EBADR") && message.contains("may never end"),
            "{message}"
        );
    }
    drop(executor);
}
