//! `hub.mode=publish`: somebody says that topics changed (rows P-2 and P-3).
//!
//! Nobody is asked who they are, and nobody is told which topics are watched.

use super::account::broken;
use crate::http::Gateway;
use crate::http::kit::exchange::Asked;
use crate::http::kit::params::Refused;
use crate::http::kit::rejected_requests::Heard;
use crate::jobs::runner;
use feedgate_core::event::EventKind;
use feedgate_core::ping::{Ping, PingSource};
use feedgate_protocol::form::Form;

/// The most topics taken from one request.
const MOST_TOPICS: usize = 100;

/// Takes the pings; returns how many addresses were named.
pub(crate) async fn publish(
    gateway: &Gateway,
    asked: &Asked,
    form: &Form,
) -> Result<usize, Refused> {
    let named = addresses(form);
    let admitted = gateway.strangers.admit(asked, named.len()).map_err(Refused::from);
    let feed = named.first().map_or("", String::as_str);
    Heard { kind: EventKind::Ping, via: PingSource::Publish.as_str(), feed, callback: "" }
        .tell(gateway, admitted)?;
    for url in &named {
        let ping = Ping {
            at: runner::now(),
            source: PingSource::Publish,
            name: String::new(),
            url: url.clone(),
            feed_url: None,
        };
        let taken = gateway.subscribe.ping(&ping, gateway.settings.ping_spacing).await;
        taken.map_err(|err| broken(&err))?;
    }
    Ok(named.len())
}

/// `hub.url`, repeated, as `hub.url[]`, as a list with commas, or `hub.topic`.
fn addresses(form: &Form) -> Vec<String> {
    let given = form.all("hub.url").chain(form.all("hub.topic"));
    let mut addresses: Vec<String> = Vec::new();
    for address in given.flat_map(split).filter(|address| !address.is_empty()) {
        if addresses.len() < MOST_TOPICS && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Splits at a comma only where another address begins behind it: addresses may hold
/// commas themselves.
fn split(list: &str) -> Vec<String> {
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
    fn addresses_come_in_every_way_that_clients_have() {
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
            assert_eq!(addresses(&form), want, "{sent}");
        }
    }
}
