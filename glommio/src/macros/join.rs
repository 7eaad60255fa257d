//! Awaiting several futures at once.

/// Awaits several futures at once, in the caller's task, and gives their outputs as a tuple.
///
/// Whenever the task is woken, all that are not done are polled, in the order in which they are
/// written. A future is dropped when it is done.
///
/// # Cancel safety
///
/// All futures are dropped with the task's wait, and the outputs of those that are done.
///
/// # Examples
///
/// ```
/// use glommio::timer::sleep;
/// use std::time::Duration;
///
/// glommio::LocalExecutor::default().run(async {
///     let slow = async {
///         sleep(Duration::from_millis(1)).await;
///         "slow"
///     };
///     assert_eq!(glommio::join!(slow, async { 42 }), ("slow", 42));
/// });
/// ```
#[macro_export]
macro_rules! join {
    ($($future:expr),+ $(,)?) => {
        $crate::__join!(all [] $($future,)+)
    };
}

/// Awaits several futures of `Result`s at once, until all have succeeded or the first has failed.
///
/// Gives the values as a tuple in `Ok`, or the first error: then the other futures are dropped. The
/// futures have one type of error.
///
/// # Cancel safety
///
/// As [`join!`](crate::join).
///
/// # Examples
///
/// ```
/// use std::{convert::Infallible, future::pending};
///
/// glommio::LocalExecutor::default().run(async {
///     let both = glommio::try_join!(async { Ok::<_, Infallible>(1) }, async { Ok(2) });
///     assert_eq!(both, Ok((1, 2)));
///     let failed = glommio::try_join!(pending::<Result<(), &str>>(), async {
///         Err::<(), _>("the first error")
///     });
///     assert_eq!(failed, Err("the first error"));
/// });
/// ```
#[macro_export]
macro_rules! try_join {
    ($($future:expr),+ $(,)?) => {
        $crate::__join!(until_error [] $($future,)+)
    };
}

/// Gives each future a name: `future`, a different one in each step of the expansion.
#[doc(hidden)]
#[macro_export]
macro_rules! __join {
    ($kind:ident [$($named:tt)*] $next:expr, $($rest:expr,)*) => {
        $crate::__join!($kind [$($named)* future = $next,] $($rest,)*)
    };
    (all [$($name:ident = $future:expr,)+]) => {
        match ($($crate::__private::IntoFuture::into_future($future),)+) {
            ($($name,)+) => {
                $(let mut $name = $crate::__private::pin!($crate::__private::MaybeDone::new($name));)+
                $crate::__private::poll_fn(move |cx| {
                    let mut all_done = true;
                    $(all_done &= $name.as_mut().poll(cx);)+
                    if all_done {
                        $crate::__private::Poll::Ready(($($name.as_mut().take(),)+))
                    } else {
                        $crate::__private::Poll::Pending
                    }
                })
                .await
            }
        }
    };
    (until_error [$($name:ident = $future:expr,)+]) => {
        match ($($crate::__private::IntoFuture::into_future($future),)+) {
            ($($name,)+) => {
                $(let mut $name = $crate::__private::pin!($crate::__private::MaybeDone::new($name));)+
                $crate::__private::poll_fn(move |cx| {
                    let mut all_done = true;
                    $(
                        all_done &= $name.as_mut().poll(cx);
                        if let $crate::__private::Option::Some(error) = $name.as_mut().take_error() {
                            return $crate::__private::Poll::Ready($crate::__private::Result::Err(error));
                        }
                    )+
                    if all_done {
                        $crate::__private::Poll::Ready($crate::__private::Result::Ok((
                            $($name.as_mut().take_value(),)+
                        )))
                    } else {
                        $crate::__private::Poll::Pending
                    }
                })
                .await
            }
        }
    };
}
