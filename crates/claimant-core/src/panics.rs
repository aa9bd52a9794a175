//! Panics of code that is not claimant's own: of handlers, rules, stores, queues and spans, and of the drops of their values.
//!
//! Each costs its own call alone. What a panic was raised with is a value of that code, too, whose drop can panic in turn.

use std::any::Any;
use std::future::Future;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Says that a call panicked. The panic hook has logged it, and what it was raised with is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panicked;

/// Calls this, and catches its panic.
///
/// # Errors
/// When it panicked.
pub fn caught<R>(call: impl FnOnce() -> R) -> Result<R, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(discard)
}

/// Drops a value of code that is not claimant's own. A panic of its drop ends nothing else.
pub fn let_go<T>(value: T) {
    let _ = caught(|| drop(value));
}

/// Drops what a panic was raised with.
fn discard(payload: Box<dyn Any + Send>) -> Panicked {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Leaked: each drop could raise the next one, without end.
        mem::forget(another);
    }
    Panicked
}

/// A call whose panic is caught: in the call itself or in a poll, it returns something else; one in the drop afterwards changes nothing.
#[must_use = "a future does nothing unless it is polled"]
pub struct Caught<F, P> {
    /// `None` once it has ended.
    call: Option<F>,
    otherwise: Option<P>,
}

impl<F: Future + Unpin, P: FnOnce() -> F::Output> Caught<F, P> {
    /// Calls this at once; what it returns is polled as part of this. Where either panics, `otherwise` says what is returned.
    pub fn new(call: impl FnOnce() -> F, otherwise: P) -> Self {
        Self { call: caught(call).ok(), otherwise: Some(otherwise) }
    }
}

impl<F: Future + Unpin, P: FnOnce() -> F::Output + Unpin> Future for Caught<F, P> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let polled = match &mut self.call {
            Some(call) => caught(|| Pin::new(call).poll(cx)),
            None => Err(Panicked),
        };
        if let Ok(Poll::Pending) = polled {
            return Poll::Pending;
        }
        // Before its caller goes on: what it holds goes back first.
        let_go(self.call.take());
        let otherwise = self.otherwise.take().expect("it is not polled after it has ended");
        Poll::Ready(match polled {
            Ok(Poll::Ready(returned)) => returned,
            _ => otherwise(),
        })
    }
}

impl<F, P> Drop for Caught<F, P> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            let_go(call);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::panic::panic_any;

    use super::*;

    /// Panics when it is dropped, with another one, so many times.
    struct Bomb(usize);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }

    #[test]
    fn what_a_panic_was_raised_with_may_panic_and_so_may_that() {
        for bombs in [0, 1, 2, 9] {
            assert_eq!(caught(|| panic_any(Bomb(bombs))), Err::<(), _>(Panicked), "{bombs}");
            let_go(Bomb(bombs));
        }
        assert_eq!(caught(|| 7), Ok(7));
    }

    #[tokio::test]
    async fn a_call_is_caught_wherever_it_panics() {
        let bomb = || -> u8 { panic_any(Bomb(9)) };
        assert_eq!(Caught::new(|| ready(7), || 0).await, 7);
        assert_eq!(Caught::new(|| ready(bomb()), || 0).await, 0, "in the call");
        assert_eq!(Caught::new(|| poll_fn(|_| Poll::Ready(bomb())), || 0).await, 0, "in a poll");
        let held = Bomb(9);
        let holds = poll_fn(move |_| {
            let _held = &held;
            Poll::Ready(7)
        });
        assert_eq!(Caught::new(|| holds, || 0).await, 7, "in the drop after its end");
        let held = Bomb(9);
        let call = Box::pin(async move {
            let _held = held;
            pending::<u8>().await
        });
        let mut call = Box::pin(Caught::new(|| call, || 0));
        assert!(futures_util::poll!(&mut call).is_pending());
        drop(call);
    }
}
