//! Collections configured by the operator: tables in the TOML file, or JSON in the environment.

use std::collections::BTreeSet;

use serde::Deserialize;

use feedgate_core::collection::{CollectionName, ConfiguredCollection};
use feedgate_core::topic::Topic;

/// A collection as configured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    topics: Vec<String>,
    account: Option<String>,
}

/// Parses all collections. The error describes the first fault.
pub(super) fn parse(text: &str) -> Result<Vec<ConfiguredCollection>, String> {
    let written: Vec<Written> = serde_json::from_str(text).map_err(|err| err.to_string())?;
    let read = written.into_iter().map(read).collect::<Result<Vec<_>, String>>()?;
    let mut names = BTreeSet::new();
    match read.iter().find(|one| !names.insert(one.name.clone())) {
        Some(twice) => Err(format!("two collections have the name {}", twice.name.as_str())),
        None => Ok(read),
    }
}

fn read(written: Written) -> Result<ConfiguredCollection, String> {
    let longest = CollectionName::LONGEST_BYTES;
    let name = CollectionName::parse(&written.name).ok_or_else(|| {
        format!("{:?} is not a valid name: use up to {longest} of a-z, 0-9, - and _", written.name)
    })?;
    let topics = written.topics.iter().map(|topic| {
        Topic::parse(topic.as_str()).map_err(|err| format!("{topic} cannot be watched: {err}"))
    });
    let topics = topics.collect::<Result<BTreeSet<_>, String>>()?;
    if topics.is_empty() {
        return Err(format!("{} has no topics", name.as_str()));
    }
    Ok(ConfiguredCollection {
        name,
        topics: topics.into_iter().collect(),
        account: written.account,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_one_is_said() {
        let topics = r#""topics": ["https://a.test/"]"#;
        let cases = [
            ("news".to_owned(), "expected"),
            (format!(r#"[{{"name": "News", {topics}}}]"#), "\"News\" is not a valid name"),
            (r#"[{"name": "news", "topics": []}]"#.to_owned(), "news has no topics"),
            (r#"[{"name": "news", "topics": ["a"]}]"#.to_owned(), "a cannot be watched"),
            (format!(r#"[{{"name": "a", {topics}, "public": 1}}]"#), "unknown field"),
            (format!(r#"[{{"name": "a", {topics}}}, {{"name": "a", {topics}}}]"#), "the name a"),
        ];
        for (text, want) in cases {
            let why = parse(&text).unwrap_err();
            assert!(why.contains(want), "{text}: {why}");
        }
    }

    #[test]
    fn a_topic_that_is_named_twice_is_one() {
        let text = r#"[{"name": "a", "account": "me",
                        "topics": ["https://b.test/", "https://a.test/", "https://b.test/"]}]"#;
        let [one] = &parse(text).unwrap()[..] else { panic!("one collection") };
        assert_eq!((one.name.as_str(), one.account.as_deref()), ("a", Some("me")));
        let topics: Vec<_> = one.topics.iter().map(Topic::as_str).collect();
        assert_eq!(topics, ["https://a.test/", "https://b.test/"]);
    }
}
