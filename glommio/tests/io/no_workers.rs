//! Files where the system has no thread to give: the kernel cancels what it would hand to a worker of its own.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};

use glommio::io::{
    create_dir_all, hard_link, remove, remove_dir, rename, set_permissions, stat, symlink,
};
use nix::sys::resource::{Resource, setrlimit};

use super::*;

/// A user who owns nothing.
const USER: u32 = 54_321;

fn is_root() -> bool {
    // SAFETY: it takes no pointer.
    unsafe { libc::geteuid() == 0 }
}

/// Has the system refuse threads to this process, if that is possible.
fn refuse_threads() -> bool {
    if is_root() {
        // This one has no limit.
        // SAFETY: it takes no pointer.
        assert_eq!(unsafe { libc::setuid(USER) }, 0, "root may be any user");
    }
    setrlimit(Resource::RLIMIT_NPROC, 1, 1).expect("it is lowered");
    let refused = thread::Builder::new().spawn(|| ()).is_err();
    if !refused {
        skipped("the number of threads is not limited here");
    }
    refused
}

#[run_test(run_in_child)]
async fn what_finds_no_worker_of_the_kernel_is_done_by_a_thread() {
    let folder = folder();
    if is_root() {
        chown(folder.path(), Some(USER), None)?;
    }
    // From here on there is one thread for calls on files.
    set_permissions(folder.path(), Permissions::from_mode(0o700)).await?;
    if !refuse_threads() {
        return Ok(());
    }
    let at = |name: &str| folder.path().join(name);
    create_dir_all(at("one/two")).await?;
    remove_dir(at("one/two")).await?;
    let file = DmaFile::create(at("direct")).await?;
    file.write_all_at(file.alloc_dma_buffer(8192), 0).await?;
    file.pre_allocate(20_000, false).await?;
    file.deallocate(0, 4096).await?;
    file.fdatasync().await?;
    file.truncate(10_000).await?;
    file.close().await?;
    assert_eq!(stat(at("direct")).await?.file_size, 10_000);

    const LEN: usize = 2 << 20;
    let file = BufferedFile::create(at("buffered")).await?;
    file.write_all_at(pattern(0, LEN), 0).await?;
    file.fdatasync().await?;
    file.close().await?;
    rename(at("buffered"), at("renamed")).await?;
    hard_link(at("renamed"), at("linked")).await?;
    symlink("linked", at("symbolic")).await?;
    remove(at("renamed")).await?;
    let file = Rc::new(BufferedFile::open(at("symbolic")).await?);
    assert_eq!(*file.read_at(0, LEN).await?, pattern(0, LEN));
    // Given up in all states.
    for polls in 0..50 {
        give_up(file.read_at(0, LEN), polls % 5).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?).await?;
    let mut server = listener.accept().await?;
    let sent = server.send_file(&*file, 5, 1000).await?;
    let mut received = vec![0; sent];
    client.read_exact(&mut received).await?;
    assert_eq!(received, pattern(5, sent));
    Rc::into_inner(file)
        .expect("it is the last")
        .close()
        .await?;
    let directory = Directory::open(folder.path()).await?;
    directory.sync().await?;
    directory.close().await
}
