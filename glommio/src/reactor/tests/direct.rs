//! Direct I/O: registered memory.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use super::super::op::{Bytes, Read, Write};
use super::*;
use crate::memory::DmaBuffer;
use crate::shares::TaskQueueHandle;
use crate::stats::Counted;
use crate::sys::descriptor::Descriptor;

const BYTES: usize = 4096;

const QUEUE: TaskQueueHandle = TaskQueueHandle::from_index(0);

fn reactor_with_memory(io_memory_bytes: usize) -> Rc<Reactor> {
    reactor_with(Settings {
        io_memory_bytes,
        ..settings(8)
    })
}

/// A file of two pages of sevens, opened with further flags of `open(2)`. `None` where the
/// filesystem does not have them.
fn file(flags: libc::c_int) -> Option<Descriptor> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, [7; 2 * BYTES]).expect("the disk has room");
    let mut options = File::options();
    let options: &mut OpenOptions = options.read(true).write(true).custom_flags(flags);
    let file = options.open(&path).inspect_err(|error| {
        eprintln!("no direct I/O in the temporary folder, what needs it is left out: {error}");
    });
    Some(Descriptor::new(OwnedFd::from(file.ok()?)))
}

fn direct_file() -> Option<Descriptor> {
    file(libc::O_DIRECT)
}

fn page_cache_file() -> Descriptor {
    file(0).expect("every filesystem has this")
}

fn read(file: &Descriptor, buffer: DmaBuffer, is_registered: bool) -> Read {
    Read {
        fd: file.clone().into(),
        buffer,
        start: 0,
        position: 0,
        is_registered,
    }
}

/// Turns until `operation` is done, as an executor without anything else to do.
fn finish<O: super::super::op::Op>(
    reactor: &Reactor,
    mut operation: OpHandle<O>,
) -> io::Result<O::Output> {
    let (woken, waker) = counting_waker();
    assert!(poll(&mut operation, &waker).is_none());
    while woken.get() == 0 {
        idle_turn(reactor);
    }
    poll(&mut operation, &waker).expect("it is done")
}

fn state(reactor: &Reactor) -> String {
    reactor.driver.io.registration()
}

#[test]
fn memory_is_registered_by_the_first_direct_io() {
    let Some(file) = direct_file() else { return };
    let reactor = reactor_with_memory(1 << 20);
    let mut buffer = reactor.allocate_dma_buffer(BYTES);
    assert!(state(&reactor).contains("Untried"), "no buffer is enough");
    let on_heap = reactor.allocate_dma_buffer(2 << 20);
    assert!(!reactor.is_registered(&on_heap));
    assert!(state(&reactor).contains("Untried"));
    assert!(reactor.is_registered(&buffer));
    assert!(state(&reactor).contains("Done"));
    assert!(!reactor.is_registered(&on_heap));
    let other = reactor_with_memory(1 << 20);
    let of_other = other.allocate_dma_buffer(BYTES);
    assert!(!reactor.is_registered(&of_other), "another arena");

    buffer.as_bytes_mut().fill(1);
    let write = Write {
        fd: file.clone().into(),
        bytes: Bytes::Dma(buffer),
        start: 0,
        position: 0,
        is_registered: true,
    };
    let written = finish(
        &reactor,
        reactor.submit_counted(write, Counted::Write, QUEUE),
    );
    assert_eq!(written.unwrap().count.unwrap(), BYTES);
    let whole = reactor.allocate_dma_buffer(2 * BYTES);
    let operation = reactor.submit_counted(read(&file, whole, true), Counted::Read, QUEUE);
    let (whole, count) = finish(&reactor, operation).unwrap();
    assert_eq!(count.unwrap(), 2 * BYTES);
    assert!(whole.as_bytes()[..BYTES].iter().all(|byte| *byte == 1));
    assert!(whole.as_bytes()[BYTES..].iter().all(|byte| *byte == 7));

    // Memory that the kernel does not know under this name is refused, not read.
    let operation = reactor.submit_counted(read(&file, of_other, true), Counted::Read, QUEUE);
    let (_, count) = finish(&reactor, operation).unwrap();
    assert_eq!(count.unwrap_err().raw_os_error(), Some(libc::EFAULT));
}

/// Older kernels register no more than a gigabyte at once.
#[test]
fn memory_that_cannot_be_registered_is_used_all_the_same() {
    let reactor = reactor_with_memory(2 << 30);
    let buffer = reactor.allocate_dma_buffer(BYTES);
    if reactor.is_registered(&buffer) {
        return eprintln!(
            "skipped: memory_that_cannot_be_registered: this kernel registers two gigabytes"
        );
    }
    for _ in 0..2 {
        assert!(!reactor.is_registered(&buffer));
        assert!(state(&reactor).contains("Failed"));
    }
    let file = page_cache_file();
    let operation = reactor.submit(read(&file, buffer, false));
    assert_eq!(finish(&reactor, operation).unwrap().1.unwrap(), BYTES);
}
