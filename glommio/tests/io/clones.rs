//! Clones of files, weak handles, and files on their way to other threads.

use glommio::io::{OwnedDmaFile, WeakDmaFile};

use super::*;

async fn opened(folder: &TempDir) -> Result<DmaFile> {
    let path = folder.path().join("file");
    filled(&path, 5000);
    DmaFile::open(path).await
}

#[run_test(in_folder)]
async fn a_clone_shares_the_descriptor_and_the_last_one_closes(folder: TempDir) {
    let file = opened(&folder).await?;
    let clone = file.clone();
    assert_eq!(file.as_raw_fd(), clone.as_raw_fd());
    assert_eq!(file.as_fd().as_raw_fd(), file.as_raw_fd());
    assert_eq!((file.strong_count(), clone.strong_count()), (2, 2));
    assert!(file.is_same(&clone));
    let error = file.close().await.unwrap_err();
    match &error {
        GlommioError::CanNotBeClosed(ResourceType::File(path), why) => {
            assert_eq!(Path::new(path), &*clone.path().expect("it has one"));
            assert!(why.contains("Another clone"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(clone.read_at(10, 20).await?.len(), 20);
    assert_eq!(clone.strong_count(), 1);
    clone.close().await
}

#[run_test(in_folder)]
async fn a_duplicate_has_a_descriptor_of_its_own(folder: TempDir) {
    let file = opened(&folder).await?;
    let copy = file.dup()?;
    assert_ne!(file.as_raw_fd(), copy.as_raw_fd());
    assert!(file.is_same(&copy));
    assert_eq!(file.path().as_deref(), copy.path().as_deref());
    assert_eq!((file.strong_count(), copy.strong_count()), (1, 1));
    let flags = nix::fcntl::fcntl(&copy, nix::fcntl::FcntlArg::F_GETFD).unwrap();
    assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    file.close().await?;
    assert_eq!(*copy.read_at(0, 10).await?, pattern(0, 10));
    copy.close().await
}

#[run_test(in_folder)]
async fn a_weak_handle_keeps_nothing_open(folder: TempDir) {
    let file = opened(&folder).await?;
    let weak = file.downgrade();
    assert_eq!(weak.strong_count(), 1);
    let owned = weak.upgrade().expect("it is open");
    assert_eq!(owned.strong_count(), 2);
    drop(owned);
    file.clone().close().await.unwrap_err();
    let (inode, alignment) = (file.inode(), file.alignment());
    let device = (file.dev_major(), file.dev_minor());
    let path = file.path().expect("it has one").to_path_buf();
    file.close().await?;
    assert!(weak.upgrade().is_none());
    assert_eq!(weak.strong_count(), 0);
    assert_eq!((weak.inode(), weak.alignment()), (inode, alignment));
    assert_eq!((weak.dev_major(), weak.dev_minor()), device);
    assert_eq!(weak.path(), Some(&*path));
    assert!(WeakDmaFile::new().upgrade().is_none());
    assert!(WeakDmaFile::default().path().is_none());
}

#[run_test(in_folder)]
async fn the_last_clone_is_taken_away_from_weak_handles(folder: TempDir) {
    let file = opened(&folder).await?;
    let weak = file.downgrade();
    let clone = file.clone();
    let file = file.try_take_last_clone().expect_err("there are two");
    drop(clone);
    let file = file.try_take_last_clone().expect("it is the only one");
    assert!(weak.upgrade().is_none());
    assert_eq!(*file.read_at(0, 10).await?, pattern(0, 10));
    file.close().await
}

#[test]
fn a_file_goes_to_other_threads_and_comes_back() {
    let folder = folder();
    let path = folder.path().join("file");
    let owned = run(async {
        let file = opened(&folder).await?;
        let (inode, alignment) = (file.inode(), file.alignment());
        let owned = OwnedDmaFile::from(file);
        assert_eq!(owned.path(), Some(&*path));
        assert_eq!((owned.inode(), owned.alignment()), (inode, alignment));
        Ok(owned)
    });
    let weak = owned.downgrade();
    let copy = owned.dup().expect("a descriptor is free");
    assert_ne!(copy.as_raw_fd(), owned.as_raw_fd());
    let threads = [owned.clone(), owned, copy].map(|owned| {
        spawn_executor(|| async move {
            let file = DmaFile::from(owned);
            for at in 0..50 {
                assert_eq!(*file.read_at(at, 100).await?, pattern(at as usize, 100));
            }
            Ok::<_, GlommioError<()>>(OwnedDmaFile::from(file))
        })
    });
    let owned = threads.map(|it| it.join().expect("no panic").expect("reads succeed"));
    assert_eq!(weak.strong_count(), 2);
    let numbers = owned.each_ref().map(|it| it.as_raw_fd());
    assert_eq!(numbers[0], numbers[1]);
    drop(owned);
    assert!(weak.upgrade().is_none());
    for number in numbers {
        let now = fs::read_link(format!("/proc/self/fd/{number}"));
        assert!(now.map_or(true, |now| now != path));
    }
}
