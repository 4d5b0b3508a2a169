//! What the tests share.

pub(crate) mod origin;
pub(crate) mod postgres;
