//! The paths of endpoints.
//!
//! Paths are compared as a whole, with one filter for all: `warp::path!` makes a type of each path, and the
//! code of all these types was a twentieth of the program. A slash at the end changes nothing.

use std::future::ready;

use warp::Filter;
use warp::filters::BoxedFilter;
use warp::filters::path::FullPath;

/// Returns a filter of one path without its first slash, such as `rsscloud/ping`.
pub(crate) fn exact(path: &'static str) -> BoxedFilter<()> {
    any_of(vec![path])
}

/// Returns a filter of several paths.
pub(crate) fn any_of(paths: Vec<&'static str>) -> BoxedFilter<()> {
    let matched = move |path: FullPath| {
        let is_one = paths.iter().any(|known| ends_path(without_first_slash(&path), known));
        ready(if is_one { Ok(()) } else { Err(warp::reject::not_found()) })
    };
    warp::path::full().and_then(matched).untuple_one().boxed()
}

/// Returns a filter of paths that differ in one segment, which stands as `{}` in the pattern, such as
/// `v1/feeds/{}/entries`. It extracts the segment as it was sent.
pub(crate) fn with_segment(pattern: &'static str) -> BoxedFilter<(String,)> {
    let matched = move |path: FullPath| {
        let found = segment(without_first_slash(&path), pattern).map(str::to_owned);
        ready(found.ok_or_else(warp::reject::not_found))
    };
    warp::path::full().and_then(matched).boxed()
}

fn segment<'p>(path: &'p str, pattern: &str) -> Option<&'p str> {
    let (before, after) = pattern.split_once("{}")?;
    let rest = path.strip_prefix(before)?;
    let length = rest.find('/').unwrap_or(rest.len());
    let (segment, rest) = rest.split_at(length);
    (!segment.is_empty() && ends_path(rest, after)).then_some(segment)
}

/// Returns whether a path ends with these segments, and perhaps a slash.
fn ends_path(rest: &str, segments: &str) -> bool {
    rest.strip_prefix(segments).is_some_and(|rest| rest.is_empty() || rest == "/")
}

fn without_first_slash(path: &FullPath) -> &str {
    let path = path.as_str();
    path.strip_prefix('/').unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_matches_as_a_whole() {
        #[rustfmt::skip]
        let cases = [
            ("v1/feeds",                "v1/feeds/{}",         None),
            ("v1/feeds/",               "v1/feeds/{}",         None),
            ("v1/feeds/7",              "v1/feeds/{}",         Some("7")),
            ("v1/feeds/a%2Fb/",         "v1/feeds/{}",         Some("a%2Fb")),
            ("v1/feeds/7//",            "v1/feeds/{}",         None),
            ("v1/feeds/7/entries",      "v1/feeds/{}",         None),
            ("v1/feeds/7/entries",      "v1/feeds/{}/entries", Some("7")),
            ("v1/feeds/7/entries/",     "v1/feeds/{}/entries", Some("7")),
            ("v1/feeds//entries",       "v1/feeds/{}/entries", None),
        ];
        for (path, pattern, want) in cases {
            assert_eq!(segment(path, pattern), want, "{path} as {pattern}");
        }
        assert!(ends_path("ping/", "ping") && ends_path("", "") && !ends_path("pings", "ping"));
        assert!(!ends_path("rsscloud/ping", "ping") && !ends_path("ping//", "ping"));
    }
}
