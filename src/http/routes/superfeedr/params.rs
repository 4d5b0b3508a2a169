//! The parameters that several modes share, checked.

use std::cmp::Ordering;

use crate::http::kit::callback_credentials::{callback_credentials, feed_credentials};
use crate::http::kit::content_coding::weight;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use feedgate_core::callback_headers::CallbackHeaders;
use feedgate_core::query::EntryFilter;
use feedgate_core::subscription::Format;
use feedgate_core::topic::{Callback, Topic};
use feedgate_protocol::form::Form;

/// The sentence for a topic that cannot be used, as Superfeedr words it.
pub(super) const BAD_TOPIC: &str = "Please provide a valid hub.topic (feed) URL that is accepted \
    on this hub. You did not provide a valid hub.topic.";

/// "Please note that the callback URL cannot be longer than 250 chars" (Superfeedr's
/// API, row S-6).
const MAX_CALLBACK_CHARS: usize = 250;
/// The sentence for a callback that cannot be used.
pub(super) const BAD_CALLBACK: &str = "Please provide a valid hub.callback URL.";

/// The range of a number that a parameter gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberRange {
    /// The number if the parameter is missing.
    pub(super) default: usize,
    /// The largest number; larger ones are clamped to it. The smallest is 1.
    pub(super) max: usize,
}

/// How many entries are retrieved.
const COUNT: NumberRange = NumberRange { default: 10, max: 50 };

/// Returns the number that a parameter gives, clamped to its range (L-3, R-3).
pub(super) fn number(form: &Form, name: &str, range: NumberRange) -> Result<usize, Rejection> {
    let Some(text) = form.get(name) else { return Ok(range.default) };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let upto =
            if range.max == usize::MAX { String::new() } else { format!(" to {}", range.max) };
        let reason = format!("{name} must be a number from 1{upto}, not {text}.");
        return Err(Rejection::unprocessable(reason));
    }
    if text.starts_with('-') {
        return Ok(1);
    }
    // Digits that do not fit the type are a number above the range.
    Ok(digits.parse().unwrap_or(usize::MAX).clamp(1, range.max))
}

/// Returns how many entries are to be retrieved.
pub(super) fn count(form: &Form) -> Result<usize, Rejection> {
    number(form, "count", COUNT)
}

/// Returns whether a stream begins with no entries, only with those that come.
pub(super) fn has_no_beginning(form: &Form) -> bool {
    form.get("count") == Some("0")
}

/// Returns which entries are requested; `None`: all.
pub(super) fn filter(form: &Form) -> Result<Option<EntryFilter>, Rejection> {
    form.get("filter").map(EntryFilter::parse).transpose().map_err(|reason| {
        let reason = format!("Please provide a valid filter. ({reason}.)");
        Rejection::unprocessable(reason).with_code("bad_query")
    })
}

/// Returns the headers that are sent to the callback; `None` if none are named.
pub(super) fn callback_headers(form: &Form) -> Result<Option<CallbackHeaders>, Rejection> {
    callback_credentials(form).map_err(|reason| {
        let reason = format!("Please provide valid headers for the callback. ({reason}.)");
        Rejection::unprocessable(reason).with_code("bad_callback_headers")
    })
}

/// Returns the headers that are sent to the server of the feed; `None` if none are named.
pub(super) fn feed_headers(form: &Form) -> Result<Option<CallbackHeaders>, Rejection> {
    feed_credentials(form).map_err(|reason| {
        let reason = format!("Please provide valid headers for the feed. ({reason}.)");
        Rejection::unprocessable(reason).with_code("bad_feed_headers")
    })
}

/// Returns `hub.topic`, which is required.
pub(super) fn topic(form: &Form) -> Result<Topic, Rejection> {
    let bad = |reason: String| Rejection::unprocessable(reason).with_code("bad_topic");
    let given = form.get("hub.topic").ok_or_else(|| bad(BAD_TOPIC.to_owned()))?;
    Topic::parse(given).map_err(|reason| bad(format!("{BAD_TOPIC} ({reason})")))
}

/// Returns `hub.callback`, if it is given.
pub(super) fn callback(form: &Form) -> Result<Option<Callback>, Rejection> {
    let Some(given) = form.get("hub.callback") else { return Ok(None) };
    if given.chars().count() > MAX_CALLBACK_CHARS {
        let reason = format!(
            "Please provide a hub.callback URL of at most {MAX_CALLBACK_CHARS} characters."
        );
        return Err(Rejection::unprocessable(reason).with_code("bad_callback"));
    }
    let parsed = Callback::parse(given).map_err(|reason| {
        Rejection::unprocessable(format!("{BAD_CALLBACK} ({reason})")).with_code("bad_callback")
    });
    parsed.map(Some)
}

/// Returns the rejection of a `before` or `after` that is the id of no entry.
pub(super) fn no_such_entry(entry_id: &str) -> Rejection {
    let reason = format!("There is no entry {entry_id} here.");
    Rejection::unprocessable(reason).with_code("no_such_entry")
}

/// Returns the format that is requested by `format`, which takes precedence, or by `Accept` (S-7).
pub(super) fn format(request: &Request, form: &Form) -> Result<Option<Format>, Rejection> {
    let named = form.get("format").map(|word| {
        let format = Format::from_word(word).filter(|format| *format != Format::Fitting);
        format.ok_or_else(|| {
            Rejection::unprocessable(format!("format must be atom, json or raw, not {word}."))
        })
    });
    Ok(named.transpose()?.or_else(|| accepted_format(request.header("accept"))))
}

/// Returns the weight with which `Accept` names a media type; 0 if it does not.
pub(super) fn media_type_weight(accept: &str, media_type: &str) -> u32 {
    let ranges = accept.split(',').map(|range| range.split_once(';').unwrap_or((range, "")));
    let mut named = ranges.filter(|(name, _)| name.trim().eq_ignore_ascii_case(media_type));
    named.next().map_or(0, |(_, parameters)| weight(parameters))
}

/// Returns the format that `Accept` prefers; `None` if it prefers neither (RFC 9110
/// `#field.accept`).
pub(super) fn accepted_format(accept: &str) -> Option<Format> {
    let [json, atom] =
        ["application/json", "application/atom+xml"].map(|it| media_type_weight(accept, it));
    match json.cmp(&atom) {
        Ordering::Greater => Some(Format::Json),
        Ordering::Less => Some(Format::Atom),
        Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row S-7.
    #[test]
    fn the_format_is_the_one_that_accept_prefers() {
        #[rustfmt::skip]
        let cases = [
            ("application/json",                                 Some(Format::Json)),
            ("Application/Atom+XML; charset=utf-8",              Some(Format::Atom)),
            ("application/json;q=0.1, application/atom+xml",     Some(Format::Atom)),
            ("application/atom+xml;q=0.2,application/json;q=.3", Some(Format::Json)),
            ("application/json;q=0, */*",                        None),
            ("application/json, application/atom+xml",           None),
            ("application/jsonp, */*",                           None),
            ("",                                                 None),
        ];
        for (accept, want) in cases {
            assert_eq!(accepted_format(accept), want, "{accept}");
        }
    }

    /// Rows L-3 and R-3.
    #[test]
    fn numbers_out_of_range_are_clamped_and_other_texts_rejected() {
        #[rustfmt::skip]
        let cases = [
            ("",                      Some(10)),
            ("count=",                Some(10)),
            ("count=7",               Some(7)),
            ("count=0",               Some(1)),
            ("count=-3",              Some(1)),
            ("count=51",              Some(50)),
            ("count=99999999999999999999999", Some(50)),
            ("count=abc",             None),
            ("count=1.5",             None),
            ("count=-",               None),
        ];
        for (query, want) in cases {
            let form = Form::from_urlencoded(query.as_bytes()).unwrap();
            assert_eq!(count(&form).ok(), want, "{query}");
        }
    }
}
