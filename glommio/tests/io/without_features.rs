//! The same tests where the kernel's newer operations are not used.

use crate::common::again_with;

#[test]
fn older_kernels_have_the_blocking_threads_for_what_the_ring_cannot_do() {
    again_with(
        "without_features::older_kernels_have_the_blocking_threads_for_what_the_ring_cannot_do",
        &[(
            "GLOMMIO_RING_WITHOUT",
            "paths,make_directory,links,truncate,registered,registered_ring",
        )],
        &[
            "open::",
            "directory::",
            "names::",
            "long::all",
            "dma::",
            "buffered::",
            "dma_streams::",
        ],
    );
}
