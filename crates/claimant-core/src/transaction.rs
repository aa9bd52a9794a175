//! Effect and completion in one: a transaction that a claim carries and its handler borrows.
//!
//! ```text
//! store.claim ──▶ Claim { transaction } ──▶ TransactionGuard<X> in the handler ──▶ Claim { transaction } ──▶ store.settle
//! ```
//!
//! Only [`settle`](crate::Store::settle) with [`Ending::Completed`](crate::protocol::Ending::Completed) commits. Whatever
//! else happens, a failure, a panic, a cancelled handler, a dropped claim, drops the transaction, and with it the effect.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use crate::panics::let_go;

/// Why a run failed whose handler returned and did not give its transaction back.
pub(crate) const TRANSACTION_KEPT: &str =
    "the handler returned and kept its transaction: drop it, and whatever holds it, before returning";

/// A store's transaction that a claim carries, of a type that only the store and the handler know.
///
/// Behind a lock that is never contended, so that a claim can be looked at from several threads whatever it carries.
pub struct AnyTransaction(Mutex<Option<Box<Packed>>>);

struct Packed {
    transaction: Box<dyn Any + Send>,
    if_kept: Option<Box<dyn Any + Send>>,
}

impl AnyTransaction {
    /// Packs a transaction.
    pub fn new<X: Send + 'static>(transaction: X) -> Self {
        Self::packed(Box::new(transaction), None)
    }

    /// Packs a transaction, with what the claim has in its place where the handler does not give it back: what its store needs to end the
    /// transaction, and to write that the attempt failed.
    pub fn with_remains<X: Send + 'static, R: Send + 'static>(transaction: X, if_kept: R) -> Self {
        Self::packed(Box::new(transaction), Some(Box::new(if_kept)))
    }

    fn packed(transaction: Box<dyn Any + Send>, if_kept: Option<Box<dyn Any + Send>>) -> Self {
        Self(Mutex::new(Some(Box::new(Packed { transaction, if_kept }))))
    }

    /// Takes out what remains where the handler keeps the transaction, if there is something.
    pub(crate) fn take_remains(&mut self) -> Option<Self> {
        let remains = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()?.if_kept.take()?;
        Some(Self::packed(remains, None))
    }

    /// Returns the transaction, if it is of this type.
    #[must_use]
    pub fn unpack<X: 'static>(mut self) -> Option<X> {
        let packed = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take()?;
        let Packed { transaction, if_kept } = *packed;
        let_go(if_kept);
        match transaction.downcast() {
            Ok(transaction) => Some(*transaction),
            Err(other) => {
                let_go(other);
                None
            }
        }
    }
}

impl Drop for AnyTransaction {
    fn drop(&mut self) {
        if let Some(packed) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            let_go(packed.if_kept);
            let_go(packed.transaction);
        }
    }
}

impl fmt::Debug for AnyTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyTransaction(…)")
    }
}

/// A claim's transaction while its handler has it. It goes back to the claim when this is dropped, at the latest when the
/// handler ends; the runtime then commits it, or drops it. A handler that keeps it longer has failed.
#[derive(Debug)]
pub struct TransactionGuard<X: Send + 'static> {
    /// Set until it is dropped.
    transaction: Option<X>,
    home: TransactionSlot,
}

impl<X: Send + 'static> TransactionGuard<X> {
    /// Lends a transaction that a test has created, and returns it with the slot to which it goes back when the handler drops it.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// use claimant::{Context, HandlerError, TransactionGuard};
    ///
    /// async fn reserve(sku: &str, mut tx: TransactionGuard<Vec<String>>, _: Context) -> Result<(), HandlerError> {
    ///     tx.push(sku.to_owned());
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (lent, home) = TransactionGuard::for_tests(Vec::new());
    /// reserve("tea", lent, Context::for_tests("ord-1").unwrap()).await.unwrap();
    /// assert_eq!(home.returned::<Vec<String>>().unwrap(), ["tea"]);
    /// # }
    /// ```
    #[must_use]
    pub fn for_tests(transaction: X) -> (Self, TransactionSlot) {
        let home = TransactionSlot::default();
        (Self { transaction: Some(transaction), home: home.clone() }, home)
    }
}

impl<X: Send + 'static> Deref for TransactionGuard<X> {
    type Target = X;

    fn deref(&self) -> &X {
        self.transaction.as_ref().expect("it is taken out only when it is dropped")
    }
}

impl<X: Send + 'static> DerefMut for TransactionGuard<X> {
    fn deref_mut(&mut self) -> &mut X {
        self.transaction.as_mut().expect("it is taken out only when it is dropped")
    }
}

impl<X: Send + 'static> Drop for TransactionGuard<X> {
    fn drop(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            self.home.put(AnyTransaction::new(transaction));
        }
    }
}

/// Holds a transaction before its handler borrows it and after it has returned it: for code that runs handlers.
#[derive(Debug, Clone, Default)]
pub struct TransactionSlot(Arc<Mutex<Option<AnyTransaction>>>);

impl TransactionSlot {
    /// Creates a slot with what a claim carries, if anything.
    #[must_use]
    pub fn of(transaction: Option<AnyTransaction>) -> Self {
        Self(Arc::new(Mutex::new(transaction)))
    }

    /// Takes the transaction out; `None` while a handler has it.
    #[must_use]
    pub fn take(&self) -> Option<AnyTransaction> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes out the transaction that its handler has given back; `None` while the handler has it, and where it is of
    /// another type.
    #[must_use]
    pub fn returned<X: 'static>(&self) -> Option<X> {
        self.take()?.unpack()
    }

    fn put(&self, transaction: AnyTransaction) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(transaction);
    }

    /// Lends the transaction to its handler; `None` if there is none of this type.
    #[must_use]
    pub fn lend<X: Send + 'static>(&self) -> Option<TransactionGuard<X>> {
        let transaction = self.take()?.unpack()?;
        Some(TransactionGuard { transaction: Some(transaction), home: self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_goes_home_when_its_handler_drops_it() {
        let home = TransactionSlot::of(Some(AnyTransaction::new(vec![1])));
        let mut lent = home.lend::<Vec<i32>>().unwrap();
        assert!(home.take().is_none());
        lent.push(2);
        drop(lent);
        assert_eq!(home.take().unwrap().unpack(), Some(vec![1, 2]));
        assert!(TransactionSlot::of(Some(AnyTransaction::new(1_u8))).lend::<u16>().is_none());
    }

    #[test]
    fn what_a_claim_has_in_its_place_is_taken_once() {
        let mut transaction = AnyTransaction::with_remains(1_u8, "remains");
        assert_eq!(transaction.take_remains().and_then(AnyTransaction::unpack), Some("remains"));
        assert!(transaction.take_remains().is_none());
        assert_eq!(transaction.unpack(), Some(1_u8));
    }

    #[test]
    fn a_transaction_for_a_test_comes_back_with_what_was_done_with_it() {
        let (mut lent, home) = TransactionGuard::for_tests(vec![1]);
        assert_eq!(home.returned::<Vec<i32>>(), None);
        lent.push(2);
        drop(lent);
        assert_eq!(home.returned(), Some(vec![1, 2]));
        assert_eq!(home.returned::<Vec<i32>>(), None, "it was taken out");
    }
}
