//! The mark of responses that do not end by themselves.

/// An extension of a response whose body goes on until the client leaves or the gateway stops. The
/// listener sends it without what hyper holds for each connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenEnded;
