//! Pages of lists: `limit` and `cursor`.
//!
//! A cursor is opaque: the name of its list and the position of the last item, encoded. So a cursor of
//! another list is rejected, and clients do not compute with it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{StatusCode, header};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;
use warp::reply::Response;

use super::call::{RestCall, json_reply};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::set_header;

/// The items of a page, unless the request says otherwise.
const DEFAULT_LIMIT: usize = 50;
/// The maximum number of items of a page.
pub(super) const MAX_LIMIT: usize = 200;

/// The requested page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageRequest {
    /// The name of the list, which is part of its cursors.
    list: &'static str,
    /// The maximum number of items.
    pub(super) limit: usize,
    /// The position behind which the page begins; `None`: at the first item.
    pub(super) after: Option<String>,
}

impl PageRequest {
    /// Reads the page of `list` that a call requests.
    pub(super) fn from_call(
        call: &RestCall<'_>,
        list: &'static str,
    ) -> Result<PageRequest, Rejection> {
        let limit = match call.query.get("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => parse_limit(text)?,
        };
        let after = call.query.get("cursor").map(|text| decode(list, text)).transpose()?;
        Ok(PageRequest { list, limit, after })
    }

    /// Returns the position behind which the page begins as a number; 0 at the first item.
    pub(super) fn after_number(&self) -> Result<i64, Rejection> {
        self.parse_after(|text| text.parse().ok()).map(Option::unwrap_or_default)
    }

    /// Parses the position behind which the page begins.
    pub(super) fn parse_after<T>(
        &self,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Rejection> {
        let parsed = |text: &String| parse(text).ok_or_else(bad_cursor);
        self.after.as_ref().map(parsed).transpose()
    }

    /// Returns the reply with a page. `next` is the position of its last item, if there may be more.
    pub(super) fn to_reply(
        &self,
        call: &RestCall<'_>,
        data: Vec<Value>,
        next: Option<impl ToString>,
    ) -> Response {
        let next = next.map(|next| encode(self.list, &next.to_string()));
        let mut list = json!({ "data": data });
        if let Some(next) = &next {
            list["nextCursor"] = next.as_str().into();
        }
        let mut response = json_reply(StatusCode::OK, &list);
        if let Some(next) = next {
            let link = format!("<{}>; rel=\"next\"", next_address(call, &next));
            set_header(&mut response, header::LINK, &link);
        }
        response
    }
}

/// Returns the address of the next page. It contains no credentials.
fn next_address(call: &RestCall<'_>, cursor: &str) -> String {
    let mut query = Serializer::new(String::new());
    let is_kept = |name: &str| !["cursor", "authorization"].contains(&name);
    query.extend_pairs(call.query.pairs().filter(|(name, _)| is_kept(name)));
    query.append_pair("cursor", cursor);
    let path = call.request.path.trim_start_matches('/');
    call.gateway.public_url(&format!("{path}?{}", query.finish()))
}

fn parse_limit(text: &str) -> Result<usize, Rejection> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let limit = text.parse().ok().filter(|limit| is_number && (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| {
        let reason = format!("limit must be a number from 1 to {MAX_LIMIT}.");
        RestCall::reject_parameter("limit", reason)
    })
}

fn encode(list: &str, position: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}:{position}"))
}

/// Returns the position in a cursor of `list`.
fn decode(list: &str, cursor: &str) -> Result<String, Rejection> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let position = text.as_deref().and_then(|text| text.split_once(':'));
    let position = position.filter(|(of, _)| *of == list).map(|(_, position)| position.to_owned());
    position.ok_or_else(bad_cursor)
}

fn bad_cursor() -> Rejection {
    let reason = "cursor must be the nextCursor of a page of this list.";
    Rejection::unprocessable(reason).with_code("bad_cursor").with_field("cursor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a02_a_cursor_is_read_by_its_list_only() {
        let cursor = encode("feeds", "12-7");
        assert_eq!(decode("feeds", &cursor).as_deref(), Ok("12-7"));
        for (list, cursor) in
            [("tokens", cursor.as_str()), ("feeds", ""), ("feeds", "12-7"), ("feeds", "*")]
        {
            assert_eq!(
                decode(list, cursor).unwrap_err().exact_code(),
                "bad_cursor",
                "{list} {cursor}"
            );
        }
    }

    #[test]
    fn a02_a_limit_out_of_range_is_rejected() {
        for (text, want) in [
            ("1", Some(1)),
            ("200", Some(200)),
            ("0", None),
            ("201", None),
            ("+1", None),
            ("", None),
        ] {
            assert_eq!(parse_limit(text).ok(), want, "{text}");
        }
    }
}
