//! What is done to files and directories by their paths.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink as std_symlink};

use glommio::io::{
    create_dir_all, hard_link, read_link, remove_dir, remove_dir_all, set_permissions, symlink,
};

use super::*;

#[run_test(in_each_folder)]
async fn links_are_made_and_read(folder: TempDir) {
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "content")?;
    hard_link(at("file"), at("hard")).await?;
    assert_eq!(
        fs::metadata(at("file"))?.ino(),
        fs::metadata(at("hard"))?.ino()
    );
    symlink("file", at("soft")).await?;
    symlink("../nothing/there", at("broken")).await?;
    assert_eq!(fs::read(at("soft"))?, b"content");
    assert_eq!(read_link(at("soft")).await?, Path::new("file"));
    assert_eq!(
        read_link(at("broken")).await?,
        Path::new("../nothing/there")
    );
    // Of a link it makes another link.
    hard_link(at("broken"), at("as broken")).await?;
    assert_eq!(
        read_link(at("as broken")).await?,
        Path::new("../nothing/there")
    );

    let exists = told(hard_link(at("file"), at("hard")).await);
    assert_eq!(exists, ("Linking", Some(at("hard")), Some(libc::EEXIST)));
    let exists = told(symlink("file", at("hard")).await);
    assert_eq!(exists, ("Linking", Some(at("hard")), Some(libc::EEXIST)));
    let missing = told(hard_link(at("missing"), at("new")).await);
    assert_eq!(missing, ("Linking", Some(at("new")), Some(libc::ENOENT)));
    let no_link = told(read_link(at("file")).await);
    let expected = ("Reading a link", Some(at("file")), Some(libc::EINVAL));
    assert_eq!(no_link, expected);
    for made in [
        symlink("a\0b", at("c")).await,
        hard_link("a\0b", at("c")).await,
    ] {
        assert_eq!(told(made), ("Linking", Some(at("c")), None));
    }
    Ok(())
}

#[run_test(in_folder)]
async fn permissions_are_set(folder: TempDir) {
    let path = folder.path().join("file");
    fs::write(&path, "")?;
    for mode in [0o600, 0o444, 0o755] {
        set_permissions(&path, Permissions::from_mode(mode)).await?;
        assert_eq!(fs::metadata(&path)?.mode() & 0o7777, mode);
    }
    let missing = folder.path().join("missing");
    let error = told(set_permissions(&missing, Permissions::from_mode(0o600)).await);
    assert_eq!(
        error,
        ("Setting permissions", Some(missing), Some(libc::ENOENT))
    );
}

#[run_test]
async fn a_file_without_a_name_gets_one_when_it_is_complete() {
    for folder in with_unnamed_files(folders()) {
        let at = |name: &str| folder.path().join(name);
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .tmpfile(true)
            .tmpfile_linkable(true);
        let dma = options.dma_open(folder.path()).await?;
        assert!(dma.path().is_none());
        let mut buffer = dma.alloc_dma_buffer(4096);
        buffer.as_bytes_mut().fill(7);
        dma.write_all_at(buffer, 0).await?;
        assert_eq!(fs::read_dir(folder.path())?.count(), 0);
        dma.link(at("dma")).await?;
        assert_eq!(fs::read(at("dma"))?, [7; 4096]);
        assert_eq!(dma.path().as_deref(), Some(&*at("dma")));
        // A further one; the first is remembered.
        dma.link(at("again")).await?;
        assert_eq!(dma.path().as_deref(), Some(&*at("dma")));
        assert_eq!(fs::metadata(at("again"))?.ino(), dma.inode());
        let exists = told(dma.link(at("dma")).await);
        assert_eq!(exists, ("Linking", Some(at("dma")), Some(libc::EEXIST)));
        dma.remove().await?;
        dma.close().await?;
        assert!(!at("dma").exists() && at("again").exists());

        let buffered = options.buffered_open(folder.path()).await?;
        buffered.write_all_at(b"content".to_vec(), 0).await?;
        let no_folder = told(buffered.link(at("no folder/file")).await);
        assert_eq!(no_folder.2, Some(libc::ENOENT));
        assert!(buffered.path().is_none());
        buffered.link(at("buffered")).await?;
        buffered.close().await?;
        assert_eq!(fs::read(at("buffered"))?, b"content");

        options.tmpfile_linkable(false);
        let unlinkable = options.buffered_open(folder.path()).await?;
        assert_eq!(
            told(unlinkable.link(at("never")).await).2,
            Some(libc::ENOENT)
        );
        assert!(!at("never").exists());
        unlinkable.close().await?;
    }
}

#[run_test(in_each_folder)]
async fn directories_are_made_from_the_first_that_is_missing(folder: TempDir) {
    let at = |name: &str| folder.path().join(name);
    create_dir_all(at("a/b/c")).await?;
    create_dir_all(at("a/b/c")).await?;
    create_dir_all(at("a/./b/../b/d/")).await?;
    create_dir_all("").await?;
    create_dir_all("/").await?;
    assert!(at("a/b/c").is_dir() && at("a/b/d").is_dir());
    std_symlink("a", at("link"))?;
    create_dir_all(at("link/b/e")).await?;
    assert!(at("a/b/e").is_dir());

    fs::write(at("file"), "")?;
    let op = "Creating a directory";
    let error = told(create_dir_all(at("file")).await);
    assert_eq!(error, (op, Some(at("file")), Some(libc::EEXIST)));
    // The name is that of the directory that cannot be made.
    let error = told(create_dir_all(at("file/x/y")).await);
    assert_eq!(error.2, Some(libc::ENOTDIR));
    std_symlink("nowhere", at("broken"))?;
    let error = told(create_dir_all(at("broken/x")).await);
    assert_eq!(error, (op, Some(at("broken")), Some(libc::EEXIST)));

    let full = told(remove_dir(at("a/b")).await);
    assert_eq!(full, ("Removing", Some(at("a/b")), Some(libc::ENOTEMPTY)));
    remove_dir(at("a/b/c")).await?;
    assert!(!at("a/b/c").exists());
    let error = told(remove_dir(at("file")).await);
    assert_eq!(error, ("Removing", Some(at("file")), Some(libc::ENOTDIR)));
}

#[run_test(in_each_folder)]
async fn a_tree_is_removed_and_what_its_links_lead_to_is_not(folder: TempDir) {
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("elsewhere"))?;
    fs::write(at("elsewhere/kept"), "")?;
    fs::create_dir_all(at("tree/a/b/c"))?;
    // More names than one block has, and links to all kinds of things.
    for number in 0..5000 {
        fs::write(
            at(&format!("tree/a/a rather long name of a file {number}")),
            "",
        )?;
    }
    for number in 0..100 {
        fs::create_dir(at(&format!("tree/a/b/directory {number}")))?;
    }
    std_symlink("../elsewhere", at("tree/to directory"))?;
    std_symlink("..", at("tree/a/b/up"))?;
    std_symlink("nowhere", at("tree/a/broken"))?;
    remove_dir_all(at("tree")).await?;
    assert!(!at("tree").exists() && at("elsewhere/kept").exists());

    std_symlink("elsewhere", at("link"))?;
    remove_dir_all(at("link")).await?;
    assert!(fs::symlink_metadata(at("link")).is_err() && at("elsewhere/kept").exists());

    fs::write(at("file"), "")?;
    let error = told(remove_dir_all(at("file")).await);
    assert_eq!(error, ("Removing", Some(at("file")), Some(libc::ENOTDIR)));
    let error = told(remove_dir_all(at("missing")).await);
    assert_eq!(error, ("Removing", Some(at("missing")), Some(libc::ENOENT)));
    assert!(at("file").exists());
}

#[run_test(in_child)]
fn what_cannot_be_removed_is_named() {
    const UNPRIVILEGED: u32 = 65_534;
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("tree/a/locked")).expect("the disk has room");
    fs::write(at("tree/a/locked/file"), "").expect("the disk has room");
    // Root is bound by no permissions: this thread, and those that it starts, become another
    // user to the filesystem.
    let is_root = [".", "tree", "tree/a", "tree/a/locked"]
        .iter()
        .all(|name| std::os::unix::fs::chown(at(name), Some(UNPRIVILEGED), None).is_ok());
    fs::set_permissions(at("tree/a/locked"), Permissions::from_mode(0o555)).expect("ours");
    run(async {
        if is_root && !becomes(UNPRIVILEGED) {
            return remove_dir_all(at("tree")).await;
        }
        let error = told(remove_dir_all(at("tree")).await);
        let file = at("tree/a/locked/file");
        assert_eq!(error, ("Removing", Some(file), Some(libc::EACCES)));
        set_permissions(at("tree/a/locked"), Permissions::from_mode(0o755)).await?;
        remove_dir_all(at("tree")).await?;
        if is_root {
            becomes(0);
        }
        Ok(())
    });
    assert!(!at("tree").exists());
}

/// It ends with the block of names that it is at, and leaves no descriptor.
#[run_test(in_child)]
fn a_removal_that_is_given_up_stops() {
    let folder = folder();
    let tree = folder.path().join("tree");
    for number in 0..200 {
        fs::create_dir_all(tree.join(format!("{number}/below"))).expect("the disk has room");
    }
    run(async {
        yield_now().await;
        let before = crate::common::descriptors();
        give_up(remove_dir_all(&tree), 4).await;
        assert!(fs::read_dir(&tree)?.count() > 100, "a step at a time");
        for polls in 0..20 {
            give_up(remove_dir_all(&tree), polls).await;
        }
        // What has begun ends, with its share in a descriptor.
        glommio::io::read_link("/proc/self/exe").await?;
        while crate::common::descriptors() > before {
            sleep(Duration::from_millis(1)).await;
        }
        remove_dir_all(&tree).await?;
        assert!(!tree.exists());
        Ok(())
    });
}

/// Names come and go while a tree is removed: no error but that it is not empty in the end.
#[run_test(in_folder)]
async fn a_tree_that_changes_meanwhile_is_removed_or_not_empty(folder: TempDir) {
    let tree = folder.path().join("tree");
    for round in 0..20 {
        for number in 0..50 {
            fs::create_dir_all(tree.join(format!("{number}/below")))?;
        }
        let (one, other) = futures_lite::future::zip(remove_dir_all(&tree), async {
            if round % 2 == 0 {
                for number in 0..50 {
                    let _ = fs::write(tree.join(format!("{number}/new")), "");
                    yield_now().await;
                }
            }
            remove_dir_all(&tree).await
        })
        .await;
        for result in [one, other] {
            if let Err(error) = result {
                let errno = error.raw_os_error();
                assert!(
                    matches!(errno, Some(libc::ENOTEMPTY | libc::ENOENT)),
                    "{error}"
                );
            }
        }
    }
    // Nothing changes it any more.
    let _ = remove_dir_all(&tree).await;
    assert!(!tree.exists());
}
