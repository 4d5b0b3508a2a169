//! `feedgate serve`: runs the gateway until a signal stops it.

mod admin_token;
mod log_output;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use feedgate_store as store;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

use crate::app::Running;
use crate::config::{Config, FEEDGATE_LISTEN, LogFormat, SECRETS_IN_CLEAR, reference};

use super::{Outcome, SettingsArgs, help};
use admin_token::StoredToken;
use log_output::LogOutput;

/// A public sample feed.
const SAMPLE: &str = "https://www.rssboard.org/files/sample-rss-2.xml";

/// Run the gateway. Nothing needs to be configured.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::SERVE.text_after(&reference::help()))]
pub(super) struct ServeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[arg(long, value_name = "ADDRESS:PORT", help = FEEDGATE_LISTEN.option_help())]
    listen: Option<String>,
    /// Allow feeds and callbacks on this machine, for trying things out. Without it, they are allowed only
    /// as far as FEEDGATE_EGRESS_ALLOW_… lists their addresses.
    #[arg(long)]
    allow_local: bool,
}

/// What `--allow-local` means for others.
const LOCAL_IS_ALLOWED: &str = "--allow-local: feeds and callbacks on this machine are allowed, so accounts and \
     programs on this machine can make the gateway send requests to services here; do not use it where \
     strangers have accounts";

pub(super) async fn run(args: ServeArgs) -> Outcome {
    let listen = [(FEEDGATE_LISTEN.name, args.listen.as_deref())];
    let (mut config, sources) = args.settings.load(&listen)?;
    let output = start_logging(&config)?;
    info!("{}", super::database_in_use(&config, &sources));
    for setting in &sources.overridden {
        warn!("{setting}");
    }
    if args.allow_local {
        config.allow_this_machine();
        warn!("{LOCAL_IS_ALLOWED}");
    }
    let ended = serve(config, &output).await;
    // Printed like the log, because nobody may be reading that.
    let ended = ended.or_else(|err| match super::is_broken_pipe(&*err) {
        true => Err(err),
        false => {
            output.print_error(&super::error_text(&*err));
            Ok(ExitCode::FAILURE)
        }
    });
    LogOutput::flush(&output);
    ended
}

async fn serve(config: Config, output: &LogOutput) -> Outcome {
    if config.secrets_key.is_none() {
        warn!("{SECRETS_IN_CLEAR}");
    }
    let mut signals = Signals::new()?;
    let database = config.store().url;
    let mut running = Running::start(config).await?;
    output.print(&greeting(&running, &database));

    tokio::select! {
        () = signals.next() => {}
        () = running.broken() => {
            running.stop().await;
            return Ok(ExitCode::FAILURE);
        }
    }
    output.print(
        "stopping: waiting for running jobs to finish; send the signal again to stop immediately",
    );
    tokio::select! {
        () = running.stop() => Ok(ExitCode::SUCCESS),
        () = signals.next() => Ok(ExitCode::FAILURE),
    }
}

/// Returns the URL of the gateway and, at the first start, where the token is and examples of its use.
fn greeting(running: &Running, database: &str) -> String {
    let url = running.public_url().as_str().trim_end_matches('/');
    let place = format!("feedgate {} is listening on {url}", env!("CARGO_PKG_VERSION"));
    let Some(token) = running.admin_token() else { return place };
    let stored = StoredToken::write(token, store::sqlite_path(database));
    let is_terminal = io::stdout().is_terminal();
    let (notice, user) = (stored.notice(is_terminal), stored.credentials(is_terminal));
    format!(
        "{place}

{notice}

\"feedgate token create\" creates more tokens. Sign in to the console with the login and the token:

  {url}/console

Or use the API. Subscribe to a feed (replace the callback with your own, because this one discards all entries):

  curl -u {user} {url}/ -d hub.mode=subscribe \\
    -d hub.topic={SAMPLE} -d hub.callback={url}/dev/null

Read its entries, in the same schema for every feed format, and list your subscriptions:

  curl -u {user} '{url}/?hub.mode=retrieve&format=json&hub.topic={SAMPLE}'
  curl -u {user} '{url}/?hub.mode=list'

Notify the gateway that the feed has changed:

  curl {url}/ping -d url={SAMPLE}
"
    )
}

/// The signals that stop a process.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts to listen for the signals.
    pub(super) fn new() -> io::Result<Signals> {
        // Ends the process if nobody handles it. Handled, it makes a write beyond the limit of a file's
        // size fail, like one to a full disk.
        drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
        let terminate = signal(SignalKind::terminate())?;
        Ok(Signals { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Starts logging to standard error according to the settings.
pub(super) fn start_logging(config: &Config) -> io::Result<LogOutput> {
    let log = LogOutput::start()?;
    let filter = EnvFilter::new(&config.log);
    let output = log.clone();
    let lines = tracing_subscriber::fmt().with_env_filter(filter);
    // Reports of its own would be printed in a way that panics if standard error is closed.
    let lines = lines.log_internal_errors(false).with_writer(move || output.clone());
    let lines = lines.with_ansi(io::stderr().is_terminal());
    let begun = match config.log_format {
        LogFormat::Text => lines.with_target(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    // A second command in the same process, as in tests, keeps the log of the first one.
    begun.unwrap_or_default();
    Ok(log)
}
