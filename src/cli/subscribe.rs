//! `feedgate subscribe` and `feedgate unsubscribe`: subscriptions from scripts, at any gateway.

use std::error::Error;
use std::io::{self, BufRead};
use std::process::ExitCode;

use clap::ValueEnum;
use http::{Method, StatusCode};
use serde_json::json;
use url::Url;

use super::remote::{RemoteArgs, RemoteGateway};
use super::web_url::web_url;
use super::{Outcome, help};

/// Subscribe a callback to a topic.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::SUBSCRIBE.text())]
pub(super) struct SubscribeArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The URL of a feed, a page or a document. With an account, also the URL of a track.
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// The URL to notify.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    callback: Url,
    /// The key of the signatures; - reads it from standard input.
    #[arg(long, value_name = "SECRET")]
    secret: Option<String>,
    /// The format of notifications. Needs an account; /hub sends topics unchanged.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Verify the callback before the command ends (sync), or after it (async).
    #[arg(long, value_enum)]
    verify: Option<Verify>,
    /// Request a lease of so many seconds. The subscriptions of accounts do not expire this way.
    #[arg(long, value_name = "SECONDS")]
    lease: Option<u32>,
    /// Load what the source published earlier.
    #[arg(long)]
    backfill: bool,
    /// If the topic is a page, subscribe to the feed that it advertises.
    #[arg(long)]
    follow: bool,
}

/// End a subscription.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::SUBSCRIBE.text())]
pub(super) struct UnsubscribeArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The topic of the subscription.
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// The callback of the subscription. Not needed if the account has one subscription to the topic.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    callback: Option<Url>,
    /// Verify the callback before the command ends (sync), or after it (async).
    #[arg(long, value_enum)]
    verify: Option<Verify>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Atom,
    Json,
    Raw,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Verify {
    Sync,
    Async,
}

impl Verify {
    fn as_str(self) -> &'static str {
        match self {
            Verify::Sync => "sync",
            Verify::Async => "async",
        }
    }
}

pub(super) async fn subscribe(args: &SubscribeArgs) -> Outcome {
    let gateway = RemoteGateway::open(&args.remote)?;
    if args.format.is_some() && !gateway.has_account() {
        return Err(
            "--format needs an account: set FEEDGATE_TOKEN=LOGIN:TOKEN, or use --user".into()
        );
    }
    let secret = args.secret.as_deref().map(secret_or_stdin).transpose()?;
    let lease = args.lease.map(|lease| lease.to_string());
    let format = args.format.map(|format| match format {
        Format::Atom => "atom",
        Format::Json => "json",
        Format::Raw => "raw",
    });
    let mut parameters = vec![
        ("hub.mode", "subscribe"),
        ("hub.topic", args.topic.as_str()),
        ("hub.callback", args.callback.as_str()),
    ];
    let options = [
        ("hub.secret", secret.as_deref()),
        ("format", format),
        ("hub.verify", args.verify.map(Verify::as_str)),
        ("hub.lease_seconds", lease.as_deref()),
        ("backfill", args.backfill.then_some("true")),
        ("follow", args.follow.then_some("true")),
    ];
    parameters.extend(options.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let reply = match gateway.send(Method::POST, &parameters).await {
        Ok(reply) => reply,
        Err(err) => return gateway.fail(&err),
    };
    let (topic, callback) = (&args.topic, &args.callback);
    let is_accepted = reply.status == StatusCode::ACCEPTED;
    let sentence = match is_accepted {
        true => format!("accepted: {callback} is being verified for {topic}"),
        false => format!("subscribed {callback} to {topic}"),
    };
    let result = if is_accepted { "accepted" } else { "subscribed" };
    let fields = json!({ "result": result, "topic": topic, "callback": callback.as_str() });
    gateway.print_done(&reply, &sentence, fields);
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn unsubscribe(args: &UnsubscribeArgs) -> Outcome {
    let gateway = RemoteGateway::open(&args.remote)?;
    let mut parameters = vec![("hub.mode", "unsubscribe"), ("hub.topic", args.topic.as_str())];
    let callback = args.callback.as_ref().map(Url::as_str);
    if callback.is_none() && !gateway.has_account() {
        return Err("--callback is required without an account".into());
    }
    let options = [("hub.callback", callback), ("hub.verify", args.verify.map(Verify::as_str))];
    parameters.extend(options.into_iter().filter_map(|(name, value)| Some((name, value?))));
    let reply = match gateway.send(Method::POST, &parameters).await {
        Ok(reply) => reply,
        Err(err) => return gateway.fail(&err),
    };
    let topic = &args.topic;
    let is_accepted = reply.status == StatusCode::ACCEPTED;
    let sentence = match is_accepted {
        true => format!("accepted: the end of the subscription to {topic} is being verified"),
        false => format!("unsubscribed from {topic}"),
    };
    let result = if is_accepted { "accepted" } else { "unsubscribed" };
    let fields = json!({ "result": result, "topic": topic, "callback": callback });
    gateway.print_done(&reply, &sentence, fields);
    Ok(ExitCode::SUCCESS)
}

fn secret_or_stdin(secret: &str) -> Result<String, Box<dyn Error>> {
    if secret != "-" {
        return Ok(secret.to_owned());
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
