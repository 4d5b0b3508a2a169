//! `feedgate healthcheck`: checks whether a running gateway is ready, for container images without
//! curl.

mod tls_readiness;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use ipnet::{Ipv4Net, Ipv6Net};
use url::Url;

use crate::config::Config;
use crate::net::{CallbackRequest, HttpClient};

use super::web_url::web_url;
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
    #[arg(long, value_name = "URL", value_parser = web_url)]
    url: Option<Url>,
}

pub(super) async fn run(args: HealthcheckArgs) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    let (status, text) = match args.url {
        None if config.has_tls() => tls_readiness::request(config.listen, PATIENCE).await?,
        url => {
            let url = url.unwrap_or_else(|| crate::config::url_at("http", config.listen));
            request(&config, url).await?
        }
    };
    print_line(format!("{status} {text}"));
    Ok(if status.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn request(config: &Config, mut url: Url) -> Result<(StatusCode, String), Box<dyn Error>> {
    let mut settings = config.net(&url);
    // The operator named the URL, so that any address is allowed.
    settings.allow_callbacks = vec![Ipv4Net::default().into(), Ipv6Net::default().into()];
    settings.callback_timeout = PATIENCE;
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
    Ok((reply.status, String::from_utf8_lossy(&reply.body).trim().to_owned()))
}
