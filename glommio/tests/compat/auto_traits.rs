//! Which types may leave their thread, and which may be shared.

use std::rc::Rc;

use glommio::io::DmaBuffer;
use glommio::net::{AcceptedTcpStream, Preallocated, TcpListener, TcpStream, UdpSocket};
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

    DmaBuffer: no, no;
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
