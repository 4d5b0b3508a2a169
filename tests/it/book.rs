//! The chapters with commands work as they are written, and the index lists every chapter.

use std::fs;

use crate::api_pages::run_pages;
use crate::architecture::root;

#[tokio::test]
async fn the_chapter_on_receiving_works_as_written() {
    let blocks = run_pages(&[root().join("docs/receiving.md")]).await;
    assert!(blocks > 7, "{blocks} blocks were found");
}

#[tokio::test]
async fn the_chapter_on_troubleshooting_works_as_written() {
    let blocks = run_pages(&[root().join("docs/troubleshooting.md")]).await;
    assert!(blocks > 10, "{blocks} blocks were found");
}

#[tokio::test]
async fn the_chapter_on_alerts_works_as_written() {
    let blocks = run_pages(&[root().join("docs/alerts.md")]).await;
    assert_eq!(blocks, 3);
}

#[test]
fn the_index_lists_every_chapter() {
    let docs = root().join("docs");
    let index = fs::read_to_string(docs.join("README.md")).unwrap();
    let mut missing = Vec::new();
    for entry in fs::read_dir(&docs).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") && name != "README.md" && !index.contains(&format!("]({name}")) {
            missing.push(name);
        }
    }
    assert!(missing.is_empty(), "docs/README.md does not link {missing:?}");
}
