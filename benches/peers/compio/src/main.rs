//! compio 0.19 on io_uring: one thread, owned buffers. Its files are what is measured.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::fs::{File, OpenOptions};
use compio::io::{AsyncReadAt, AsyncWriteAt};
use compio::runtime::JoinHandle;
use workloads::cases::{files, lanes};
use workloads::files::{Aligned, Files, Mode, O_DIRECT, Reader, Writer};
use workloads::{Join, Runtime, wake_self};

fn main() {
    workloads::main(&[&files::<Compio>(), &lanes::<Compio>()]);
}

struct Compio;

impl Runtime for Compio {
    type Task<T: 'static> = Task<T>;
    type Timer = Pin<Box<dyn Future<Output = ()>>>;

    fn run<F: Future + 'static>(future: F) -> F::Output
    where
        F::Output: 'static,
    {
        compio::runtime::Runtime::new()
            .expect("the kernel has io_uring and lets us use it")
            .block_on(async { Self::spawn(future).await })
    }

    fn start<F, T>(make: impl FnOnce() -> F + Send + 'static) -> Join<T>
    where
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let thread = std::thread::spawn(|| Self::run(async { make().await }));
        Box::new(|| thread.join().expect("workloads do not panic"))
    }

    fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Self::Task<T> {
        Task(compio::runtime::spawn(future))
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

    async fn timeout(limit: Duration, future: impl Future<Output = ()>) {
        compio::runtime::time::timeout(limit, future)
            .await
            .expect("workloads stay within their limits");
    }
}

/// A join handle.
struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|output| output.expect("workloads do not panic"))
    }
}

impl Files for Compio {
    type Reader = Reading;
    type Writer = Writing;

    async fn open(path: PathBuf, mode: Mode, bytes: usize) -> Reading {
        let mut options = OpenOptions::new();
        options.read(true);
        if mode == Mode::Direct {
            options.custom_flags(O_DIRECT);
        }
        Reading {
            file: options.open(path).await.expect(THERE),
            buffer: Aligned::new(bytes),
        }
    }

    async fn create(path: PathBuf) -> Writing {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        options.custom_flags(O_DIRECT);
        Writing(options.open(path).await.expect(WRITABLE))
    }

    async fn open_stat_close(path: &Path) -> u64 {
        let file = File::open(path).await.expect(THERE);
        let bytes = file.metadata().await.expect(THERE).len();
        file.close().await.expect(THERE);
        bytes
    }
}

/// A file, and the buffer that travels into each operation and back.
struct Reading {
    file: File,
    buffer: Aligned,
}

impl Reader for Reading {
    async fn read_at(&mut self, position: u64) -> usize {
        let Aligned {
            memory,
            start,
            bytes,
        } = &mut self.buffer;
        let place = std::mem::take(memory).slice(*start..*start + *bytes);
        let BufResult(read, place) = self.file.read_at(place, position).await;
        *memory = place.into_inner();
        read.expect("the disk is sound")
    }
}

/// A file that is written.
struct Writing(File);

impl Writer for Writing {
    async fn write_at(&self, position: u64, bytes: usize) {
        let Aligned { memory, start, .. } = Aligned::new(bytes);
        let place = memory.slice(start..start + bytes);
        let BufResult(written, _) = (&self.0).write_at(place, position).await;
        assert_eq!(written.expect(WRITABLE), bytes);
    }

    async fn sync(&self) {
        self.0.sync_data().await.expect(WRITABLE);
    }
}

const THERE: &str = "the workload has made it";
const WRITABLE: &str = "the disk has room";
