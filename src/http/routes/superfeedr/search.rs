//! Searching a list of subscriptions (L-6 to L-9).

use url::Url;

use feedgate_core::store::ListedSubscription;
use feedgate_protocol::form::Form;

/// A search: every condition must hold.
#[derive(Debug, Default)]
pub(super) struct SubscriptionSearch {
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    /// A text over addresses and titles.
    Anywhere(String),
    Feed(Address),
    Endpoint(Address),
    Format(String),
    Velocity(Range),
    Bozo(Range),
    Porn(Range),
    Popularity(Range),
    /// An unknown condition: nothing meets it.
    Nothing,
}

#[derive(Clone, Debug, PartialEq)]
enum Address {
    Is(String),
    Holds(String),
    Host(String),
    /// `%` stands for any text.
    Like(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Range {
    Is(f64),
    Above(f64),
    From(f64),
    UpTo(f64),
    Below(f64),
}

impl SubscriptionSearch {
    /// Reads `search[feed][url]`, `search[feed.url]`, `search=text`, `hub.callback` in which
    /// `%` stands for any text, and `hub.callback[feed][url]`.
    pub(super) fn from_form(form: &Form) -> SubscriptionSearch {
        let mut conditions = Vec::new();
        for (name, value) in form.pairs() {
            let value = value.trim();
            let key = name.strip_prefix("search").or(name.strip_prefix("hub.callback"));
            match key {
                Some("") if name == "hub.callback" && value.is_empty() => {}
                Some("") if name == "hub.callback" => {
                    conditions.push(Condition::Endpoint(Address::Like(value.to_owned())));
                }
                Some("") => conditions.push(Condition::Anywhere(value.to_lowercase())),
                Some(key) if key.starts_with('[') && key.ends_with(']') => {
                    let key = key[1..key.len() - 1].replace("][", ".");
                    conditions.push(condition(&key, value));
                }
                _ => {}
            }
        }
        SubscriptionSearch { conditions }
    }

    /// Returns whether there is no condition, so that every subscription matches.
    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Returns whether this subscription meets every condition.
    pub(super) fn matches(&self, listed: &ListedSubscription) -> bool {
        self.conditions.iter().all(|condition| holds(condition, listed))
    }
}

fn condition(key: &str, value: &str) -> Condition {
    let range = |make: fn(Range) -> Condition| range(value).map_or(Condition::Nothing, make);
    let address = |kind: &str| {
        Some(match kind {
            "url" => Address::Is(value.to_owned()),
            "inurl" => Address::Holds(value.to_lowercase()),
            "hostname" => Address::Host(value.to_lowercase()),
            _ => return None,
        })
    };
    match key.split_once('.').unwrap_or((key, "")) {
        ("format", "") => Condition::Format(value.to_lowercase()),
        ("feed", "velocity") => range(Condition::Velocity),
        ("feed", "bozo") => range(Condition::Bozo),
        ("feed", "porn") => range(Condition::Porn),
        ("feed", "popularity") => range(Condition::Popularity),
        ("feed", kind) => address(kind).map_or(Condition::Nothing, Condition::Feed),
        ("endpoint", kind) => address(kind).map_or(Condition::Nothing, Condition::Endpoint),
        _ => Condition::Nothing,
    }
}

/// Reads a range: `10`, `>10`, `>=10`, `<10` or `<=10`.
fn range(text: &str) -> Option<Range> {
    let number = |text: &str| text.trim().parse().ok();
    for (sign, make) in [
        (">=", Range::From as fn(f64) -> Range),
        ("<=", Range::UpTo),
        (">", Range::Above),
        ("<", Range::Below),
    ] {
        if let Some(rest) = text.strip_prefix(sign) {
            return number(rest).map(make);
        }
    }
    number(text).map(Range::Is)
}

impl Range {
    fn holds(self, value: f64) -> bool {
        match self {
            Range::Is(bound) => value == bound,
            Range::Above(bound) => value > bound,
            Range::From(bound) => value >= bound,
            Range::UpTo(bound) => value <= bound,
            Range::Below(bound) => value < bound,
        }
    }
}

impl Address {
    fn fits(&self, url: &str) -> bool {
        match self {
            Address::Is(text) => url == text,
            Address::Holds(text) => url.to_lowercase().contains(text),
            Address::Host(host) => {
                Url::parse(url).is_ok_and(|url| url.host_str() == Some(host.as_str()))
            }
            Address::Like(pattern) => is_like(url, pattern),
        }
    }
}

/// Returns whether `text` matches `pattern`, where `%` stands for anything. A pattern that begins
/// with `%`, and does not end with it, is found at the end or anywhere: clients search for
/// `%dev/null`.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('%');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

fn holds(condition: &Condition, listed: &ListedSubscription) -> bool {
    let ListedSubscription { subscription, resource, .. } = listed;
    // The URL that lists show, which for tracks and archives is another one than the topic.
    let topics = [subscription.topic.as_str(), subscription.topic.subscribed_as()];
    let endpoint = subscription.callback.as_str();
    let status = &resource.status;
    match condition {
        Condition::Anywhere(text) => [topics[0], topics[1], endpoint, status.title.as_str()]
            .iter()
            .any(|held| held.to_lowercase().contains(text)),
        Condition::Feed(address) => topics.iter().any(|topic| address.fits(topic)),
        Condition::Endpoint(address) => address.fits(endpoint),
        Condition::Format(word) => subscription.format.told() == word,
        Condition::Velocity(range) => range.holds(status.velocity as f64),
        Condition::Bozo(range) => range.holds(status.bozo_rank),
        Condition::Porn(range) => status.porn_rank.is_some_and(|rank| range.holds(rank)),
        Condition::Popularity(range) => range.holds(status.popularity),
        Condition::Nothing => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions_of(query: &str) -> Vec<Condition> {
        SubscriptionSearch::from_form(&Form::from_urlencoded(query.as_bytes()).unwrap()).conditions
    }

    /// Row L-6.
    #[test]
    fn both_bracket_spellings_are_read() {
        let want = [Condition::Feed(Address::Is("http://a.test/".to_owned()))];
        for query in [
            "search[feed][url]=http://a.test/",
            "search[feed.url]=http://a.test/",
            "search%5Bfeed%5D%5Burl%5D=http%3A%2F%2Fa.test%2F",
            "search%5Bfeed.url%5D=http%3A%2F%2Fa.test%2F",
        ] {
            assert_eq!(conditions_of(query), want, "{query}");
        }
        assert_eq!(conditions_of("search[feed][colour]=red"), [Condition::Nothing]);
        assert_eq!(conditions_of("page=1"), []);
    }

    /// Row L-7.
    #[test]
    fn ranges_are_read_and_compared() {
        #[rustfmt::skip]
        let cases = [("10", 10.0, true), ("10", 9.0, false), (">10", 10.0, false), (">=10", 10.0, true),
            ("<10", 10.0, false), ("<=10", 10.0, true), ("<1", 0.5, true)];
        for (text, value, want) in cases {
            assert_eq!(range(text).unwrap().holds(value), want, "{text} {value}");
        }
        assert_eq!(range("many"), None);
    }

    /// Rows L-6 and L-9.
    #[test]
    fn addresses_are_compared_in_four_ways() {
        let url = "https://Push.a.test/dev/null";
        #[rustfmt::skip]
        let cases = [
            (Address::Is(url.to_owned()),                  true),
            (Address::Is("https://push.a.test".to_owned()), false),
            (Address::Holds("push.a".to_owned()),          true),
            (Address::Host("push.a.test".to_owned()),      true),
            (Address::Like("%dev/null".to_owned()),        true),
            (Address::Like("https://%/null".to_owned()),   true),
            (Address::Like("%/dev/%".to_owned()),          true),
            (Address::Like("%dev".to_owned()),             false),
            (Address::Like(url.to_owned()),                true),
        ];
        for (address, want) in cases {
            assert_eq!(address.fits(url), want, "{address:?}");
        }
    }
}
