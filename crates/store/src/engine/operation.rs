//! An operation of the store: what runs in one transaction.
//!
//! The engines do not know the types of operations and of their results. Otherwise all that queues,
//! repeats and commits an operation would be compiled again for each of them, which was a tenth of the
//! program.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::clock::clock_moves::{ClockMoves, ClockStamp};
use crate::clock::known_clock::KnownClock;
use crate::engine::envelope::SecretKeys;
use crate::engine::tx::Tx;
use feedgate_core::store::StoreError;

/// The result of an operation, of the type that its caller knows.
pub(crate) type AnyResult = Result<Box<dyn Any + Send>, StoreError>;

/// What runs in one transaction. A copy of it can run in another one if the transaction is lost.
pub(crate) struct Operation {
    op: Box<dyn UntypedOperation>,
    context: Option<OperationContext>,
}

/// What the statements of an operation are run with.
#[derive(Clone)]
pub(crate) struct OperationContext {
    /// The keys of encrypted columns, if there are any.
    pub(crate) keys: Option<Arc<SecretKeys>>,
    /// The clock by which the times of the operation were read: [`Tx::at`] moves them by as much as the
    /// clock of this node is set meanwhile.
    pub(crate) clock: (ClockMoves, ClockStamp),
    /// What this node knows of the clock of the database, if the operation depends on it.
    pub(crate) known_clock: Option<Arc<KnownClock>>,
}

impl Operation {
    fn new<T, F>(op: F) -> Operation
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
        F: Clone + Send + 'static,
    {
        Operation { op: Box::new(Typed { op, result: PhantomData }), context: None }
    }

    /// Returns the operation with what its statements are run with.
    pub(crate) fn in_context(self, context: OperationContext) -> Operation {
        Operation { context: Some(context), ..self }
    }

    /// Returns what this node knows of the clock of the database, if the operation depends on it.
    pub(crate) fn known_clock(&self) -> Option<Arc<KnownClock>> {
        self.context.as_ref()?.known_clock.clone()
    }

    /// Runs the operation.
    pub(crate) fn run<'t>(self, tx: &'t Tx<'t>) -> BoxFuture<'t, AnyResult> {
        if let Some(OperationContext { keys, clock: (moves, stamp), .. }) = &self.context {
            if let Some(keys) = keys {
                tx.use_keys(keys);
            }
            tx.use_clock(moves, *stamp);
        }
        self.op.run(tx)
    }
}

impl Clone for Operation {
    fn clone(&self) -> Operation {
        Operation { op: self.op.copy(), context: self.context.clone() }
    }
}

/// Runs `op` as `engine` runs operations, and returns its result.
pub(crate) fn run<'a, T, F, E>(
    op: F,
    engine: E,
) -> impl Future<Output = Result<T, StoreError>> + Send
where
    T: Send + 'static,
    F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
    F: Clone + Send + 'static,
    E: FnOnce(Operation) -> BoxFuture<'a, AnyResult>,
{
    typed(engine(Operation::new(op)))
}

async fn typed<T: 'static>(running: BoxFuture<'_, AnyResult>) -> Result<T, StoreError> {
    let result = running.await?.downcast();
    Ok(*result.expect("an operation has the result of the function that it was made of"))
}

trait UntypedOperation: Send {
    fn run<'t>(self: Box<Self>, tx: &'t Tx<'t>) -> BoxFuture<'t, AnyResult>;

    fn copy(&self) -> Box<dyn UntypedOperation>;
}

struct Typed<T, F> {
    op: F,
    result: PhantomData<fn() -> T>,
}

impl<T, F> UntypedOperation for Typed<T, F>
where
    T: Send + 'static,
    F: for<'t> FnOnce(&'t Tx<'t>) -> BoxFuture<'t, Result<T, StoreError>>,
    F: Clone + Send + 'static,
{
    fn run<'t>(self: Box<Self>, tx: &'t Tx<'t>) -> BoxFuture<'t, AnyResult> {
        untyped((self.op)(tx))
    }

    fn copy(&self) -> Box<dyn UntypedOperation> {
        Box::new(Typed { op: self.op.clone(), result: PhantomData })
    }
}

fn untyped<T>(running: BoxFuture<'_, Result<T, StoreError>>) -> BoxFuture<'_, AnyResult>
where
    T: Send + 'static,
{
    Box::pin(async move { Ok(Box::new(running.await?) as Box<dyn Any + Send>) })
}
