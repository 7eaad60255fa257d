//! A sleeping executor is not a thread that waits for a device, unless it is. What it asks of the
//! kernel is checked by a seccomp filter, each case in a process of its own.

use std::fs::File;
use std::io::Write;

use crate::common::prelude::*;
use crate::faults::install;

/// `IORING_ENTER_NO_IOWAIT`.
const NO_IOWAIT: u32 = 1 << 7;

/// Ends the process when an `io_uring_enter` of this thread that may sleep has the flag, or has it
/// not, which `is_fatal` says.
fn kill_sleeps(is_fatal: bool) {
    let code = |code: u32| u16::try_from(code).expect("instructions have 16 bits");
    let load = |at| libc::sock_filter {
        code: code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS),
        jt: 0,
        jf: 0,
        k: at,
    };
    let jump = |how, k, jt, jf| libc::sock_filter {
        code: code(libc::BPF_JMP | how | libc::BPF_K),
        jt,
        jf,
        k,
    };
    let answer = |k| libc::sock_filter {
        code: code(libc::BPF_RET | libc::BPF_K),
        jt: 0,
        jf: 0,
        k,
    };
    let enter = u32::try_from(libc::SYS_io_uring_enter).expect("numbers are small");
    let argument = |number: u32| 16 + 8 * number + u32::from(cfg!(target_endian = "big")) * 4;
    let (with, without) = if is_fatal {
        (libc::SECCOMP_RET_KILL_PROCESS, libc::SECCOMP_RET_ALLOW)
    } else {
        (libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS)
    };
    install(&mut [
        load(0),
        jump(libc::BPF_JEQ, enter, 0, 4),
        // How many completions are waited for.
        load(argument(2)),
        jump(libc::BPF_JEQ, 0, 2, 0),
        load(argument(3)),
        jump(libc::BPF_JSET, NO_IOWAIT, 1, 2),
        answer(libc::SECCOMP_RET_ALLOW),
        answer(with),
        answer(without),
    ]);
}

/// As [`in_child`], where the kernel can tell the two kinds of sleep apart.
fn in_telling_child(body: impl FnOnce()) {
    if !format!("{:?}", LocalExecutor::default()).contains("no_iowait") {
        return skipped("the kernel has no `NO_IOWAIT`, or it is not to be used");
    }
    in_child(body);
}

#[run_test(in_telling_child)]
fn a_sleeping_executor_does_not_count_as_waiting_for_a_device() {
    let executor = LocalExecutor::default();
    // Files that were in use, and given up, are not in flight any more.
    executor.run(async {
        for _ in 0..10 {
            let file = BufferedFile::open("/proc/self/exe")
                .await
                .expect("it exists");
            file.read_at(0, 64).await.expect("it is a file");
            // Given up as soon as it was handed over.
            assert!(
                poll_once(BufferedFile::open("/proc/self/exe"))
                    .await
                    .is_none()
            );
            file.close().await.expect("it is open");
        }
    });
    kill_sleeps(false);
    executor.run(async {
        sleep(Duration::from_millis(5)).await;
        let (listener, address) = bound().expect("a port is free");
        let echo = spawn_local(async move {
            let mut stream = listener.accept().await.expect("a client connects");
            sleep(Duration::from_millis(5)).await;
            stream.write_all(b"echo").await.expect("it is connected");
        });
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).await.expect("it answers");
        echo.await;
        glommio::executor()
            .spawn_blocking(|| std::thread::sleep(Duration::from_millis(5)))
            .await;
        // Cancelled while the executor ends.
        spawn_local(async move { stream.read(&mut [0]).await }).detach();
        sleep(Duration::from_millis(1)).await;
    });
    drop(executor);
}

#[run_test(in_telling_child)]
fn a_sleep_beside_a_file_operation_counts_as_waiting_for_a_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("the folder is ours");
    let executor = LocalExecutor::default();
    let this = nix::unistd::gettid();
    let mut other_end = File::options();
    let other_end = other_end.read(true).write(true).open(&fifo);
    let mut other_end = other_end.expect("it was just made");
    // Not under the filter.
    let writer = std::thread::spawn(move || {
        let stat = format!("/proc/self/task/{this}/stat");
        // The state is the first column behind the name.
        wait_until(|| {
            let stat = std::fs::read_to_string(&stat).expect("the thread is there");
            stat.rsplit(')')
                .next()
                .is_some_and(|it| it.starts_with(" S"))
        });
        other_end.write_all(b"x").expect("there is a reader");
    });
    kill_sleeps(true);
    executor.run(async {
        let file = BufferedFile::open(&fifo).await.expect("it exists");
        // It waits until there is something to read.
        let read = file.read_at(0, 1).await.expect("it can be read");
        assert_eq!(&read[..], b"x");
        file.close().await.expect("it is open");
    });
    drop(executor);
    writer.join().expect("it does not panic");
}
