//! A future, and then its output.

#![allow(
    missing_docs,
    reason = "no part of the interface, and `pin_project!` takes no docs of fields"
)]

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

pin_project! {
    /// Keeps the output of a future until it is taken. The future is dropped when it is done.
    #[project = Stage]
    #[project_replace = TakenStage]
    pub enum MaybeDone<F: Future> {
        Waiting { #[pin] future: F },
        Done { output: F::Output },
        Taken,
    }
}

impl<F: Future> MaybeDone<F> {
    /// One that waits for `future`.
    pub fn new(future: F) -> Self {
        MaybeDone::Waiting { future }
    }

    /// Polls the future if it is not done. True if it is.
    pub fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> bool {
        if let Stage::Waiting { future } = self.as_mut().project() {
            let Poll::Ready(output) = future.poll(cx) else {
                return false;
            };
            self.as_mut().project_replace(MaybeDone::Done { output });
        }
        true
    }

    /// The output.
    ///
    /// # Panics
    ///
    /// Panics if the future is not done, or the output was taken.
    pub fn take(self: Pin<&mut Self>) -> F::Output {
        match self.project_replace(MaybeDone::Taken) {
            TakenStage::Done { output } => output,
            TakenStage::Waiting { .. } | TakenStage::Taken => {
                unreachable!("the macros take an output once it is there, and once")
            }
        }
    }
}

impl<F: Future<Output = Result<T, E>>, T, E> MaybeDone<F> {
    /// The error, if the future is done and has failed.
    pub fn take_error(mut self: Pin<&mut Self>) -> Option<E> {
        let Stage::Done { output } = self.as_mut().project() else {
            return None;
        };
        if output.is_ok() {
            return None;
        }
        self.take().err()
    }

    /// The value of a future that is done and has not failed.
    pub fn take_value(self: Pin<&mut Self>) -> T {
        match self.take() {
            Ok(value) => value,
            Err(_) => unreachable!("the macro has asked for an error before"),
        }
    }
}
