//! `feedgate post`: the authoring tool of rssCloud as a command (seed 000, "The authoring tool").
//!
//! "There are two possible ways to notify the cloud of an update": the command writes a file and
//! pings the cloud, or sends the feed to the cloud, which saves it and notifies subscribers. The id
//! of the new item goes to standard output, all messages go to standard error.

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

use super::web_url::web_url;
use super::{Outcome, SettingsArgs, help, print_line};

/// The message if no option says where the feed is.
const NO_DESTINATION: &str = "\
no destination given: use --feed FILE to write a file and to ping the cloud that it names, or --cloud URL --user LOGIN \
to add to a feed that a gateway stores";

/// Add a post to a feed, and notify its subscribers.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::POST.text())]
pub(super) struct PostArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    /// The text of the post; "-" reads it from standard input.
    text: String,
    /// The title of the post, if it is longer than one line.
    #[arg(long)]
    title: Option<String>,
    /// A category of the post. Can be repeated.
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
    /// The URL of a picture, an audio file or a video.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    enclosure: Option<Url>,
    /// The URL of the page that the post is about.
    #[arg(long, value_name = "URL")]
    link: Option<Url>,
    /// The guid or link of the item that the post replies to.
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Keep this many items; the oldest are removed from the feed.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Write to this file, then ping the cloud that the feed names.
    #[arg(long, value_name = "FILE", conflicts_with = "user")]
    feed: Option<PathBuf>,
    /// The public URL of that file.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    url: Option<Url>,
    /// The gateway that the feed names as its cloud, or that stores the feed for --user.
    #[arg(long, value_name = "URL", value_parser = web_url)]
    cloud: Option<Url>,
    /// Store the feed at the gateway, in this account.
    #[arg(long, value_name = "LOGIN", requires = "cloud", value_parser = login)]
    user: Option<PathSegment>,
    /// The file name of the feed in the account.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME, value_parser = file)]
    name: PathSegment,
    /// The title of a new feed.
    #[arg(long, value_name = "TITLE")]
    feed_title: Option<String>,
}

pub(super) async fn run(args: PostArgs) -> Outcome {
    if args.feed.is_none() && args.user.is_none() {
        note(NO_DESTINATION);
        return Ok(ExitCode::from(2));
    }
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
        note(&format!(
            "the text has {} characters; many readers show only {SHORT_CHARS}",
            post.chars()
        ));
    }
    let keep = args.keep.map(|keep| keep as usize);
    let change = FeedEdit { post: &post, parent: args.parent.as_deref(), keep };
    match (&args.feed, &args.user, &args.cloud) {
        (Some(path), ..) => local::post(path, &change, &args, &fetch).await?,
        (None, Some(user), Some(cloud)) => {
            let password = password(&config, args.text == "-")?;
            let cloud = cloud::Cloud { fetch: &fetch, base: cloud, login: user, password };
            let url = cloud.post(&args.name, &change, args.feed_title.as_deref()).await?;
            note(&format!("the feed was saved at {url}"));
        }
        (None, ..) => return Err(NO_DESTINATION.into()),
    }
    print_line(&post.id);
    Ok(ExitCode::SUCCESS)
}

/// Creates a client that may reach any address, because the user named the URLs.
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

/// Reads the password, which is never an argument, because every user of the machine can list the
/// arguments of all processes.
fn password(config: &Config, is_input_used: bool) -> Result<Password, Box<dyn std::error::Error>> {
    if let Some(password) = &config.password {
        return Ok(password.clone());
    }
    if is_input_used || io::stdin().is_terminal() {
        let why = "no password was given: set FEEDGATE_PASSWORD or FEEDGATE_PASSWORD_FILE, or pipe \
                   it to standard input";
        return Err(why.into());
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let password = Password::sent(line.trim_end_matches(['\r', '\n']));
    password.ok_or_else(|| "the password is too long".into())
}

/// Prints a message on standard error.
fn note(text: &str) {
    writeln!(io::stderr().lock(), "feedgate: {text}").unwrap_or_default();
}

fn login(text: &str) -> Result<PathSegment, String> {
    PathSegment::login(text).map_err(|bad| bad.to_string())
}

fn file(text: &str) -> Result<PathSegment, String> {
    PathSegment::file(text).ok_or_else(|| "a file name has letters, digits, \".\", \"-\" and \"_\" only, and ends with .xml, such as rss.xml".to_owned())
}
