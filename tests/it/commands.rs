//! Commands as an operator types them, in a place without settings.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs feedgate in `folder`.
fn feedgate(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    command.args(args).env_clear().current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn tokens_are_listed_below_a_header_and_options_may_stand_last() {
    let folder = tempfile::tempdir().unwrap();
    let database = ["--database", "sqlite:elsewhere"];
    let run = |args: &[&str]| feedgate(folder.path(), &[args, &database].concat());

    assert!(run(&["migrate"]).status.success());
    assert_eq!(text(&run(&["token", "list"]).stdout), "no tokens\n");
    let made = run(&["token", "create", "--login", "ann"]);
    assert!(text(&made.stdout).starts_with("ann:"), "{}", text(&made.stderr));
    let listed = run(&["token", "list"]);
    let lines: Vec<&str> = text(&listed.stdout).lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("NUMBER\tLOGIN\t") && lines[1].contains("\tann\t"), "{lines:?}");
    let listed_as_json = run(&["token", "list", "--json"]);
    let token: serde_json::Value = serde_json::from_slice(&listed_as_json.stdout).unwrap();
    assert_eq!((&token["login"], &token["revoked"]), (&"ann".into(), &serde_json::Value::Null));
    let first = feedgate(folder.path(), &["token", "--database", "sqlite:elsewhere", "list"]);
    assert_eq!(first.stdout, listed.stdout, "options may stand before the verb too");
    assert!(!folder.path().join("feedgate-data").exists());
}

#[test]
fn commands_that_expect_a_database_create_none() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| feedgate(folder.path(), args);
    let commands: [&[&str]; 5] = [
        &["token", "create", "--login", "ann"],
        &["token", "list"],
        &["account", "list"],
        &["account", "add", "bob", "--generate"],
        &["backup", "copy.db"],
    ];
    for args in commands {
        let refused = run(args);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{args:?}: {told}");
        assert!(told.contains("there is no database of a gateway in "), "{args:?}: {told}");
        assert!(refused.stdout.is_empty(), "{args:?}: {}", text(&refused.stdout));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{args:?}");
    }

    fs::write(folder.path().join("other.db"), "").unwrap();
    let refused = run(&["token", "list", "--database", "sqlite:other.db"]);
    let told = text(&refused.stderr);
    assert!(told.contains("there is no database of a gateway in other.db"), "{told}");

    let migrated = run(&["migrate"]);
    let place = folder.path().canonicalize().unwrap().join("feedgate-data/feedgate.db");
    let line = format!("feedgate: using the database {}\n", place.display());
    assert_eq!(text(&migrated.stderr), line);
    for args in commands {
        let done = run(args);
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        assert_eq!(text(&done.stderr), line, "{args:?}");
    }
}

#[test]
fn logins_that_no_client_can_send_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (["--login", "", "--name", "x"], "a login must have at least one character"),
        (["--login", "a:b", "--name", "x"], "a login cannot contain a colon"),
        (["--login", "a\nb", "--name", "x"], "a login cannot contain control characters"),
        (["--login", "a", "--name", "x\u{1b}[31m"], "a name cannot contain control characters"),
    ];
    for (given, want) in cases {
        let refused = feedgate(folder.path(), &[&["token", "create"][..], &given].concat());
        let told = text(&refused.stderr);
        assert!(!refused.status.success() && told.contains(want), "{given:?}: {told}");
    }
}

#[test]
fn accounts_have_passwords_that_are_no_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let piped = |args: &[&str], password: &str| {
        let file = folder.path().join("password");
        fs::write(&file, format!("{password}\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
        let command = command.arg("account").args(args).env_clear().current_dir(folder.path());
        command.stdin(fs::File::open(&file).unwrap()).output().unwrap()
    };
    let short = piped(&["add", "ada"], "short");
    assert!(text(&short.stderr).contains("at least 8 characters"), "{}", text(&short.stderr));
    assert!(feedgate(folder.path(), &["migrate"]).status.success());
    let made = piped(&["add", "ada"], "correct horse");
    assert_eq!(text(&made.stdout), "account ada has been created\n", "{}", text(&made.stderr));
    let again = piped(&["add", "ada"], "correct horse");
    assert!(!again.status.success() && text(&again.stdout).contains("account ada already exists"));
    assert_eq!(text(&piped(&["passwd", "ada"], "battery staple").stdout).lines().count(), 1);

    let made = feedgate(folder.path(), &["account", "add", "bob", "--generate"]);
    let (login, password) = text(&made.stdout).trim().split_once(':').unwrap();
    assert!(login == "bob" && password.len() == 30, "{password}");
    let refused = feedgate(folder.path(), &["account", "add", "a/b", "--generate"]);
    assert!(text(&refused.stderr).contains("cannot be part of a URL"));

    let listed = feedgate(folder.path(), &["account", "list"]);
    let lines: Vec<&str> = text(&listed.stdout).lines().collect();
    assert!(lines[0].starts_with("LOGIN\t") && lines.len() == 3, "{lines:?}");
    assert!(lines[1].starts_with("ada\t") && lines[1].contains("\tyes\t0\t0\t0"), "{lines:?}");
    let listed = feedgate(folder.path(), &["account", "list", "--json"]);
    let first = text(&listed.stdout).lines().next().unwrap();
    let account: serde_json::Value = serde_json::from_str(first).unwrap();
    assert_eq!((&account["login"], &account["password"]), (&"ada".into(), &true.into()));
    let closed = feedgate(folder.path(), &["account", "remove", "ada"]);
    assert_eq!(
        text(&closed.stdout),
        "account ada has been removed, with 0 subscriptions, 0 tokens and 0 files\n"
    );
    let listed = feedgate(folder.path(), &["account", "list"]);
    assert!(text(&listed.stdout).contains("\tno\t0\t0\t0\tremoved"));
    let again = feedgate(folder.path(), &["account", "add", "ada", "--generate"]);
    assert!(!again.status.success());
    assert!(text(&again.stderr).contains("was removed, and its login cannot be used again"));
    let gone = feedgate(folder.path(), &["account", "remove", "eve"]);
    assert!(!gone.status.success());
}

#[test]
fn what_is_piped_in_is_normalized_without_being_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("feed.xml");
    fs::write(&file, "<rss version='2.0'><channel><title>Tides</title></channel></rss>").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_feedgate"));
    let piped = command.arg("normalize").stdin(fs::File::open(&file).unwrap()).output().unwrap();
    let named = feedgate(folder.path(), &["normalize", "feed.xml"]);
    assert!(text(&piped.stdout).contains("Tides"), "{}", text(&piped.stderr));
    assert_eq!(piped.stdout, named.stdout);
}

#[test]
fn s18_a_mapping_in_the_url_reads_json_as_a_feed() {
    let folder = tempfile::tempdir().unwrap();
    let json = r#"{"data": [{"name": "Ebb", "link": "/1"}, {"name": "Flood", "link": "/2"}]}"#;
    fs::write(folder.path().join("posts.json"), json).unwrap();
    let url = "https://tides.test/posts#$.data[*];title=$.name;url=$.link";
    let mapped = feedgate(folder.path(), &["normalize", "--url", url, "posts.json"]);
    let atom = text(&mapped.stdout);
    assert!(atom.contains("<title type=\"text\">Flood</title>"), "{}", text(&mapped.stderr));
    assert!(atom.contains("href=\"https://tides.test/2\""), "{atom}");
    assert!(!atom.contains("$.data"), "the mapping is no part of the address: {atom}");
    #[rustfmt::skip]
    let refused = [
        (vec!["--url", "https://tides.test/posts"],                        "not a feed"),
        (vec!["--url", "https://tides.test/posts#$.none[*];title=$.name"], "nothing in JSON matches"),
        (vec!["--url", "https://tides.test/posts#$.data[*];titel=$.name"], "titel is no field of an entry"),
        (vec!["--explain", "--url", url],                                  "cannot be explained"),
    ];
    for (mut options, want) in refused {
        options.splice(0..0, ["normalize", "posts.json"]);
        let output = feedgate(folder.path(), &options);
        assert!(!output.status.success(), "{options:?}");
        assert!(text(&output.stderr).contains(want), "{options:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_batch_with_a_document_that_fails_fails_and_counts_the_reasons() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("feed.xml"), "<rss><channel><title>A</title></channel></rss>")
        .unwrap();
    fs::write(folder.path().join("page.txt"), "no feed").unwrap();
    let batch = |files: &[&str]| {
        let line = |file: &&str| {
            format!(
                "{{\"file\": \"{file}\", \"url\": \"http://a.test/\", \"out\": \"{file}.out\"}}\n"
            )
        };
        fs::write(folder.path().join("list"), files.iter().map(line).collect::<String>()).unwrap();
        feedgate(folder.path(), &["normalize", "--batch", "list", "--out", "results"])
    };
    let done = batch(&["feed.xml"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout), "1 normalized, 0 failed\n");
    let failed = batch(&["page.txt", "feed.xml", "page.txt", "missing.xml"]);
    assert_eq!(failed.status.code(), Some(1));
    let lines: Vec<&str> = text(&failed.stdout).lines().collect();
    assert_eq!(lines[0], "1 normalized, 3 failed");
    assert!(lines[1].starts_with("       2 ") && lines[2].starts_with("       1 "), "{lines:?}");
    assert!(folder.path().join("results/feed.xml.out").is_file(), "the others are written");
}

#[test]
fn n9_paths_in_a_manifest_may_be_relative() {
    let folder = tempfile::tempdir().unwrap();
    let feeds = folder.path().join("feeds");
    fs::create_dir(&feeds).unwrap();
    fs::write(feeds.join("feed.xml"), "<rss><channel><title>A</title></channel></rss>").unwrap();
    // Relative to the current folder or to the manifest, and with or without the folder of the output.
    let jobs = [("feeds/feed.xml", "results/a.atom"), ("feed.xml", "deeper/b.atom")];
    let line = |(file, out): &(&str, &str)| {
        format!("{{\"file\": \"{file}\", \"url\": \"http://a.test/\", \"out\": \"{out}\"}}\n")
    };
    fs::write(feeds.join("list"), jobs.iter().map(line).collect::<String>()).unwrap();
    let arguments = ["normalize", "--batch", "feeds/list", "--out", "results"];
    let done = feedgate(folder.path(), &arguments);
    assert_eq!(text(&done.stdout), "2 normalized, 0 failed\n", "{}", text(&done.stderr));
    for out in ["results/a.atom", "results/deeper/b.atom"] {
        assert!(folder.path().join(out).is_file(), "{out}");
    }
}

#[test]
fn several_documents_are_normalized_into_lines() {
    let folder = tempfile::tempdir().unwrap();
    let feed = "<rss version=\"2.0\"><channel><title>Tides</title></channel></rss>";
    fs::write(folder.path().join("a.xml"), feed).unwrap();
    fs::write(folder.path().join("b.txt"), "no feed").unwrap();
    let files = ["a.xml", "b.txt", "c.xml", "a.xml"];
    let refused = feedgate(folder.path(), &[&["normalize"], &files[..]].concat());
    assert!(text(&refused.stderr).contains("--ndjson"), "{}", text(&refused.stderr));
    let options = ["normalize", "--ndjson", "--format", "json"];
    let written = feedgate(folder.path(), &[&options[..], &files[..]].concat());
    assert_eq!(written.status.code(), Some(1), "two are no feeds");
    let lines: Vec<serde_json::Value> =
        text(&written.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named: Vec<_> = lines.iter().map(|line| line["file"].as_str().unwrap()).collect();
    assert_eq!(named, files);
    for (line, is_feed) in lines.iter().zip([true, false, false, true]) {
        assert_eq!(line["feed"]["title"] == "Tides", is_feed, "{line}");
        assert_eq!(line["error"].is_string(), !is_feed, "{line}");
    }
    let explained = feedgate(folder.path(), &["normalize", "--ndjson", "--explain", "a.xml"]);
    assert!(text(&explained.stdout).contains("\"explained\":{"), "{}", text(&explained.stdout));
    let atom = feedgate(folder.path(), &["normalize", "--ndjson", "a.xml"]);
    assert!(text(&atom.stdout).contains("\"atom\":\"<"), "{}", text(&atom.stdout));
}

#[test]
fn s22_texts_are_sanitized_if_the_command_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let html = "safe&lt;script&gt;x()&lt;/script&gt; &lt;b onclick='x()'&gt;tides&lt;/b&gt;";
    let feed = format!(
        "<rss version='2.0' xmlns:media='http://search.yahoo.com/mrss/'><channel><title>Tides</title>
         <item><guid>urn:a</guid><title>Tides</title><description>{html}</description>
         <media:description type='html'>{html}</media:description></item>
         <item><guid>urn:b</guid><title type='xhtml' xmlns:h='http://www.w3.org/1999/xhtml'><h:b
         onclick='x()'>tides</h:b></title></item></channel></rss>"
    );
    fs::write(folder.path().join("feed.xml"), feed).unwrap();
    let untouched = feedgate(folder.path(), &["normalize", "feed.xml"]);
    assert!(text(&untouched.stdout).contains("onclick"), "{}", text(&untouched.stdout));
    let sanitized = feedgate(folder.path(), &["normalize", "--sanitize", "feed.xml"]);
    let sanitized = text(&sanitized.stdout);
    assert!(!sanitized.contains("x()") && !sanitized.contains("onclick"), "{sanitized}");
    assert!(sanitized.contains("safe &lt;b&gt;tides&lt;/b&gt;"), "{sanitized}");
}

#[test]
fn a_database_that_cannot_be_opened_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain"), "").unwrap();
    let cases = [
        ("sqlite:/proc/x.db", "cannot open the database /proc/x.db: "),
        ("sqlite:plain", "plain is a file, not a folder"),
        (
            "sqlite:typo/feeds.db",
            "cannot open the database typo/feeds.db: the folder typo does not exist",
        ),
        ("sqlite:typo/data", "the folder typo does not exist"),
        (
            "postgres://me:hunter2@127.0.0.1:1/x?password=hunter2",
            "cannot open the database at 127.0.0.1:1: error connecting to server: ",
        ),
    ];
    for (database, want) in cases {
        let refused = feedgate(folder.path(), &["migrate", "--database", database]);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains(want) && !told.contains("hunter2"), "{database}: {told}");
        assert!(told.contains("check FEEDGATE_DATABASE"), "{told}");
        assert!(told.matches("onnect").count() <= 2, "nothing is said twice: {told}");
    }
}

#[test]
fn t11_a_database_creates_no_folder_but_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let migrate = |database| feedgate(folder.path(), &["migrate", "--database", database]);
    for database in ["sqlite:typo/feeds.db", "sqlite:typo/data", "sqlite:typo/data/feedgate.db"] {
        let refused = migrate(database);
        assert_eq!(refused.status.code(), Some(1), "{database}: {}", text(&refused.stderr));
        assert!(!folder.path().join("typo").exists(), "{database}");
    }
    for database in ["sqlite:data", "sqlite:data/other.db", "sqlite:beside.db"] {
        let done = migrate(database);
        assert!(done.status.success(), "{database}: {}", text(&done.stderr));
    }
    assert!(folder.path().join("data/feedgate.db").is_file());
}

#[test]
fn a_certificate_or_key_that_is_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let certificate =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fetch/stranger.cert.pem");
    fs::write(folder.path().join("empty.pem"), "nothing").unwrap();
    for (cert, want) in [
        (Path::new("empty.pem"), "cannot use empty.pem: it contains no PEM certificate"),
        (&*certificate, "cannot use empty.pem: it contains no PEM private key"),
    ] {
        let toml = format!(
            "tls_cert = '{}'\ntls_key = 'empty.pem'\nlisten = '127.0.0.1:0'",
            cert.display()
        );
        fs::write(folder.path().join("feedgate.toml"), toml).unwrap();
        let refused = feedgate(folder.path(), &["serve", "--config", "feedgate.toml"]);
        assert!(text(&refused.stderr).contains(want), "{}", text(&refused.stderr));
    }
}

#[test]
fn a_post_without_a_destination_names_both_options() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["post", "High tide"][..], &["post", "High tide", "--cloud", "http://a.test/"]] {
        let refused = feedgate(folder.path(), args);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.contains("use --feed FILE") && told.contains("or --cloud URL --user LOGIN"));
    }
}

#[test]
fn n08_what_was_repaired_and_what_was_adapted_are_told_apart_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let item = "<item><guid>urn:a</guid><title>A & B</title></item>";
    let feed = format!("<rss version='2.0'><channel><title>Tides</title>{item}</channel></rss>");
    fs::write(folder.path().join("feed.xml"), feed).unwrap();
    let repaired = feedgate(folder.path(), &["normalize", "feed.xml"]);
    let told = text(&repaired.stderr);
    let want = "feedgate: repaired: bare_ampersand; adapted: author_missing, date_missing; ";
    assert!(told.starts_with(want), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    let explained = feedgate(folder.path(), &["normalize", "--explain", "feed.xml"]);
    assert!(explained.stderr.is_empty(), "{}", text(&explained.stderr));
    let told: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
    assert_eq!(told["repairs"][0]["code"], "bare_ampersand", "{told}");
    assert_eq!(told["adaptations"].as_array().unwrap().len(), 2, "{told}");
}
