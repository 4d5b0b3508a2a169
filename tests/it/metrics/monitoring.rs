//! The alert rules, the dashboard and the page about metrics name the metrics that the program has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{busy_world, families, scrape};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(file(path)).unwrap()
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let of_ours = |word: &&str| word.starts_with("feedgate_") || word.starts_with("process_");
    words.filter(of_ours).map(str::to_owned).collect()
}

/// The texts of all queries of a dashboard.
fn queries(part: &Value, found: &mut Vec<String>) {
    match part {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "expr" || name == "query" => {
                        found.push(text.clone());
                    }
                    other => queries(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| queries(item, found)),
        _ => {}
    }
}

/// The names of the series of a scrape.
fn series<'t>(families: &BTreeMap<&'t str, &'t str>) -> BTreeSet<String> {
    let names = families.iter().flat_map(|(name, kind)| match *kind {
        "histogram" => ["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")).to_vec(),
        _ => vec![(*name).to_owned()],
    });
    names.collect()
}

#[tokio::test]
async fn rules_and_dashboard_name_metrics_that_exist() {
    let world = busy_world().await;
    let (_, text) = scrape(&world, "text/plain").await;
    let series = series(&families(&text));
    let mut in_dashboard = Vec::new();
    let dashboard: Value = serde_json::from_str(&read("ops/dashboard.json")).unwrap();
    queries(&dashboard, &mut in_dashboard);
    assert!(in_dashboard.len() > 30, "{in_dashboard:?}");
    for (place, named) in [
        ("docs/ops/alerts.yaml", metrics_in(&read("ops/alerts.yaml"))),
        ("docs/ops/dashboard.json", metrics_in(&in_dashboard.join("\n"))),
    ] {
        assert!(!named.is_empty(), "{place}");
        let missing: Vec<_> = named.difference(&series).collect();
        assert!(missing.is_empty(), "{place} names metrics that no scrape has: {missing:?}");
    }
}

#[tokio::test]
async fn each_metric_is_documented_with_its_type() {
    let world = busy_world().await;
    let (_, text) = scrape(&world, "text/plain").await;
    let families = families(&text);
    let page = read("ops/metrics.md");
    let rows = page.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name, rest.split_once(" | ")?.0))
    });
    let documented: BTreeMap<&str, &str> = rows.collect();
    assert_eq!(documented, families, "docs/ops/metrics.md beside a scrape");
}

#[test]
fn each_alert_has_a_section_about_what_to_do() {
    let rules = read("ops/alerts.yaml");
    let operations = read("operations.md");
    let alerts: Vec<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let links: Vec<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("runbook: ")).collect();
    assert!(alerts.len() > 10 && alerts.len() == links.len(), "{alerts:?} {links:?}");
    for (alert, link) in alerts.iter().zip(links) {
        assert!(operations.contains(&format!("\n#### {alert}\n\n")), "{alert}: no section");
        assert_eq!(link, format!("docs/operations.md#{}", alert.to_ascii_lowercase()));
    }
}

#[test]
fn promtool_finds_no_fault_in_the_rules() {
    let mut promtool = Command::new("promtool");
    let checked = promtool.args(["check", "rules", "--lint-fatal"]).arg(file("ops/alerts.yaml"));
    let checked = checked.output().expect("promtool, which tests/run installs");
    let findings = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && findings.is_empty(), "{findings}");
}
