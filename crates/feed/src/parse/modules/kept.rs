//! Modules that have no home in Atom at all: known only so that their elements are kept
//! under the right URI and prefix, even where nobody declared it.

use crate::parse::vocabulary::{Vocabulary, keep};

const fn kept(prefix: &'static str, uris: &'static [&'static str]) -> Vocabulary {
    Vocabulary { prefix, uris, read: keep }
}

pub(super) static SLASH: Vocabulary = kept("slash", &["http://purl.org/rss/1.0/modules/slash/"]);
pub(super) static WFW: Vocabulary = kept("wfw", &["http://wellformedweb.org/CommentAPI/"]);
pub(super) static THR: Vocabulary = kept("thr", &["http://purl.org/syndication/thread/1.0"]);
pub(super) static PODCAST: Vocabulary = kept(
    "podcast",
    &[
        "https://podcastindex.org/namespace/1.0",
        "https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md",
    ],
);
pub(super) static PSC: Vocabulary =
    kept("psc", &["http://podlove.org/simple-chapters", "http://podlove.org/simple-chapters/1"]);
pub(super) static CREATIVE_COMMONS: Vocabulary = kept(
    "creativeCommons",
    &[
        "http://backend.userland.com/creativeCommonsRssModule",
        "http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html",
    ],
);
pub(super) static CC: Vocabulary = kept(
    "cc",
    &[
        "http://web.resource.org/cc/",
        "http://creativecommons.org/ns#",
        "http://creativecommons.org/ns#license",
    ],
);
pub(super) static FEEDBURNER: Vocabulary =
    kept("feedburner", &["http://rssnamespace.org/feedburner/ext/1.0"]);
pub(super) static SOURCE: Vocabulary = kept("source", &["http://source.scripting.com/"]);
/// Its author never published an address for it, so [`vocabulary::by_uri`] takes whatever
/// ends in its name.
///
/// [`vocabulary::by_uri`]: crate::parse::vocabulary::by_uri
pub(in crate::parse) static RSSCLOUD: Vocabulary =
    kept("rssCloud", &["http://rsscloud.org/", "http://rsscloud.co/", "http://rsscloud.com/"]);
pub(super) static DELETED: Vocabulary = kept("at", &["http://purl.org/atompub/tombstones/1.0"]);
pub(super) static HISTORY: Vocabulary = kept("fh", &["http://purl.org/syndication/history/1.0"]);
pub(super) static ADMIN: Vocabulary = kept("admin", &["http://webns.net/mvcb/"]);
pub(super) static APP: Vocabulary =
    kept("app", &["http://www.w3.org/2007/app", "http://purl.org/atom/app#"]);
pub(super) static OPENSEARCH: Vocabulary = kept(
    "opensearch",
    &["http://a9.com/-/spec/opensearch/1.1/", "http://a9.com/-/spec/opensearchrss/1.0/"],
);
pub(super) static TRACKBACK: Vocabulary =
    kept("trackback", &["http://madskills.com/public/xml/rss/module/trackback/"]);
pub(super) static PINGBACK: Vocabulary =
    kept("pingback", &["http://madskills.com/public/xml/rss/module/pingback/"]);
pub(super) static TAXONOMY: Vocabulary =
    kept("taxo", &["http://purl.org/rss/1.0/modules/taxonomy/"]);
pub(super) static ANNOTATE: Vocabulary =
    kept("annotate", &["http://purl.org/rss/1.0/modules/annotate/"]);
pub(super) static ATOM_EXTENSIONS: Vocabulary = kept("ae", &["http://purl.org/atom/ext/"]);
pub(super) static MICROBLOG: Vocabulary =
    kept("microblog", &["http://microblog.reallysimple.org/"]);
pub(super) static BLOGCHANNEL: Vocabulary =
    kept("blogChannel", &["http://backend.userland.com/blogChannelModule"]);
pub(super) static SUPERFEEDR: Vocabulary = kept("sf", &["http://superfeedr.com/xmpp-pubsub-ext"]);
