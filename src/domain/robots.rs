//! `robots.txt` (RFC 9309), as far as it concerns us.
//!
//! Whoever fetches a feed does so for a reader who asked for it, so rules for everybody
//! (`User-agent: *`), which are written against crawlers, are not for us; a rule that calls
//! us by our name is (rule P40). No library reads it like that: all fall back to `*`.

use serde::{Deserialize, Serialize};

/// What we are called there.
const OUR_NAME: &str = "feedgate";
/// The most rules that are kept.
const MOST_RULES: usize = 1_000;

/// What one `robots.txt` says to us.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Robots {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Rule {
    allow: bool,
    pattern: String,
}

impl Robots {
    /// Reads the groups that call us by our name.
    pub fn parse(text: &str) -> Robots {
        let mut robots = Robots::default();
        let (mut ours, mut in_rules) = (false, true);
        for line in text.trim_start_matches('\u{feff}').lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    // One name after another makes one group for all of them.
                    ours = is_us(value) || (ours && !in_rules);
                    in_rules = false;
                }
                key @ ("allow" | "disallow") => {
                    in_rules = true;
                    // "Disallow:" without a path forbids nothing.
                    if ours && !value.is_empty() && robots.rules.len() < MOST_RULES {
                        let allow = key == "allow";
                        robots.rules.push(Rule { allow, pattern: encoded(value) });
                    }
                }
                _ => {}
            }
        }
        robots
    }

    /// Whether we may fetch a path with its query. The longest rule decides, and of two
    /// equally long ones the one that allows (RFC 9309 `#the-allow-and-disallow-lines`).
    pub fn allows(&self, path: &str) -> bool {
        let fits = self.rules.iter().filter(|rule| fits(rule.pattern.as_bytes(), path.as_bytes()));
        let decides = fits.max_by_key(|rule| (rule.pattern.len(), rule.allow));
        decides.is_none_or(|rule| rule.allow)
    }
}

/// Whether a name in `User-agent` is ours, with or without a version behind it.
fn is_us(value: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '_');
    let name = value.split(|c: char| !is_letter(c)).next().unwrap_or_default();
    name.eq_ignore_ascii_case(OUR_NAME)
}

/// A path as it stands in URLs: what is not ASCII is encoded.
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

/// Whether `path` begins with `pattern`, in which `*` stands for anything and a closing `$`
/// for the end.
fn fits(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, to_the_end) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    // Where to try again if what follows a `*` does not fit: a later place for it.
    let (mut at, mut of, mut again) = (0, 0, None);
    loop {
        match pattern.get(of) {
            Some(b'*') => {
                again = Some((of + 1, at));
                of += 1;
                continue;
            }
            Some(byte) if path.get(at) == Some(byte) => {
                (at, of) = (at + 1, of + 1);
                continue;
            }
            None if !to_the_end || at == path.len() => return true,
            _ => {}
        }
        let Some((after, from)) = again.filter(|(_, from)| *from < path.len()) else {
            return false;
        };
        again = Some((after, from + 1));
        (at, of) = (from + 1, after);
    }
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
            assert_eq!(Robots::parse(text).allows("/feed?x=1"), want, "{why}");
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
            ("/é",           "/%C3%A9/feed",    true),
            ("/a**********b", "/aaaaaaaaaaaaaa", false),
        ];
        for (pattern, path, want) in cases {
            let robots = Robots::parse(&format!("User-agent: feedgate\nDisallow: {pattern}"));
            assert_eq!(!robots.allows(path), want, "{pattern} {path}");
        }
    }
}
