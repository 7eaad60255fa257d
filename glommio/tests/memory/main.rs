//! Buffers for direct I/O: `glommio::io::DmaBuffer` and the two functions that make them.

use glommio::io::DmaBuffer;
use glommio::{ByteSliceExt, ByteSliceMutExt, allocate_dma_buffer, allocate_dma_buffer_global};

use crate::common::prelude::*;

mod arena;
#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

const ALIGNMENT: usize = 4096;

/// Sizes below, at and above what memory is cut into, up to more than the default arena has.
const SIZES: [usize; 12] = [
    1,
    100,
    511,
    512,
    4095,
    4096,
    4097,
    65_536,
    1_000_001,
    8 << 20,
    10 << 20,
    (10 << 20) + 1,
];

/// Every byte can be read and written, and no other buffer's bytes change with it.
fn assert_sound(buffer: &mut DmaBuffer, size: usize) {
    assert_eq!(buffer.len(), size);
    assert!(!buffer.is_empty());
    assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0);
    assert_eq!(buffer.as_ptr(), buffer.as_mut_ptr().cast_const());
    assert_eq!(buffer.as_ptr(), buffer.as_bytes().as_ptr());
    assert_eq!(buffer.as_bytes().len(), size);
    assert_eq!(AsRef::<[u8]>::as_ref(buffer).len(), size);
    assert_eq!(AsMut::<[u8]>::as_mut(buffer).len(), size);

    // The sum reads all of them, which the address sanitizer watches.
    let before: u64 = buffer.as_bytes().iter().map(|&byte| u64::from(byte)).sum();
    assert!(before <= 255 * size as u64);
    buffer.memset(3);
    assert!(buffer.as_bytes().iter().all(|&byte| byte == 3));
}

#[run_test]
async fn a_buffer_has_the_size_that_was_asked_for() {
    for size in SIZES {
        assert_sound(&mut allocate_dma_buffer(size), size);
        assert_sound(&mut allocate_dma_buffer_global(size), size);
    }
    // Together they are more than the arena holds.
    let mut buffers: Vec<_> = SIZES.map(allocate_dma_buffer).into_iter().collect();
    for (buffer, size) in buffers.iter_mut().zip(SIZES) {
        assert_sound(buffer, size);
    }
}

#[test]
fn a_buffer_of_no_bytes_is_empty() {
    let is_empty = |mut buffer: DmaBuffer| {
        assert!(buffer.is_empty());
        assert_eq!(buffer.len(), 0);
        assert_eq!(buffer.as_ptr().addr() % ALIGNMENT, 0);
        assert!(buffer.as_bytes().is_empty() && buffer.as_bytes_mut().is_empty());
        buffer.trim_to_size(0);
    };
    run(async move { is_empty(allocate_dma_buffer(0)) });
    is_empty(allocate_dma_buffer_global(0));
    run(async move { is_empty(allocate_dma_buffer_global(0)) });
}

#[test]
fn the_global_kind_needs_no_executor() {
    thread::spawn(|| assert_sound(&mut allocate_dma_buffer_global(5000), 5000))
        .join()
        .expect("no executor is needed");
    assert_eq!(allocate_dma_buffer_global(5000).as_bytes(), [0; 5000]);
}

#[test]
fn the_other_kind_needs_one() {
    let needs_one = "no LocalExecutor is running on this thread";
    assert!(panic_of(|| allocate_dma_buffer(1)).contains(needs_one));
    assert!(panic_of(|| allocate_dma_buffer(0)).contains(needs_one));
    let executor = LocalExecutor::default();
    executor.run(async { drop(allocate_dma_buffer(1)) });
    assert!(panic_of(|| allocate_dma_buffer(1)).contains(needs_one));
}

#[run_test]
async fn a_size_that_no_memory_has_is_refused() {
    let half = "at most half the address space";
    assert!(panic_of(|| allocate_dma_buffer_global(usize::MAX)).contains(half));
    assert!(panic_of(|| allocate_dma_buffer(usize::MAX)).contains(half));
    assert_sound(&mut allocate_dma_buffer(1), 1);
}

#[run_test]
async fn trimming_cuts_off_the_end_for_good() {
    for mut buffer in [allocate_dma_buffer(5000), allocate_dma_buffer_global(5000)] {
        let start = buffer.as_ptr();
        for (at, byte) in buffer.as_bytes_mut().iter_mut().enumerate() {
            *byte = at as u8;
        }
        buffer.trim_to_size(5000);
        assert_eq!(buffer.len(), 5000);
        buffer.trim_to_size(3);
        assert_eq!(buffer.as_bytes(), [0, 1, 2]);
        assert_eq!(buffer.as_ptr(), start);

        let message = panic_of(|| buffer.trim_to_size(4));
        assert!(message.contains('3') && message.contains('4'), "{message}");
        assert_eq!(buffer.len(), 3, "a refused trim changes nothing");
        buffer.trim_to_size(0);
        assert!(buffer.is_empty() && buffer.as_bytes().is_empty());
    }
}

#[run_test]
async fn bytes_are_copied_at_offsets() {
    let mut buffer = allocate_dma_buffer(10);
    buffer.memset(0);
    assert_eq!(buffer.write_at(8, &[1, 2, 3]), 2);
    let mut copy = [9; 4];
    assert_eq!(buffer.read_at(7, &mut copy), 3);
    assert_eq!(copy, [0, 1, 2, 9]);
    assert_eq!(buffer.write_at(10, &[1]), 0);
    assert_eq!(buffer.read_at(usize::MAX, &mut copy), 0);
}

/// A buffer may hold what is not for the log.
#[test]
fn debug_shows_no_content() {
    let mut buffer = allocate_dma_buffer_global(3);
    buffer.as_bytes_mut().copy_from_slice(&[201, 202, 203]);
    buffer.trim_to_size(2);
    let text = format!("{buffer:?}");
    assert!(
        text.contains("DmaBuffer") && text.contains("len: 2"),
        "{text}"
    );
    assert!(!text.contains("201") && !text.contains('\u{c9}'), "{text}");
}

/// Destructors run with the executor current, and the arena is still there for them.
#[test]
fn a_destructor_at_the_end_of_the_executor_may_take_a_buffer() {
    let kept = Rc::new(RefCell::new(None));
    let executor = LocalExecutor::default();
    executor.run({
        let kept = Rc::clone(&kept);
        async move {
            let at_end = on_drop(move || *kept.borrow_mut() = Some(allocate_dma_buffer(8192)));
            spawn_local(async move {
                let _at_end = at_end;
                std::future::pending::<()>().await;
            })
            .detach();
        }
    });
    assert!(kept.borrow().is_none());
    drop(executor);
    assert_sound(kept.borrow_mut().as_mut().expect("it was taken"), 8192);
}

/// The arenas of executors on one thread are apart, whichever of them runs when a buffer is
/// dropped.
#[test]
fn a_buffer_returns_to_the_arena_that_it_is_from() {
    let small = |bytes| {
        LocalExecutorBuilder::default()
            .io_memory(bytes)
            .make()
            .expect("this machine has io_uring")
    };
    let (one, other) = (small(65_536), small(131_072));
    let mut ours = one.run(async { Vec::from_iter((0..16).map(|_| allocate_dma_buffer(4096))) });
    let theirs = other.run(async { allocate_dma_buffer(131_072) });
    other.run(async {
        ours.drain(8..);
        // All of the other's arena is taken: no block has come from ours.
        assert_sound(&mut allocate_dma_buffer(4096), 4096);
    });
    drop(other);
    one.run(async {
        let mut again = Vec::from_iter((0..16).map(|_| allocate_dma_buffer(4096)));
        for buffer in ours.iter_mut().chain(&mut again) {
            buffer.memset(1);
        }
        drop(theirs);
        drop(again);
    });
    drop(one);
    assert!(ours.iter().all(|buffer| buffer.as_bytes() == [1; 4096]));
}
