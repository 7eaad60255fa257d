//! Directories.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use glommio::io::EntryKind;

use super::*;

#[run_test(in_each_folder)]
async fn directories_are_made_opened_and_listed(folder: TempDir) {
    let path = folder.path().join("made");
    let directory = Directory::create(&path).await?;
    // Once more is no error.
    Directory::create(&path).await?.close().await?;
    assert_eq!(directory.path().as_deref(), Some(&*path));
    let names = ["a", "with\nline", "ü"];
    for name in names {
        directory.create_file(name).await?.close().await?;
    }
    directory.sync().await?;
    let listed: BTreeSet<_> = directory
        .sync_read_dir()?
        .map(|entry| entry.map(|it| it.file_name()))
        .collect::<io::Result<_>>()?;
    assert_eq!(listed, names.map(Into::into).into());
    let clone = directory.try_clone()?;
    assert_ne!(clone.as_raw_fd(), directory.as_raw_fd());
    directory.close().await?;
    clone.open_file("a").await?.close().await?;
    clone.close().await?;
}

#[run_test(in_each_folder)]
async fn a_large_directory_is_listed_without_blocking(folder: TempDir) {
    let expected: BTreeSet<_> = (0..5000).map(|at| format!("file {at}")).collect();
    for name in &expected {
        fs::write(folder.path().join(name), "")?;
    }
    fs::create_dir(folder.path().join("below"))?;
    std::os::unix::fs::symlink("below", folder.path().join("link"))?;
    let directory = Directory::open(folder.path()).await?;
    for _ in 0..2 {
        let mut listed = BTreeSet::new();
        let mut names = directory.read_dir()?;
        while let Some(entry) = names.next().await {
            let entry = entry?;
            let name = entry.file_name().to_str().expect("it is text").to_owned();
            let kind = match name.as_str() {
                "below" => EntryKind::Directory,
                "link" => EntryKind::Symlink,
                _ => EntryKind::File,
            };
            assert!(entry.kind().is_none_or(|it| it == kind), "{entry:?}");
            let metadata = fs::symlink_metadata(folder.path().join(&name))?;
            assert_eq!(entry.inode(), metadata.ino());
            assert!(listed.insert(name), "twice");
        }
        assert!(names.next().await.is_none());
        assert!(listed.remove("below") && listed.remove("link"));
        assert!(listed == expected);
    }
    // Given up in the middle.
    let mut names = directory.read_dir()?;
    names.next().await.expect("there are some")?;
    drop(names);
    drop(directory.read_dir()?);
    fs::remove_dir_all(folder.path())?;
    let mut gone = directory.read_dir()?;
    assert!(gone.next().await.is_none_or(|it| it.is_err()));
    assert!(gone.next().await.is_none());
    directory.close().await?;
}

#[run_test(in_folder)]
async fn files_are_those_of_the_directory_wherever_it_is(folder: TempDir) {
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name));
    let directory = Directory::create(&old).await?;
    fs::rename(&old, &new)?;
    let file = directory.create_file("file").await?;
    assert!(new.join("file").exists());
    file.close().await?;
    let (op, path, errno) = told(directory.open_file("missing").await);
    let expected = (Some(old.join("missing")), Some(libc::ENOENT));
    assert_eq!((op, (path, errno)), ("Opening", expected));
    directory.close().await
}

#[run_test(in_folder)]
async fn a_name_is_one_component(folder: TempDir) {
    let directory = Directory::open(folder.path()).await?;
    fs::create_dir(folder.path().join("below"))?;
    for name in ["a/b", ".", "..", "/x", "", "below/../x"] {
        let error = plain(directory.create_file(name).await);
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
        assert_eq!(error.to_string(), "Path cannot contain directories");
        let error = plain(directory.open_file(name).await);
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}");
    }
    directory.create_file("a/").await?.close().await?;
    directory.close().await
}

#[run_test(in_folder)]
async fn what_is_no_directory_is_refused(folder: TempDir) {
    let path = folder.path().join("file");
    filled(&path, 1);
    let enotdir = Some(libc::ENOTDIR);
    let expected = ("Opening directory", Some(path.clone()), enotdir);
    assert_eq!(told(Directory::open(&path).await), expected);
    assert_eq!(told(Directory::create(&path).await), expected);
    let below = path.join("below");
    let (op, _, errno) = told(Directory::create(&below).await);
    assert_eq!((op, errno), ("Synchronously creating directory", enotdir));
    let missing = folder.path().join("missing");
    assert_eq!(told(Directory::open(&missing).await).2, Some(libc::ENOENT));
    let deep = missing.join("deep");
    assert_eq!(told(Directory::create(&deep).await).2, Some(libc::ENOENT));
    Ok(())
}

#[run_test(run_in_child)]
async fn relative_paths_are_of_the_working_directory() {
    let folder = folder();
    std::env::set_current_dir(folder.path())?;
    let directory = Directory::create("made").await?;
    directory.create_file("file").await?.close().await?;
    directory.close().await?;
    let directory = Directory::open("made").await?;
    std::env::set_current_dir("/")?;
    assert_eq!(directory.sync_read_dir()?.count(), 1);
    directory.close().await
}

/// As `std::fs::read_dir`: search permission is for what the names stand for.
#[run_test(in_child)]
fn a_directory_that_may_be_read_and_not_searched_is_listed() {
    const UNPRIVILEGED: u32 = 65_534;
    let folder = folder();
    let path = folder.path().join("readable");
    fs::create_dir(&path).expect("the disk has room");
    fs::write(path.join("file"), "").expect("the disk has room");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("it is ours");
    // As root, whom permissions do not bind, this thread and those that it starts become
    // another user to the filesystem.
    let is_root = chown(&path, Some(UNPRIVILEGED), None).is_ok();
    run(async {
        let directory = Directory::open(&path).await?;
        if is_root && !becomes(UNPRIVILEGED) {
            return directory.close().await;
        }
        let denied = fs::metadata(path.join("file")).expect_err("that would need a search");
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        for _ in 0..2 {
            let mut names = directory.read_dir()?;
            let entry = names.next().await.expect("there is one name")?;
            assert_eq!(entry.file_name(), "file");
            assert!(names.next().await.is_none());
        }
        if is_root {
            becomes(0);
        }
        directory.close().await
    });
    // To be removed.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}
