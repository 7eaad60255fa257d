//! Three stages of work, each in a task queue with its own shares, with bounded channels in
//! between.
//!
//! ```console
//! $ cargo run --release -p examples --bin pipeline -- --blocks 3000 --channel 8
//! ```
//!
//! `read` makes blocks of bytes, as from a file; `digest` computes a checksum of each; `store`
//! takes the results. A stage that is too fast fills the channel behind it and waits there: at no
//! time are there more blocks in memory than the channels hold and the stages have in hand, however
//! slow the slowest stage is. The shares of its queue say how much of the CPU a stage gets while
//! others are runnable.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use glommio::channels::local_channel::{self, LocalReceiver, LocalSender};
use glommio::timer::sleep;
use glommio::{
    Latency, LocalExecutorBuilder, Placement, Shares, Task, TaskQueueHandle, executor,
    spawn_local_into, yield_if_needed,
};

/// Passes blocks of bytes through three stages.
#[derive(Clone, Debug, Parser)]
#[command(name = "pipeline")]
struct Options {
    /// How many blocks.
    #[arg(long, default_value_t = 3000)]
    blocks: u64,

    /// How many blocks each channel holds.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    channel: u16,

    /// Results after which the last stage pauses, as a disk does that flushes.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..))]
    pause_each: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("pipeline")
        .spawn(move || run(options))?;
    executor.join()?;
    Ok(())
}

async fn run(options: Options) {
    // Of three parts of the CPU, as long as all want it, the stage in the middle gets two.
    let queue = |shares, name| {
        executor().create_task_queue(Shares::Static(shares), Latency::NotImportant, name)
    };
    let queues =
        [(250, "read"), (1000, "digest"), (250, "store")].map(|it| (queue(it.0, it.1), it.1));
    let [read_queue, digest_queue, store_queue] = queues.map(|it| it.0);

    let channel = usize::from(options.channel);
    let (blocks_in, blocks_out) = local_channel::new_bounded(channel);
    let (digests_in, digests_out) = local_channel::new_bounded(channel);
    let in_memory = Rc::new(InMemory::default());

    let reading = read(options.blocks, blocks_in, Rc::clone(&in_memory));
    let reading = start(reading, read_queue);
    let digesting = start(digest(blocks_out, digests_in), digest_queue);
    let storing = start(store(digests_out, options.pause_each), store_queue);
    reading.await;
    digesting.await;
    let (stored, sum) = storing.await;

    println!("{stored} blocks, sum of their digests {sum:016x}");
    println!(
        "at most {} blocks in memory at a time",
        in_memory.most.get()
    );
    // Figures are of rounds that have ended: let this one end.
    sleep(Duration::from_millis(1)).await;
    for (queue, name) in queues {
        let stats = executor()
            .task_queue_stats(queue)
            .expect("the queue is still there");
        println!(
            "{name} ran {:?} in {} turns",
            stats.runtime(),
            stats.queue_selected()
        );
    }
}

fn start<T: 'static>(stage: impl Future<Output = T> + 'static, queue: TaskQueueHandle) -> Task<T> {
    spawn_local_into(stage, queue).expect("the queue was just made")
}

/// The first stage. Dropping the sender tells the next that there is no more.
async fn read(blocks: u64, next: LocalSender<Block>, in_memory: Rc<InMemory>) {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..blocks {
        let mut bytes = vec![0; BLOCK_BYTES];
        random.fill(&mut bytes);
        let block = Block::new(bytes, &in_memory);
        // Waits while the channel is full.
        if next.send(block).await.is_err() {
            return;
        }
        yield_if_needed().await;
    }
}

/// The second stage: FNV-1a, which takes a step per byte.
async fn digest(blocks: LocalReceiver<Block>, next: LocalSender<u64>) {
    while let Some(block) = blocks.recv().await {
        let step =
            |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let digest = block.bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
        drop(block);
        if next.send(digest).await.is_err() {
            return;
        }
        yield_if_needed().await;
    }
}

/// The last stage. While it pauses, the others fill the channels and wait.
async fn store(digests: LocalReceiver<u64>, pause_each: u64) -> (u64, u64) {
    let (mut stored, mut sum) = (0_u64, 0_u64);
    while let Some(digest) = digests.recv().await {
        stored += 1;
        sum = sum.wrapping_add(digest);
        if stored.is_multiple_of(pause_each) {
            sleep(PAUSE).await;
        }
    }
    (stored, sum)
}

/// Counts the blocks that are alive.
#[derive(Default)]
struct InMemory {
    now: Cell<usize>,
    most: Cell<usize>,
}

struct Block {
    bytes: Vec<u8>,
    in_memory: Rc<InMemory>,
}

impl Block {
    fn new(bytes: Vec<u8>, in_memory: &Rc<InMemory>) -> Block {
        let now = in_memory.now.get() + 1;
        in_memory.now.set(now);
        in_memory.most.set(in_memory.most.get().max(now));
        Block {
            bytes,
            in_memory: Rc::clone(in_memory),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.in_memory.now.set(self.in_memory.now.get() - 1);
    }
}

const BLOCK_BYTES: usize = 4096;
const PAUSE: Duration = Duration::from_millis(5);
