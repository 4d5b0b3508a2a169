//! `feedgate serve`: the gateway, until it is told to stop.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::app::Running;
use crate::config::{Config, FEEDGATE_LISTEN, LogFormat, reference};

use super::{Outcome, SettingsArgs, print_line};

/// A feed that is there for trying things out.
const SAMPLE: &str = "https://www.rssboard.org/files/sample-rss-2.xml";

/// Run the gateway. Nothing needs to be configured.
#[derive(Debug, clap::Args)]
#[command(after_long_help = reference::help())]
pub(super) struct ServeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[arg(long, value_name = "ADDRESS:PORT", help = FEEDGATE_LISTEN.option_help())]
    listen: Option<String>,
}

pub(super) async fn run(args: ServeArgs) -> Outcome {
    let listen = [(FEEDGATE_LISTEN.name, args.listen.as_deref())];
    let (config, _) = args.settings.load(&listen)?;
    log(&config);
    let mut signals = Signals::new()?;
    let mut running = Running::start(config).await?;
    print_line(greeting(&running));

    tokio::select! {
        () = signals.next() => {}
        () = running.broken() => {
            running.stop().await;
            return Ok(ExitCode::FAILURE);
        }
    }
    print_line("stopping: finishing what is in hand; once more to end at once");
    tokio::select! {
        () = running.stop() => Ok(ExitCode::SUCCESS),
        () = signals.next() => Ok(ExitCode::FAILURE),
    }
}

/// Where it is, and at the first start the token and what to do with it.
fn greeting(running: &Running) -> String {
    let url = running.public_url().as_str().trim_end_matches('/');
    let place = format!("feedgate {} listens on {url}", env!("CARGO_PKG_VERSION"));
    let Some(token) = running.admin_token() else { return place };
    format!(
        "{place}

This is the token of the account \"admin\". It is shown this once; \"feedgate token\" makes more.

  {token}

Subscribe to a feed (its entries go nowhere yet: give a callback of yours instead):

  curl -u admin:{token} {url}/ -d hub.mode=subscribe \\
    -d hub.topic={SAMPLE} -d hub.callback={url}/dev/null

Read its entries, in one schema whatever its format, and see what you are subscribed to:

  curl -u admin:{token} '{url}/?hub.mode=retrieve&format=json&hub.topic={SAMPLE}'
  curl -u admin:{token} '{url}/?hub.mode=list'

Say that it has changed:

  curl {url}/ping -d url={SAMPLE}
"
    )
}

/// What asks a process to end.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Listens from now on.
    pub(super) fn new() -> io::Result<Signals> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Signals { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next of them.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Begins to log as the settings say.
fn log(config: &Config) {
    let filter = EnvFilter::new(&config.log);
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let lines = lines.with_ansi(io::stderr().is_terminal());
    let begun = match config.log_format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    // A second command in the same process, as in tests, keeps the first one's log.
    begun.unwrap_or_default();
}
