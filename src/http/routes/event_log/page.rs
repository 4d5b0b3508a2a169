//! The page: a table of what happened lately, newest first, with a form that filters it.
//!
//! It needs no script: filtering and paging are links. With one, lines appear as they are
//! written. Everything in it comes from here, and what strangers wrote is only text.

use std::fmt::Write;
use std::sync::Arc;

use http::{StatusCode, header};
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use super::{DOOR, Look, fresh};
use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, out_of_order, set, with_type};
use crate::http::kit::template::fill;
use feedgate_core::event::{EventKind, EventOutcome, StoredEvent};
use feedgate_core::ports::StoreError;
use feedgate_protocol::xml::escaped;

const PAGE: &str = include_str!("view.html");
const STYLE: &str = include_str!("view.css");
const SCRIPT: &str = include_str!("view.js");
/// Nothing but what is served here, and nothing that a stranger could have put in.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// The routes of what the page is made of.
pub(super) fn assets(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let style = DOOR.open(gateway, warp::path!("log" / "view.css").boxed(), |_, _| async {
        kept(with_type(StatusCode::OK, "text/css; charset=utf-8", STYLE))
    });
    let script = DOOR.open(gateway, warp::path!("log" / "view.js").boxed(), |_, _| async {
        kept(with_type(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT))
    });
    style.or(script).unify().boxed()
}

/// They change with a new version only.
fn kept(mut response: Response) -> Response {
    set(&mut response, header::CACHE_CONTROL, "public, max-age=300");
    response
}

/// The page, as they may see it.
pub(super) async fn answer(gateway: &Gateway, _: &Asked, look: Look) -> Response {
    let body = match page(gateway, &look).await {
        Ok(body) => body,
        Err(err) => return out_of_order(&err),
    };
    let mut response = fresh(with_type(StatusCode::OK, "text/html; charset=utf-8", body));
    set(&mut response, header::CONTENT_SECURITY_POLICY, POLICY);
    set(&mut response, header::REFERRER_POLICY, "no-referrer");
    response
}

async fn page(gateway: &Gateway, look: &Look) -> Result<String, StoreError> {
    let wanted = &look.wanted;
    // Read first: what comes between the two is sent by the stream as well.
    let newest = gateway.store.newest_event().await?;
    let mut events = gateway.store.events(wanted).await?;
    if wanted.after.is_some() {
        events.reverse();
    }
    let is_live = wanted.before.is_none() && wanted.after.is_none();
    let mut rows = String::new();
    for kept in &events {
        push_row(&mut rows, look, kept);
    }
    let older = events.last().filter(|_| events.len() >= wanted.limit).map(|kept| {
        format!("<a rel=\"next\" href=\"{}\">Older</a>", address(look, &[("before", kept.id)]))
    });
    let first = format!("<a href=\"{}\">Newest</a>", address(look, &[]));
    let words = |all: Vec<&'static str>, held: Option<&str>| options(&all, held);
    let kinds = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let outcomes = EventOutcome::ALL.iter().map(|outcome| outcome.as_str()).collect();
    let who = match &look.login {
        Some(login) => format!("You are {}.", escaped(login)),
        None => "<a href=\"?login=1\">Sign in</a> to see your callbacks whole.".to_owned(),
    };
    let stream = query(look, &[("after", newest)]);
    let values = [
        ("{feed}", escaped(&wanted.feed)),
        ("{callback}", escaped(&wanted.callback)),
        ("{kinds}", words(kinds, wanted.kind.map(EventKind::as_str))),
        ("{outcomes}", words(outcomes, wanted.outcome.map(EventOutcome::as_str))),
        ("{who}", who),
        (
            "{stream}",
            if is_live { escaped(&format!("log/stream?{stream}")) } else { String::new() },
        ),
        (
            "{pages}",
            [(!is_live).then_some(first), older]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" "),
        ),
        (
            "{login}",
            look.login
                .as_ref()
                .map_or("", |_| "<input type=\"hidden\" name=\"login\" value=\"1\">")
                .to_owned(),
        ),
        // Last, because it holds what others wrote.
        ("{rows}", rows),
    ];
    Ok(fill(PAGE, &values))
}

fn options(words: &[&str], held: Option<&str>) -> String {
    let mut options = "<option value=\"\">any</option>".to_owned();
    for word in words {
        let selected = if held == Some(*word) { " selected" } else { "" };
        // Writing to a String does not fail.
        write!(options, "<option{selected}>{word}</option>").unwrap_or_default();
    }
    options
}

/// The query of this look, with these numbers.
fn query(look: &Look, numbers: &[(&str, i64)]) -> String {
    let wanted = &look.wanted;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let words = [
        ("feed", wanted.feed.as_str()),
        ("callback", wanted.callback.as_str()),
        ("kind", wanted.kind.map_or("", EventKind::as_str)),
        ("outcome", wanted.outcome.map_or("", EventOutcome::as_str)),
        ("login", look.login.as_ref().map_or("", |_| "1")),
    ];
    query.extend_pairs(words.into_iter().filter(|(_, word)| !word.is_empty()));
    for (name, number) in numbers {
        query.append_pair(name, &number.to_string());
    }
    query.finish()
}

fn address(look: &Look, numbers: &[(&str, i64)]) -> String {
    escaped(&format!("viewLog?{}", query(look, numbers)))
}

/// The same cells as the script makes.
fn push_row(rows: &mut String, look: &Look, kept: &StoredEvent) {
    let event = &kept.event;
    let what = format!("{} {}", event.kind.as_str(), event.outcome.as_str());
    let at = event.at.format("%Y-%m-%dT%H:%M:%SZ");
    let details = [
        (event.many > 1).then(|| format!("{} times", event.many)),
        Some(event.via.to_string()).filter(|via| !via.is_empty()),
        Some(event.code.to_string()).filter(|code| !code.is_empty()),
        event.took.map(|took| format!("{} ms", took.as_millis())),
    ];
    let details = details.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let cells = [
        (
            "When",
            format!("<time datetime=\"{at}\">{}</time>", event.at.format("%Y-%m-%d %H:%M:%S")),
        ),
        ("What", escaped(&what)),
        ("Feed", escaped(&event.feed)),
        ("Callback", escaped(&look.callback(event))),
        ("How", escaped(&details)),
        ("Why", escaped(&look.detail(event))),
    ];
    let row = (kept.id, event.outcome.as_str());
    write!(rows, "<tr data-id=\"{}\" class=\"{}\">", row.0, row.1).unwrap_or_default();
    for (name, cell) in cells {
        write!(rows, "<td data-name=\"{name}\">{cell}</td>").unwrap_or_default();
    }
    rows.push_str("</tr>\n");
}
