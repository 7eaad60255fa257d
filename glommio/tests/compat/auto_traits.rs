//! Which types may leave their thread, and which may be shared.

use std::rc::Rc;

use glommio::channels::channel_mesh::{
    Full, FullMesh, Partial, PartialMesh, Receivers, Role, Senders,
};
use glommio::channels::local_channel::{LocalReceiver, LocalSender, OwnedChannelStream};
use glommio::channels::sharding::Sharded;
use glommio::channels::shared_channel::{
    ConnectedReceiver, ConnectedSender, ForeignSender, SharedReceiver, SharedSender,
};
use glommio::channels::storage::Shared;
use glommio::channels::{broadcast, oneshot, spsc_queue, watch};
use glommio::controllers::{ControllerStatus, DeadlineQueue, PriorityBump};
use glommio::io::{
    AdvisoryLockGuard, BufferedFile, CloseResult, Directory, DmaBuffer, DmaFile, DmaStreamReader,
    DmaStreamReaderBuilder, DmaStreamWriter, DmaStreamWriterBuilder, ImmutableFile,
    ImmutableFileBuilder, ImmutableFilePreSealSink, MergedBufferLimit, OpenOptions, OwnedDmaFile,
    ReadAmplificationLimit, ReadResult, ScheduledSource, Stat, StreamReader, StreamReaderBuilder,
    StreamWriter, StreamWriterBuilder, WeakAdvisoryLockGuard, WeakDmaFile,
};
use glommio::net::{AcceptedTcpStream, Preallocated, TcpListener, TcpStream, UdpSocket};
use glommio::sync::{
    CancellationToken, Cancelled, Gate, Mutex, MutexGuard, OnceCell, Pass, Permit,
    RemoteCancellation, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, StaticPermit,
};
use glommio::task::JoinHandle;
use glommio::timer::{Timer, TimerActionOnce, TimerActionRepeat};
use glommio::{
    BuilderErrorKind, CpuLocation, CpuSet, DefaultStallDetectionHandler, ExecutorErrorKind,
    ExecutorJoinHandle, ExecutorProxy, ExecutorStats, GlommioError, IoStats, Latency,
    LocalExecutor, LocalExecutorBuilder, LocalExecutorPoolBuilder, PanicPayload, Placement,
    PoolPlacement, PoolThreadHandles, QueueErrorKind, ReactorErrorKind, ResourceType, RingIoStats,
    ScopedTask, Shares, StallDetection, StallDetectionHandler, Task, TaskQueueHandle,
    TaskQueueStats,
};

/// Neither `Send` nor `Sync`.
type Local = Rc<()>;

/// `Send`, but not `Sync`.
type Movable = std::cell::Cell<u8>;

/// For each type: `Send` yes or no, `Sync` yes or no. A wrong one does not build.
macro_rules! assert_auto_traits {
    ($($type:ty: $send:ident, $sync:ident;)*) => {
        $(const _: () = {
            assert_trait!($send, Send, $type);
            assert_trait!($sync, Sync, $type);
        };)*
    };
}

macro_rules! assert_trait {
    (yes, $trait:ident, $type:ty) => {{
        const fn holds<T: $trait + ?Sized>() {}
        holds::<$type>()
    }};
    // Where the trait holds, two impls give `is_ambiguous`, and the compiler cannot choose.
    (no, $trait:ident, $type:ty) => {{
        trait Either<A> {
            const IS_AMBIGUOUS: () = ();
        }
        struct Holds;
        impl<T: ?Sized> Either<()> for T {}
        impl<T: ?Sized + $trait> Either<Holds> for T {}
        <$type as Either<_>>::IS_AMBIGUOUS
    }};
}

assert_auto_traits! {
    LocalExecutor: no, no;
    LocalExecutorBuilder: yes, yes;
    LocalExecutorPoolBuilder: no, no;
    ExecutorProxy: yes, yes;
    TaskQueueHandle: yes, yes;
    Latency: yes, yes;
    Placement: yes, yes;
    PoolPlacement: yes, yes;
    CpuSet: yes, yes;
    CpuLocation: yes, yes;
    Shares: no, no;
    ExecutorJoinHandle<u8>: yes, yes;
    // Like those of threads, whatever comes out of them.
    ExecutorJoinHandle<Movable>: yes, yes;
    PoolThreadHandles<u8>: yes, yes;
    PoolThreadHandles<Movable>: yes, yes;
    DefaultStallDetectionHandler: yes, yes;
    dyn StallDetectionHandler: yes, yes;
    StallDetection<'static>: yes, yes;
    ExecutorStats: yes, yes;
    TaskQueueStats: yes, yes;
    IoStats: yes, yes;
    RingIoStats: yes, yes;
    Task<u8>: no, no;
    ScopedTask<'static, u8>: no, no;
    JoinHandle<u8>: no, no;
    std::task::Waker: yes, yes;

    GlommioError<()>: yes, yes;
    GlommioError<Movable>: yes, no;
    GlommioError<Local>: no, no;
    ResourceType<()>: yes, yes;
    ResourceType<Movable>: yes, no;
    ResourceType<Local>: no, no;
    BuilderErrorKind: yes, yes;
    ExecutorErrorKind: yes, yes;
    QueueErrorKind: yes, yes;
    ReactorErrorKind: yes, yes;
    PanicPayload: yes, yes;

    LocalSender<u8>: no, no;
    LocalReceiver<u8>: no, no;
    OwnedChannelStream<u8>: no, no;
    // One thread at a time has either, and with it the values.
    spsc_queue::Producer<u8>: yes, no;
    spsc_queue::Consumer<u8>: yes, no;
    spsc_queue::Producer<Movable>: yes, no;
    spsc_queue::Consumer<Movable>: yes, no;
    spsc_queue::Producer<Local>: no, no;
    spsc_queue::Consumer<Local>: no, no;
    SharedSender<u8>: yes, no;
    SharedReceiver<u8>: yes, no;
    SharedSender<Movable>: yes, no;
    SharedReceiver<Movable>: yes, no;
    ConnectedSender<u8>: no, no;
    ConnectedReceiver<u8>: no, no;
    ForeignSender<u8>: yes, no;
    ForeignSender<Movable>: yes, no;
    FullMesh<u8>: yes, yes;
    PartialMesh<Movable>: yes, yes;
    Full: yes, yes;
    Partial: yes, yes;
    Role: yes, yes;
    Senders<u8>: no, no;
    Receivers<u8>: no, no;
    Sharded<u8, ()>: no, no;
    oneshot::Sender<u8>: no, no;
    oneshot::Receiver<u8>: no, no;
    oneshot::SharedSender<u8>: yes, yes;
    oneshot::SharedReceiver<u8>: yes, yes;
    // A lock lets one thread at a time at the value: it need not be `Sync`.
    oneshot::SharedSender<Movable>: yes, yes;
    oneshot::SharedReceiver<Movable>: yes, yes;
    oneshot::SharedSender<Local>: no, no;
    oneshot::SharedReceiver<Local>: no, no;
    watch::Sender<u8>: no, no;
    watch::Receiver<u8>: no, no;
    watch::SharedSender<Movable>: yes, yes;
    watch::SharedReceiver<Movable>: yes, yes;
    watch::Changed<'static, Movable, Shared>: yes, yes;
    watch::SharedSender<Local>: no, no;
    watch::SharedReceiver<Local>: no, no;
    broadcast::Sender<u8>: no, no;
    broadcast::Receiver<u8>: no, no;
    broadcast::SharedSender<Movable>: yes, yes;
    broadcast::SharedReceiver<Movable>: yes, yes;
    broadcast::Recv<'static, Movable, Shared>: yes, yes;
    broadcast::SharedSender<Local>: no, no;
    broadcast::SharedReceiver<Local>: no, no;
    broadcast::RecvError: yes, yes;
    broadcast::TryRecvError: yes, yes;

    Semaphore: no, no;
    Permit<'static>: no, no;
    StaticPermit: no, no;
    RwLock<u8>: no, no;
    RwLockReadGuard<'static, u8>: no, no;
    RwLockWriteGuard<'static, u8>: no, no;
    Mutex<u8>: no, no;
    MutexGuard<'static, u8>: no, no;
    Gate: no, no;
    Pass: no, no;
    OnceCell<u8>: no, no;
    CancellationToken: no, no;
    Cancelled<'static>: no, no;
    RemoteCancellation: yes, yes;

    ControllerStatus: yes, yes;
    DeadlineQueue<u8>: no, no;
    PriorityBump<u8>: no, no;

    DmaBuffer: no, no;
    DmaFile: no, no;
    BufferedFile: no, no;
    Directory: no, no;
    ImmutableFile: no, no;
    ImmutableFilePreSealSink: no, no;
    ImmutableFileBuilder<&'static str>: yes, yes;
    ReadResult: no, no;
    ScheduledSource: no, no;
    DmaStreamReader: no, no;
    DmaStreamReaderBuilder: no, no;
    DmaStreamWriter: no, no;
    DmaStreamWriterBuilder: no, no;
    StreamReader: no, no;
    StreamReaderBuilder: no, no;
    StreamWriter: no, no;
    StreamWriterBuilder: no, no;
    OwnedDmaFile: yes, yes;
    WeakDmaFile: yes, yes;
    AdvisoryLockGuard: yes, yes;
    WeakAdvisoryLockGuard: yes, yes;
    OpenOptions: yes, yes;
    Stat: yes, yes;
    CloseResult: yes, yes;
    MergedBufferLimit: yes, yes;
    ReadAmplificationLimit: yes, yes;
    TcpListener: no, no;
    TcpStream: no, no;
    TcpStream<Preallocated>: no, no;
    AcceptedTcpStream: yes, yes;
    Preallocated: yes, yes;
    UdpSocket: no, no;
    Timer: no, no;
    TimerActionOnce<u8>: no, no;
    TimerActionRepeat: no, no;
}

/// All of them can be polled without being pinned.
const _: () = {
    const fn is_unpin<T: Unpin>() {}
    type Pinned = std::marker::PhantomPinned;
    is_unpin::<LocalReceiver<Pinned>>();
    is_unpin::<OwnedChannelStream<Pinned>>();
    is_unpin::<SharedSender<Pinned>>();
    is_unpin::<SharedReceiver<Pinned>>();
    is_unpin::<ConnectedSender<Pinned>>();
    is_unpin::<ConnectedReceiver<Pinned>>();
    is_unpin::<spsc_queue::Producer<Pinned>>();
    is_unpin::<spsc_queue::Consumer<Pinned>>();
    is_unpin::<FullMesh<Pinned>>();
    is_unpin::<Senders<Pinned>>();
    is_unpin::<Receivers<Pinned>>();
    is_unpin::<oneshot::Receiver<Pinned>>();
    is_unpin::<oneshot::SharedReceiver<Pinned>>();
    is_unpin::<watch::SharedReceiver<Pinned>>();
    is_unpin::<watch::Changed<'static, Pinned>>();
    is_unpin::<broadcast::SharedReceiver<Pinned>>();
    is_unpin::<broadcast::Recv<'static, Pinned>>();
    is_unpin::<Semaphore>();
    is_unpin::<RwLockReadGuard<'static, Pinned>>();
    is_unpin::<Gate>();
    is_unpin::<Pass>();
    is_unpin::<DmaStreamReader>();
    is_unpin::<DmaStreamWriter>();
    is_unpin::<StreamReader>();
    is_unpin::<StreamWriter>();
    is_unpin::<ImmutableFilePreSealSink>();
    is_unpin::<glommio::io::Stdin>();
    is_unpin::<Timer>();
    is_unpin::<TimerActionOnce<Pinned>>();
    is_unpin::<TimerActionRepeat>();
};

/// The future of a blocking call belongs to its executor, though the call itself moves.
#[test]
fn the_future_of_a_blocking_call_stays() {
    /// Where a type is one or the other, the compiler cannot choose `A`.
    trait Stays<A> {}
    struct Moves;
    struct Shared;
    impl<T> Stays<()> for T {}
    impl<T: Send> Stays<Moves> for T {}
    impl<T: Sync> Stays<Shared> for T {}
    fn stays<A, T: Stays<A>>(_: &T) {}

    glommio::LocalExecutor::default().run(async {
        let call = glommio::executor().spawn_blocking(|| 1);
        stays(&call);
        assert_eq!(call.await, 1);
    });
}
