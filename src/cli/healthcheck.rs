//! `feedgate healthcheck`: checks whether a running gateway is ready, for container images without
//! curl.

use std::process::ExitCode;
use std::time::Duration;

use http::{HeaderMap, Method};
use ipnet::{Ipv4Net, Ipv6Net};
use url::Url;

use crate::net::{CallbackRequest, HttpClient};

use super::{Outcome, SettingsArgs, help, print_line};

/// How long to wait for the response: longer than the gateway takes to detect that it is not ready.
const PATIENCE: Duration = Duration::from_secs(4);

/// Check whether the gateway that runs with these settings is ready. Exits with 1 if it is not.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::HEALTHCHECK.text())]
pub(super) struct HealthcheckArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The URL of the gateway, instead of the address that the settings tell it to listen on.
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
}

pub(super) async fn run(args: HealthcheckArgs) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    let url = args.url.unwrap_or_else(|| match config.has_tls() {
        // The certificate is for the public name.
        true => config.public_url_at(config.listen),
        false => crate::config::url_at("http", config.listen),
    });
    let mut settings = config.net(&url);
    // The operator named the URL, so that any address is allowed.
    settings.allow_callbacks = vec![Ipv4Net::default().into(), Ipv6Net::default().into()];
    settings.callback_timeout = PATIENCE;
    let mut url = url;
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("readyz");
    }
    let call = CallbackRequest {
        method: Method::GET,
        url,
        headers: HeaderMap::new(),
        body: Default::default(),
    };
    let reply = HttpClient::new(settings).call(call).await?;
    print_line(format!("{} {}", reply.status, String::from_utf8_lossy(&reply.body).trim()));
    Ok(if reply.status.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
