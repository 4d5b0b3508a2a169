//! Secrets at rest (S36), above the columns: which keys a database needs, and how secrets are
//! encrypted again with another key. How one secret is encrypted is in `engine/envelope.rs`.

pub(crate) mod registered_keys;
pub(crate) mod rotation;
