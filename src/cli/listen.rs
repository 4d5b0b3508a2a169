//! `feedgate listen`: a small aggregator, for examining the behaviour of a cloud or a hub.
//!
//! The command subscribes to feeds by any protocol, prints the notifications and the new entries,
//! renews its subscriptions in time, and unsubscribes when it is interrupted. Requests are sent by
//! the same guarded client as those of `serve`: private addresses are reached only if
//! `FEEDGATE_EGRESS_ALLOW_…_CIDRS` lists them, or if the user named them: the gateway of `--cloud`, and feeds
//! on this machine with their hubs there.

mod account;
mod callback;
mod follow;
mod forward;
mod report;
mod signatures;

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use http::HeaderValue;
use ipnet::{Ipv4Net, Ipv6Net};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::{Config, LOOPBACK_NETWORKS};
use crate::http::serve::listener::Listener;
use crate::net::HttpClient;
use crate::subscriptions::is_on_this_machine;
use feedgate_protocol::Protocol;

use super::event_printer::EventPrinter;
use super::forward::ForwardTarget;
use super::is_output_closed;
use super::remote::{self, AccountCredentials};
use super::serve::Signals;
use super::web_url::web_url;
use super::{Outcome, help};

use callback::{ExpectedCallback, ListenEvent, ReceivedNotification};
use follow::{FollowedFeed, RegistrationMethod};
use forward::forward;
use report::{NotificationSummary, print_notification, reason};
use signatures::SignatureVerdicts;

/// The most events that wait to be printed: notifications may hold whole documents. When the
/// queue is full, callers are told to retry later.
const EVENTS: usize = 32;
/// How long a cloud may take to respond to a registration: it reads the feed and calls the callback
/// before.
const RESPONDS_WITHIN: Duration = Duration::from_secs(60);
/// How long a hub may take to verify an unsubscription.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);

/// Subscribe to feeds at a cloud or hub, and print its notifications. Runs until it is
/// interrupted.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::LISTEN.text())]
pub(super) struct ListenArgs {
    /// The URL of the cloud, hub or gateway. Without it, each feed's own is used.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    cloud: Option<Url>,
    /// A feed to subscribe to. Can be repeated.
    #[arg(long = "feed", value_name = "URL", required = true, value_parser = web_url)]
    feeds: Vec<Url>,
    /// The protocol of the subscription and of the notifications. The default with --cloud is the
    /// account API if there are credentials, otherwise websub if the path ends with "hub", xml-rpc if
    /// it ends with "RPC2", and http-post for any other.
    #[arg(long, value_enum)]
    protocol: Option<Spoken>,
    /// The login and the token of an account at the gateway; FEEDGATE_TOKEN has the same form.
    #[arg(long, value_name = "LOGIN:TOKEN", requires = "cloud", value_parser = remote::credentials)]
    user: Option<AccountCredentials>,
    /// Print one JSON object per event.
    #[arg(long)]
    json: bool,
    /// Forward each notification to this URL, with its headers, and print the response.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    forward_to: Option<Url>,
    /// The port to receive notifications on; 0 picks a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The host name or address that the cloud should call. Without it, the cloud calls the client
    /// address of the request.
    #[arg(long, value_name = "HOST")]
    domain: Option<String>,
    /// Renew after so many seconds, instead of the interval of the protocol.
    #[arg(long, value_name = "SECONDS")]
    renew: Option<u64>,
    /// Read settings from this TOML file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The protocols by their names on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Spoken {
    HttpPost,
    HttpsPost,
    XmlRpc,
    Soap,
    #[value(name = "websub")]
    WebSub,
    /// The API at / of a gateway, which needs an account
    Account,
}

impl Spoken {
    fn protocol(self) -> Protocol {
        match self {
            Spoken::HttpPost | Spoken::HttpsPost => Protocol::HttpPost,
            Spoken::XmlRpc => Protocol::XmlRpc { procedure: String::new() },
            Spoken::Soap => Protocol::Soap { procedure: String::new() },
            Spoken::WebSub | Spoken::Account => Protocol::WebSub,
        }
    }

    /// The usual path of a cloud or hub.
    fn usual_path(self) -> &'static str {
        match self {
            Spoken::HttpPost | Spoken::HttpsPost => "/pleaseNotify",
            Spoken::XmlRpc | Spoken::Soap => "/RPC2",
            Spoken::WebSub => "/hub",
            Spoken::Account => "/",
        }
    }
}

pub(super) async fn run(args: &ListenArgs) -> Outcome {
    let (config, _) = Config::load(args.config.clone(), &[])?;
    let mut signals = Signals::new()?;
    let addr = SocketAddr::from((Ipv4Addr::UNSPECIFIED, args.port));
    let listener = Listener::bind(addr, config.listener()).await?;
    let port = listener.local_addr().port();
    let own = Url::parse(&format!("http://127.0.0.1:{port}/"))?;
    let mut net = config.net(config.public_url.as_ref().unwrap_or(&own));
    net.callback_timeout = RESPONDS_WITHIN;
    if args.cloud.is_some() {
        // Nothing else is called then, and the user named it.
        net.allow_callbacks = vec![Ipv4Net::default().into(), Ipv6Net::default().into()];
    }
    if args.feeds.iter().any(is_on_this_machine) {
        net.allow_topics.extend(LOOPBACK_NETWORKS);
        net.allow_callbacks.extend(LOOPBACK_NETWORKS);
    }
    let fetch = HttpClient::new(net);

    let method = registration_method(args)?;
    let mut followed = Vec::new();
    for feed in &args.feeds {
        followed.push(FollowedFeed::find(&fetch, feed, method.clone()).await?);
    }
    let topics = followed.iter().map(|one| one.offer().topic.clone()).collect();
    let agreed = Arc::new(ExpectedCallback::to(topics));
    let (sender, events) = mpsc::channel(EVENTS);
    let stop = CancellationToken::new();
    let serving = tokio::spawn(listener.serve(callback::routes(sender, &agreed), stop.clone()));
    let scheme = if args.protocol == Some(Spoken::HttpsPost) { "https" } else { "http" };
    for (n, one) in followed.iter_mut().enumerate() {
        let host = args.domain.clone().unwrap_or_else(|| host_towards(one.endpoint()));
        one.set_callback(
            Url::parse(&format!("{scheme}://{host}:{port}/{n}"))?,
            args.domain.is_none(),
        );
    }

    let printer = EventPrinter { is_json: args.json };
    let forward = args.forward_to.as_ref().map(|url| ForwardTarget::new(&config, url));
    let renew = args.renew;
    let mut session = Session { fetch, followed, agreed, renew, events, printer, forward };
    session.begin().await;
    session.listen(&mut signals).await;
    session.leave().await;
    stop.cancel();
    serving.await?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the protocol and endpoint given by the options, or `None` to use those that each feed
/// names.
fn registration_method(
    args: &ListenArgs,
) -> Result<Option<RegistrationMethod>, Box<dyn std::error::Error>> {
    let Some(mut cloud) = args.cloud.clone() else { return Ok(None) };
    let mut authorization = None;
    if matches!(args.protocol, None | Some(Spoken::Account)) {
        authorization = remote::authorization(args.user.as_ref())?;
    }
    let spoken = args.protocol.unwrap_or_else(|| protocol_at(&cloud, authorization.as_ref()));
    if spoken == Spoken::Account && authorization.is_none() {
        return Err("the account API needs FEEDGATE_TOKEN=LOGIN:TOKEN, or --user".into());
    }
    if cloud.path() == "/" && cloud.query().is_none() {
        cloud.set_path(spoken.usual_path());
    }
    let (protocol, endpoint) = (spoken.protocol(), cloud.into());
    Ok(Some(RegistrationMethod { protocol, endpoint, authorization }))
}

/// Returns the protocol for an endpoint, if none is given.
fn protocol_at(cloud: &Url, authorization: Option<&HeaderValue>) -> Spoken {
    let path = cloud.path().trim_end_matches('/');
    match authorization {
        Some(_) => Spoken::Account,
        None if path.ends_with("hub") => Spoken::WebSub,
        None if path.ends_with("RPC2") => Spoken::XmlRpc,
        None => Spoken::HttpPost,
    }
}

/// Returns the local address that is used to reach `endpoint`. Nothing is sent.
fn host_towards(endpoint: &str) -> String {
    let towards = || {
        let url = Url::parse(endpoint).ok()?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect(&*url.socket_addrs(|| None).ok()?).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    };
    towards().unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string())
}

/// The subscriptions of one run of the command.
struct Session {
    fetch: HttpClient,
    followed: Vec<FollowedFeed>,
    agreed: Arc<ExpectedCallback>,
    renew: Option<u64>,
    events: mpsc::Receiver<ListenEvent>,
    printer: EventPrinter,
    forward: Option<ForwardTarget>,
}

impl Session {
    async fn begin(&mut self) {
        for n in 0..self.followed.len() {
            self.register(n).await;
            // Printing frees the queue, which the tests of the last feeds need as well.
            while let Ok(event) = self.events.try_recv() {
                self.handle_event(event).await;
            }
        }
    }

    /// Requests a subscription, during which a cloud tests the callback, or its renewal.
    async fn register(&mut self, n: usize) {
        let is_first = !self.followed[n].is_registered;
        self.agreed.set_asking(is_first);
        let requested = self.followed[n].request(&self.fetch, "subscribe").await;
        self.agreed.set_asking(false);
        let one = &mut self.followed[n];
        let renewal = match requested {
            Ok(()) => {
                one.is_registered = true;
                let word = if is_first { "registered" } else { "renewed" };
                self.printer.print(word, &one.offer().topic, one.by());
                one.renewal()
            }
            Err(why) => {
                self.printer.print("refused", &one.offer().topic, &reason(&why));
                follow::AGAIN
            }
        };
        one.renew_at = Instant::now() + self.renew.map_or(renewal, Duration::from_secs);
    }

    /// Prints what arrives, and renews, until a signal comes or nobody reads any more.
    async fn listen(&mut self, signals: &mut Signals) {
        loop {
            let next = self.followed.iter().enumerate().min_by_key(|(_, one)| one.renew_at);
            let Some((n, renew_at)) = next.map(|(n, one)| (n, one.renew_at)) else { return };
            if is_output_closed() {
                return;
            }
            tokio::select! {
                () = signals.next() => return,
                Some(event) = self.events.recv() => self.handle_event(event).await,
                () = sleep_until(renew_at) => self.register(n).await,
            }
        }
    }

    async fn handle_event(&mut self, event: ListenEvent) {
        let Some(one) = self.followed.get_mut(event.n()) else { return };
        match event {
            ListenEvent::Verified { lease_s, .. } => {
                if let Some(lease_s) = lease_s
                    && self.renew.is_none()
                {
                    let renewal = one.offer().renewal(Duration::from_secs(lease_s));
                    one.renew_at = Instant::now() + renewal;
                }
                let lasts = lease_s.map(|lease_s| format!("for {lease_s} s")).unwrap_or_default();
                self.printer.print("verified", &one.offer().topic, &lasts);
            }
            ListenEvent::Denied { reason, .. } => {
                self.printer.print("denied", &one.offer().topic, &reason)
            }
            ListenEvent::Left { .. } => self.printer.print("left", &one.offer().topic, ""),
            ListenEvent::Notification(received) => {
                self.handle_notification(received).await;
            }
        }
    }

    /// Prints a notification and its new entries, and forwards it.
    async fn handle_notification(&mut self, received: ReceivedNotification) {
        let Some(one) = self.followed.get_mut(received.n) else { return };
        let verdicts = SignatureVerdicts::check(&received, one.secret());
        let (topic, detail) = one.describe_notification(&received, verdicts);
        let event = if received.is_test { "tested" } else { "notified" };
        let summary = NotificationSummary { event, topic: &topic, detail: &detail };
        print_notification(self.printer, &received, verdicts, summary);
        if let Some(target) = &self.forward {
            self.printer.print("forwarded", &topic, &forward(target, &received).await);
        }
        if received.is_test {
            return; // a test of the callback does not mean that there are new entries
        }
        match one.new_entries(&self.fetch, &received).await {
            Ok(new) => new.iter().for_each(|entry| self.printer.print("new", &topic, entry)),
            Err(why) => self.printer.print("unread", &topic, &why),
        }
    }

    /// Unsubscribes, if the protocol supports it.
    async fn leave(&mut self) {
        self.agreed.set_leaving();
        let (mut unconfirmed, mut left) = (0, 0);
        for one in &self.followed {
            let topic = &one.offer().topic;
            match one.leave(&self.fetch).await {
                Ok(is_done) => {
                    unconfirmed += usize::from(!is_done);
                    self.printer.print("cancelled", topic, "");
                }
                Err(why) => {
                    self.printer.print(
                        "refused",
                        topic,
                        &format!("{}; the subscription will expire", reason(&why)),
                    );
                }
            }
            while let Ok(event) = self.events.try_recv() {
                left += usize::from(matches!(event, ListenEvent::Left { .. }));
            }
        }
        let others = async {
            while left < unconfirmed {
                let Some(event) = self.events.recv().await else { return };
                left += usize::from(matches!(event, ListenEvent::Left { .. }));
            }
        };
        if timeout(LEAVES_WITHIN, others).await.is_err() {
            self.printer.print("timeout", "", "a hub did not verify the unsubscription");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_follows_from_the_path_and_the_credentials() {
        let basic = HeaderValue::from_static("Basic x");
        #[rustfmt::skip]
        let cases = [
            ("http://a.test/",             None,          Spoken::HttpPost),
            ("http://a.test/pleaseNotify", None,          Spoken::HttpPost),
            ("http://a.test/RPC2",         None,          Spoken::XmlRpc),
            ("http://a.test/gate/hub/",    None,          Spoken::WebSub),
            ("http://a.test/",             Some(&basic),  Spoken::Account),
        ];
        for (url, authorization, want) in cases {
            assert_eq!(protocol_at(&Url::parse(url).unwrap(), authorization), want, "{url}");
        }
    }
}
