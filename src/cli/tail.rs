//! `feedgate tail`: reads the stream of an account at any gateway, and posts each notification to a local
//! address, as the gateway itself would: webhooks for a program that has no public address.
//!
//! A position counts once its notification was accepted, or given up: until then, the command would
//! receive it again. Interruptions of the stream, and restarts of the gateway, lose nothing: the stream
//! is opened again behind the last position.

mod event_stream;
mod local_callback;
mod streamed_event;
mod webhook_secret;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;
use url::Url;

use super::event_printer::EventPrinter;
use super::remote::{RemoteArgs, RemoteError, RemoteGateway};
use super::serve::Signals;
use super::web_url::web_url;
use super::{Outcome, help, is_output_closed, print_line, print_note};
use feedgate_core::subscription::Format;

use event_stream::{EventParser, ServerEvent};
use local_callback::LocalCallback;
use streamed_event::StreamReader;

/// How long nothing may arrive, not even a heartbeat, of which the gateway sends one every 15 seconds.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);
/// How long to wait before the stream is opened again. Each further wait is twice as long.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
/// The longest such wait.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Receive notifications without a public address: read the stream of an account, and post each
/// notification to a local address, signed as by the gateway. Runs until it is interrupted.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::TAIL.text())]
pub(super) struct TailArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The topic of a subscription. Without it, all feeds of the account, fewer than 200.
    #[arg(value_name = "TOPIC")]
    topic: Option<String>,
    /// Post each notification to this URL. Without it, the documents are printed.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    forward_to: Option<Url>,
    /// Subscribe the account to TOPIC first. The subscription stays when the command ends.
    #[arg(long, requires = "topic")]
    subscribe: bool,
    /// The format of the documents.
    #[arg(long, value_enum, default_value = "json")]
    format: StreamFormat,
    /// Only entries that match this query.
    #[arg(long, value_name = "QUERY")]
    filter: Option<String>,
    /// Begin with this number of the newest entries, 50 at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=50))]
    count: u8,
    /// Begin behind this position, which the command prints when it ends.
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// The file with the secret that signs. Without it, and without FEEDGATE_WEBHOOK_SECRET, the command
    /// makes a secret and prints it.
    #[arg(long, value_name = "FILE", requires = "forward_to")]
    secret_file: Option<PathBuf>,
}

/// The formats that a stream has.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StreamFormat {
    Atom,
    Json,
}

impl From<StreamFormat> for Format {
    fn from(format: StreamFormat) -> Format {
        match format {
            StreamFormat::Atom => Format::Atom,
            StreamFormat::Json => Format::Json,
        }
    }
}

pub(super) async fn run(args: &TailArgs) -> Outcome {
    let gateway = RemoteGateway::open(&args.remote)?;
    let printer = EventPrinter { is_json: args.remote.json };
    let local = match &args.forward_to {
        Some(url) => Some(LocalCallback::new(&args.remote, url, args.secret_file.as_deref())?),
        None => None,
    };
    let mut signals = Signals::new()?;
    let topic = args.topic.clone();
    let mut tail = Tail {
        gateway: &gateway,
        args,
        printer,
        local,
        reader: StreamReader::new(topic, args.format.into(), args.from.as_deref()),
        is_reached: false,
    };
    let ended = tokio::select! {
        () = signals.next() => Ok(()),
        ended = tail.run() => ended,
    };
    tail.print_end();
    match ended {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(err) => gateway.fail(&err),
    }
}

/// One run of the command.
struct Tail<'a> {
    gateway: &'a RemoteGateway,
    args: &'a TailArgs,
    printer: EventPrinter,
    local: Option<LocalCallback>,
    reader: StreamReader,
    /// Whether the stream was open before: an interruption then is no reason to end.
    is_reached: bool,
}

impl Tail<'_> {
    /// Reads until nobody reads the output any more, or the gateway refuses the stream.
    async fn run(&mut self) -> Result<(), RemoteError> {
        if self.args.subscribe {
            self.subscribe().await?;
        }
        let mut wait = SHORTEST_WAIT;
        while !is_output_closed() {
            let why = match self.read_stream(&mut wait).await {
                Ok(why) => why,
                Err(err) if self.is_reached && err.is_passing() => err.to_string(),
                Err(err) => return Err(err),
            };
            if is_output_closed() {
                break;
            }
            print_note(format!("{why}; opening the stream again in {} s", wait.as_secs()));
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Ok(())
    }

    /// Subscribes to the topic, with a callback that is never called.
    async fn subscribe(&self) -> Result<(), RemoteError> {
        let topic = self.args.topic.as_deref().unwrap_or_default();
        let mut callback = self.args.remote.server.clone();
        if let Ok(mut path) = callback.path_segments_mut() {
            path.pop_if_empty().extend(["dev", "null"]);
        }
        let parameters = [
            ("hub.mode", "subscribe"),
            ("hub.topic", topic),
            ("hub.callback", callback.as_str()),
            ("format", "json"),
        ];
        self.gateway.send_to_account(Method::POST, &parameters).await?;
        Ok(())
    }

    /// Opens the stream and reads it to its end. Returns why it ended.
    async fn read_stream(&mut self, wait: &mut Duration) -> Result<String, RemoteError> {
        let count = self.args.count.to_string();
        let format = Format::from(self.args.format).as_str();
        let mut parameters = vec![("hub.mode", "retrieve"), ("format", format), ("count", &count)];
        let options = [("hub.topic", &self.args.topic), ("filter", &self.args.filter)];
        let given = options.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        parameters.extend(given);
        let position = self.reader.position();
        let mut stream = self.gateway.open_stream(&parameters, position.as_deref()).await?;
        self.print_beginning();
        let mut parser = EventParser::default();
        loop {
            let piece = match stream.next_piece(LONGEST_SILENCE).await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok("the gateway has ended the stream".to_owned()),
                Err(err) => return Ok(format!("the stream was interrupted: {err}")),
            };
            *wait = SHORTEST_WAIT;
            let events = match parser.read(&piece) {
                Ok(events) => events,
                Err(err) => return Ok(err.to_string()),
            };
            for event in events {
                self.handle_event(event).await;
            }
            if is_output_closed() {
                return Ok(String::new());
            }
        }
    }

    /// Says once that the stream is open.
    fn print_beginning(&mut self) {
        if !std::mem::replace(&mut self.is_reached, true) {
            let feeds = self.args.topic.as_deref().unwrap_or("all feeds of the account");
            print_note(format!("reading the stream of {feeds}"));
            if let Some(local) = &self.local {
                local.print_beginning();
            }
        }
    }

    async fn handle_event(&mut self, event: ServerEvent) {
        match event.kind.as_str() {
            "notification" => match self.reader.notification(&event) {
                Ok(notification) => match &mut self.local {
                    Some(local) => local.deliver(&notification, self.printer).await,
                    None => print_line(String::from_utf8_lossy(&notification.body).trim_end()),
                },
                Err(why) => self.report("unread", self.args.topic.as_deref(), &why, json!({})),
            },
            "gap" => {
                let gap: Value = serde_json::from_slice(&event.data).unwrap_or_default();
                let last = gap["to"].as_i64().map_or_else(String::new, |to| format!(" to {to}"));
                let reason = gap["reason"].as_str().unwrap_or_default();
                let detail = format!("records {}{last} are not sent: {reason}", gap["from"]);
                self.report("gap", gap["topic"].as_str(), &detail, json!({ "gap": gap }));
            }
            _ => {} // a position
        }
        self.reader.advance(&event);
    }

    /// Prints an event among those of forwarded notifications, or, where documents are printed, beside them.
    fn report(&self, event: &str, topic: Option<&str>, detail: &str, fields: Value) {
        let topic = topic.unwrap_or("-");
        match &self.local {
            Some(_) => self.printer.print_with(event, topic, detail, fields),
            None => print_note(format!("{event}: {topic}: {detail}")),
        }
    }

    /// Says where the command has stopped.
    fn print_end(&self) {
        if let Some(local) = &self.local {
            local.print_end();
        }
        if let Some(position) = self.reader.position() {
            print_note(format!("stopped; --from {position} continues here"));
        }
    }
}
