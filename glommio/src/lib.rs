//! A thread-per-core async runtime on io_uring.
