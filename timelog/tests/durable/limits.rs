//! Full disks, no descriptors, directories that cannot be written to.

use std::fs::File;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use glommio::LocalExecutor;
use timelog::durable::{Config, Error, Log};

use super::child;
use super::history::{Value, act, rows_at, rows_of};

pub const FULL: &str = "full after ";

fn small() -> Config {
    Config::default()
        .wal_file_bytes(128 << 10)
        .wake_up(Duration::from_millis(1))
}

/// Runs a role with a small filesystem of its own on `folder`, or says why that cannot be. As root
/// alone.
fn with_mount(role: &str, folder: &Path, then: &str) -> Option<Output> {
    let script = format!(
        "mount -t tmpfs -o size=2m tmpfs '{}' || exit 77; {then} exec \"$0\" \"$@\"",
        folder.display()
    );
    let script = format!(
        "exec unshare -m sh -c '{}' \"$0\" \"$@\"",
        script.replace('\'', "'\\''")
    );
    let output = child(role, folder, Some(&script))
        .output()
        .expect("there is a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || errors.contains("unshare:") {
        use std::io::Write;
        // Not `eprintln`, which the test harness keeps to itself.
        let reason = format!(
            "skipped: {role}: needs root for a mount of its own: {}\n",
            errors.trim()
        );
        let _ = std::io::stderr().write_all(reason.as_bytes());
        return None;
    }
    assert!(output.status.success(), "{errors}");
    Some(output)
}

pub fn fill(folder: &Path) {
    let write = |round| {
        LocalExecutor::default().run(async move {
            let opened = Log::<Value>::open(folder, small()).await;
            let (log, _) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    assert!(error.to_string().contains("No space left"), "{error}");
                    return (round, None);
                }
            };
            let mut confirmed = log.seq().0;
            assert_eq!(rows_of(&log), rows_at(confirmed));
            let error = loop {
                match act(&log).await {
                    Ok(seq) => confirmed = seq.0,
                    Err(error) => break error,
                }
            };
            let Error::Poisoned { cause } = &error else {
                panic!("{error}")
            };
            let is_named = matches!(
                &**cause,
                Error::Io {
                    operation: "write" | "sync",
                    ..
                }
            );
            assert!(
                is_named && error.to_string().contains("No space left"),
                "{error}"
            );
            let refused = log.append(0, [0; 2]).expect_err("it takes no more");
            assert!(matches!(refused.error, Error::Poisoned { .. }), "{refused}");
            assert_eq!(
                rows_of(&log).len(),
                rows_at(log.seq().0).len(),
                "reads go on"
            );
            drop(log.close().await);
            (round, Some(confirmed))
        })
    };
    let (_, confirmed) = write(0);
    let confirmed = confirmed.expect("there was space to begin with");
    // Space again, and all that was confirmed is there.
    std::fs::remove_file(folder.join("ballast")).expect("it is there");
    LocalExecutor::default().run(async {
        let (log, _) = Log::<Value>::open(folder, small())
            .await
            .expect("there is space");
        assert!(log.seq().0 >= confirmed, "{} of {confirmed}", log.seq().0);
        assert_eq!(rows_of(&log), rows_at(log.seq().0));
        act(&log).await.expect("there is space");
        log.close().await.expect("there is space");
    });
    println!("{FULL}{confirmed}");
}

#[test]
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().expect("the disk has room");
    let ballast = format!(
        "head -c 600000 /dev/zero >'{}';",
        folder.path().join("ballast").display()
    );
    for role in ["fill", "fill-shards"] {
        if let Some(output) = with_mount(role, folder.path(), &ballast) {
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(printed.contains(FULL), "{printed}");
        }
    }
}

pub fn open_read_only(folder: &Path) {
    LocalExecutor::default().run(async {
        let opened = Log::<Value>::open(folder, small()).await;
        let error = opened.expect_err("nothing can be written").to_string();
        let is_clear = error.contains("LOCK") && error.contains("Read-only file system");
        assert!(is_clear, "{error}");
        println!("{FULL}0");
    });
}

#[test]
fn a_read_only_directory_is_named() {
    let folder = tempfile::tempdir().expect("the disk has room");
    let remount = format!(
        "mount -o remount,ro '{}' || exit 77;",
        folder.path().display()
    );
    if let Some(output) = with_mount("read-only", folder.path(), &remount) {
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(FULL), "{printed}");
    }
}

pub fn use_all_descriptors(folder: &Path) {
    LocalExecutor::default().run(async {
        let (log, _) = Log::<Value>::open(folder, small())
            .await
            .expect("there are descriptors");
        let mut taken = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            taken.push(file);
        }
        // Many files of the write-ahead log.
        for _ in 0..300 {
            act(&log).await.expect("the file that is open grows");
        }
        let error = log
            .checkpoint()
            .await
            .expect_err("there are no descriptors");
        assert!(error.to_string().contains("Too many open files"), "{error}");
        taken.clear();
        log.checkpoint().await.expect("there are descriptors again");
        let seq = log.seq().0;
        log.close().await.expect("nothing was lost");
        let (log, found) = Log::<Value>::open(folder, small())
            .await
            .expect("it is whole");
        assert_eq!((log.seq().0, found.replayed), (seq, 0));
        assert_eq!(rows_of(&log), rows_at(seq));
        println!("{FULL}{seq}");
    });
}

#[test]
fn without_descriptors_the_log_goes_on() {
    let folder = tempfile::tempdir().expect("the disk has room");
    let mut command = child(
        "descriptors",
        folder.path(),
        Some("ulimit -n 100; exec \"$0\" \"$@\""),
    );
    let output = command.output().expect("there is a shell");
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains(FULL), "{printed}{errors}");
}
