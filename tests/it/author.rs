//! The authoring tool: on the command line, and as a page.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, LOCATION, SET_COOKIE};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::storage::{PASSWORD, start};
use crate::support::browser::Browser;
use crate::support::publisher::Publisher;
use crate::support::server::{Server, client, say};
use crate::support::subscriber::Subscriber;

/// Runs `feedgate post` in `folder`, with this on its standard input.
async fn post(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    let command = command.arg("post").args(args).env_clear().current_dir(folder);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // It may end without having read anything.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap_or_default();
    drop(stdin);
    child.wait_with_output().await.unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The id that a post was given.
fn id(done: &Output) -> String {
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout).trim().to_owned()
}

#[tokio::test]
async fn a_post_goes_into_the_file_first_and_then_the_cloud_is_told() {
    let (gateway, _database) = start(&[]).await;
    let (publisher, folder) = (Publisher::start().await, tempfile::tempdir().unwrap());
    publisher.put_rss("/rss.xml", "<rss><channel/></rss>");
    publisher.put("/tide.mp3", "audio/mpeg", "12345");
    let (url, cloud) = (publisher.url("/rss.xml"), gateway.url(""));
    let sound = publisher.url("/tide.mp3");
    let new = ["Spring & tide", "--feed", "rss.xml", "--url", &url, "--cloud", &cloud];
    let full = ["--title", "T", "--category", "sea", "--category", "moon", "--enclosure", &sound];
    let first = id(&post(folder.path(), &[&new[..], &full].concat(), "").await);

    let file = folder.path().join("rss.xml");
    let written = fs::read_to_string(&file).unwrap();
    for piece in [
        &format!("<enclosure url=\"{sound}\" length=\"5\" type=\"audio/mpeg\"/>"),
        "<description>Spring &amp;amp; tide</description>",
        &format!("<source:cloud>{cloud}/rsscloud/pleaseNotify</source:cloud>"),
        "path=\"/rsscloud/pleaseNotify\" registerProcedure=\"\" protocol=\"http-post\"/>",
        &format!("<atom:link rel=\"hub\" href=\"{cloud}/hub\"/>"),
    ] {
        assert!(written.contains(piece), "{piece}: {written}");
    }
    assert!(gateway.get("/changes.xml").await.1.contains(&url), "the cloud was told");

    // The file says by now where it is served, and whom to tell.
    fs::write(&file, written.replace("<title>rss</title>", "<title>Mine</title><x>kept</x>"))
        .unwrap();
    let long = "tide ".repeat(40);
    let second = post(folder.path(), &[&long, "--feed", "rss.xml", "--parent", &first], "").await;
    assert!(text(&second.stderr).contains("199 characters"), "{}", text(&second.stderr));
    let second = id(&second);
    let feed = fs::read(&file).unwrap();
    assert!(text(&feed).contains("<title>Mine</title><x>kept</x>"), "what is unknown survives");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
    let seen = feed_rs::parser::parse(&feed[..]).unwrap();
    assert_eq!((seen.entries.len(), seen.entries[0].id.as_str()), (1, first.as_str()));
    assert_eq!(seen.entries[0].media[0].content[0].size, Some(5));

    let normalized = feedgate_feed::parse::parse(&feed, &context(&url)).unwrap();
    let normalized = feedgate_feed::passes::run(normalized, &context(&url));
    let ids: Vec<&str> = normalized.entries.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, [first.as_str(), second.as_str()]);
    let atom = feedgate_feed::render::atom::entry(&normalized.entries[1]);
    assert!(atom.contains(&format!("<thr:in-reply-to ref=\"{first}\"")), "{atom}");

    let nowhere = post(folder.path(), &["x", "--feed", "rss.xml", "--parent", "no"], "").await;
    assert!(text(&nowhere.stderr).contains("the feed has no item with the guid or link no"));
    assert_eq!(fs::read(&file).unwrap(), feed, "and the file is as it was");
}

fn context(url: &str) -> feedgate_feed::Context {
    feedgate_feed::Context::new(url::Url::parse(url).unwrap())
}

#[tokio::test]
async fn a_post_is_saved_through_the_cloud_in_one_operation() {
    let (gateway, _database) = start(&[]).await;
    let (subscriber, folder) = (Subscriber::start().await, tempfile::tempdir().unwrap());
    let (url, cloud) = (gateway.url("/storage/ada/rss.xml"), gateway.url(""));
    let to = ["--cloud", &cloud, "--user", "ada"];
    let password = format!("{PASSWORD}\n");
    let first = id(&post(folder.path(), &[&["one"][..], &to].concat(), &password).await);
    gateway.subscribe_websub(&url, &subscriber.url("/cb"), &[]).await;
    let under = [&["two", "--parent", &first][..], &to].concat();
    let second = id(&post(folder.path(), &under, &password).await);
    subscriber.until("/cb", |told| told.iter().any(|told| told.text().contains(&second))).await;
    let feed = gateway.fetch(&url).await.1;
    assert!(feed.contains("<rssCloud:item>") && feed.contains(&first), "{feed}");

    // Several at once are all kept.
    let texts: Vec<String> = (0..4).map(|n| format!("post {n}")).collect();
    let posts = texts.iter().map(|text| {
        let args = [&[text.as_str()][..], &to].concat();
        let (folder, password) = (folder.path(), password.as_str());
        async move { id(&post(folder, &args, password).await) }
    });
    let ids = futures_util::future::join_all(posts).await;
    let feed = gateway.fetch(&url).await.1;
    assert!(ids.iter().all(|id| feed.contains(id)), "{feed}");

    let wrong = post(folder.path(), &[&["three"][..], &to].concat(), "wrong horse\n").await;
    let told = text(&wrong.stderr);
    assert!(
        !wrong.status.success() && told.contains("the username or the password is wrong"),
        "{told}"
    );
    assert!(!told.contains("wrong horse"));
    gateway.comes_to_rest().await;
}

#[tokio::test]
async fn a_post_is_saved_through_a_proxy_that_weakens_tags() {
    let (gateway, _database) = start(&[]).await;
    let behind = gateway.url("");
    let proxy = Server::start(move |received| {
        let request = client().request(received.method, format!("{behind}{}", received.path));
        let (mut headers, body) = (received.headers, received.body);
        headers.remove(HOST);
        async move {
            let answer = request.headers(headers).body(body).send().await.unwrap();
            let (status, tag) = (answer.status(), answer.headers().get(ETAG).cloned());
            let mut answer = say(status, answer.bytes().await.unwrap());
            if let Some(tag) = tag {
                let weak = format!("W/{}", tag.to_str().unwrap());
                answer.headers_mut().insert(ETAG, weak.parse().unwrap());
            }
            answer
        }
    });
    let (folder, proxy) = (tempfile::tempdir().unwrap(), proxy.await);
    let (cloud, password) = (proxy.url(""), format!("{PASSWORD}\n"));
    for text in ["one", "two"] {
        let args = [text, "--cloud", &cloud, "--user", "ada"];
        let posted = id(&post(folder.path(), &args, &password).await);
        let (_, feed) = gateway.get("/storage/ada/rss.xml").await;
        assert!(feed.contains(&posted), "{feed}");
    }
}

#[tokio::test]
async fn the_page_takes_posts_and_loses_none_that_it_refuses() {
    let (gateway, _database) = start(&[]).await;
    let empty = client().get(gateway.url("/author")).send().await.unwrap();
    let policy = empty.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(policy.contains("form-action 'self'") && policy.contains("frame-ancestors 'none'"));
    assert!(empty.headers().get(SET_COOKIE).is_none(), "nothing rests on cookies");
    let page = empty.text().await.unwrap();
    assert!(!page.contains("\"/author"), "it may be served below a path: {page}");
    assert!(!page.contains("<script") && page.matches("<label for=").count() == 7, "{page}");

    let full = |more: &[(&'static str, &'static str)]| {
        let held = [("user", "ada"), ("password", PASSWORD), ("text", "high <b> & low")];
        let kept = held.into_iter().filter(|(name, _)| more.iter().all(|(held, _)| held != name));
        kept.chain(more.iter().copied()).collect::<Vec<_>>()
    };
    #[rustfmt::skip]
    let refused = [
        (full(&[("password", "wrong horse")]), StatusCode::FORBIDDEN,            "the username or the password is wrong"),
        (full(&[("user", "eve")]),             StatusCode::FORBIDDEN,            "the username or the password is wrong"),
        (full(&[("text", " ")]),               StatusCode::BAD_REQUEST,          "The text is empty."),
        (full(&[("link", "javascript:x()")]),  StatusCode::BAD_REQUEST,          "The link must be a URL"),
        (full(&[("parent", "\"no")]),          StatusCode::UNPROCESSABLE_ENTITY, "the feed has no item with the guid or link &quot;no"),
    ];
    for (form, status, words) in refused {
        let (got, page) = gateway.post("/author", &form).await;
        assert!(got == status && page.contains(words), "{words}: {got} {page}");
        assert!(
            page.contains("high &lt;b&gt; &amp; low") || words.starts_with("The text is"),
            "{page}"
        );
        assert!(!page.contains(PASSWORD) && !page.contains("wrong horse"), "{page}");
    }

    let more = [("category", "sea, ,moon"), ("title", "Tides")];
    // It leads to the page with the post in it, where to load it again sends nothing.
    let (status, page) = gateway.post("/author", &full(&more)).await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("Posted.") && page.contains("<li>Tides<br>"), "{page}");
    let feed = gateway.get("/storage/ada/rss.xml").await.1;
    assert_eq!(feed.matches("<category>").count(), 2, "{feed}");
    assert!(feed.contains("high &amp;lt;b&amp;gt; &amp;amp; low"), "{feed}");
}

#[tokio::test]
async fn s41_the_page_after_a_post_is_on_the_same_host_whatever_the_form_says() {
    let (gateway, _database) = start(&[]).await;
    let stay = reqwest::redirect::Policy::none();
    #[expect(clippy::disallowed_methods, reason = "feedgate under test listens on loopback")]
    let browser = reqwest::Client::builder().redirect(stay).build().unwrap();
    for target in ["https://evil.test/", "//evil.test/", "/\\evil.test/", "https:evil.test"] {
        let mut form = vec![("user", "ada"), ("password", PASSWORD), ("text", "high")];
        form.extend(["next", "return", "redirect", "url"].map(|name| (name, target)));
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = browser
            .post(format!("{}?next={target}", gateway.url("/author")))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(form);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{target}");
        let location = answer.headers()[LOCATION].to_str().unwrap();
        assert!(location.starts_with("author?user=ada&posted="), "{target}: {location}");
        assert!(!location.contains("evil"), "{target}: {location}");
    }
    gateway.comes_to_rest().await;
}

#[tokio::test]
async fn a_post_goes_into_a_stored_feed_of_any_encoding() {
    let (gateway, _database) = start(&[]).await;
    let head =
        "<?xml version=\"1.0\" encoding=\"Shift_JIS\"?><rss version=\"2.0\"><channel><title>";
    // "潮" of two bytes, which are no UTF-8.
    let feed = [head.as_bytes(), b"\x92\xaa", b"</title></channel></rss>"].concat();
    let put = client().put(gateway.url("/storage/ada/rss.xml")).basic_auth("ada", Some(PASSWORD));
    assert_eq!(put.body(feed).send().await.unwrap().status(), StatusCode::CREATED);

    let form = [("user", "ada"), ("password", PASSWORD), ("text", "high")];
    let (status, page) = gateway.post("/author", &form).await;
    assert!(status == StatusCode::OK && page.contains("Posted."), "{status} {page}");
    let feed = gateway.get("/storage/ada/rss.xml").await.1;
    assert!(feed.contains("encoding=\"utf-8\"") && feed.contains("<title>潮</title>"), "{feed}");
    gateway.comes_to_rest().await;
}

#[tokio::test]
async fn a_person_writes_and_answers_in_a_real_browser() {
    let (gateway, _database) = start(&[]).await;
    let browser = Browser::start().await;
    browser.open(&gateway.url("/author")).await;
    browser.fill("#text", "High tide at noon").await;
    browser.fill("#user", "ada").await;
    browser.fill("#password", PASSWORD).await;
    browser.click("button").await;
    browser.until("document.querySelector('[role=status]')").await;
    assert!(browser.text("li").await.starts_with("High tide at noon"));

    browser.click("li a").await;
    browser.until("document.querySelector('input[name=parent]')").await;
    assert!(browser.text("form p").await.contains("High tide at noon"));
    browser.fill("#text", "And it was high").await;
    browser.fill("#password", PASSWORD).await;
    browser.click("button").await;
    browser.until("document.querySelector('[role=status]')").await;
    assert_eq!(browser.text("ul ul li").await.lines().next(), Some("And it was high"));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
    let feed = gateway.get("/storage/ada/rss.xml").await.1;
    assert_eq!(feed.matches("<rssCloud:item>").count(), 1, "{feed}");
}
