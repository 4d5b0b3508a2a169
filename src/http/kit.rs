//! What all endpoints share.

pub(crate) mod basic_auth;
pub(crate) mod body;
pub(crate) mod client_address;
pub(crate) mod conditional;
pub(crate) mod content_coding;
pub(crate) mod exchange;
pub(crate) mod html;
pub(crate) mod jsonp;
pub(crate) mod params;
pub(crate) mod rate_limit;
pub(crate) mod rejected_requests;
