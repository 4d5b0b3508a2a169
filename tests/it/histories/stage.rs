//! What histories are played on: a gateway in this process on a database of its own, nodes
//! that write to it, and two readers of its archives.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use feedgate::app::Running;
use feedgate::cli::consume::pages::Web;
use feedgate::cli::consume::walk::{ArchivePage, PageSource, Stopped};
use feedgate::config::Config;
use feedgate::http::routes::archive::render::Order;
use feedgate::jobs::runner;
use feedgate_core::host_groups::HostGroups;
use feedgate_core::page::{ArchiveRetention, PageLimits};
use feedgate_core::resource::ResourceId;
use feedgate_store::Store;
use tempfile::TempDir;
use url::Url;

use super::ledger::Ledger;
use super::publishing::Feed;
use super::reader::{Around, read};
use super::script::{Batch, Event, History, View};
use crate::store::{at, topic};
use crate::support::ports::free_port;
use crate::support::postgres::Database;

/// How logs are cut into documents, by the settings of the nodes that write to them.
#[rustfmt::skip]
pub(super) const CUTS: [PageLimits; 4] = [
    PageLimits { records: 1,  bytes: 1 << 20 },
    PageLimits { records: 2,  bytes: 1 << 20 },
    PageLimits { records: 5,  bytes: 1 << 20 },
    PageLimits { records: 50, bytes: 700 },
];

/// Runs that a reader needs at most once everything is quiet: one that comes upon a document
/// that was dropped, one that finds that its place was, and one from the beginning.
const LAST_RUNS: usize = 3;

/// All that a history needs.
pub(super) struct Stage {
    config: Config,
    gateway: Option<Running>,
    nodes: Vec<Arc<Store>>,
    newest_first: Web,
    oldest_first: Web,
    url: Url,
    folder: TempDir,
    played: usize,
    _database: Database,
}

impl Stage {
    /// Starts the gateway.
    pub(super) async fn set(database: Database) -> Stage {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let config = Config::read(|name| match name {
            "FEEDGATE_DATABASE" => Some(database.url.clone()),
            "FEEDGATE_CELLS" => Some(database.cells.to_string()),
            "FEEDGATE_LISTEN" => Some(listen.clone()),
            _ => None,
        });
        let (config, url) = (config.unwrap(), Url::parse(&format!("http://{listen}/")).unwrap());
        let mut nodes = Vec::new();
        for cut in CUTS {
            nodes.push(database.open_cut(HostGroups::new(Duration::ZERO), cut).await);
        }
        let web = async |order| {
            let mut web = Web::new(&config, &url, order).unwrap();
            web.open().await.unwrap();
            web
        };
        Stage {
            newest_first: web(Order::NewestFirst).await,
            oldest_first: web(Order::OldestFirst).await,
            gateway: Some(Running::start(config.clone()).await.unwrap()),
            config,
            nodes,
            url,
            folder: folder(),
            played: 0,
            _database: database,
        }
    }

    /// Plays one history in an archive of its own. An error says what is wrong with what was
    /// handed over.
    pub(super) async fn play(&mut self, history: &History) -> Result<(), String> {
        self.played += 1;
        let keeps = |event: &Event| matches!(event, Event::Keep(_));
        if history.runs.iter().flat_map(|run| &run.events).any(keeps) {
            // Documents are dropped from all archives there are.
            let now = runner::now();
            self.nodes[0].forget_unwatched(now, now).await.unwrap();
        }
        let topic = topic(&format!("history-{}", self.played));
        // The gateway deletes what was created long ago and never had a subscriber.
        let id = self.nodes[0].ensure(&topic, runner::now()).await.unwrap().id;
        self.nodes[0].record(id, &Feed::is_read(at(0))).await.unwrap().unwrap();
        let recent = match history.view {
            View::Recent => format!("feeds/{id}/recent"),
            View::Topic => format!("feeds?topic={topic}"),
            View::OldestFirst => format!("feeds/{id}/recent?order=asc"),
        };
        let recent = self.url.join(&recent).unwrap();
        let state = self.folder.path().join("place");
        let (feed, ledger) = (RefCell::default(), RefCell::default());
        let mut scene = Scene { stage: self, id, view: history.view, events: Vec::new() };
        for batch in &history.before {
            scene.publish(&feed, batch).await;
        }
        for run in &history.runs {
            scene.events = run.events.iter().rev().cloned().collect();
            let reading = read((&mut scene, &recent), (&feed, &ledger), (&state, run.dies_after));
            settle(reading.await, &state)?;
        }
        scene.events.clear();
        let mut is_at_end = false;
        for _ in 0..LAST_RUNS {
            let reading = read((&mut scene, &recent), (&feed, &ledger), (&state, None)).await;
            is_at_end |= reading.is_ok();
            settle(reading, &state)?;
        }
        fs::remove_file(&state).unwrap_or_default(); // there is none if nothing was said
        match is_at_end {
            true => ledger.into_inner().closed(&feed.into_inner().printed),
            false => Err("the reader did not come to the end".to_owned()),
        }
    }

    /// Stops the gateway.
    pub(super) async fn end(mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
    }

    async fn restart(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
        self.gateway = Some(Running::start(self.config.clone()).await.unwrap());
    }
}

/// What a reader is told: that its place is lost, and then it begins anew, or that something
/// is out for a while.
fn settle(reading: Result<(), Stopped>, state: &Path) -> Result<(), String> {
    match reading {
        Ok(()) => Ok(()),
        Err(Stopped::PlaceLost { .. }) => {
            fs::remove_file(state).map_err(|err| format!("the place was lost, and: {err}"))
        }
        Err(Stopped::Dropped(_)) => Ok(()),
        Err(err) if err.is_passing() => Ok(()),
        Err(err) => Err(format!("reading stopped: {err}")),
    }
}

/// The archive of one history.
struct Scene<'a> {
    stage: &'a mut Stage,
    id: ResourceId,
    view: View,
    /// What happens before the next requests, the next last.
    events: Vec<Event>,
}

impl Scene<'_> {
    async fn publish(&self, feed: &RefCell<Feed>, batch: &Batch) {
        let poll = feed.borrow_mut().next(batch);
        let appended = self.stage.nodes[batch.cut].record(self.id, &poll).await.unwrap().unwrap();
        assert_eq!(appended.head.0 as usize, feed.borrow().printed.len(), "{batch:?}");
    }

    async fn keep(&self, pages: u8, ledger: &RefCell<Ledger>) {
        let store = &self.stage.nodes[0];
        let retention = ArchiveRetention { days: None, pages: Some(pages.into()) };
        store.drop_pages(&retention, runner::now()).await.unwrap();
        let oldest = store.oldest_page(self.id).await.unwrap();
        let held = store.page(self.id, Some(oldest)).await.unwrap().unwrap();
        ledger.borrow_mut().dropped(held.page.first.0 as usize - 1);
    }
}

impl Around for Scene<'_> {
    async fn pass(&mut self, feed: &RefCell<Feed>, ledger: &RefCell<Ledger>) {
        match self.events.pop().unwrap_or(Event::Quiet) {
            Event::Quiet => {}
            Event::Publish(batch) => self.publish(feed, &batch).await,
            Event::Keep(pages) => self.keep(pages, ledger).await,
            Event::Restart => self.stage.restart().await,
        }
    }
}

impl PageSource for Scene<'_> {
    async fn get(&mut self, url: &Url) -> Result<ArchivePage, Stopped> {
        match self.view {
            View::OldestFirst => self.stage.oldest_first.get(url).await,
            View::Recent | View::Topic => self.stage.newest_first.get(url).await,
        }
    }
}

/// Where the reader keeps its place: in memory if that can be, because a place is written to
/// the disk for each entry.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}
