//! The table of vocabularies, in the order in which prefixes are looked up: formats first, then
//! modules.

use super::Vocabulary;

/// Declares one vocabulary per line: its name, its prefix and its URIs.
macro_rules! vocabularies {
    ($($(#[$doc:meta])* $name:ident $prefix:literal [$($uri:literal),* $(,)?];)*) => {
        $($(#[$doc])* pub(in crate::parse) static $name: Vocabulary =
            Vocabulary { prefix: $prefix, uris: &[$($uri),*] };)*

        /// All namespaces.
        pub(super) static ALL: &[&Vocabulary] = &[$(&$name),*];
    };
}

vocabularies! {
    /// Attributes defined by XML itself.
    XML "xml" ["http://www.w3.org/XML/1998/namespace"];
    /// XHTML.
    XHTML "xhtml" ["http://www.w3.org/1999/xhtml"];
    /// RDF.
    RDF "rdf" ["http://www.w3.org/1999/02/22-rdf-syntax-ns#"];
    /// RSS. Most of its versions have no namespace; kept elements get the namespace that RSS 2.0
    /// had for a while.
    RSS "rss" [
        "http://backend.userland.com/rss2",
        "http://backend.userland.com/rss",
        "http://backend.userland.com/rss091",
        "http://backend.userland.com/rss092",
        "http://backend.userland.com/rss093",
        "http://blogs.law.harvard.edu/tech/rss",
        "http://cyber.law.harvard.edu/rss/rss.html",
        "http://purl.org/rss/1.0/",
        "http://purl.org/rss/1.1/",
        "http://purl.org/net/rss1.1#",
        "http://my.netscape.com/rdf/simple/0.9/",
        "http://channel.netscape.com/rdf/simple/0.9/",
        "http://my.netscape.com/publish/formats/rss-0.91.dtd",
        "http://purl.org/rss/1.0/modules/rss091#",
    ];
    /// Atom 1.0 (RFC 4287).
    ATOM "atom" [
        "http://www.w3.org/2005/Atom",
        "http://www.w3.org/2005/Atom/ns",
        "http://purl.org/atom",
    ];
    /// Atom 0.3 and the drafts before 1.0.
    ATOM03 "atom03" [
        "http://purl.org/atom/ns#",
        "http://purl.org/pie/",
        "http://purl.org/echo/",
        "http://example.com/newformat#",
        "http://example.com/necho",
        "uri/of/echo/namespace#",
        "http://purl.org/atom/ns#draft-ietf-atompub-format-05",
    ];
    /// Dublin Core, the fifteen elements.
    DC "dc" [
        "http://purl.org/dc/elements/1.1/",
        "http://purl.org/dc/elements/1.0/",
        "http://purl.org/metadata/dublin_core",
    ];
    /// Dublin Core, the qualified terms.
    DCTERMS "dcterms" ["http://purl.org/dc/terms/"];
    /// The content module of RSS.
    CONTENT "content" ["http://purl.org/rss/1.0/modules/content/"];
    /// The syndication module of RSS: how often a feed changes.
    SY "sy" ["http://purl.org/rss/1.0/modules/syndication/"];
    /// Media RSS.
    MEDIA "media" [
        "http://search.yahoo.com/mrss/",
        "http://search.yahoo.com/mrss",
        "http://video.search.yahoo.com/mrss",
        "http://tools.search.yahoo.com/mrss/",
    ];
    /// Apple's podcast elements.
    ITUNES "itunes" [
        "http://www.itunes.com/dtds/podcast-1.0.dtd",
        "http://www.itunes.com/dtds/podcast-1.0.dtd/",
        "http://example.com/dtds/podcast-1.0.dtd",
    ];
    /// Google Play's podcast elements.
    GOOGLEPLAY "googleplay" [
        "http://www.google.com/schemas/play-podcasts/1.0",
        "http://www.google.com/schemas/play-podcasts/1.0/play-podcasts.xsd",
    ];
    /// GeoRSS.
    GEORSS "georss" [
        "http://www.georss.org/georss",
        "http://www.georss.org/georss/10",
        "http://www.georss.org/georss/11",
    ];
    /// W3C geo.
    GEO "geo" [
        "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "http://www.w3.org/2003/01/geo/",
    ];
    /// Geography Markup Language.
    GML "gml" [
        "http://www.opengis.net/gml",
        "http://www.opengis.net/gml/3.2",
    ];
    /// ICBM coordinates.
    ICBM "icbm" ["http://postneo.com/icbm"];
    /// GeoURL.
    GEOURL "geourl" ["http://geourl.org/rss/module/"];
    /// ActivityStreams in Atom, under the prefix that subscribers know (seed 003).
    ACTIVITY "as" [
        "http://activitystrea.ms/spec/1.0/",
        "http://activitystrea.ms/schema/1.0/",
    ];
    /// Portable Contacts.
    POCO "poco" ["http://portablecontacts.net/spec/1.0"];
    /// Slashdot: departments and counts of comments.
    SLASH "slash" ["http://purl.org/rss/1.0/modules/slash/"];
    /// The comment API.
    WFW "wfw" ["http://wellformedweb.org/CommentAPI/"];
    /// Threading (RFC 4685).
    THR "thr" ["http://purl.org/syndication/thread/1.0"];
    /// Podcasting 2.0.
    PODCAST "podcast" [
        "https://podcastindex.org/namespace/1.0",
        "https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md",
    ];
    /// Podlove simple chapters.
    PSC "psc" [
        "http://podlove.org/simple-chapters",
        "http://podlove.org/simple-chapters/1",
    ];
    /// Licenses, as UserLand wrote them.
    CREATIVE_COMMONS "creativeCommons" [
        "http://backend.userland.com/creativeCommonsRssModule",
        "http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html",
    ];
    /// Licenses, as Creative Commons writes them.
    CC "cc" [
        "http://web.resource.org/cc/",
        "http://creativecommons.org/ns#",
        "http://creativecommons.org/ns#license",
    ];
    /// FeedBurner.
    FEEDBURNER "feedburner" ["http://rssnamespace.org/feedburner/ext/1.0"];
    /// Dave Winer's source namespace.
    SOURCE "source" ["http://source.scripting.com/"];
    /// rssCloud. Its author never published a URI, so [`by_uri`](super::by_uri) also accepts any
    /// URI that ends in its name.
    RSSCLOUD "rssCloud" [
        "http://rsscloud.org/",
        "http://rsscloud.co/",
        "http://rsscloud.com/",
    ];
    /// Tombstones (RFC 6721).
    DELETED "at" ["http://purl.org/atompub/tombstones/1.0"];
    /// Feed paging and archiving (RFC 5005).
    HISTORY "fh" ["http://purl.org/syndication/history/1.0"];
    /// The administration module of RSS 1.0.
    ADMIN "admin" ["http://webns.net/mvcb/"];
    /// The Atom Publishing Protocol (RFC 5023).
    APP "app" [
        "http://www.w3.org/2007/app",
        "http://purl.org/atom/app#",
    ];
    /// OpenSearch.
    OPENSEARCH "opensearch" [
        "http://a9.com/-/spec/opensearch/1.1/",
        "http://a9.com/-/spec/opensearchrss/1.0/",
    ];
    /// TrackBack.
    TRACKBACK "trackback" ["http://madskills.com/public/xml/rss/module/trackback/"];
    /// Pingback.
    PINGBACK "pingback" ["http://madskills.com/public/xml/rss/module/pingback/"];
    /// The taxonomy module of RSS 1.0.
    TAXONOMY "taxo" ["http://purl.org/rss/1.0/modules/taxonomy/"];
    /// The annotation module of RSS 1.0.
    ANNOTATE "annotate" ["http://purl.org/rss/1.0/modules/annotate/"];
    /// Extensions of Atom.
    ATOM_EXTENSIONS "ae" ["http://purl.org/atom/ext/"];
    /// Microblogs.
    MICROBLOG "microblog" ["http://microblog.reallysimple.org/"];
    /// UserLand's blogChannel module.
    BLOGCHANNEL "blogChannel" ["http://backend.userland.com/blogChannelModule"];
    /// Sitemaps.
    SITEMAP "sitemap" ["http://www.sitemaps.org/schemas/sitemap/0.9"];
    /// Articles in sitemaps.
    ARTICLES "news" ["http://www.google.com/schemas/sitemap-news/0.9"];
    /// Superfeedr's own elements.
    SUPERFEEDR "sf" ["http://superfeedr.com/xmpp-pubsub-ext"];
}
