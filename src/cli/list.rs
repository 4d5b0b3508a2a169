//! `feedgate list`: the subscriptions of an account at any gateway.

use std::process::ExitCode;

use http::Method;
use serde_json::Value;

use super::remote::{RemoteArgs, RemoteGateway};
use super::terminal::printable;
use super::{Outcome, help, is_output_closed, print_line};

/// The subscriptions that one request returns.
const BY_PAGE: usize = 100;
/// The header of the table.
const HEADER: &str = "TOPIC\tCALLBACK\tFORMAT\tSTATE";

/// List the subscriptions of an account.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::LIST.text())]
pub(super) struct ListArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Only subscriptions to this topic.
    #[arg(long, value_name = "URL")]
    topic: Option<String>,
    /// Only subscriptions with this text in the topic, the callback or the title.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
}

/// Prints a table, or with `--json` one object per line. Each page is printed as it arrives.
pub(super) async fn run(args: &ListArgs) -> Outcome {
    let gateway = RemoteGateway::open(&args.remote)?;
    let by_page = BY_PAGE.to_string();
    for page in 1_usize.. {
        let number = page.to_string();
        let mut parameters = vec![("hub.mode", "list"), ("page", &*number), ("by_page", &*by_page)];
        let options = [("hub.topic", args.topic.as_deref()), ("search", args.search.as_deref())];
        parameters.extend(options.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let reply = match gateway.send_to_account(Method::GET, &parameters).await {
            Ok(reply) => reply,
            Err(err) => return gateway.fail(&err),
        };
        let listed: Vec<Value> = serde_json::from_slice(&reply.body)
            .map_err(|err| format!("the response is not a list of subscriptions: {err}"))?;
        if page == 1 && !args.remote.json {
            print_line(if listed.is_empty() { "no subscriptions" } else { HEADER });
        }
        for subscription in &listed {
            let subscription = &subscription["subscription"];
            print_line(match args.remote.json {
                true => subscription.to_string(),
                false => row(subscription),
            });
        }
        if listed.len() < BY_PAGE || is_output_closed() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(subscription: &Value) -> String {
    let fields = [
        &subscription["feed"]["url"],
        &subscription["endpoint"],
        &subscription["format"],
        &subscription["delivery"]["state"],
    ];
    let plain = |field: &Value| printable(field.as_str().unwrap_or("-"));
    fields.map(plain).join("\t")
}
