//! `/RPC2`: rssCloud and weblogs pings over XML-RPC, and over SOAP for those who send
//! an envelope.
//!
//! Publishers chose the names of their registration procedures freely (`cloud`'s
//! `registerProcedure`), so what is called is told by the last part of its name. The
//! faults are the deployed servers' to the letter. What an old publisher must not get
//! is a fault for a ping that could be taken: WordPress would ping again.

pub(crate) mod save_rss;
pub(crate) mod soap_calls;

use std::sync::Arc;

use http::StatusCode;
use url::Url;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::authoring::Sent;
use crate::http::Gateway;
use crate::http::kit::body::{Messages, Unread};
use crate::http::kit::exchange::{Asked, Door, explained, with_type};
use crate::http::kit::params::Refused;
use crate::http::kit::rejected_requests::Heard;
use crate::http::routes::rsscloud::aliases::Role;
use crate::http::routes::rsscloud::{self, Named, PINGED};
use crate::jobs::runner;
use crate::subscriptions::Refusal;
use feedgate_core::event::EventKind;
use feedgate_core::ping::{Ping, PingSource};
use feedgate_protocol::form::Form;
use feedgate_protocol::soap;
use feedgate_protocol::xmlrpc::{self, Value};

/// The longest call (rule S20).
const DOOR: Door = Door { name: "rpc", methods: &["POST"], body_limit_bytes: 64 * 1024 };
/// What people are told who look at this address with a browser.
const HELP: &str = "POST an XML-RPC call or a SOAP envelope here: rssCloud.hello, \
    rssCloud.pleaseNotify, rssCloud.ping, rssCloud.saveRss, weblogUpdates.ping, \
    weblogUpdates.extendedPing or system.listMethods.";
/// What `system.listMethods` tells.
pub(crate) const METHODS: [&str; 7] = [
    "rssCloud.hello",
    "rssCloud.pleaseNotify",
    "rssCloud.ping",
    "rssCloud.saveRss",
    "weblogUpdates.ping",
    "weblogUpdates.extendedPing",
    "system.listMethods",
];
/// Every fault has this code, as with the deployed servers.
const FAULT: i32 = 4;
/// Where markup begins, in bytes from the beginning.
const MARKUP_WITHIN: usize = 64;
/// weblogs.com's interface: names of up to 1024 characters …
const LONGEST_NAME: usize = 1_024;
/// … and addresses, which it kept to 255; today's are longer.
const LONGEST_URL: usize = 2_048;

/// The routes of this door.
pub(crate) fn routes(gateway: &Arc<Gateway>) -> BoxedFilter<(Response,)> {
    let rpc = warp::path!("RPC2").or(warp::path!("rpc2")).unify().or(warp::path!("rpc")).unify();
    let rpc = rpc.or(warp::path!("weblogUpdates")).unify(); // where UserLand's SOAP went
    let (rpc, messages) = (rpc.map(|| ()).boxed(), Some(messages(gateway)));
    let door =
        DOOR.open_messages(gateway, rpc, messages, |gateway, asked, ()| answer(gateway, asked));
    door.map(|reply| explained(reply, HELP)).boxed()
}

/// How calls are read, whatever is called.
pub(crate) fn messages(gateway: &Gateway) -> Messages {
    let longer_bytes = save_rss::longer_bytes(gateway);
    Messages { longer_bytes, is_longer: save_rss::is_call, refuse }
}

/// Says that a call could not be read to its end, in the protocol that it began in.
fn refuse(gateway: &Gateway, asked: &Asked, unread: &Unread) -> Response {
    // Behind a byte order mark, perhaps, or in two bytes each.
    let is_markup = unread.begins.iter().take(MARKUP_WITHIN).any(|byte| *byte == b'<');
    if !is_markup && !unread.begins.is_empty() {
        return unread.reply();
    }
    let _: Result<(), _> = heard(EventKind::Request, "").tell(gateway, Err(unread.why.clone()));
    if soap_calls::is_meant(asked) || soap_calls::begins(&unread.begins) {
        return soap_calls::fault(soap_calls::version(asked, &unread.begins), &unread.why);
    }
    with_type(StatusCode::OK, "text/xml; charset=utf-8", xmlrpc::fault(FAULT, &unread.why))
}

/// Answers a call, in the protocol it came in.
pub(crate) async fn answer(gateway: Arc<Gateway>, asked: Asked) -> Response {
    // What cannot be read at all is answered in the protocol that its headers speak of.
    let is_meant = soap_calls::is_meant(&asked);
    if soap::is_envelope(&asked.body) || (is_meant && xmlrpc::read_call(&asked.body).is_err()) {
        return soap_calls::answer(&gateway, &asked).await;
    }
    let longest = save_rss::longest_text(&gateway, &asked.body);
    let body = match xmlrpc::read_long_call(&asked.body, longest) {
        Ok(call) => match carry_out(&gateway, &asked, &call.method, &call.params).await {
            Ok(value) => xmlrpc::response(&value),
            Err(why) => xmlrpc::fault(FAULT, &why),
        },
        Err(bad) => {
            let why = bad.to_string();
            let _: Result<(), String> =
                heard(EventKind::Request, "").tell(&gateway, Err(why.clone()));
            xmlrpc::fault(FAULT, &why)
        }
    };
    with_type(StatusCode::OK, "text/xml; charset=utf-8", body)
}

/// What a method's name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Procedure {
    Hello,
    PleaseNotify,
    Ping,
    WeblogPing,
    WeblogExtendedPing,
    ListMethods,
    SaveRss,
}

impl Procedure {
    /// `rssCloud.pleaseNotify`, `xmlStorageSystem.rssPleaseNotify`, `myCloud.ping` …
    pub(crate) fn named(method: &str) -> Option<Procedure> {
        let (family, name) = method.rsplit_once('.').unwrap_or(("", method));
        let is_weblogs = family.eq_ignore_ascii_case("weblogUpdates");
        Some(match name.to_ascii_lowercase().as_str() {
            "ping" if is_weblogs => Procedure::WeblogPing,
            "rssupdate" => Procedure::WeblogPing, // rssrpc.weblogs.com had it bare
            "extendedping" => Procedure::WeblogExtendedPing,
            "ping" => Procedure::Ping,
            "pleasenotify" | "rsspleasenotify" => Procedure::PleaseNotify,
            "saverss" => Procedure::SaveRss,
            "hello" => Procedure::Hello,
            "listmethods" => Procedure::ListMethods,
            _ => return None,
        })
    }

    /// The same, with what the operator's publishers call them besides.
    pub(crate) fn find(gateway: &Gateway, method: &str) -> Option<Procedure> {
        match gateway.settings.aliases.procedure(method) {
            Some(Role::Register) => Some(Procedure::PleaseNotify),
            Some(Role::Ping) => Some(Procedure::Ping),
            Some(Role::Cancel | Role::Call) | None => Procedure::named(method),
        }
    }
}

async fn carry_out(
    gateway: &Gateway,
    asked: &Asked,
    method: &str,
    params: &[Value],
) -> Result<Value, String> {
    let procedure = Procedure::find(gateway, method)
        .ok_or_else(|| format!("Can't make the call because \"{method}\" is not defined."));
    let procedure = heard(EventKind::Request, "").tell(gateway, procedure)?;
    let arity = |kind, name: &str, least, most| {
        heard(kind, "").tell(gateway, arity(name, params, least, most))
    };
    match procedure {
        Procedure::Hello => Ok(Value::Boolean(true)),
        Procedure::ListMethods => {
            Ok(Value::Array(METHODS.iter().map(|name| Value::Text((*name).to_owned())).collect()))
        }
        Procedure::PleaseNotify => {
            arity(EventKind::Subscribe, "pleaseNotify", 5, 6)?;
            please_notify(gateway, asked, params).await
        }
        Procedure::Ping => {
            arity(EventKind::Ping, "ping", 1, 1)?;
            let [url] = texts_of(params);
            cloud_ping(gateway, asked, url).await?;
            Ok(Value::Boolean(true))
        }
        Procedure::SaveRss => {
            arity(EventKind::Ping, "saveRss", 3, 3)?;
            let texts: [String; 3] = texts_of(params);
            let feed = match &params[2] {
                Value::Bytes(bytes) => Sent::Bytes(bytes),
                _ => Sent::Text(&texts[2]),
            };
            save_rss::save(gateway, asked, (&texts[0], &texts[1]), feed).await.map(Value::Text)
        }
        Procedure::WeblogPing => {
            arity(EventKind::Ping, "ping", 2, 4)?;
            let [name, url, changed, _] = texts_of(params);
            Ok(flerror(weblog_ping(gateway, asked, [name, url, changed, String::new()]).await))
        }
        Procedure::WeblogExtendedPing => {
            arity(EventKind::Ping, "extendedPing", 3, 5)?;
            let [name, url, changed, feed] = texts_of(params);
            // Three parameters are name, home page and feed (WordPress); four or five
            // have the page that changed third and the feed fourth (seed 002). Some leave
            // the page out and send categories.
            let is_tags = !feed.trim().is_empty() && !is_address(&feed);
            let is_short = params.len() == 3 || is_tags && is_address(&changed);
            let (changed, feed) = if is_short { (feed, changed) } else { (changed, feed) };
            Ok(flerror(weblog_ping(gateway, asked, [name, url, changed, feed]).await))
        }
    }
}

fn arity(name: &str, params: &[Value], least: usize, most: usize) -> Result<(), String> {
    let what = match params.len() {
        few if few < least => "aren't enough",
        many if many > most => "are too many",
        _ => return Ok(()),
    };
    Err(format!("Can't call \"{name}\" because there {what} parameters."))
}

/// The first parameters as texts; what is missing is empty.
fn texts_of<const N: usize>(params: &[Value]) -> [String; N] {
    std::array::from_fn(|n| params.get(n).and_then(Value::text).unwrap_or_default())
}

async fn please_notify(
    gateway: &Gateway,
    asked: &Asked,
    params: &[Value],
) -> Result<Value, String> {
    let text = |at: usize| params.get(at).and_then(Value::text).unwrap_or_default();
    let urls = match params.get(4) {
        Some(Value::Array(urls)) => urls.iter().filter_map(Value::text).collect(),
        Some(single) => single.text().into_iter().collect::<Vec<_>>(),
        None => Vec::new(),
    };
    let named = Named {
        procedure: text(0),
        port: text(1),
        path: text(2),
        protocol: text(3),
        domain: params.get(5).and_then(Value::text),
    };
    register(gateway, asked, named, urls).await.map(|()| Value::Boolean(true))
}

/// What is told of a call that is refused here.
pub(crate) fn heard(kind: EventKind, feed: &str) -> Heard<'_> {
    Heard { kind, via: PingSource::RssCloud.as_str(), feed, callback: "" }
}

/// Registers a handler; the error is the protocol's sentence.
pub(crate) async fn register(
    gateway: &Gateway,
    asked: &Asked,
    named: Named,
    urls: Vec<String>,
) -> Result<(), String> {
    let urls = urls.iter().map(|url| url.trim().to_owned()).filter(|url| !url.is_empty());
    let urls: Vec<String> = urls.collect();
    let heard = heard(EventKind::Subscribe, urls.first().map_or("", String::as_str));
    let read = rsscloud::handler(named, urls.clone(), asked).and_then(|read| {
        gateway.strangers.admit(asked, read.1.len())?;
        Ok(read)
    });
    let (handler, urls) = heard.tell(gateway, read)?;
    let when = (gateway.settings.ping_spacing, runner::now());
    let done = gateway.subscribe.register(&handler, &urls, when).await;
    done.map(drop)
        .map_err(|refusal| rsscloud::sentence("subscription", &refusal).unwrap_or_else(broken))
}

/// Takes a ping of rssCloud's: any is taken that is well formed, whatever it names.
pub(crate) async fn cloud_ping(
    gateway: &Gateway,
    asked: &Asked,
    url: String,
) -> Result<(), String> {
    let admitted = gateway.strangers.admit(asked, 1).map_err(String::from);
    heard(EventKind::Ping, &url).tell(gateway, admitted)?;
    let query = Form::from_urlencoded(asked.query.as_bytes()).unwrap_or_default();
    let name = String::new();
    if !rsscloud::waits(gateway, &query) {
        return take(gateway, PingSource::RssCloud, [name, url, String::new()]).await;
    }
    let ping = Ping {
        at: runner::now(),
        source: PingSource::RssCloud,
        name,
        url: url.trim().to_owned(),
        feed_url: None,
    };
    match rsscloud::tell_all(gateway, &ping).await {
        Err(err @ Refusal::Store(_)) => Err(not_kept(&err)),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Keeps a ping: name, address, and the feed's address or nothing.
pub(crate) async fn take(
    gateway: &Gateway,
    source: PingSource,
    [name, url, feed_url]: [String; 3],
) -> Result<(), String> {
    let ping = Ping {
        at: runner::now(),
        source,
        name: name.trim().to_owned(),
        url: url.trim().to_owned(),
        feed_url: Some(feed_url.trim().to_owned()).filter(|feed| !feed.is_empty()),
    };
    let taken = gateway.subscribe.ping(&ping, gateway.settings.ping_spacing).await;
    taken.map(|_| ()).map_err(|err| not_kept(&err))
}

fn not_kept(err: &(dyn std::error::Error + 'static)) -> String {
    tracing::error!(error = err, "a ping could not be kept");
    broken()
}

/// Checks and keeps a weblog's ping: name, address, the page that changed, and the feed,
/// the last two if they are there.
pub(crate) async fn weblog_ping(
    gateway: &Gateway,
    asked: &Asked,
    named: [String; 4],
) -> Result<(), Refused> {
    let url = named[1].clone();
    let taken = take_weblog_ping(gateway, asked, named).await;
    Heard { via: PingSource::Weblogs.as_str(), ..heard(EventKind::Ping, &url) }.tell(gateway, taken)
}

async fn take_weblog_ping(
    gateway: &Gateway,
    asked: &Asked,
    [name, url, changed, feed]: [String; 4],
) -> Result<(), Refused> {
    let bad = |why| Err(Refused::new(StatusCode::BAD_REQUEST, why));
    // Some senders swap name and address.
    let is_swapped = !is_address(&url) && is_address(&name);
    let (name, url) = if is_swapped { (url, name) } else { (name, url) };
    if name.chars().count() > LONGEST_NAME {
        return bad(format!("The weblog's name is longer than {LONGEST_NAME} characters."));
    }
    if url.len() > LONGEST_URL {
        return bad(format!("The weblog's address is longer than {LONGEST_URL} bytes."));
    }
    if !is_address(&url) {
        return bad(format!("The weblog's address must be an http or https URL, not \"{url}\"."));
    }
    gateway.strangers.admit(asked, 1)?;
    let feed = match is_address(&feed) {
        true => feed,
        false => watched(gateway, changed).await,
    };
    let taken = take(gateway, PingSource::Weblogs, [name, url, feed]).await;
    taken.map_err(|why| Refused::new(StatusCode::SERVICE_UNAVAILABLE, why))
}

/// The page that is said to have changed, if it is one that is watched here; else nothing.
async fn watched(gateway: &Gateway, changed: String) -> String {
    let changed = changed.trim();
    if !is_address(changed) {
        return String::new();
    }
    // Whether or not it is, the ping counts; a store that fails will say so when it is kept.
    let known = gateway.store.find(changed).await.ok().flatten();
    known.map(|_| changed.to_owned()).unwrap_or_default()
}

fn is_address(text: &str) -> bool {
    let text = text.trim();
    let url = Url::parse(text).ok().filter(|_| text.len() <= LONGEST_URL);
    url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

/// "The response is a struct with two named parameters, flerror and message" (seed
/// 002, "Ping Response").
fn flerror(done: Result<(), Refused>) -> Value {
    let is_error = done.is_err();
    let message = done.map_or_else(|refused| refused.why, |()| PINGED.to_owned());
    Value::Struct(vec![
        ("flerror".to_owned(), Value::Boolean(is_error)),
        ("message".to_owned(), Value::Text(message)),
    ])
}

fn broken() -> String {
    "feedgate is out of order, please try again later.".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_are_known_by_any_family_name() {
        #[rustfmt::skip]
        let cases = [
            ("rssCloud.hello",                   Some(Procedure::Hello)),
            ("rssCloud.pleaseNotify",            Some(Procedure::PleaseNotify)),
            ("xmlStorageSystem.rssPleaseNotify", Some(Procedure::PleaseNotify)),
            ("myCloud.rssPleaseNotify",          Some(Procedure::PleaseNotify)),
            ("pleaseNotify",                     Some(Procedure::PleaseNotify)),
            ("rssCloud.ping",                    Some(Procedure::Ping)),
            ("rssCloud.saveRss",                 Some(Procedure::SaveRss)),
            ("xmlStorageSystem.saveRss",         Some(Procedure::SaveRss)),
            ("weblogUpdates.ping",               Some(Procedure::WeblogPing)),
            ("weblogUpdates.extendedPing",       Some(Procedure::WeblogExtendedPing)),
            ("rssUpdate",                        Some(Procedure::WeblogPing)),
            ("system.listMethods",               Some(Procedure::ListMethods)),
            ("system.multicall",                 None),
            ("foo.bar",                          None),
        ];
        for (method, want) in cases {
            assert_eq!(Procedure::named(method), want, "{method}");
        }
    }

    #[test]
    fn addresses_are_web_addresses() {
        for (text, want) in [("http://a.test/", true), ("ftp://a.test/", false), ("a.test", false)]
        {
            assert_eq!(is_address(text), want, "{text}");
        }
    }
}
