//! Shards that cannot be opened, that are gone, closed or full.

use glommio::spawn_local;
use timelog::durable::{Error, Log, Sharded, salvage};

use super::super::history::Value;
use super::{KEYS, cause, counts, key, on_each, quick, try_open, with_log};

#[test]
fn the_number_of_shards_stays() {
    let folder = tempfile::tempdir().unwrap();
    let open = |shards| try_open(shards, folder.path());
    let is_whole = |each: Vec<_>| assert!(each.iter().all(Result::is_ok));
    is_whole(open(2));
    for error in open(3) {
        let error = error.unwrap_err();
        let is_named = matches!(cause(&error), (0, Error::Format { .. }));
        let text = error.to_string();
        assert!(is_named && text.ends_with("has 2 shards, not 3"), "{error}");
    }
    is_whole(open(2));
    let name = folder.path().join("MANIFEST");
    let whole = std::fs::read(&name).unwrap();
    for (content, wanted) in [
        (Some("timelog 3"), "it has no last line"),
        (Some("timelog 3\nend 12345678"), "its checksum"),
        (None, "it is missing, and there was a log"),
    ] {
        match content {
            Some(content) => std::fs::write(&name, content).unwrap(),
            None => std::fs::remove_file(&name).unwrap(),
        }
        for error in open(2) {
            let error = error.unwrap_err().to_string();
            assert!(error.ends_with(wanted), "{error}");
        }
    }
    std::fs::write(&name, whole).unwrap();
    is_whole(open(2));
}

/// Neither with the manifest of the shards nor without it, nor is a log begun beside them.
#[test]
fn a_directory_of_shards_is_not_taken_for_a_log_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    with_log(2, folder.path(), quick(), |_| async {});
    for has_manifest in [true, false] {
        if !has_manifest {
            std::fs::remove_file(folder.path().join("MANIFEST")).unwrap();
        }
        glommio::LocalExecutor::default().run(async {
            let path = folder.path();
            let opened = Log::<Value>::open(path, quick()).await.map(|_| ());
            let salvaged = salvage::<Value>(path).await.map(|_| ());
            for error in [opened.unwrap_err(), salvaged.unwrap_err()] {
                assert!(error.to_string().contains("MANIFEST"), "{error}");
            }
        });
    }
}

/// Neither is it made again, nor is another one taken for it.
#[test]
fn a_shard_whose_directory_is_missing_or_another_is_named() {
    let folder = tempfile::tempdir().unwrap();
    with_log(2, folder.path(), quick(), |log| async move {
        let commit = log.append("key", 1, [1; 2]).await.unwrap();
        commit.await.unwrap();
    });
    let refused = |shard: usize| {
        for error in try_open(2, folder.path()) {
            let error = error.unwrap_err();
            let (first, Error::Corrupt { path, .. }) = cause(&error) else {
                panic!("{error}")
            };
            assert_eq!(first, shard);
            let name = folder.path().join(format!("shard-{shard}"));
            assert_eq!(path.parent(), Some(&*name));
        }
    };
    let path = |name: &str| folder.path().join(name);
    std::fs::rename(path("shard-1"), path("other")).unwrap();
    refused(1);
    std::fs::remove_dir_all(path("shard-1")).unwrap();
    std::fs::rename(path("shard-0"), path("shard-1")).unwrap();
    std::fs::rename(path("other"), path("shard-0")).unwrap();
    refused(0);
    std::fs::rename(path("shard-1"), path("other")).unwrap();
    std::fs::rename(path("shard-0"), path("shard-1")).unwrap();
    std::fs::rename(path("other"), path("shard-0")).unwrap();
    assert_eq!(counts(2, folder.path()), [2; 2]);
}

/// A shard that cannot be opened is named by all, and the others are closed.
#[test]
fn a_shard_that_cannot_be_opened_is_named_by_all() {
    let folder = tempfile::tempdir().unwrap();
    with_log(3, folder.path(), quick(), |log| async move {
        let commit = log.append("key", 1, [1; 2]).await.unwrap();
        commit.await.unwrap();
    });
    let shard = folder.path().join("shard-1");
    let files = std::fs::read_dir(&shard)
        .unwrap()
        .map(|it| it.unwrap().path());
    let wal = files.filter(|it| it.to_string_lossy().contains("wal-"));
    let wal = wal.min().unwrap();
    let whole = std::fs::read(&wal).unwrap();
    std::fs::write(&wal, b"nonsense").unwrap();
    for error in try_open(3, folder.path()) {
        let error = error.unwrap_err();
        let (1, Error::Corrupt { path, .. }) = cause(&error) else {
            panic!("{error}")
        };
        assert_eq!(*path, wal);
    }
    std::fs::write(&wal, whole).unwrap();
    assert_eq!(counts(3, folder.path()), [3; 3]);
}

/// The executor of a shard panics while others wait for it, and those go on with what they have.
#[test]
fn a_shard_that_is_gone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let ended = on_each(3, move |mesh| async move {
        let (log, _) = Sharded::open(mesh, path, quick()).await.unwrap();
        if log.shard_id() == 1 {
            panic!("as if it had a defect");
        }
        let of_it = (0..).find(|it| log.shard_of(key(*it)) == 1).unwrap();
        let refused = loop {
            let sent = log.append(key(of_it), 7, [of_it; 2]).await;
            match sent {
                // On its way when the shard ended.
                Ok(commit) => match commit.await {
                    Ok(_) => {}
                    Err(refused) => assert!(matches!(cause(&refused.error), (1, Error::Closed))),
                },
                Err(refused) => break refused,
            }
        };
        assert!(
            matches!(cause(&refused.error), (1, Error::Closed)),
            "{refused}"
        );
        assert_eq!(refused.rejected, [(7, [of_it; 2])]);
        let error = log.snapshots().await.unwrap_err();
        assert!(matches!(cause(&error), (1, Error::Closed)), "{error}");
        let error = log.sync().await.unwrap_err();
        assert!(matches!(cause(&error), (1, Error::Closed)), "{error}");
        for number in 0..KEYS {
            if log.shard_of(key(number)) != 1 {
                let commit = log.append(key(number), 7, [number; 2]).await.unwrap();
                commit.await.unwrap();
            }
        }
        log.close().await.unwrap();
    });
    let panicked: Vec<_> = ended.iter().map(Result::is_err).collect();
    assert_eq!(panicked, [false, true, false]);
}

/// Each way in which a handle can end, and futures that are dropped.
#[test]
fn a_closed_shard_says_so() {
    let folder = tempfile::tempdir().unwrap();
    with_log(2, folder.path(), quick(), |log| async move {
        // None of what is given up hinders anything.
        for number in 0..200 {
            drop(log.append(key(number), 1, [number; 2]).await.unwrap());
            let append = log.append(key(number), 1, [number; 2]);
            drop(futures_lite::future::poll_once(append).await);
            drop(futures_lite::future::poll_once(log.snapshots()).await);
            drop(futures_lite::future::poll_once(log.sync()).await);
        }
    });
    let path = folder.path().to_owned();
    let closed = on_each(2, move |mesh| async move {
        let again = mesh.clone();
        let (log, _) = Sharded::open(mesh, &path, quick()).await.unwrap();
        let error = Sharded::open(again, &path, quick()).await.unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        let other = log.clone();
        let commit = log.append(key(1), 1, [1; 2]).await.unwrap();
        let closing = spawn_local(log.close());
        commit.await.unwrap();
        closing.await.unwrap();
        for number in 0..KEYS {
            let refused = other.append(key(number), 1, [number; 2]).await.unwrap_err();
            assert!(
                matches!(cause(&refused.error).1, Error::Closed),
                "{refused}"
            );
            assert_eq!(refused.rejected.len(), 1);
        }
        for error in [other.snapshots().await.err(), other.sync().await.err()] {
            assert!(matches!(cause(&error.unwrap()).1, Error::Closed));
        }
        let own = other.shard_id();
        let error = other.close().await.unwrap_err();
        assert!(matches!(cause(&error), (shard, Error::Closed) if shard == own));
    });
    closed.into_iter().for_each(|it| it.unwrap());
    // Dropped without being closed: nothing hangs, and it can be opened again.
    let path = folder.path().to_owned();
    let dropped = on_each(2, move |mesh| async move {
        let (log, _) = Sharded::open(mesh, &path, quick()).await.unwrap();
        let commit = log
            .append(key(log.shard_id() as u64), 1, [1; 2])
            .await
            .unwrap();
        drop(log);
        // The other executor may have ended before.
        if let Err(refused) = commit.await {
            assert!(
                matches!(cause(&refused.error).1, Error::Closed),
                "{refused}"
            );
        }
    });
    dropped.into_iter().for_each(|it| it.unwrap());
    with_log(2, folder.path(), quick(), |_| async {});
}
