//! Common code of all endpoints: reading a request, rejecting it, and writing the reply.

pub(crate) mod anonymous_access;
pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod body_owner;
pub(crate) mod browser_view;
pub(crate) mod client_address;
pub(crate) mod conditional;
pub(crate) mod content_coding;
pub(crate) mod date;
pub(crate) mod endpoint;
pub(crate) mod fixed_document;
pub(crate) mod html;
pub(crate) mod jsonp;
pub(crate) mod open_ended;
pub(crate) mod params;
pub(crate) mod permissions;
pub(crate) mod rate_limit;
pub(crate) mod recent_registrants;
pub(crate) mod rejected_request;
pub(crate) mod rejection;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod request_host;
pub(crate) mod session_cookie;
pub(crate) mod slots;
pub(crate) mod viewer_access;
