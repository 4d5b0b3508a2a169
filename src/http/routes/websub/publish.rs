//! `hub.mode=publish`: a publisher reports that topics changed (P-2, P-3).
//!
//! No account is needed, and the reply does not reveal which topics are watched.

use futures_util::future::try_join_all;
use url::Url;

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::permissions;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::event::EventKind;
use feedgate_core::ping::{Ping, PingSource};
use feedgate_protocol::form::Form;
use feedgate_protocol::signature;

/// The most topics taken from one request (rule S26).
const MAX_TOPICS: usize = 100;

/// Takes a ping for each topic, and returns how many were named. Content that the publisher of the
/// topic has signed is delivered first (row P-4).
pub(crate) async fn publish(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
) -> Result<usize, Rejection> {
    let topics = topics(form);
    check_content(form, topics.len())?;
    let admitted = permissions::check(gateway, request, form, Permission::Pings).await;
    let admitted =
        admitted.and_then(|()| gateway.anonymous_rate_limit.admit(request, topics.len()));
    let feed = topics.first().map_or("", String::as_str);
    RejectedRequest {
        kind: EventKind::Ping,
        via: PingSource::Publish.as_str(),
        feed,
        callback: "",
    }
    .record_if_rejected(gateway, admitted)?;
    let at = runner::now();
    let pings = topics.iter().map(|url| Ping {
        at,
        source: PingSource::Publish,
        name: String::new(),
        url: url.clone(),
        feed_url: None,
    });
    let pings: Vec<Ping> = pings.collect();
    if let (Some(content), Some(ping)) = (form.get_verbatim("hub.content"), pings.first()) {
        let is_signed = is_signed(gateway, &ping.url, content, form);
        let taken = gateway.subscribe.publish_content(ping, content, is_signed).await;
        taken.map_err(|err| Rejection::unavailable(&err))?;
    }
    let spacing = gateway.settings.ping_spacing;
    let taken = try_join_all(pings.iter().map(|ping| gateway.subscribe.ping(ping, spacing))).await;
    taken.map_err(|err| Rejection::unavailable(&err))?;
    Ok(topics.len())
}

/// Rejects content that belongs to no topic, or to several, and a signature of nothing.
fn check_content(form: &Form, topics: usize) -> Result<(), Rejection> {
    let reason = match (form.has("hub.content"), form.has("hub.signature")) {
        (true, _) if topics > 1 => "hub.content is the content of one topic: name one in hub.url.",
        (false, true) => "hub.signature signs hub.content, which is missing.",
        _ => return Ok(()),
    };
    Err(Rejection::unprocessable(reason))
}

/// Returns whether the content is signed with the secret of the publisher of the topic. A signature
/// without the name of its method is one of SHA-1, as in `X-Hub-Signature`.
fn is_signed(gateway: &Gateway, topic: &str, content: &str, form: &Form) -> bool {
    let Ok(topic) = Url::parse(topic) else { return false };
    let secret = gateway.settings.publisher_secrets.of_host(topic.host_str().unwrap_or_default());
    let Some((secret, given)) = secret.zip(form.get("hub.signature")) else { return false };
    let given = match given.contains('=') {
        true => given.to_owned(),
        false => format!("sha1={given}"),
    };
    signature::holds(&given, secret.expose(), content.as_bytes())
}

/// Returns the topics in `hub.url`, repeated, as `hub.url[]`, as a list with commas, or in
/// `hub.topic`.
fn topics(form: &Form) -> Vec<String> {
    let given = form.all("hub.url").chain(form.all("hub.topic"));
    let mut topics: Vec<String> = Vec::new();
    for address in given.flat_map(split_list).filter(|address| !address.is_empty()) {
        if topics.len() < MAX_TOPICS && !topics.contains(&address) {
            topics.push(address);
        }
    }
    topics
}

/// Splits a list at the commas that another address follows: addresses may contain commas.
fn split_list(list: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in list.split(',') {
        let begins = part.trim_start();
        let is_address = begins.starts_with("http://") || begins.starts_with("https://");
        match parts.last_mut() {
            Some(last) if !is_address => {
                last.push(',');
                last.push_str(part);
            }
            _ => parts.push(begins.to_owned()),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows P-2 and P-3.
    #[test]
    fn topics_are_read_in_every_way_that_clients_name_them() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 6] = [
            ("hub.url=http://a.test/",                          &["http://a.test/"]),
            ("hub.url=http://a.test/&hub.url=http://b.test/",   &["http://a.test/", "http://b.test/"]),
            ("hub.url[]=http://a.test/&hub.url[]=http://b.test/", &["http://a.test/", "http://b.test/"]),
            ("hub.url=http://a.test/x,y, https://b.test/",      &["http://a.test/x,y", "https://b.test/"]),
            ("hub.topic=http://a.test/&hub.url=http://a.test/", &["http://a.test/"]),
            ("hub.url=",                                        &[]),
        ];
        for (sent, want) in cases {
            let form = Form::from_urlencoded(sent.as_bytes()).unwrap();
            assert_eq!(topics(&form), want, "{sent}");
        }
    }
}
