//! Advisory locks.

use glommio::io::{AdvisoryLockGuard, WeakAdvisoryLockGuard};

use super::*;

#[track_caller]
fn assert_would_block(result: Result<AdvisoryLockGuard>) {
    match result {
        Err(GlommioError::WouldBlock(ResourceType::File(_))) => {}
        other => panic!("{other:?}"),
    }
}

async fn two(folder: &TempDir) -> Result<(DmaFile, DmaFile)> {
    let path = folder.path().join("file");
    filled(&path, 100);
    Ok((DmaFile::open(&path).await?, DmaFile::open(&path).await?))
}

#[run_test(in_each_folder)]
async fn shared_locks_share_and_exclusive_ones_do_not(folder: TempDir) {
    let (one, other) = two(&folder).await?;
    let shared = one.try_lock_shared().await?;
    let too = other.try_lock_shared().await?;
    drop(too);
    assert_would_block(other.try_lock_exclusive().await);
    shared.unlock().await?;
    let exclusive = other.try_lock_exclusive().await?;
    assert_would_block(one.try_lock_shared().await);
    assert_would_block(one.try_lock_exclusive().await);
    drop(exclusive);
    drop(one.try_lock_exclusive().await?);
}

#[run_test(in_folder)]
async fn clones_and_duplicates_have_one_lock_together(folder: TempDir) {
    let (file, _) = two(&folder).await?;
    let (clone, copy) = (file.clone(), file.dup()?);
    let lock = file.try_lock_shared().await?;
    assert_would_block(clone.try_lock_shared().await);
    assert_would_block(copy.try_lock_exclusive().await);
    drop(lock);
    let lock = copy.try_lock_exclusive().await?;
    assert_would_block(file.try_lock_shared().await);
    drop(lock);
}

#[run_test(in_folder)]
async fn a_lock_is_held_by_all_of_its_clones(folder: TempDir) {
    let (one, other) = two(&folder).await?;
    let lock = one.try_lock_exclusive().await?;
    let weak = lock.downgrade();
    let clone = weak.upgrade().expect("it is held");
    match lock.unlock().await {
        Err(GlommioError::CanNotBeClosed(ResourceType::File(_), _)) => {}
        other => panic!("{other:?}"),
    }
    assert_would_block(other.try_lock_shared().await);
    let second = clone.clone();
    let clone = clone.try_take_last_clone().expect_err("there are two");
    drop(second);
    let last = clone.try_take_last_clone().expect("it is the only one");
    assert!(weak.upgrade().is_none());
    last.unlock().await?;
    drop(other.try_lock_exclusive().await?);
    assert!(WeakAdvisoryLockGuard::new().upgrade().is_none());
}

#[run_test(in_folder)]
async fn a_lock_keeps_the_file_open(folder: TempDir) {
    let (one, other) = two(&folder).await?;
    let lock = one.try_lock_exclusive().await?;
    match one.close().await {
        Err(GlommioError::CanNotBeClosed(ResourceType::File(_), _)) => {}
        other => panic!("{other:?}"),
    }
    assert_would_block(other.try_lock_shared().await);
    drop(lock);
    drop(other.try_lock_shared().await?);
}

#[run_test(in_folder)]
async fn the_last_clone_is_taken_with_its_lock(folder: TempDir) {
    let (one, other) = two(&folder).await?;
    let lock = one.try_lock_exclusive().await?;
    let clone = one.clone();
    let (one, lock) = one
        .try_take_last_clone_unlocking_guard(lock)
        .await
        .expect_err("there is a clone");
    drop(clone);
    assert_would_block(other.try_lock_shared().await);
    let second = lock.clone();
    let (one, lock) = one
        .try_take_last_clone_unlocking_guard(lock)
        .await
        .expect_err("there is another guard");
    drop(second);
    let one = one
        .try_take_last_clone_unlocking_guard(lock)
        .await
        .expect("both are the last");
    drop(other.try_lock_exclusive().await?);
    one.close().await
}

#[test]
fn a_guard_of_another_file_is_a_mistake() {
    let folder = folder();
    let message = panic_of(|| {
        run(async {
            let (one, other) = two(&folder).await?;
            let lock = one.try_lock_shared().await?;
            let _ = other.try_take_last_clone_unlocking_guard(lock).await;
            Ok(())
        });
    });
    assert!(message.contains("another file"), "{message}");
}

#[run_test(in_folder)]
async fn a_lock_that_is_given_up_while_it_is_asked_for_is_not_held(folder: TempDir) {
    let (one, other) = two(&folder).await?;
    for polls in 0..3 {
        for _ in 0..20 {
            give_up(one.try_lock_exclusive(), polls).await;
        }
    }
    // What is under way ends soon.
    let mut locked = other.try_lock_exclusive().await;
    while locked.is_err() {
        sleep(Duration::from_millis(1)).await;
        locked = other.try_lock_exclusive().await;
    }
    drop(locked);
    while one.try_lock_exclusive().await.is_err() {
        sleep(Duration::from_millis(1)).await;
    }
}

#[run_test(in_folder)]
async fn locks_go_to_other_threads(folder: TempDir) {
    let (one, other) = two(&folder).await?;
    let lock = one.try_lock_exclusive().await?;
    let weak = lock.downgrade();
    std::thread::spawn(move || drop(lock))
        .join()
        .expect("it is dropped");
    assert!(weak.upgrade().is_none());
    drop(other.try_lock_exclusive().await?);
}
