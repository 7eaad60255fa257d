//! compio 0.19 on io_uring: one thread, owned buffers. Its files are what is measured.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use compio::runtime::JoinHandle;
use workloads::cases::{files, lanes};
use workloads::{Joined, Runtime, wake_self};

#[path = "../../ring_files.rs"]
mod ring_files;

mod parts {
    use std::io;
    use std::ops::Range;

    use compio::BufResult;
    use compio::buf::{IntoInner, IoBuf};
    pub use compio::fs::{File, OpenOptions};
    use compio::io::{AsyncReadAt, AsyncWriteAt};
    use workloads::files::O_DIRECT;

    pub(crate) use crate::Compio as Peer;

    pub fn past_the_cache(options: &mut OpenOptions) {
        options.custom_flags(O_DIRECT);
    }

    pub async fn read_at(
        file: &File,
        memory: Vec<u8>,
        place: Range<usize>,
        position: u64,
    ) -> (io::Result<usize>, Vec<u8>) {
        let BufResult(read, place) = file.read_at(memory.slice(place), position).await;
        (read, place.into_inner())
    }

    pub async fn write_at(
        mut file: &File,
        memory: Vec<u8>,
        place: Range<usize>,
        position: u64,
    ) -> io::Result<usize> {
        file.write_at(memory.slice(place), position).await.0
    }
}

fn main() {
    workloads::main(&[&files::<Compio>(), &lanes::<Compio>()]);
}

struct Compio;

impl Runtime for Compio {
    type Task<T: 'static> = Joined<JoinHandle<T>>;
    type Timer = Pin<Box<dyn Future<Output = ()>>>;

    fn run<F: Future + 'static>(future: F) -> F::Output
    where
        F::Output: 'static,
    {
        compio::runtime::Runtime::new()
            .expect("the kernel has io_uring and lets us use it")
            .block_on(async { Self::spawn(future).await })
    }

    fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Self::Task<T> {
        Joined(compio::runtime::spawn(future))
    }

    fn spawn_detached(future: impl Future<Output = ()> + 'static) {
        compio::runtime::spawn(future).detach();
    }

    async fn yield_now() {
        wake_self().await;
    }

    fn timer(delay: Duration) -> Self::Timer {
        Box::pin(compio::runtime::time::sleep(delay))
    }

    async fn timeout<T>(limit: Duration, future: impl Future<Output = T>) -> T {
        compio::runtime::time::timeout(limit, future)
            .await
            .expect("workloads stay within their limits")
    }
}
