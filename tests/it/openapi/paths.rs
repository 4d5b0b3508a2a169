//! The document and the router have the same paths and methods.

use std::collections::BTreeSet;
use std::fs;

use http::{Method, StatusCode};
use serde_json::Value;

use super::{document, operations, root, source_files};
use crate::support::server::client;
use crate::support::world::World;

/// A path of the router as its source has it: a segment that is a parameter is `*`, and `**` stands
/// for any further segments.
type Pattern = Vec<String>;

#[test]
fn the_document_has_the_paths_of_the_router() {
    let patterns = router_patterns();
    assert!(patterns.len() > 30, "{patterns:?}");
    let document = document();
    let documented: BTreeSet<&str> = operations(&document).iter().map(|(path, ..)| *path).collect();
    let mut wrong = Vec::new();
    for pattern in &patterns {
        if !documented.iter().any(|path| fits(path, pattern)) {
            wrong.push(format!("/{}: not in schemas/openapi.json", pattern.join("/")));
        }
    }
    for path in documented {
        if !patterns.iter().any(|pattern| fits(path, pattern)) {
            wrong.push(format!("{path}: not in src/http/routes"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reads the paths of all routes from their source: the arguments of `paths::` and `warp::path!`, and the
/// folders of the archives, which are read from the whole path.
fn router_patterns() -> BTreeSet<Pattern> {
    let mut patterns = BTreeSet::new();
    for file in source_files(&root().join("src/http/routes")) {
        // Pages for people are not calls.
        if file.ends_with("console.rs") {
            continue;
        }
        let source = fs::read_to_string(&file).unwrap();
        for (at, _) in source.match_indices("warp::path") {
            let rest = &source[at + "warp::path".len()..];
            if let Some(arguments) = rest.strip_prefix("!(") {
                patterns.insert(pattern(arguments.split_once(')').unwrap().0));
            } else if rest.starts_with("::end()") {
                patterns.insert(Vec::new());
            } else {
                // The tail below a folder of archives, and the paths that an operator adds.
                let known = ["(first)", "::tail()", "::Tail", "::full()", "::FullPath"];
                let is_known = known.iter().any(|known| rest.starts_with(known));
                assert!(is_known, "{}: a path that this test does not read", file.display());
            }
        }
        for (at, call) in source.match_indices("paths::") {
            let rest = &source[at + call.len()..];
            if rest.starts_with(['e', 'a', 'w']) {
                let arguments = rest.split_once('(').unwrap().1.split_once(')').unwrap().0;
                let literals = arguments.split('"').skip(1).step_by(2);
                patterns.extend(literals.map(whole_path));
            }
        }
        for (at, call) in source.match_indices("below(\"") {
            let folder = source[at + call.len()..].split_once('"').unwrap().0;
            patterns.insert(vec![folder.to_owned(), "**".to_owned()]);
        }
    }
    patterns
}

fn whole_path(path: &str) -> Pattern {
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    segments.map(|segment| if segment == "{}" { "*" } else { segment }.to_owned()).collect()
}

fn pattern(arguments: &str) -> Pattern {
    let segment = |argument: &str| match argument.strip_prefix('"') {
        Some(literal) => literal.trim_end_matches('"').to_owned(),
        None => "*".to_owned(),
    };
    arguments.split('/').map(str::trim).map(segment).collect()
}

/// Returns whether a path of the document is one of a pattern.
fn fits(path: &str, pattern: &Pattern) -> bool {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let is_open = pattern.last().is_some_and(|last| last == "**");
    let fixed = &pattern[..pattern.len() - usize::from(is_open)];
    let is_long_enough = segments.len() >= fixed.len();
    is_long_enough
        && (is_open || segments.len() == fixed.len())
        && fixed.iter().zip(&segments).all(|(wanted, segment)| match wanted.as_str() {
            "*" => segment.starts_with('{'),
            wanted => wanted == *segment,
        })
}

#[tokio::test]
async fn each_path_accepts_the_documented_methods_and_no_others() {
    let world = World::with_tides(1, &[]).await;
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    for path in paths.keys() {
        let url = world.gateway.url(&example(path));
        let documented = operations(&document).into_iter().filter(|(of, ..)| of == path);
        let mut wanted: BTreeSet<String> = documented.map(|(_, method, _)| method).collect();
        if wanted.contains("GET") {
            wanted.insert("HEAD".to_owned());
        }
        wanted.insert("OPTIONS".to_owned());
        let answer = client().request(Method::OPTIONS, &url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::NO_CONTENT, "OPTIONS {path}");
        let allowed = answer.headers()["allow"].to_str().unwrap();
        let allowed: BTreeSet<String> = allowed.split(", ").map(str::to_owned).collect();
        assert_eq!(allowed, wanted, "{path}");
        let answer = client().request(Method::TRACE, &url).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "TRACE {path}");
        assert!(answer.headers().contains_key("allow"), "TRACE {path}");
    }
    let answer = client().request(Method::OPTIONS, world.gateway.url("/nothing")).send().await;
    assert_eq!(answer.unwrap().status(), StatusCode::NOT_FOUND);
}

/// A path with values for its parameters.
fn example(path: &str) -> String {
    let hour = [("{year}", "2026"), ("{month}", "11"), ("{day}", "22"), ("{hour}", "07")];
    let path = hour.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value));
    let segment = |segment: &str| if segment.starts_with('{') { "1" } else { segment }.to_owned();
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn the_document_is_served_with_the_address_of_the_gateway() {
    let public_url = "https://gate.example/";
    let world = World::with_tides(1, &[("FEEDGATE_PUBLIC_URL", public_url)]).await;
    let (status, text) = world.gateway.get("/openapi.json").await;
    assert_eq!(status, StatusCode::OK);
    let served: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(served["servers"][0]["url"], public_url.trim_end_matches('/'));
    assert_eq!(served["paths"], document()["paths"]);
    let (_, index) = world.gateway.get("/").await;
    assert!(index.contains("https://gate.example/openapi.json"), "{index}");
}
