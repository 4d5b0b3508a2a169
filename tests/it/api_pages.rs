//! The pages of the API (`docs/api.md`, `docs/api/`) work as they are written: their shell blocks are
//! run, in one shell, against the real program, and the answers have what the pages say.
//!
//! The answer to a shell block is the text block after it, if there is one. `…` in it stands for any
//! text, and so does the end of a line; what is between them must occur in this order.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use feedgate_core::signing::Secret;
use url::Url;

use crate::support::feeds::rss;
use crate::support::ports::free_port;
use crate::support::publisher::Publisher;
use crate::support::shell;
use crate::support::subscriber::Subscriber;

/// What is printed after each block.
const SEPARATOR: &str = "\n--- the next block ---\n";

/// A command of a page.
struct Example {
    /// The page and the line where the block begins.
    place: String,
    commands: String,
    /// The text that the page shows as the answer.
    answer: Option<String>,
}

#[tokio::test]
async fn the_api_pages_work_as_written() {
    let blocks = run_pages(&pages()).await;
    assert!(blocks > 60, "{blocks} blocks were found");
}

/// Runs the shell blocks of these pages, and compares the answers. Returns the number of blocks.
pub(crate) async fn run_pages(pages: &[PathBuf]) -> usize {
    let publisher = Publisher::start().await;
    let subscriber = Subscriber::start().await;
    publisher.put_rss("/feed.xml", rss("tides", 1..3));
    let gateway = format!("127.0.0.1:{}", free_port());
    let handler = Url::parse(&subscriber.url("/callback")).unwrap();
    let domain = format!("HANDLER_DOMAIN={}", handler.host_str().unwrap());
    let port = format!("HANDLER_PORT={}", handler.port().unwrap());
    let addresses = [
        ("127.0.0.1:8080", gateway.clone()),
        ("https://blog.rust-lang.org/feed.xml", publisher.url("/feed.xml")),
        ("https://example.com/callback", handler.to_string()),
        ("http://localhost:3000", subscriber.url("")),
        ("HANDLER_DOMAIN=example.com", domain),
        ("HANDLER_PORT=80", port),
    ];
    let examples: Vec<Example> = pages.iter().flat_map(|page| examples(page, &addresses)).collect();

    let output = run(&examples, &gateway).await;
    let printed = String::from_utf8_lossy(&output.stdout);
    let failures = String::from_utf8_lossy(&output.stderr);
    let answers: Vec<&str> = printed.split(SEPARATOR).skip(1).collect();
    let last = examples.get(answers.len().saturating_sub(1)).map_or("", |example| &example.place);
    assert!(output.status.success(), "{} in {last}\n{failures}", output.status);
    assert_eq!(answers.len(), examples.len() + 1, "a block without an end");
    let wrong: Vec<String> = examples
        .iter()
        .zip(answers)
        .filter_map(|(example, answer)| {
            let missing = missing_piece(example.answer.as_deref()?, answer)?;
            Some(format!("{}: `{missing}` is not in the answer:\n{answer}", example.place))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    examples.len()
}

/// Runs the commands of all examples in one shell, while a gateway runs in the same folder.
async fn run(examples: &[Example], gateway: &str) -> Output {
    let start = format!(
        "export FEEDGATE_PUBLISHER_SECRETS=127.0.0.1=known-to-both\nfeedgate serve --allow-local >serve.log 2>&1 &\nuntil curl -fs http://{gateway}/readyz; do sleep 0.1; done\n"
    );
    let separate = format!("printf %s {}\n", shell_word(SEPARATOR));
    let blocks = examples.iter().map(|example| example.commands.as_str());
    let blocks: Vec<&str> = std::iter::once(start.as_str()).chain(blocks).collect();
    let script =
        format!("{}\n{separate}kill %1 && wait %1\n", blocks.join(&format!("\n{separate}")));

    shell::run(&script, "-emuo", gateway).await
}

fn shell_word(text: &str) -> String {
    format!("'{text}'")
}

/// The index, which sets the variables, and then the pages in the order in which it lists them.
fn pages() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let index = docs.join("api.md");
    let text = fs::read_to_string(&index).unwrap();
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("| [")?.split_once("](")?.1.split_once(')'));
    let listed: Vec<PathBuf> = rows.map(|(page, _)| docs.join(page)).collect();
    let present = fs::read_dir(docs.join("api")).unwrap().count();
    assert_eq!(listed.len(), present, "docs/api.md lists every page of docs/api once");
    std::iter::once(index).chain(listed).collect()
}

/// The shell blocks of a page, with the addresses of this machine.
fn examples(page: &Path, addresses: &[(&str, String)]) -> Vec<Example> {
    let text = fs::read_to_string(page).unwrap();
    let text = addresses.iter().fold(text, |text, (written, here)| text.replace(written, here));
    let mut examples: Vec<Example> = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let block = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let block: String = block.flat_map(|line| [line, "\n"]).collect();
        let place = format!("{}:{number}", page.display());
        match (language, examples.last_mut()) {
            ("sh", _) => examples.push(Example { place, commands: block, answer: None }),
            ("text", Some(example)) if example.answer.is_none() => example.answer = Some(block),
            ("text", _) => panic!("{place}: an answer without a command"),
            _ => {}
        }
    }
    examples
}

/// Returns the first piece of `written` that does not occur in `answer` after those before it.
fn missing_piece<'a>(written: &'a str, answer: &str) -> Option<&'a str> {
    let mut rest = answer;
    for piece in written.split(['…', '\n']).map(str::trim) {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return Some(piece),
        }
    }
    None
}

#[test]
fn a09_the_secrets_of_the_examples_are_keys_of_standard_webhooks() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guides = ["README.md", "docs/receiving.md"].map(|page| root.join(page));
    let mut found = 0;
    for page in pages().into_iter().chain(guides) {
        let text = fs::read_to_string(&page).unwrap();
        for (_, given) in
            text.match_indices("SECRET=").map(|(at, name)| text[at..].split_at(name.len()))
        {
            let secret: String = given.chars().take_while(|c| !c.is_whitespace()).collect();
            if secret == "known-to-both" {
                continue; // that of a publisher
            }
            let key = Secret::new(secret.clone()).unwrap().standard_key();
            assert!(secret.starts_with("whsec_") && (24..=64).contains(&key.len()), "{secret}");
            found += 1;
        }
        for used in text.split("hub.secret=").skip(1).chain(text.split("--secret ").skip(1)) {
            let is_variable = used.starts_with("$SECRET");
            assert!(is_variable || used.starts_with('`'), "{}: {used:.40}", page.display());
        }
    }
    assert!(found >= 4, "{found}");
}

#[test]
fn an_answer_is_compared_piece_by_piece() {
    #[rustfmt::skip]
    let cases = [
        ("204\n",             "204",                None),
        ("{\"a\":…,\n\"b\"",  "{\"a\":1,\"b\":2}",  None),
        ("a…b\nc",            "a c b",              Some("c")),
        ("a\na",              "a",                  Some("a")),
    ];
    for (written, answer, want) in cases {
        assert_eq!(missing_piece(written, answer), want, "{written}");
    }
}
