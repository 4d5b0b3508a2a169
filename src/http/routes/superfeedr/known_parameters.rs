//! The parameters of each mode. A request with any other is rejected by its name: a misspelled
//! parameter would otherwise have no effect, and nobody would notice.

use crate::http::kit::params::suggest_prefix;
use crate::http::kit::rejection::Rejection;
use feedgate_protocol::form::Form;

/// The parameters of all modes.
const OF_ALL_MODES: &[&str] = &["hub.mode", "authorization", "format", "callback", "_"];
/// The parameters of each mode besides those of all modes.
const MODES: [(&str, &[&[&str]]); 12] = [
    ("subscribe", &[SUBSCRIBE]),
    // Clients send the same form to subscribe and to unsubscribe.
    ("unsubscribe", &[&["search"], SUBSCRIBE]),
    ("list", &[ONE, &["page", "by_page", "byPage", "skip", "detailed", "search"]]),
    // EventSource in scripts cannot set headers, so its substitutes send `lastEventId`.
    (
        "retrieve",
        &[
            ONE,
            &["count", "before", "after", "wait", "search", "sanitize", "filter", "lastEventId"],
        ],
    ),
    ("search", &[&["query", "count", "before", "after", "detailed"]]),
    ("replay", &[ONE, &["count", "async"]]),
    ("authenticate", &[&["rights"]]),
    ("pause", &[ONE]),
    ("resume", &[ONE]),
    ("retry", &[ONE]),
    ("test", &[ONE]),
    ("attempts", &[ONE, &["count", "before", "id", "payload"]]),
];
/// The parameters that name a subscription.
const ONE: &[&str] = &["hub.topic", "hub.callback"];
const SUBSCRIBE: &[&str] = &[
    "hub.topic",
    "hub.callback",
    "hub.secret",
    "signature",
    "secret_overlap_seconds",
    "callback_headers",
    "callback_authorization",
    "feed_headers",
    "feed_authorization",
    "hub.verify",
    "hub.verify_token",
    "hub.lease_seconds",
    "updates",
    "status",
    "sanitize",
    "filter",
    "backfill",
    "discover",
    "follow",
    "retrieve",
    "count",
    "before",
    "after",
    "superfeedr.digest",
];
/// The parameters of a subscription that describe the entries in the answer.
const OF_ANSWER: &[&str] = &["count", "before", "after"];
/// The parameters of a subscription that describe its signatures.
const OF_SIGNATURE: &[&str] = &["signature", "secret_overlap_seconds"];
/// The parameters that are either set or not.
const FLAGS: &[&str] = &[
    "retrieve",
    "backfill",
    "discover",
    "follow",
    "detailed",
    "rights",
    "async",
    "payload",
    "sanitize",
    "superfeedr.digest",
];
/// The values of a flag.
const FLAG_VALUES: &[&str] = &["", "true", "1", "yes", "on", "false", "0", "no", "off"];
/// The maximum length of a name in a message, in characters.
const MAX_NAME_CHARS: usize = 64;

/// Rejects a mode that is not known, with the modes that are.
pub(super) fn check_mode(mode: &str, form: &Form) -> Result<(), Rejection> {
    if MODES.iter().any(|(known, _)| *known == mode) {
        return Ok(());
    }
    let suggestion = suggest_prefix(form, "hub.mode");
    if mode.is_empty() && !suggestion.is_empty() {
        let reason = format!("hub.mode is missing.{suggestion}");
        return Err(Rejection::unprocessable(reason).with_code("unknown_mode"));
    }
    let mode: String = mode.chars().take(MAX_NAME_CHARS).collect();
    let mode = if mode.is_empty() { "(none)".to_owned() } else { mode };
    let known = MODES.map(|(known, _)| known).join("|");
    let reason = format!("{mode} is not a supported mode {known}|publish");
    Err(Rejection::unprocessable(reason).with_code("unknown_mode"))
}

/// Rejects a request of a known mode with a parameter that the mode does not have, or that has no
/// effect in this request.
pub(super) fn check(mode: &str, form: &Form) -> Result<(), Rejection> {
    let own = MODES.iter().find(|(name, _)| *name == mode);
    let own = own.map_or_else(Vec::new, |(_, names)| names.concat());
    for (name, value) in form.pairs() {
        // `hub.callback[feed][url]` and `hub.callback[0]` are forms of `hub.callback`.
        let base = name.split('[').next().unwrap_or_default();
        if !own.contains(&base) && !OF_ALL_MODES.contains(&base) {
            let rejection = Rejection::unprocessable(describe_unknown(mode, base, &own));
            return Err(rejection.with_code("unknown_parameter"));
        }
        let is_flag_value = || FLAG_VALUES.contains(&value.trim().to_ascii_lowercase().as_str());
        if FLAGS.contains(&base) && !is_flag_value() {
            let reason = format!("{base} must be true or false, not {}.", value.trim());
            return Err(Rejection::unprocessable(reason));
        }
    }
    if mode == "subscribe" {
        check_subscription(form)?;
    }
    Ok(())
}

/// Rejects parameters that have no effect on this subscription.
fn check_subscription(form: &Form) -> Result<(), Rejection> {
    let answers = (OF_ANSWER, form.is_set("retrieve"), "retrieve=true");
    let signatures = (OF_SIGNATURE, form.get("hub.secret").is_some(), "hub.secret");
    for (names, has_effect, needed) in [answers, signatures] {
        let unused = names.iter().find(|name| form.get(name).is_some());
        if let Some(name) = unused.filter(|_| !has_effect) {
            let reason = format!("{name} has an effect with {needed} only.");
            return Err(Rejection::unprocessable(reason));
        }
    }
    if let Some(lease) = form.get("hub.lease_seconds")
        && !lease.bytes().all(|byte| byte.is_ascii_digit())
    {
        let reason = format!("hub.lease_seconds must be a number of seconds, not {lease}.");
        return Err(Rejection::unprocessable(reason));
    }
    Ok(())
}

/// Returns the sentence for an unknown parameter, with the one that was probably meant.
fn describe_unknown(mode: &str, name: &str, own: &[&str]) -> String {
    let displayed: String = name.chars().take(MAX_NAME_CHARS).collect();
    let known = || own.iter().chain(OF_ALL_MODES).copied();
    let wanted = name.to_lowercase();
    let distance = |known: &str| {
        let bare = known.strip_prefix("hub.").unwrap_or(known);
        strsim::osa_distance(&wanted, known).min(strsim::osa_distance(&wanted, bare))
    };
    let nearest = known().min_by_key(|known| distance(known));
    match nearest.filter(|nearest| distance(nearest) <= 1 + nearest.len() / 4) {
        Some(nearest) => {
            format!("{displayed} is not a parameter of {mode}. Did you mean {nearest}?")
        }
        None => {
            let all: Vec<&str> = known().filter(|known| *known != "_").collect();
            format!("{displayed} is not a parameter of {mode}, which has {}.", all.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection_of(mode: &str, query: &str) -> String {
        let form = Form::from_urlencoded(query.as_bytes()).unwrap();
        check(mode, &form).err().map_or_else(String::new, |why| why.reason().to_owned())
    }

    #[test]
    fn f14_a_parameter_without_an_effect_is_rejected_by_its_name() {
        #[rustfmt::skip]
        let cases = [
            ("subscribe",   "hub.topic=t&hub.callback=c&format=json&_=1", ""),
            ("subscribe",   "fromat=json",           "fromat is not a parameter of subscribe. Did you mean format?"),
            ("subscribe",   "Format=json",           "Format is not a parameter of subscribe. Did you mean format?"),
            ("subscribe",   "topic=t",               "topic is not a parameter of subscribe. Did you mean hub.topic?"),
            ("subscribe",   "hub.calback=c",         "hub.calback is not a parameter of subscribe. Did you mean hub.callback?"),
            ("subscribe",   "before=zzz",            "before has an effect with retrieve=true only."),
            ("subscribe",   "before=zzz&retrieve=1", ""),
            ("subscribe",   "signature=sha256",      "signature has an effect with hub.secret only."),
            ("subscribe",   "hub.secret=s&signature=sha256&secret_overlap_seconds=60", ""),
            ("subscribe",   "retrieve=maybe",        "retrieve must be true or false, not maybe."),
            ("subscribe",   "sanitize=true",         ""),
            ("subscribe",   "sanitize=maybe",        "sanitize must be true or false, not maybe."),
            ("retrieve",    "hub.topic=t&sanitize=1&filter=a", ""),
            ("replay",      "sanitize=true",         "sanitize is not a parameter of replay, which has hub.topic, hub.callback, count, async, hub.mode, authorization, format, callback."),
            ("subscribe",   "superfeedr.digest=true", ""),
            ("subscribe",   "superfeedr.digest=daily", "superfeedr.digest must be true or false, not daily."),
            ("subscribe",   "hub.lease_seconds=soon", "hub.lease_seconds must be a number of seconds, not soon."),
            ("unsubscribe", "hub.secret=s&hub.topic[0]=t", ""),
            ("replay",      "since=1",               "since is not a parameter of replay, which has hub.topic, hub.callback, count, async, hub.mode, authorization, format, callback."),
            ("list",        "search[feed][url]=u&by_page=1", ""),
            ("search",      "query=a&count=1&before=1-2&after=1-1&detailed=true&format=json", ""),
            ("search",      "qurey=a",               "qurey is not a parameter of search. Did you mean query?"),
            ("list",        "bypage=1",              "bypage is not a parameter of list. Did you mean by_page?"),
            ("retrieve",    "hub.callback[feed][url]=u", ""),
            ("attempts",    "hub.topic=t&hub.callback=c&count=1&before=2&id=3&payload=true", ""),
        ];
        for (mode, query, want) in cases {
            assert_eq!(rejection_of(mode, query), want, "{mode} {query}");
        }
    }

    /// The parameter that scripts add so that nothing caches the answer, the one that the document
    /// has as a security scheme, and the one that generated clients could not tell from `by_page`.
    const NOT_DOCUMENTED: [&str; 3] = ["_", "authorization", "byPage"];

    #[test]
    fn the_openapi_document_has_every_mode_and_parameter() {
        let text = include_str!("../../../../schemas/openapi.json");
        let document: serde_json::Value = serde_json::from_str(text).unwrap();
        let documented = &document["components"]["schemas"]["SuperfeedrForm"]["properties"];
        let own = MODES.iter().flat_map(|(_, names)| names.concat());
        for name in own.chain(OF_ALL_MODES.iter().copied()) {
            let is_documented = NOT_DOCUMENTED.contains(&name) || documented.get(name).is_some();
            assert!(is_documented, "{name} is not in schemas/openapi.json");
        }
        let modes = &document["components"]["parameters"]["hub.mode"]["schema"]["enum"];
        let modes: Vec<&str> =
            modes.as_array().unwrap().iter().flat_map(|it| it.as_str()).collect();
        for mode in MODES.iter().map(|(mode, _)| *mode).chain(["publish"]) {
            assert!(modes.contains(&mode), "{mode} is not in schemas/openapi.json");
        }
    }
}
