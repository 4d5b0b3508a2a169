//! `feedgate replay`: sends the newest entries of a subscription again, at any gateway.

use std::process::ExitCode;

use http::Method;
use serde_json::json;
use url::Url;

use super::remote::{RemoteArgs, RemoteGateway};
use super::web_url::web_url;
use super::{Outcome, help};

/// Send the newest entries of a topic to a callback again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::REPLAY.text())]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The topic of the subscription.
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// The callback of the subscription.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    callback: Url,
    /// The number of entries, 50 at most.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=50))]
    count: u8,
}

pub(super) async fn run(args: &ReplayArgs) -> Outcome {
    let gateway = RemoteGateway::open(&args.remote)?;
    let count = args.count.to_string();
    let parameters = [
        ("hub.mode", "replay"),
        ("hub.topic", args.topic.as_str()),
        ("hub.callback", args.callback.as_str()),
        ("count", &count),
    ];
    let reply = match gateway.send_to_account(Method::POST, &parameters).await {
        Ok(reply) => reply,
        Err(err) => return gateway.fail(&err),
    };
    let (topic, callback) = (&args.topic, args.callback.as_str());
    let sentence = format!("the newest entries of {topic} are being sent to {callback}");
    let fields = json!({
        "result": "replaying", "topic": topic, "callback": callback, "count": args.count,
    });
    gateway.print_done(&reply, &sentence, fields);
    Ok(ExitCode::SUCCESS)
}
