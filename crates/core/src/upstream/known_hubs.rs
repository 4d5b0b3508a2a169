//! Hubs that are known for feeds that do not name them.
//!
//! They have to prove themselves like hubs that feeds name: until one pushes new entries before polls
//! find them, its feeds are polled as if there were none (rule P53).

use url::Url;

/// A hub, and the feeds that it is known for.
struct KnownHub {
    /// The hosts of the feeds.
    hosts: &'static [&'static str],
    /// The paths of the feeds.
    paths: &'static [&'static str],
    /// The parameters of which one names a feed.
    parameters: &'static [&'static str],
    /// The address of the hub.
    hub: &'static str,
    /// The address under which the hub knows the feeds, without the parameter.
    topic: &'static str,
}

/// All known hubs.
const KNOWN_HUBS: [KnownHub; 1] = [
    // YouTube documents its hub, but its feeds do not name it. The hub publishes under the path that
    // feeds had once.
    // https://developers.google.com/youtube/v3/guides/push_notifications
    KnownHub {
        hosts: &["www.youtube.com", "youtube.com", "m.youtube.com"],
        paths: &["/feeds/videos.xml", "/xml/feeds/videos.xml"],
        parameters: &["channel_id", "playlist_id", "user"],
        hub: "https://pubsubhubbub.appspot.com/subscribe",
        topic: "https://www.youtube.com/xml/feeds/videos.xml",
    },
];

/// Returns the address of the hub for the feed at this address, and the topic to subscribe to there.
pub(super) fn find(url: &str) -> Option<(String, String)> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.port().is_none();
    let mut hubs = KNOWN_HUBS
        .iter()
        .filter(|known| is_web && known.hosts.contains(&host) && known.paths.contains(&url.path()));
    let known = hubs.next()?;
    let (name, value) = url
        .query_pairs()
        .find(|(name, value)| known.parameters.contains(&name.as_ref()) && !value.is_empty())?;
    let topic = Url::parse_with_params(known.topic, [(name, value)]).ok()?;
    Some((known.hub.to_owned(), topic.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p53_feeds_of_youtube_have_a_hub_that_they_do_not_name() {
        #[rustfmt::skip]
        let cases = [
            ("https://www.youtube.com/feeds/videos.xml?channel_id=UC_x5XG1OV2P6uZZ5FSM9Ttw", Some("channel_id=UC_x5XG1OV2P6uZZ5FSM9Ttw")),
            ("http://youtube.com/feeds/videos.xml?playlist_id=PL590L5WQmH8c&x=y",            Some("playlist_id=PL590L5WQmH8c")),
            ("https://www.youtube.com/feeds/videos.xml?user=a%26b",                          Some("user=a%26b")),
            ("https://www.youtube.com/xml/feeds/videos.xml?channel_id=UC1",                  Some("channel_id=UC1")),
            ("https://www.youtube.com/feeds/videos.xml?channel_id=",                         None),
            ("https://www.youtube.com/feeds/videos.xml",                                     None),
            ("https://www.youtube.com/@name?channel_id=UC1",                                 None),
            ("https://www.youtube.com:8080/feeds/videos.xml?channel_id=UC1",                 None),
            ("https://www.youtube.com.a.test/feeds/videos.xml?channel_id=UC1",               None),
            ("https://a.test/feeds/videos.xml?channel_id=UC1",                               None),
        ];
        for (url, want) in cases {
            let want = want.map(|query| {
                let topic = format!("https://www.youtube.com/xml/feeds/videos.xml?{query}");
                ("https://pubsubhubbub.appspot.com/subscribe".to_owned(), topic)
            });
            assert_eq!(find(url), want, "{url}");
        }
    }
}
