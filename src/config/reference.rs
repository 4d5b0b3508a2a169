//! The list of settings for people: `--help`, and the tables of `docs/operations.md`.

use super::{SETTINGS, Setting};

/// Returns the end of `--help`: every setting with its default and its summary.
pub(crate) fn help() -> String {
    let mut text = "Settings, as environment variables; in the TOML file, the same names in lower \
                    case without FEEDGATE_:\n"
        .to_owned();
    for (title, settings) in sections() {
        text.push_str(&format!("\n{title}:\n"));
        for setting in settings {
            let Setting { name, default, .. } = setting;
            text.push_str(&format!("  {name}={default}\n          {}\n", setting.summary()));
        }
    }
    text
}

/// Returns the titles of the sections, each with its settings.
fn sections() -> impl Iterator<Item = (&'static str, &'static [Setting])> {
    let sections = SETTINGS.chunk_by(|one, next| one.section == next.section);
    sections.map(|settings| (settings[0].section, settings))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const BEGIN: &str = "<!-- The tables of settings are generated from src/config/settings.rs; \
                         UPDATE_DOCS=1 cargo test --lib config writes them anew. -->\n";
    const END: &str = "<!-- End of the generated tables. -->\n";

    /// Returns the tables in Markdown.
    fn tables() -> String {
        let mut text = String::new();
        for (title, settings) in sections() {
            text.push_str(&format!("\n### {title}\n\n"));
            text.push_str("| setting | default | value | what it decides |\n");
            text.push_str("| --- | --- | --- | --- |\n");
            for setting in settings {
                let default = match setting.default {
                    "" => String::new(),
                    default => format!(" `{default}`"),
                };
                let mut help = setting.help().to_owned();
                if setting.is_secret {
                    help.push_str(&format!(
                        " This is a secret: it is masked wherever it is shown, and \
                         `{}_FILE` can name a file that contains it.",
                        setting.name
                    ));
                }
                let Setting { name, expected, .. } = setting;
                text.push_str(&format!("| `{name}` |{default} | {expected} | {help} |\n"));
            }
        }
        text.push('\n');
        text
    }

    #[test]
    fn the_tables_in_the_manual_are_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
        let manual = fs::read_to_string(&path).unwrap();
        let (before, rest) = manual.split_once(BEGIN).expect("the comment before the tables");
        let (found, after) = rest.split_once(END).expect("the comment after the tables");
        let tables = tables();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, [before, BEGIN, &tables, END, after].concat()).unwrap();
        } else if found != tables {
            let wanted: Vec<&str> = tables.lines().collect();
            let stale = found.lines().filter(|line| !wanted.contains(line));
            let stale: Vec<&str> = stale.collect();
            panic!(
                "docs/operations.md does not match src/config/settings.rs. To write its tables \
                 anew, run:\n\n  UPDATE_DOCS=1 cargo test --lib config\n\nOutdated lines:\n{}",
                stale.join("\n")
            );
        }
    }

    #[test]
    fn every_setting_has_a_section_of_its_own_kind_and_a_readable_summary() {
        let titles: Vec<&str> = sections().map(|(title, _)| title).collect();
        for (at, title) in titles.iter().enumerate() {
            assert!(!titles[..at].contains(title), "the section {title:?} is declared twice");
        }
        for setting in SETTINGS {
            let summary = setting.summary();
            assert!(summary.ends_with('.'), "{}: end {summary:?} with a full stop", setting.name);
            assert!(!summary.contains("]("), "{}: `--help` shows no links", setting.name);
            assert!(!setting.help().contains('|'), "{}: that ends a cell", setting.name);
        }
    }
}
