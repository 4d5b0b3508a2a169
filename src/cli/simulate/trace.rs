//! A trace: the publication times of the entries of several feeds.

use std::collections::BTreeMap;

use chrono::DateTime;

/// Publication times.
#[derive(Debug, PartialEq)]
pub(super) struct PublicationTrace {
    /// One list for each feed, ascending, in seconds since 1970.
    pub(super) feeds: Vec<Vec<i64>>,
    /// The first publication of any feed.
    pub(super) start_s: i64,
    /// The last publication of any feed.
    pub(super) end_s: i64,
}

/// Reads a CSV file of feeds and times. An error names the invalid line.
pub(super) fn read(text: &str) -> Result<PublicationTrace, String> {
    let mut feeds: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line.trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut is_first = true;
    for (number, line) in &mut lines {
        // The name of a feed may contain commas; a time does not.
        let (feed, time) = line.rsplit_once(',').ok_or_else(|| {
            format!("line {number}: expected a feed, a comma and a time, found {line:?}")
        })?;
        match seconds(time.trim().trim_matches('"')) {
            Some(at) => feeds.entry(feed.trim().trim_matches('"')).or_default().push(at),
            None if is_first => {} // headings
            None => {
                return Err(format!(
                    "line {number}: {time:?} is neither a time in RFC 3339 nor seconds since 1970"
                ));
            }
        }
        is_first = false;
    }
    let mut feeds: Vec<Vec<i64>> = feeds.into_values().collect();
    feeds.iter_mut().for_each(|times| times.sort_unstable());
    let start_s = feeds.iter().filter_map(|times| times.first()).min().copied();
    let end_s = feeds.iter().filter_map(|times| times.last()).max().copied();
    match (start_s, end_s) {
        (Some(start_s), Some(end_s)) if end_s > start_s => {
            Ok(PublicationTrace { feeds, start_s, end_s })
        }
        _ => Err(
            "the trace has nothing to play: at least two entries at different times are required"
                .to_owned(),
        ),
    }
}

fn seconds(text: &str) -> Option<i64> {
    let date = || DateTime::parse_from_rfc3339(text).ok().map(|date| date.timestamp());
    text.parse().ok().or_else(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_read_in_both_kinds_of_time_and_sorted() {
        let text = "feed,published\n# made up\nb,1970-01-01T00:01:40Z\n\na, 30\n\"a\",\"20\"\n";
        let want =
            PublicationTrace { feeds: vec![vec![20, 30], vec![100]], start_s: 20, end_s: 100 };
        assert_eq!(read(text), Ok(want));
    }

    #[test]
    fn what_is_no_trace_is_told_by_line() {
        for (text, want) in [
            ("a,1\nnothing\n", "line 2"),
            ("feed,published\na,1\na,yesterday\n", "line 3"),
            ("feed,published\na,1\n", "nothing to play"),
            ("", "nothing to play"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(want), "{text:?}: {why}");
        }
    }
}
