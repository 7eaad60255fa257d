//! Take a DMA buffer and drop it: from the executor's I/O memory, the same with zeroing, from the
//! ordinary allocator, and with the feature `peers` from the arena of the crate buddy-alloc.

#![allow(missing_docs, reason = "`criterion_group` makes a function")]

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use glommio::{LocalExecutor, allocate_dma_buffer, allocate_dma_buffer_global};

criterion_group!(benches, ours, published);
criterion_main!(benches);

/// A page, a common block of a log or a table, and a large read.
const SIZES_KIB: [usize; 3] = [4, 64, 1024];

/// Buffers that are held while others come and go, two megabytes of them.
const HELD: usize = 48;

fn ours(criterion: &mut Criterion) {
    LocalExecutor::default().run(async {
        measure(criterion, "arena", allocate_dma_buffer);
        measure(criterion, "arena-zeroed", |size| {
            let mut buffer = allocate_dma_buffer(size);
            black_box(buffer.as_bytes_mut()).fill(0);
            buffer
        });
    });
    measure(criterion, "heap", allocate_dma_buffer_global);
}

fn measure<B>(criterion: &mut Criterion, source: &str, take: impl Fn(usize) -> B) {
    let mut group = criterion.benchmark_group(source);
    for size_kib in SIZES_KIB {
        group.bench_function(BenchmarkId::new("take-and-drop-KiB", size_kib), |bencher| {
            bencher.iter(|| drop(take(black_box(size_kib << 10))));
        });
    }
    // One to sixteen pages in turn, of which the oldest goes.
    let mut sizes = (0..).map(|n: usize| (1 + n * 7 % 16) << 12);
    let mut held: VecDeque<B> = sizes.by_ref().take(HELD).map(&take).collect();
    group.bench_function("replace-one-of-48", |bencher| {
        bencher.iter(|| {
            drop(held.pop_front());
            held.extend(sizes.next().map(&take));
        });
    });
    group.finish();
}

#[cfg(not(feature = "peers"))]
fn published(_: &mut Criterion) {}

#[cfg(feature = "peers")]
fn published(criterion: &mut Criterion) {
    use std::cell::RefCell;

    use buddy_alloc::buddy_alloc::{BuddyAlloc, BuddyAllocParam};

    /// Returns its memory when it is dropped.
    struct Block<'a>(*mut u8, &'a RefCell<BuddyAlloc>);

    impl Drop for Block<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().free(self.0);
        }
    }

    let mut memory = allocate_dma_buffer_global(10 << 20);
    let param = BuddyAllocParam::new(memory.as_mut_ptr(), memory.len(), 4096);
    // SAFETY: the memory is this function's until its end, and the allocator is dropped before.
    let arena = RefCell::new(unsafe { BuddyAlloc::new(param) });
    measure(criterion, "buddy-alloc", |size| {
        let block = arena.borrow_mut().malloc(size);
        assert!(!block.is_null());
        Block(block, &arena)
    });
}
