//! Every name that programs import. One that vanished would not build; one too many in the prelude
//! would be ambiguous here, as it would be in the programs that import the prelude by a glob.

/// The names at the root, each by itself.
#[allow(unused_imports, reason = "importing is the test")]
mod root {
    // Functions.
    // Modules, and what they hold.
    use glommio::channels::channel_mesh::{
        Full, FullMesh, MeshAdapter, MeshBuilder, Partial, PartialMesh, Receivers, Role, Senders,
    };
    use glommio::channels::local_channel::{
        LocalReceiver, LocalSender, new_bounded, new_unbounded,
    };
    use glommio::channels::sharding::{Handler, HandlerResult, ShardFn, Sharded};
    use glommio::channels::shared_channel::{
        ConnectedReceiver, ConnectedSender, SharedReceiver, SharedSender,
    };
    use glommio::channels::spsc_queue::{Consumer, Producer};
    use glommio::controllers::{ControllerStatus, DeadlineQueue, DeadlineSource, PriorityBump};
    use glommio::io::{
        BufferedFile, CloseResult, Directory, DmaBuffer, DmaFile, DmaStreamReader,
        DmaStreamReaderBuilder, DmaStreamWriter, DmaStreamWriterBuilder, ImmutableFile,
        ImmutableFileBuilder, ImmutableFilePreSealSink, IoVec, MergedBufferLimit, OpenOptions,
        OwnedDmaFile, ReadAmplificationLimit, ReadManyResult, ReadResult, Stat, StreamReader,
        StreamReaderBuilder, StreamWriter, StreamWriterBuilder, remove, rename, stdin,
    };
    use glommio::net::{
        AcceptedTcpStream, Buffered, NonBuffered, Preallocated, RxBuf, TcpListener, TcpStream,
        UdpSocket,
    };
    #[cfg(feature = "bench")]
    use glommio::nop::NopSubmitter;
    use glommio::sync::{
        Gate, LockResult, Pass, Permit, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore,
        StaticPermit, TryLockResult,
    };
    use glommio::task::JoinHandle;
    #[cfg(feature = "debugging")]
    use glommio::task::debugging::TaskDebugger;
    use glommio::timer::{Timer, TimerActionOnce, TimerActionRepeat, sleep, timeout};
    // Errors.
    use glommio::{
        BuilderErrorKind, ExecutorErrorKind, GlommioError, PanicPayload, QueueErrorKind,
        ReactorErrorKind, ResourceType, Result,
    };
    // Traits.
    use glommio::{ByteSliceExt, ByteSliceMutExt, SharesManager, StallDetectionHandler};
    // Types.
    use glommio::{
        CpuLocation, CpuSet, DefaultStallDetectionHandler, ExecutorJoinHandle, ExecutorProxy,
        ExecutorStats, IoStats, Latency, LocalExecutor, LocalExecutorBuilder,
        LocalExecutorPoolBuilder, Placement, PoolPlacement, PoolThreadHandles, RingIoStats,
        ScopedTask, Shares, StallDetection, Task, TaskQueueHandle, TaskQueueStats,
    };
    use glommio::{
        allocate_dma_buffer, allocate_dma_buffer_global, early_init, executor, spawn_local,
        spawn_local_into, spawn_scoped_local, spawn_scoped_local_into, yield_if_needed,
    };
    // Macros.
    use glommio::{defer, enclose};
}

/// The names of the prelude, each by itself.
#[allow(unused_imports, reason = "importing is the test")]
mod prelude {
    use glommio::prelude::{
        ByteSliceExt, ByteSliceMutExt, ExecutorProxy, GlommioError, IoStats, Latency,
        LocalExecutor, LocalExecutorBuilder, LocalExecutorPoolBuilder, Placement, PoolPlacement,
        PoolThreadHandles, RingIoStats, Shares, TaskQueueHandle, executor, spawn_local,
        spawn_local_into, yield_if_needed,
    };
}

/// No other name of the root is in the prelude: each of these is found in one of the two globs
/// only.
mod not_in_the_prelude {
    mod mine {
        pub struct BuilderErrorKind;
        pub struct CpuLocation;
        pub struct CpuSet;
        pub struct DefaultStallDetectionHandler;
        pub struct ExecutorErrorKind;
        pub struct ExecutorJoinHandle;
        pub struct ExecutorStats;
        pub struct PanicPayload;
        pub struct QueueErrorKind;
        pub struct ReactorErrorKind;
        pub struct ResourceType;
        pub struct ScopedTask;
        pub struct SharesManager;
        pub struct StallDetection;
        pub struct StallDetectionHandler;
        pub struct Task;
        pub struct TaskQueueStats;
        pub mod io {
            pub struct Mine;
        }
        pub use io as net;
        pub use io as task;
        pub use io as timer;
        pub fn allocate_dma_buffer() {}
        pub fn allocate_dma_buffer_global() {}
        pub fn early_init() {}
        pub fn spawn_scoped_local() {}
        pub fn spawn_scoped_local_into() {}
    }

    #[allow(unused_imports, reason = "importing is the test")]
    use glommio::prelude::*;
    use mine::*;

    /// As types, for most of them have no constructor that could be seen from here.
    #[allow(dead_code, reason = "naming them is the test")]
    type Mine = (
        (BuilderErrorKind, CpuLocation, CpuSet, ExecutorErrorKind),
        (
            ExecutorJoinHandle,
            PanicPayload,
            QueueErrorKind,
            ReactorErrorKind,
        ),
        (ResourceType, ScopedTask, SharesManager, Task),
        (
            DefaultStallDetectionHandler,
            StallDetection,
            StallDetectionHandler,
        ),
        (ExecutorStats, TaskQueueStats),
        (io::Mine, net::Mine, task::Mine, timer::Mine),
    );

    #[allow(dead_code, reason = "naming them is the test")]
    const MINE: [fn(); 5] = [
        allocate_dma_buffer,
        allocate_dma_buffer_global,
        early_init,
        spawn_scoped_local,
        spawn_scoped_local_into,
    ];

    /// The standard one, not ours, whose second parameter is an item.
    #[allow(dead_code, reason = "naming it is the test")]
    const STANDARD: Result<(), u8> = Err(1);
}

/// Programs match these without a wildcard, by these names of fields: a variant more or less, or a
/// field with another name, breaks them.
#[allow(dead_code, reason = "building it is the test")]
fn matched_without_a_wildcard<T>(error: glommio::GlommioError<T>) {
    use glommio::{
        BuilderErrorKind, ExecutorErrorKind, GlommioError, QueueErrorKind, ReactorErrorKind,
        ResourceType,
    };
    match error {
        GlommioError::IoError(_source) => {}
        GlommioError::EnhancedIoError {
            source: _,
            op: _,
            path: _,
            fd: _,
        } => {}
        GlommioError::ExecutorError(ExecutorErrorKind::QueueError { index: _, kind }) => match kind
        {
            QueueErrorKind::StillActive | QueueErrorKind::NotFound => {}
        },
        GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(_)) => {}
        GlommioError::BuilderError(kind) => match kind {
            BuilderErrorKind::NonExistentCpus { cpu: _ } => {}
            BuilderErrorKind::InsufficientCpus {
                required: _,
                available: _,
            } => {}
            BuilderErrorKind::NrShards {
                minimum: _,
                shards: _,
            } => {}
            BuilderErrorKind::ThreadPanic(_) => {}
        },
        GlommioError::Closed(resource)
        | GlommioError::CanNotBeClosed(resource, _)
        | GlommioError::WouldBlock(resource) => match resource {
            ResourceType::Semaphore {
                requested: _,
                available: _,
            } => {}
            ResourceType::RwLock => {}
            ResourceType::Channel(_) => {}
            ResourceType::File(_) => {}
            ResourceType::Gate => {}
        },
        GlommioError::ReactorError(ReactorErrorKind::IncorrectSourceType(_)) => {}
        GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(_, _)) => {}
        GlommioError::TimedOut(_) => {}
    }
}
