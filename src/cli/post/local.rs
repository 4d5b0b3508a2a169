//! Adds a post to a file, and then pings the cloud.
//!
//! "It's essential that you save the file first, since the cloud may verify the update before
//! notifying subscribers" (seed 000). The new file is completely on the disk before it replaces the
//! old one, so that a reader sees the one or the other, also after a crash. Two concurrent posts
//! run one after the other.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use url::{Url, form_urlencoded};

use super::{PostArgs, note};
use crate::jobs::runner::nonce;
use crate::net::{CallbackRequest, HttpClient};
use feedgate_protocol::rss::{self, ChannelInfo, EditedFeed, FeedEdit};
use feedgate_protocol::{soap, xmlrpc};

/// The file was written, but the ping failed.
#[derive(Debug, thiserror::Error)]
#[error("the file was written, but the ping to {url} failed: {why}")]
struct PingFailed {
    url: String,
    why: String,
}

/// Writes the file, and pings the cloud.
pub(super) async fn post(
    path: &Path,
    change: &FeedEdit<'_>,
    args: &PostArgs,
    fetch: &HttpClient,
) -> Result<(), Box<dyn Error>> {
    let feed = write(path, |held| {
        if held.is_none() && args.url.is_none() {
            return Err("a new feed needs the URL at which it is served: use --url URL".into());
        }
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        let title = args.feed_title.clone().or(name).unwrap_or_default();
        let about = ChannelInfo {
            url: args.url.as_ref().map(Url::to_string),
            cloud: args.cloud.clone(),
            description: title.clone(),
            title,
        };
        Ok(rss::add(held, change, &about)?)
    })?;
    let edited = rss::told(&feed);
    let url = args.url.as_ref().map(Url::to_string).or_else(|| edited.url.clone());
    let Some(url) = url else {
        note("no ping was sent: the feed does not contain its own URL; use --url URL");
        return Ok(());
    };
    match ping(&edited, args.cloud.as_ref(), &url) {
        Some(call) => {
            let at = call.url.to_string();
            let ping_failed = |why: String| PingFailed { url: at.clone(), why };
            let reply = fetch.call(call).await.map_err(|err| ping_failed(err.to_string()))?;
            check_ping_response(reply.status.is_success(), &reply.body).map_err(ping_failed)?;
        }
        None => note("no ping was sent: the feed names no cloud; use --cloud URL to add one"),
    }
    Ok(())
}

/// Replaces a file by the result of `change`. Returns the new content.
fn write(
    path: &Path,
    change: impl FnOnce(Option<&str>) -> Result<String, Box<dyn Error>>,
) -> Result<String, Box<dyn Error>> {
    // A symbolic link is kept: the file that it points to is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let failed = |err: io::Error| format!("cannot write {}: {err}", path.display());
    let held_folder = File::open(&folder).map_err(failed)?;
    held_folder.lock().map_err(failed)?;
    let held = match fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(err) if err.kind() == ErrorKind::NotFound => None,
        Err(err) => return Err(failed(err).into()),
    };
    let text = held.as_deref().filter(|bytes| !bytes.trim_ascii().is_empty()).map(rss::check);
    let text = text.transpose().map_err(|fault| format!("{}: {fault}", path.display()))?;
    // The new file is UTF-8 and declares it, whatever the encoding of the old one was.
    let text = text.map(|checked| rss::as_utf8(&checked.text).into_owned());
    let new = change(text.as_deref())?;
    let mut file = tempfile_beside(&path).map_err(failed)?;
    let done = fill(&mut file.0, &path, &new).and_then(|()| fs::rename(&file.1, &path));
    if let Err(err) = done {
        fs::remove_file(&file.1).unwrap_or_default();
        return Err(failed(err).into());
    }
    held_folder.sync_all().map_err(failed)?;
    Ok(new)
}

fn fill(file: &mut File, path: &Path, text: &str) -> io::Result<()> {
    if let Ok(held) = fs::metadata(path) {
        file.set_permissions(held.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Creates a file in the same folder, with a hidden name, which web servers do not serve. The name
/// is random, so that no existing file or link is written to.
fn tempfile_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let temporary = path.with_file_name(format!(".{name}.{}.new", nonce()));
    let file = File::options().write(true).create_new(true).open(&temporary)?;
    Ok((file, temporary))
}

/// Returns the request that pings the cloud for `url`: the cloud of the options, or else the one
/// that the feed names. `None` if there is neither.
fn ping(feed: &EditedFeed, named: Option<&Url>, url: &str) -> Option<CallbackRequest> {
    if let Some(cloud) = named {
        let public = cloud.as_str().trim_end_matches('/');
        return form(Url::parse(&format!("{public}/rsscloud/ping")).ok()?, url);
    }
    if let Some(register) = &feed.source_cloud {
        return form(ping_beside(Url::parse(register).ok()?), url);
    }
    let value = |name: &str| {
        let held = feed.cloud.iter().find(|(held, _)| held == name);
        held.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    };
    let (protocol, port) = (value("protocol")?, value("port").unwrap_or("80"));
    let scheme = if protocol == "https-post" || port == "443" { "https" } else { "http" };
    let path = value("path").unwrap_or("/RPC2").trim_start_matches('/');
    let at = Url::parse(&format!("{scheme}://{}:{port}/{path}", value("domain")?)).ok()?;
    match protocol {
        "xml-rpc" => call(at, xmlrpc::call("rssCloud.ping", url), "text/xml"),
        "soap" => call(at, soap::call("rssCloud.ping", url), "text/xml"),
        _ => form(ping_beside(at), url),
    }
}

/// The path for pings, derived from the path for registrations: `/rsscloud/pleaseNotify`,
/// `/rsscloud/ping`.
fn ping_beside(register: Url) -> Url {
    let mut url = register;
    let path = url.path().to_owned();
    if let Some((folder, last)) = path.rsplit_once('/')
        && last.eq_ignore_ascii_case("pleaseNotify")
    {
        url.set_path(&format!("{folder}/ping"));
    }
    url
}

fn form(at: Url, url: &str) -> Option<CallbackRequest> {
    let body = form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
    call(at, body, "application/x-www-form-urlencoded")
}

fn call(url: Url, body: String, content_type: &'static str) -> Option<CallbackRequest> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if body.contains("Envelope") {
        headers.insert("soapaction", HeaderValue::from_str(&format!("\"{}\"", url.path())).ok()?);
    }
    Some(CallbackRequest { method: Method::POST, url, headers, body: Bytes::from(body) })
}

/// Checks whether a cloud accepted a ping, which it states in the words of its protocol.
fn check_ping_response(is_success: bool, body: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(body);
    let refused = ["success=\"false\"", "\"success\":false", "<fault>", ":Fault>"];
    if is_success && !refused.iter().any(|words| text.contains(words)) {
        return Ok(());
    }
    Err(text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cloud_that_a_feed_names_is_told_in_its_protocol() {
        let told = |source: &str, protocol: &str, path: &str| {
            let attributes =
                [("domain", "c.test"), ("port", "5337"), ("path", path), ("protocol", protocol)];
            let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let source_cloud = Some(source.to_owned()).filter(|url| !url.is_empty());
            EditedFeed { url: None, source_cloud, cloud: attributes.into() }
        };
        #[rustfmt::skip]
        let cases = [
            (told("https://s.test/pleaseNotify", "http-post", "/x"), "https://s.test/ping",               "url=http"),
            (told("", "http-post", "/rsscloud/pleaseNotify"),        "http://c.test:5337/rsscloud/ping",  "url=http"),
            (told("", "https-post", "pleaseNotify"),                 "https://c.test:5337/ping",          "url=http"),
            (told("", "xml-rpc", "/RPC2"),                           "http://c.test:5337/RPC2",           "<methodName>rssCloud.ping<"),
            (told("", "soap", "/RPC2"),                              "http://c.test:5337/RPC2",           "<rssCloud.ping>"),
        ];
        for (told, want, words) in cases {
            let call = ping(&told, None, "http://a.test/").unwrap();
            assert_eq!(call.url.as_str(), want);
            assert!(String::from_utf8_lossy(&call.body).contains(words), "{call:?}");
        }
        assert!(ping(&EditedFeed::default(), None, "http://a.test/").is_none());
        let named = Url::parse("https://g.test").unwrap();
        let call = ping(&told("https://s.test/x", "", ""), Some(&named), "http://a.test/");
        assert_eq!(call.unwrap().url.as_str(), "https://g.test/rsscloud/ping");
    }

    #[test]
    fn a_cloud_that_says_no_has_not_been_told() {
        for (is_success, body, want) in [
            (true, "<result success=\"true\" msg=\"Thanks\"/>", true),
            (true, "<result success=\"false\" msg=\"no\"/>", false),
            (true, "<methodResponse><fault>", false),
            (false, "", false),
        ] {
            assert_eq!(check_ping_response(is_success, body.as_bytes()).is_ok(), want, "{body}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_replaced_past_what_others_put_beside_it_and_keeps_its_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("rss.xml"), folder.path().join("other"));
        fs::write(&path, "<rss><channel/></rss>").unwrap();
        fs::write(&other, "mine").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let foreseen = folder.path().join(format!(".rss.xml.{}.new", std::process::id()));
        symlink(&other, foreseen).unwrap();
        write(&path, |held| Ok(held.unwrap().replace("<channel/>", "<channel></channel>")))
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "<rss><channel></channel></rss>");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3, "nothing is left over");
    }
}
