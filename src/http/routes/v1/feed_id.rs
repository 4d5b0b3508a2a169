//! The ids of feeds: the numbers of their resources.

use super::call::RestCall;
use crate::http::kit::rejection::Rejection;
use feedgate_core::resource::ResourceId;

/// Parses the id of a feed.
pub(super) fn parse(text: &str) -> Option<ResourceId> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).map(ResourceId)
}

/// Parses the id of a feed in a parameter.
pub(super) fn parse_parameter(name: &str, text: &str) -> Result<ResourceId, Rejection> {
    parse(text).ok_or_else(|| {
        RestCall::reject_parameter(name, format!("{name} must be the id of a feed."))
    })
}
