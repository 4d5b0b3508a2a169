//! `robots.txt` (RFC 9309), as far as it applies to feedgate.
//!
//! Rules that name feedgate hold for everything. Where none do, rules for all robots (`User-agent: *`)
//! hold for watched pages, as RFC 9309 has it, but not for feeds: a feed is published for programs that
//! fetch it for a reader who asked for it, and rules for `*` are written against crawlers of pages
//! (rule P40). This deviates from RFC 9309. No library implements it: all fall back to `*`.

use serde::{Deserialize, Serialize};

/// The product token of feedgate in `robots.txt`.
const OUR_NAME: &str = "feedgate";
/// The maximum number of rules that are kept of each kind.
const MOST_RULES: usize = 1_000;
/// The maximum length of a rule in bytes: that of a long path.
const LONGEST_RULE: usize = 2_048;
/// The maximum total length of the rules of each kind in bytes: every rule is compared with every path.
const MOST_BYTES: usize = 64 * 1_024;

/// The rules of one `robots.txt` for feedgate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Robots {
    /// The rules of the groups that name feedgate.
    rules: Vec<Rule>,
    /// Whether a group names feedgate, so that those for all robots do not apply to it.
    is_named: bool,
    /// The rules of the groups for all robots.
    for_all: Vec<Rule>,
}

/// Whom a group of rules is for.
#[derive(Clone, Copy, Default)]
struct Group {
    us: bool,
    all: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rule {
    allow: bool,
    pattern: String,
}

impl Robots {
    /// Parses the groups that name feedgate, and those for all robots.
    pub fn parse(text: &str) -> Robots {
        let mut robots = Robots::default();
        let (mut group, mut in_rules) = (Group::default(), true);
        let (mut room, mut room_for_all) = (MOST_BYTES, MOST_BYTES);
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    // Consecutive `User-agent` lines form one group.
                    group = if in_rules { Group::default() } else { group };
                    group = Group { us: group.us || is_us(value), all: group.all || value == "*" };
                    robots.is_named |= group.us;
                    in_rules = false;
                }
                key @ ("allow" | "disallow") => {
                    in_rules = true;
                    // "Disallow:" without a path disallows nothing.
                    if value.is_empty() || value.len() > LONGEST_RULE {
                        continue;
                    }
                    let (allow, pattern) = (key == "allow", encoded(value));
                    let lists = [
                        (group.us, &mut robots.rules, &mut room),
                        (group.all, &mut robots.for_all, &mut room_for_all),
                    ];
                    for (is_theirs, rules, room) in lists {
                        let is_short = pattern.len() <= LONGEST_RULE.min(*room);
                        if is_theirs && is_short && rules.len() < MOST_RULES {
                            *room -= pattern.len();
                            rules.push(Rule { allow, pattern: pattern.clone() });
                        }
                    }
                }
                _ => {}
            }
        }
        robots
    }

    /// Returns whether a feed may be fetched, by its path with its query.
    pub fn allows_feed(&self, path: &str) -> bool {
        allow(&self.rules, path)
    }

    /// Returns whether a page or another document that is not a feed may be fetched, by its path with
    /// its query. Rules for all robots hold if no group names feedgate (RFC 9309
    /// `#the-user-agent-line`).
    pub fn allows_page(&self, path: &str) -> bool {
        allow(if self.is_named { &self.rules } else { &self.for_all }, path)
    }

    /// Returns whether every feed may be fetched.
    pub fn allows_all_feeds(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Returns whether rules allow a path. The longest matching rule decides; of two equally long ones, the
/// one that allows (RFC 9309 `#the-allow-and-disallow-lines`).
fn allow(rules: &[Rule], path: &str) -> bool {
    let fits = rules.iter().filter(|rule| fits(&rule.pattern, path));
    let decides = fits.max_by_key(|rule| (rule.pattern.len(), rule.allow));
    decides.is_none_or(|rule| rule.allow)
}

/// Returns whether a `User-agent` names feedgate, with or without a version.
fn is_us(value: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_');
    let name = value.split(|c: char| !is_letter(c)).next().unwrap_or_default();
    name.eq_ignore_ascii_case(OUR_NAME)
}

/// Returns a path as it is written in URLs: non-ASCII characters are percent-encoded.
fn encoded(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    for byte in pattern.bytes() {
        match byte {
            b'!'..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Returns whether `path` begins with `pattern`, in which `*` matches anything and a final `$` the
/// end. Each part between stars is matched at its first occurrence, so no position of the path is
/// examined twice.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let Some((first, others)) = pattern.split_once('*') else {
        return path.strip_prefix(pattern).is_some_and(|rest| !to_the_end || rest.is_empty());
    };
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let (between, last) = others.rsplit_once('*').unwrap_or(("", others));
    for part in between.split('*') {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    if to_the_end { rest.ends_with(last) } else { rest.contains(last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p40_only_rules_that_call_us_by_our_name_count() {
        #[rustfmt::skip]
        let cases = [
            ("none",                      "",                                                     true),
            ("for everybody",             "User-agent: *\nDisallow: /",                           true),
            ("for us",                    "User-agent: feedgate\nDisallow: /",                    false),
            ("in any spelling",           "\u{feff}USER-AGENT : FeedGate/2.0\ndisallow:/feed",    false),
            ("for another",               "User-agent: feedgate-x\nDisallow: /",                  true),
            ("for us among others",       "User-agent: a\nUser-agent: feedgate\nUser-agent: b\nDisallow: /", false),
            ("for others after us",       "User-agent: feedgate\nDisallow: /x\nUser-agent: *\nDisallow: /", true),
            ("for us in two places",      "User-agent: feedgate\nDisallow: /x\n\nUser-agent: a\nDisallow: /y\nUser-agent: feedgate\nDisallow: /feed", false),
            ("nothing is forbidden",      "User-agent: feedgate\nDisallow:",                      true),
            ("with a comment",            "User-agent: feedgate # bot\nDisallow: / # all",        false),
            ("another path",              "User-agent: feedgate\nDisallow: /private",             true),
            ("the longest decides",       "User-agent: feedgate\nDisallow: /\nAllow: /feed",      true),
            ("to allow wins a draw",      "User-agent: feedgate\nDisallow: /feed\nAllow: /feed",  true),
            ("no rules at all",           "<html>Sorry</html>",                                   true),
            ("rules without a name",      "Disallow: /",                                          true),
        ];
        for (why, text, want) in cases {
            assert_eq!(Robots::parse(text).allows_feed("/feed?x=1"), want, "{why}");
        }
    }

    #[test]
    fn p40_rules_for_all_robots_hold_for_pages_unless_some_call_us_by_our_name() {
        #[rustfmt::skip]
        let cases = [
            ("none",                   "",                                                                      true),
            ("for everybody",          "User-agent: *\nDisallow: /",                                            false),
            ("another path",           "User-agent: *\nDisallow: /private",                                     true),
            ("for us as well",         "User-agent: *\nDisallow: /\n\nUser-agent: feedgate\nAllow: /",         true),
            ("nothing for us",         "User-agent: *\nDisallow: /\n\nUser-agent: feedgate\nDisallow:",        true),
            ("for us alone",           "User-agent: feedgate\nDisallow: /page",                                 false),
            ("for all among others",   "User-agent: a\nUser-agent: *\nUser-agent: b\nDisallow: /page",         false),
            ("for another",            "User-agent: a\nDisallow: /",                                            true),
            ("for another after all",  "User-agent: *\nDisallow: /x\nUser-agent: a\nDisallow: /",              true),
            ("the longest decides",    "User-agent: *\nDisallow: /\nAllow: /page",                              true),
        ];
        for (why, text, want) in cases {
            let robots = Robots::parse(text);
            assert_eq!(robots.allows_page("/page?x=1"), want, "{why}");
            let is_ours = text.contains("feedgate\nDisallow: /");
            assert_eq!(robots.allows_feed("/page?x=1"), !is_ours, "a feed: {why}");
            assert_eq!(
                robots.allows_all_feeds(),
                !text.contains("feedgate\nDisallow: /") && !text.contains("feedgate\nAllow"),
                "{why}"
            );
        }
    }

    #[test]
    fn p40_patterns_have_stars_and_an_end() {
        #[rustfmt::skip]
        let cases = [
            ("/",            "/feed",           true),
            ("/feed",        "/feeds/1",        true),
            ("/Feed",        "/feed",           false),
            ("/*.xml$",      "/a/feed.xml",     true),
            ("/*.xml$",      "/feed.xml?x",     false),
            ("/*.xml",       "/feed.xml?x",     true),
            ("/a*b*c",       "/a--b--bc",       true),
            ("/a*b*c$",      "/acbcb",          false),
            ("*feed",        "/my/feed",        true),
            ("/feed$",       "/feed",           true),
            ("/feed$",       "/feed/",          false),
            ("/a*a$",        "/a",              false),
            ("/*/x/*/y$",    "/x/x/y/y",        true),
            ("/é",           "/%C3%A9/feed",    true),
            ("/a**********b", "/aaaaaaaaaaaaaa", false),
        ];
        for (pattern, path, want) in cases {
            let robots = Robots::parse(&format!("User-agent: feedgate\nDisallow: {pattern}"));
            assert_eq!(!robots.allows_feed(path), want, "{pattern} {path}");
        }
    }

    #[test]
    fn rules_made_to_hurt_are_compared_in_no_time_or_not_kept() {
        let of = |rules: &str| Robots::parse(&format!("User-agent: feedgate\n{rules}"));
        let long = |len: usize| of(&format!("Disallow: /{}", "a".repeat(len - 1)));
        assert_eq!([long(2_048).rules.len(), long(2_049).rules.len()], [1, 0]);
        assert_eq!(of(&format!("Disallow: /{}", "é".repeat(1_000))).rules.len(), 0, "encoded");

        let stars = format!("Disallow: /{}b\n", "*a".repeat(1_000));
        let many = of(&(stars.repeat(100) + "Disallow: /private"));
        let bytes: usize = many.rules.iter().map(|rule| rule.pattern.len()).sum();
        assert!(bytes <= 65_536, "{bytes}");
        assert!(many.allows_feed(&format!("/{}", "a".repeat(2_000))));
        assert!(!many.allows_feed("/private"), "a short one has room still");
    }
}
