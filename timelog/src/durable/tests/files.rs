//! Which files of the write-ahead log there are, and how large.

use super::*;

/// One that no other was ready to relieve, or that a large batch went to, does not take its space for ever.
#[test]
fn a_file_that_has_grown_is_not_used_again() {
    let disk = Disk::new(1);
    let longest = || {
        let names = disk.all_names().into_iter();
        let logs = names.filter(|name| name.starts_with("wal"));
        logs.map(|name| disk.edit(&name, |bytes| bytes.len())).max()
    };
    run(async {
        let (log, _) = open(&disk, small()).await.unwrap();
        settle(&log).await;
        let batch: Vec<_> = (0..4000).map(|ts| (ts, 0)).collect();
        log.extend(batch).unwrap().await.unwrap();
        assert!(longest() > Some(3 * WAL_BYTES), "it goes to one file");
        for ts in 4000..4020 {
            log.append(ts, 0).unwrap().await.unwrap();
            settle(&log).await;
        }
        assert!(longest() <= Some(2 * WAL_BYTES), "{:?}", longest());
        log.close().await.unwrap();
    });
}
