//! The bytes of a resource, as its server sent them.

/// The body of a resource as it was received, for strict WebSub subscribers who
/// want the topic as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// `Content-Type` as received, if there was one.
    pub content_type: Option<String>,
    /// The bytes, after content decoding.
    pub bytes: Vec<u8>,
}
