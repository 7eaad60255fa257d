//! When the I/O memory of an executor comes and goes. Each test has a process of its own, whose
//! address space no other test changes.

use glommio::allocate_dma_buffer;
use glommio::io::DmaBuffer;

use crate::common::prelude::*;
use crate::common::{mapped_bytes, resident_bytes};

/// So large that everything else that a process maps is small beside it.
const ARENA_BYTES: usize = 1 << 30;

/// What else may be mapped, unmapped or become resident meanwhile: the allocator maps 128 MiB for
/// each thread and returns a part of it.
const TOLERANCE_BYTES: usize = ARENA_BYTES / 2;

fn executor() -> LocalExecutor {
    LocalExecutorBuilder::default()
        .io_memory(ARENA_BYTES)
        .make()
        .expect("this machine has io_uring")
}

fn assert_mapped(before: usize, arenas: usize) {
    let (now, expected) = (mapped_bytes(), before + arenas * ARENA_BYTES);
    assert!(
        now.abs_diff(expected) < TOLERANCE_BYTES,
        "{now} bytes are mapped, {before} were: not {arenas} arenas"
    );
}

#[run_test(in_child)]
fn it_is_reserved_at_the_first_buffer() {
    let before = mapped_bytes();
    let resident_before = resident_bytes();
    let executor = executor();
    executor.run(async {});
    assert_mapped(before, 0);

    let buffer = executor.run(async { allocate_dma_buffer(1) });
    assert_mapped(before, 1);
    let more = executor.run(async { [allocate_dma_buffer(1), allocate_dma_buffer(1 << 20)] });
    assert_mapped(before, 1);

    let resident = resident_bytes().saturating_sub(resident_before);
    assert!(resident < TOLERANCE_BYTES, "{resident} bytes are resident");
    drop((buffer, more));
}

/// The pool's knob is each executor's, as if it were made alone.
#[run_test(in_child)]
fn it_has_the_size_that_a_pool_was_told() {
    let before = mapped_bytes();
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(1))
        .io_memory(ARENA_BYTES)
        .on_all_shards(move || async move {
            assert_mapped(before, 0);
            let _buffer = allocate_dma_buffer(1);
            assert_mapped(before, 1);
        })
        .expect("this machine has io_uring");
    for shard in shards.join_all() {
        shard.expect("the shard did not panic");
    }
    assert_mapped(before, 0);
}

/// Buffers that take no I/O memory reserve none.
#[run_test(in_child)]
fn it_is_not_reserved_for_nothing() {
    let before = mapped_bytes();
    let executor = executor();
    executor.run(async {
        drop(allocate_dma_buffer(0));
        drop(glommio::allocate_dma_buffer_global(1));
    });
    assert_mapped(before, 0);
}

#[run_test(in_child)]
fn it_goes_with_the_executor_or_the_last_buffer() {
    let before = mapped_bytes();
    let buffer_of = |executor: &LocalExecutor| -> DmaBuffer {
        executor.run(async { allocate_dma_buffer(4096) })
    };

    let first = executor();
    drop(buffer_of(&first));
    assert_mapped(before, 1);
    drop(first);
    assert_mapped(before, 0);

    let second = executor();
    let mut buffers = vec![buffer_of(&second), buffer_of(&second)];
    drop(second);
    for left in [1, 0] {
        assert_mapped(before, 1);
        buffers[left].as_bytes_mut().fill(5);
        assert_eq!(buffers[left].as_bytes(), [5; 4096]);
        drop(buffers.pop());
    }
    assert_mapped(before, 0);

    for _ in 0..50 {
        drop(buffer_of(&executor()));
    }
    assert_mapped(before, 0);
}
