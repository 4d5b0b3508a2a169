//! `feedgate post`: the authoring tool of rssCloud, on a command line (seed 000, "The
//! authoring tool").
//!
//! "There are two possible ways to notify the cloud of an update": a file is saved first
//! and the cloud is pinged after, or the cloud saves the feed and does both. The id of the
//! new item goes to standard output, everything else to standard error.

mod cloud;
mod local;

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ipnet::{Ipv4Net, Ipv6Net};
use url::Url;

use crate::app::StartError;
use crate::authoring::{inspect_enclosure, new_id};
use crate::config::Config;
use crate::jobs::runner;
use crate::net::HttpClient;
use feedgate_core::password::Password;
use feedgate_core::stored_file::{DEFAULT_NAME, PathSegment};
use feedgate_protocol::rss::{FeedEdit, Post, SHORT_CHARS};

use super::{Outcome, SettingsArgs, print_line};

/// Add a post to a feed, and tell those who watch it.
#[derive(Debug, clap::Args)]
pub(super) struct PostArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// What to say; "-" reads it from standard input.
    text: String,
    /// A title, for what is longer than a line.
    #[arg(long)]
    title: Option<String>,
    /// A category; several are given one by one.
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
    /// The address of a picture, a recording or a film.
    #[arg(long, value_name = "URL")]
    enclosure: Option<Url>,
    /// The address of what it is about.
    #[arg(long, value_name = "URL")]
    link: Option<Url>,
    /// The guid or the link of the item that it stands under.
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Keep this many items; the oldest leave the feed.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Write to this file, then ping the cloud that the feed names.
    #[arg(long, value_name = "FILE", required_unless_present = "user", conflicts_with = "user")]
    feed: Option<PathBuf>,
    /// Where that file is served.
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// The gateway that the feed names as its cloud, or that stores it for --user.
    #[arg(long, value_name = "URL", required_unless_present = "feed")]
    cloud: Option<Url>,
    /// Let the gateway store the feed of this account.
    #[arg(long, value_name = "LOGIN", requires = "cloud", value_parser = login)]
    user: Option<PathSegment>,
    /// Which of its feeds.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME, value_parser = file)]
    name: PathSegment,
    /// The title of a new feed.
    #[arg(long, value_name = "TITLE")]
    feed_title: Option<String>,
}

pub(super) async fn run(args: PostArgs) -> Outcome {
    let (config, _) = args.settings.load(&[])?;
    let fetch = client(&config, args.cloud.as_ref())?;
    let text = text_or_stdin(&args.text)?;
    let enclosure = match &args.enclosure {
        Some(url) => Some(inspect_enclosure(&fetch, url).await),
        None => None,
    };
    let post = Post {
        id: new_id().map_err(StartError::Random)?,
        title: args.title.clone(),
        text,
        link: args.link.as_ref().map(Url::to_string),
        categories: args.category.clone(),
        enclosure,
        at: runner::now(),
    };
    if post.chars() > SHORT_CHARS {
        note(&format!("this has {} characters; readers expect {SHORT_CHARS}", post.chars()));
    }
    let keep = args.keep.map(|keep| keep as usize);
    let change = FeedEdit { post: &post, parent: args.parent.as_deref(), keep };
    match (&args.feed, &args.user, &args.cloud) {
        (Some(path), ..) => local::post(path, &change, &args, &fetch).await?,
        (None, Some(user), Some(cloud)) => {
            let password = password(&config, args.text == "-")?;
            let cloud = cloud::Cloud { fetch: &fetch, base: cloud, login: user, password };
            let url = cloud.post(&args.name, &change, args.feed_title.as_deref()).await?;
            note(&format!("saved at {url}"));
        }
        (None, ..) => return Err("say where to: --feed FILE, or --cloud URL --user LOGIN".into()),
    }
    print_line(&post.id);
    Ok(ExitCode::SUCCESS)
}

/// A client that reaches wherever its user, who named the places, wants to go.
fn client(config: &Config, cloud: Option<&Url>) -> Result<HttpClient, url::ParseError> {
    let own = format!("http://{}/", config.listen);
    let public_url = config.public_url.clone().or(cloud.cloned());
    let mut settings = config.net(&public_url.map_or_else(|| Url::parse(&own), Ok)?);
    let everywhere = vec![Ipv4Net::default().into(), Ipv6Net::default().into()];
    settings.allow_callbacks = everywhere.clone();
    settings.allow_topics = everywhere;
    Ok(HttpClient::new(settings))
}

fn text_or_stdin(text: &str) -> io::Result<String> {
    let mut read = String::new();
    if text != "-" {
        return Ok(text.to_owned());
    }
    io::stdin().lock().read_to_string(&mut read)?;
    Ok(read.trim_end().to_owned())
}

/// The password: never an argument, since everybody on the machine can see those.
fn password(config: &Config, is_input_used: bool) -> Result<Password, Box<dyn std::error::Error>> {
    if let Some(password) = &config.password {
        return Ok(password.clone());
    }
    if is_input_used || io::stdin().is_terminal() {
        let why = "there is no password: set FEEDGATE_PASSWORD or FEEDGATE_PASSWORD_FILE, or pipe \
                   it to standard input";
        return Err(why.into());
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let password = Password::sent(line.trim_end_matches(['\r', '\n']));
    password.ok_or_else(|| "this is longer than any password".into())
}

/// Says something beside the answer.
fn note(text: &str) {
    writeln!(io::stderr().lock(), "feedgate: {text}").unwrap_or_default();
}

fn login(text: &str) -> Result<PathSegment, String> {
    PathSegment::login(text).map_err(|bad| bad.to_string())
}

fn file(text: &str) -> Result<PathSegment, String> {
    PathSegment::file(text).ok_or_else(|| "a name such as rss.xml: letters, digits, .-_".to_owned())
}
