//! Full disks.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use glommio::simulation::{self, Fault, Simulation, inject};
use timelog::durable::{Error, Mesh, Sharded};

use super::{MILLISECOND, PATH, open, rows, run_on, settle, small};

/// After the next sleep it has space again.
fn make_space() {
    let (node, disk) = ("log".to_owned(), simulation::Disk::default());
    inject(Duration::ZERO, Fault::DiskChange { node, disk });
}

fn assert_is_full(error: &Error) {
    let Error::Poisoned { cause } = error else {
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
}

#[test]
fn a_full_disk_loses_nothing() {
    let simulation = Simulation::builder()
        .seed(1)
        .disk(|disk| disk.full_at(1 << 20));
    run_on(simulation, || async {
        let (log, _) = open(small().wal_file_bytes(128 << 10)).await.unwrap();
        let mut confirmed = 0;
        let error = loop {
            let rows = (0..100).map(|row| (confirmed as i64 + row, 0));
            match log.extend(rows).unwrap().await {
                Ok(seq) => confirmed = seq.0,
                Err(error) => break error,
            }
        };
        assert_is_full(&error);
        let error = log.stats().maintenance_error.expect("no file can be made");
        let error = error.to_string();
        let is_gone = error.contains("/log/wal") || error.contains("/log/checkpoint");
        assert!(error.contains("No space left") && !is_gone, "{error}");
        let refused = log.append(0, 0).expect_err("it takes no more");
        assert_is_full(&refused.error);
        assert_eq!(rows(&log).len() as u64, confirmed + 100, "reads go on");
        assert_is_full(&log.close().await.expect_err("it was told"));
        make_space();
        settle().await;
        let (log, _) = open(small()).await.unwrap();
        assert!(log.seq().0 >= confirmed, "{} of {confirmed}", log.seq().0);
        assert_eq!(rows(&log).len() as u64, log.seq().0);
        log.append(0, 0).unwrap().await.unwrap();
        log.close().await.unwrap();
    });
}

/// Each shard ends its writes with its own error, and reads go on.
#[test]
fn a_full_disk_ends_each_shard_by_itself() {
    let confirmed = Rc::new(Cell::new(0_u64));
    let counted = Rc::clone(&confirmed);
    let mesh = Mesh::<[u64; 2]>::new(2);
    let main = move || {
        let (mesh, confirmed) = (mesh.clone(), Rc::clone(&counted));
        async move {
            let (log, _) = Sharded::open(mesh, PATH, small()).await.unwrap();
            let own = log.shard_id() as u64;
            let mut failed = [false; 2];
            for number in 0_u64.. {
                let key = number.to_le_bytes();
                let shard = log.shard_of(key);
                let rows = (0..200).map(|row| (row, [own, number]));
                let written = match log.extend(key, rows).await {
                    Ok(commit) => commit.await,
                    Err(refused) => Err(refused),
                };
                match written {
                    Ok(_) => confirmed.set(confirmed.get() + 200),
                    Err(refused) => {
                        let Error::Shard {
                            shard: named,
                            cause,
                        } = &refused.error
                        else {
                            panic!("{refused}")
                        };
                        assert_eq!(*named, shard);
                        assert_is_full(cause);
                        failed[shard] = true;
                    }
                }
                if failed == [true; 2] {
                    break;
                }
            }
            let all = log.snapshots().await.expect("reads go on");
            assert!(all.count(..) >= confirmed.get());
            let error = log.close().await.expect_err("it was told");
            let Error::Shard { shard, cause } = &error else {
                panic!("{error}")
            };
            assert_eq!(*shard as u64, own);
            assert_is_full(cause);
            make_space();
        }
    };
    let simulation = Simulation::builder()
        .seed(1)
        .disk(|disk| disk.full_at(2 << 20));
    let run = simulation
        .node("log", 2, main)
        .run_for(60_000 * MILLISECOND);
    run.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(confirmed.get() > 0);
}
