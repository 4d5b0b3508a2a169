//! `hub.mode=publish`: a publisher reports that topics changed (P-2, P-3).
//!
//! No account is needed, and the reply does not reveal which topics are watched.

use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::event::EventKind;
use feedgate_core::ping::{Ping, PingSource};
use feedgate_protocol::form::Form;

/// The most topics taken from one request (rule S26).
const MAX_TOPICS: usize = 100;

/// Takes a ping for each topic, and returns how many were named.
pub(crate) async fn publish(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
) -> Result<usize, Rejection> {
    reject_content(form)?;
    let topics = topics(form);
    let admitted = gateway.anonymous_rate_limit.admit(request, topics.len());
    let feed = topics.first().map_or("", String::as_str);
    RejectedRequest {
        kind: EventKind::Ping,
        via: PingSource::Publish.as_str(),
        feed,
        callback: "",
    }
    .record_if_rejected(gateway, admitted)?;
    for url in &topics {
        let ping = Ping {
            at: runner::now(),
            source: PingSource::Publish,
            name: String::new(),
            url: url.clone(),
            feed_url: None,
        };
        let taken = gateway.subscribe.ping(&ping, gateway.settings.ping_spacing).await;
        taken.map_err(|err| Rejection::unavailable(&err))?;
    }
    Ok(topics.len())
}

/// Rejects a request that brings the new content with it: the topic is fetched, and whoever
/// relies on the content would not notice that it is ignored.
fn reject_content(form: &Form) -> Result<(), Rejection> {
    match ["hub.content", "hub.signature"].into_iter().find(|name| form.has(name)) {
        Some(name) => Err(Rejection::unprocessable(format!(
            "{name} is not supported: name the topic in hub.url, and it is fetched."
        ))
        .with_code("unknown_parameter")),
        None => Ok(()),
    }
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
