//! The parts of the demo: a gateway, a publisher, callbacks and readers, all in this process, and
//! the subscriptions between them.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;
use warp::filters::BoxedFilter;
use warp::reply::Response;

use crate::app::Running;
use crate::cli::print_line;
use crate::config::Config;
use crate::http::serve::listener::{Listener, ListenerSettings};
use crate::net::HttpClient;

use super::console_sign_in::ConsoleSignIn;
use super::desk::Desk;
use super::publisher::{Publisher, topic};
use super::readers::DemoReader;
use super::samples::SAMPLES;
use super::subscribers::{self, ReceivedCall};
use super::tally::{Channel, DemoEvent, Received};

type Failure = Box<dyn Error>;

/// The settings that differ from the defaults: the publisher, which is part of the demo, is polled without
/// politeness limits.
const SETTINGS: [(&str, &str); 4] = [
    ("FEEDGATE_LISTEN", "127.0.0.1:0"),
    ("FEEDGATE_HOST_MIN_INTERVAL_MS", "0"),
    ("FEEDGATE_PING_MIN_INTERVAL_MS", "0"),
    ("FEEDGATE_LOG", "error"),
];

/// All parts of the demo.
pub(super) struct Stage {
    /// The calls that the callbacks received.
    pub(super) calls: UnboundedReceiver<ReceivedCall>,
    /// The entries that the readers found.
    pub(super) received: UnboundedReceiver<Received>,
    found: UnboundedSender<Received>,
    gateway: Running,
    publisher: Publisher,
    publisher_url: Url,
    callbacks: Url,
    topics: Vec<String>,
    desk: Desk,
    reader: DemoReader,
    at_work: TaskTracker,
    stop: CancellationToken,
    folder: Option<PathBuf>,
    console: Option<Arc<ConsoleSignIn>>,
}

impl Stage {
    /// Starts all parts, and returns when all subscriptions are active.
    pub(super) async fn set(database: Option<&str>, cells: usize) -> Result<Stage, Failure> {
        let folder = std::env::temp_dir().join(format!("feedgate-demo-{}", std::process::id()));
        let folder = database.is_none().then_some(folder);
        let temporary = folder.as_ref().map(|folder| format!("sqlite:{}", folder.display()));
        let database = database.map(str::to_owned).or(temporary).unwrap_or_default();
        let mut config = Config::read(|name| match name {
            "FEEDGATE_DATABASE" => Some(database.clone()),
            "FEEDGATE_CELLS" => Some(cells.to_string()),
            _ => SETTINGS.iter().find(|(held, _)| *held == name).map(|(_, to)| (*to).to_owned()),
        })?;
        config.allow_this_machine();

        let (at_work, stop) = (TaskTracker::new(), CancellationToken::new());
        let publisher = Publisher::default();
        let publisher_url = open(publisher.routes(), &at_work, &stop).await?;
        let (calls_sender, calls) = mpsc::unbounded_channel();
        let callbacks = open(subscribers::routes(calls_sender), &at_work, &stop).await?;
        let gateway = Running::start(config.clone()).await?;

        let fetch = HttpClient::new(config.net(gateway.public_url()));
        let reader = DemoReader::new(fetch.clone(), gateway.public_url().clone());
        let desk = Desk::new(fetch, gateway.public_url().clone(), callbacks.clone());
        let topics: Vec<String> =
            SAMPLES.iter().map(|sample| topic(&publisher_url, sample)).collect();
        desk.begin_all(gateway.store(), &topics).await?;
        let (found, received) = mpsc::unbounded_channel();
        let stage = Stage {
            calls,
            received,
            found,
            gateway,
            publisher,
            publisher_url,
            callbacks,
            topics,
            desk,
            reader,
            at_work,
            stop,
            folder,
            console: None,
        };
        let (reader, topics, found) = (&stage.reader, &stage.topics, &stage.found);
        stage.spawn(reader.clone().walk_archives(topics.clone(), found.clone()));
        stage.spawn(reader.clone().read_changes(topics.clone(), found.clone()));
        Ok(stage)
    }

    /// Describes the parts and their addresses.
    pub(super) fn describe(&self) -> String {
        let place = match self.folder {
            Some(_) => "SQLite in a folder that is removed at the end",
            None => "the database you named",
        };
        format!(
            "gateway     {}  ({place})\npublisher   {}  ({} feeds, one in each format)\n\
             callbacks   {}  (WebSub, Superfeedr, rssCloud by http-post, xml-rpc and soap)\n",
            self.gateway.public_url(),
            self.publisher_url,
            SAMPLES.len(),
            self.callbacks,
        )
    }

    /// The sample with this topic.
    pub(super) fn sample(&self, topic: &str) -> Option<usize> {
        self.topics.iter().position(|held| held == topic)
    }

    /// Publishes entry `number` and pings the gateway, alternately by rssCloud and by WebSub.
    pub(super) fn publish(&self, sample: usize, number: u32) {
        self.publisher.publish(sample, number);
        let (desk, topic) = (self.desk.clone(), self.topics[sample].clone());
        self.spawn(async move {
            let pinged = match number % 2 {
                0 => desk.post("rsscloud/ping", &[("url", &topic)], None).await,
                _ => {
                    let form = [("hub.mode", "publish"), ("hub.url", &topic)];
                    desk.post("hub", &form, None).await
                }
            };
            if let Err(err) = pinged {
                print_line(format!("the gateway rejected a ping: {err}"));
            }
        });
    }

    /// Fetches, for an rssCloud subscriber, the entries that changed. `known` are the entries that
    /// it has already.
    pub(super) fn look_up(&self, way: Channel, sample: usize, at: Instant, known: Vec<u32>) {
        let (reader, found) = (self.reader.clone(), self.found.clone());
        let topic = self.topics[sample].clone();
        self.spawn(async move {
            let event = DemoEvent::Entries(reader.entries(&topic, &known).await);
            found.send(Received { way, sample, at, event }).unwrap_or_default();
        });
    }

    /// Returns an address that opens the console, once and within ten minutes.
    pub(super) async fn open_console(&mut self) -> Result<Url, Failure> {
        let console =
            ConsoleSignIn::create(self.gateway.store(), self.gateway.public_url()).await?;
        let console = Arc::new(console);
        let path = console.path();
        self.console = Some(Arc::clone(&console));
        let address = open(console.routes(), &self.at_work, &self.stop).await?;
        Ok(address.join(&path)?)
    }

    /// Ends the subscriptions, stops all parts, and removes the folder.
    pub(super) async fn strike(self) {
        if let Err(err) = self.desk.end_all(self.gateway.store(), &self.topics).await {
            print_line(format!("the subscriptions of the demo could not be ended: {err}"));
        }
        if let Some(console) = &self.console
            && let Err(err) = console.revoke().await
        {
            print_line(format!("the token of the console could not be revoked: {err}"));
        }
        self.stop.cancel();
        self.gateway.stop().await;
        self.at_work.close();
        self.at_work.wait().await;
        if let Some(folder) = &self.folder {
            std::fs::remove_dir_all(folder).unwrap_or_default();
        }
    }

    /// Runs a task in the background, until it is done or the demo ends.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.at_work.spawn(async move { stop.run_until_cancelled(work).await });
    }
}

/// Serves `routes` on a free port of this machine, and returns its address.
async fn open(
    routes: BoxedFilter<(Response,)>,
    at_work: &TaskTracker,
    stop: &CancellationToken,
) -> Result<Url, Failure> {
    let settings = ListenerSettings {
        max_connections: 1_024,
        max_connections_per_client: 1_024,
        trusted_proxies: Vec::new(),
        header_timeout: Duration::from_secs(10),
        drain: Duration::from_secs(1),
        tls: None,
    };
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(any_port, settings).await?;
    let address = Url::parse(&format!("http://{}/", listener.local_addr()))?;
    at_work.spawn(listener.serve(routes, stop.clone()));
    Ok(address)
}
