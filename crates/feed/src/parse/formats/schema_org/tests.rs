//! Tests of pages that describe their entries: what is an entry, and what becomes of it.

use url::Url;

use crate::context::Context;
use crate::model::{Content, Entry, Feed, FeedFormat, Text, TextKind};
use crate::parse::{MAX_ENTRIES, NotAFeed, parse};
use crate::repair::RepairCode;

fn read(page: &str) -> Result<Feed, NotAFeed> {
    let context = Context::new(Url::parse("https://tides.test/log/").unwrap());
    parse(format!("<!doctype html><html><head><title>The tides</title>{page}").as_bytes(), &context)
}

fn json_ld(json: &str) -> Result<Feed, NotAFeed> {
    read(&format!("<script type='application/ld+json'>{json}</script><body><p>Tides"))
}

/// The entries of a page, each as its title, or else its first link.
fn entries(feed: Result<Feed, NotAFeed>) -> Vec<String> {
    let named = |entry: &Entry| match (&entry.title, entry.links.first()) {
        (Some(title), _) => title.value.clone(),
        (None, link) => link.map(|link| link.href.clone()).unwrap_or_default(),
    };
    feed.map(|feed| feed.entries.iter().map(named).collect()).unwrap_or_default()
}

const POST: &str = r#"{"@type": "BlogPosting", "headline": "Ebb", "url": "/ebb"}"#;
const OTHER: &str = r#"{"@type": "NewsArticle", "headline": "Flood", "url": "/flood"}"#;

#[test]
fn a_page_has_entries_if_it_is_about_them() {
    let list = |kind: &str, member: &str, items: &str| {
        format!(r#"{{"@context": "https://schema.org", "@type": "{kind}", "{member}": {items}}}"#)
    };
    let both = format!("[{POST}, {OTHER}]");
    let place = |item: &str| format!(r#"{{"@type": "ListItem", "position": 1, {item}}}"#);
    let product = r#"{"@type": "Product", "name": "Boat", "url": "/boat"}"#;
    let page_of = |main: &str| format!(r#"{{"@type": "WebPage", "mainEntity": {main}}}"#);
    let links =
        list("ItemList", "itemListElement", &format!("[{}]", place(r#""url": "/a", "name": "A""#)));
    let named = list("ItemList", "itemListElement", r#"["A", "B"]"#);
    let graph =
        |nodes: &str| format!(r#"{{"@context": "https://schema.org", "@graph": [{nodes}]}}"#);
    let own = POST.replace("/ebb", "https://tides.test/log/");
    let twice =
        |more: &str| format!(r##"{{"@type": "Article", "@id": "#1", "headline": "Ebb"{more}}}"##);
    #[rustfmt::skip]
    let cases: [(&str, String, &[&str]); 32] = [
        ("one article",              POST.to_owned(),                                             &["Ebb"]),
        ("several articles",         both.clone(),                                                &["Ebb", "Flood"]),
        ("one of them at this address", format!("[{own}, {OTHER}]"),                              &["Ebb"]),
        ("one article stated twice", format!("[{}, {}]", twice(""), twice(r#", "keywords": "sea""#)), &["Ebb"]),
        ("one address stated twice", format!("[{POST}, {}]", OTHER.replace("flood", "ebb")),       &["Ebb"]),
        ("a blog",                   list("Blog", "blogPost", &both),                             &["Ebb", "Flood"]),
        ("a blog with one post",     list("Blog", "blogPosts", POST),                             &["Ebb"]),
        ("a collection",             list("CollectionPage", "hasPart", &both),                    &["Ebb", "Flood"]),
        ("a list",                   list("ItemList", "itemListElement", &both),                  &["Ebb", "Flood"]),
        ("a list of places",         list("ItemList", "itemListElement", &place(&format!(r#""item": {POST}"#))), &["Ebb"]),
        ("a list of addresses",      links.clone(),                                               &["A"]),
        ("addresses in texts",       list("ItemList", "itemListElement", r#"["https://tides.test/a"]"#), &["https://tides.test/a"]),
        ("a list of names",          named,                                                       &[]),
        ("a list of products",       list("ItemList", "itemListElement", product),                &["Boat"]),
        ("a list that a page is about", page_of(&links),                                          &["A"]),
        ("an article that a page is about", page_of(POST),                                        &["Ebb"]),
        ("a list in a collection",   format!(r#"{{"@type": "CollectionPage", "mainEntity": {links}}}"#), &["A"]),
        ("a podcast",                list("PodcastSeries", "episode", &POST.replace("BlogPosting", "PodcastEpisode")), &["Ebb"]),
        ("a podcast in seasons",     list("PodcastSeries", "hasPart", &list("PodcastSeason", "episode", &POST.replace("BlogPosting", "PodcastEpisode"))), &["Ebb"]),
        ("what happens",             format!(r#"{{"@type": "LiveBlogPosting", "headline": "Storm", "liveBlogUpdate": {both}}}"#), &["Ebb", "Flood"]),
        ("a graph",                  graph(&format!(r#"{{"@type": "WebPage"}}, {POST}, {{"@type": "Person", "name": "Ada"}}"#)), &["Ebb"]),
        ("a graph with references",  graph(r##"{"@type": "Blog", "blogPost": [{"@id": "#1"}]}, {"@id": "#1", "@type": "BlogPosting", "headline": "Ebb"}"##), &["Ebb"]),
        ("an article beside a list", format!("[{POST}, {links}]"),                                &["Ebb"]),
        ("a blog beside its post",   format!("[{}, {OTHER}]", list("Blog", "blogPost", POST)),    &["Ebb"]),
        ("a product",                product.to_owned(),                                          &[]),
        ("a product beside a list",  format!("[{product}, {links}]"),                             &[]),
        ("a page, its owner and place", format!("[{}, {}, {}]", page_of(r#""x""#), r#"{"@type": "Organization", "name": "T"}"#, list("BreadcrumbList", "itemListElement", &place(r#""item": {"@id": "/", "name": "Home"}"#))), &[]),
        ("a menu",                   list("ItemList", "itemListElement", r#"[{"@type": "SiteNavigationElement", "url": "/a", "name": "A"}]"#), &[]),
        ("questions",                list("FAQPage", "mainEntity", r#"[{"@type": "Question", "name": "When?"}]"#), &[]),
        ("an article that says nothing", r#"{"@type": "Article"}"#.to_owned(),                    &[]),
        ("an empty blog",            list("Blog", "blogPost", "[]"),                              &[]),
        ("an article that is mentioned", format!(r#"{{"@type": "WebPage", "mentions": {POST}}}"#), &[]),
    ];
    for (why, json, want) in cases {
        assert_eq!(entries(json_ld(&json)), want, "{why}");
    }
}

#[test]
fn an_article_becomes_an_entry() {
    let json = r##"{"@context": "https://schema.org", "@type": ["Article", "NewsArticle"], "@id": "#ebb",
        "headline": "Ebb &amp; flood", "description": "Twice a day.", "articleBody": "The sea\nrises.",
        "datePublished": "2026-11-26T08:00:00+01:00", "dateModified": "2026-11-27", "inLanguage": "en-GB",
        "mainEntityOfPage": {"@type": "WebPage", "@id": "https://tides.test/log/ebb"},
        "author": [{"@type": "Person", "name": "Ada", "url": "/ada", "image": {"@type": "ImageObject", "url": "/ada.png"}}, "Bob"],
        "publisher": {"@type": "Organization", "name": "Tides Ltd"}, "keywords": "sea, moon,sea", "articleSection": ["Coast"],
        "image": ["/1.jpg", "/2.jpg"], "wordCount": 3, "commentCount": 7}"##;
    let feed = json_ld(json).unwrap();
    assert_eq!((feed.format, feed.title), (FeedFormat::JsonLd, Some(Text::plain("The tides"))));
    let entry = &feed.entries[0];
    assert_eq!(entry.id, "https://tides.test/log/#ebb");
    let title = entry.title.as_ref().unwrap();
    assert_eq!((title.kind, title.value.as_str()), (TextKind::Html, "Ebb &amp; flood"));
    assert_eq!(entry.summary, Some(Text::plain("Twice a day.")));
    assert_eq!(entry.content, Some(Content::Text(Text::plain("The sea\nrises."))));
    assert_eq!(entry.published.unwrap().to_rfc3339(), "2026-11-26T08:00:00+01:00");
    assert_eq!(entry.updated.unwrap().to_rfc3339(), "2026-11-27T00:00:00+00:00");
    assert_eq!(entry.lang.as_deref(), Some("en-GB"));
    let links: Vec<_> = entry.links.iter().map(|link| (&*link.rel, &*link.href)).collect();
    assert_eq!(links, [("alternate", "https://tides.test/log/ebb")]);
    let people: Vec<_> = entry.authors.iter().map(|who| (&*who.name, who.uri.as_deref())).collect();
    assert_eq!(people, [("Ada", Some("https://tides.test/ada")), ("Bob", None)]);
    assert_eq!(entry.authors[0].extensions[0].attributes[1].value, "https://tides.test/ada.png");
    let terms: Vec<_> = entry.categories.iter().map(|category| &*category.term).collect();
    assert_eq!(terms, ["sea", "moon", "Coast"]);
    let kept: Vec<_> = entry.extensions.iter().map(|kept| (&*kept.name, kept.text())).collect();
    let (publisher, words) = (("publisher", "Tides Ltd".to_owned()), ("wordCount", "3".to_owned()));
    assert_eq!(kept, [("thumbnail", String::new()), publisher, words]);
}

#[test]
fn what_an_item_does_not_say_is_said_by_another_one_with_its_id() {
    let json = r##"{"@graph": [{"@type": "Article", "headline": "Ebb", "author": {"name": "Nell", "@id": "#nell"}},
        {"@type": "Person", "@id": "#nell", "name": "Nell of the tides", "url": "https://nell.test/"}]}"##;
    let author = json_ld(json).unwrap().entries.remove(0).authors.remove(0);
    assert_eq!((&*author.name, author.uri.as_deref()), ("Nell", Some("https://nell.test/")));
}

#[test]
fn an_episode_has_its_recording() {
    let json = r#"{"@type": "PodcastSeries", "name": "Tide talk", "description": "About the sea", "url": "/",
        "episode": {"@type": "PodcastEpisode", "name": "Ebb", "url": "/1", "identifier": "tag:tides.test,2026:1",
        "datePublished": "2026-11-26", "timeRequired": "PT31M", "episodeNumber": 1, "associatedMedia":
        {"@type": "MediaObject", "contentUrl": "https://cdn.test/1.mp3", "encodingFormat": "audio/mpeg", "contentSize": "123"}}}"#;
    let feed = json_ld(json).unwrap();
    assert_eq!(feed.title, Some(Text::plain("Tide talk")));
    assert_eq!(feed.subtitle, Some(Text::plain("About the sea")));
    let entry = &feed.entries[0];
    assert_eq!(entry.id, "tag:tides.test,2026:1");
    let link = entry.links.iter().find(|link| link.rel == "enclosure").unwrap();
    let link = (&*link.href, link.mime.as_deref(), link.length.as_deref());
    assert_eq!(link, ("https://cdn.test/1.mp3", Some("audio/mpeg"), Some("123")));
    let kept: Vec<_> = entry.extensions.iter().map(|kept| (&*kept.name, kept.text())).collect();
    assert!(kept.contains(&("duration", "1860".to_owned())), "{kept:?}");
    assert!(kept.contains(&("episode", "1".to_owned())), "{kept:?}");
}

#[test]
fn microdata_says_the_same() {
    let post = |name: &str, property: &str| {
        format!(
            "<article itemscope {property} itemtype='https://schema.org/BlogPosting'>\
             <h2 itemprop=headline><a itemprop=url href='{name}'>{name}</a></h2>\
             <time itemprop=datePublished datetime=2026-11-27>Today</time>\
             <p itemprop=author itemscope itemtype='https://schema.org/Person'>by <b itemprop=name>Ada</b></p>\
             <div itemprop=articleBody><p>High</p></div></article>"
        )
    };
    let two = |property: &str| post("Ebb", property) + &post("Flood", property);
    let blog = |inside: &str| {
        format!(
            "<main itemscope itemtype='http://schema.org/Blog'><h1 itemprop=name>Log</h1>{inside}</main>"
        )
    };
    let product =
        "<div itemscope itemtype='https://schema.org/Product'><b itemprop=name>Boat</b></div>";
    #[rustfmt::skip]
    let cases: [(&str, String, &[&str]); 6] = [
        ("one article",        post("Ebb", ""),                 &["Ebb"]),
        ("several articles",   two(""),                         &["Ebb", "Flood"]),
        ("a blog",             blog(&two("itemprop=blogPost")), &["Ebb", "Flood"]),
        ("an empty blog",      blog(""),                        &[]),
        ("a product",          product.to_owned(),              &[]),
        ("another vocabulary", post("Ebb", "").replace("schema.org/Blog", "tides.test/schema.org/Blog"), &[]),
    ];
    for (why, html, want) in cases {
        assert_eq!(entries(read(&format!("<body>{html}"))), want, "{why}");
    }
    let feed = read(&format!("<body>{}", blog(&two("itemprop=blogPost")))).unwrap();
    assert_eq!((feed.format, feed.title), (FeedFormat::Microdata, Some(Text::plain("Log"))));
    let entry = &feed.entries[0];
    assert_eq!(entry.links[0].href, "https://tides.test/log/Ebb");
    assert_eq!((entry.authors[0].name.as_str(), entry.published.is_some()), ("Ada", true));
    let Some(Content::Text(body)) = &entry.content else { panic!("a body") };
    assert_eq!((body.kind, body.value.as_str()), (TextKind::Html, "<p>High</p>"));
}

#[test]
fn a_page_that_advertises_a_feed_is_not_read_as_one() {
    let script = format!("<script type='application/ld+json'>{POST}</script>");
    let link = "<link rel=alternate type='application/rss+xml' href=/feed>";
    assert_eq!(entries(read(&script)), ["Ebb"]);
    assert_eq!(read(&format!("{link}{script}")), Err(NotAFeed::Other("an HTML page")));
    let entry = "<body><div class=h-entry><a class='p-name u-url' href=/a>A</a></div>";
    assert_eq!(entries(read(entry)), ["A"]);
    assert_eq!(entries(read(&format!("{link}{entry}"))), [""; 0]);
    let mut context = Context::new(Url::parse("https://tides.test/log/").unwrap());
    let value = "</style.css>; rel=preload, </feed>; rel=alternate; type=\"application/atom+xml\"";
    context.headers.push(("link".to_owned(), value.to_owned()));
    let page = format!("<!doctype html><html>{script}");
    let read_as = |context: &Context| parse(page.as_bytes(), context).map(|feed| feed.format);
    assert_eq!(read_as(&context), Err(NotAFeed::Other("an HTML page")), "in a header");
    context.headers[0].1 = value.replace("atom+xml", "json");
    assert_eq!(read_as(&context), Ok(FeedFormat::JsonLd), "not the address of a feed");
    let list = format!("<body><div class=h-feed>{}</div>", entry.replace("<body>", ""));
    assert_eq!(entries(read(&format!("{link}{list}"))), ["A"], "a list in microformats is a feed");
}

#[test]
fn the_first_markup_in_the_order_of_the_table_is_read() {
    let script = format!("<script type='application/ld+json'>{POST}</script>");
    let entry = "<div class=h-entry><a class='p-name u-url' href=/a>A</a></div>";
    let item =
        "<div itemscope itemtype='https://schema.org/Article'><b itemprop=headline>I</b></div>";
    let format = |page: String| read(&page).map(|feed| feed.format);
    assert_eq!(format(format!("{script}<body>{item}{entry}{entry}")), Ok(FeedFormat::HFeed));
    assert_eq!(format(format!("{script}<body>{item}{entry}")), Ok(FeedFormat::HEntry));
    assert_eq!(format(format!("{script}<body>{item}")), Ok(FeedFormat::JsonLd));
    assert_eq!(format(format!("<body>{item}")), Ok(FeedFormat::Microdata));
}

#[test]
fn an_entry_without_an_address_is_at_that_of_its_page() {
    let headline = r#"{"@type": "Article", "headline": "Ebb"}"#;
    let feed = json_ld(headline).unwrap();
    assert_eq!(feed.entries[0].links[0].href, "https://tides.test/log/");
    let canonical = "<link rel=canonical href=/ebb><script type='application/ld+json'>";
    for (id, want) in [("", ""), (r##", "@id": "#it""##, "https://tides.test/ebb#it")] {
        let json = headline.replace('}', &format!("{id}}}"));
        let entry = read(&format!("{canonical}{json}</script>")).unwrap().entries.remove(0);
        assert_eq!((&*entry.id, &*entry.links[0].href), (want, "https://tides.test/ebb"));
    }
    assert_eq!(entries(json_ld(&format!("[{headline}, {headline}]"))), [""; 0], "two are not");
}

#[test]
fn the_entry_of_a_page_is_the_only_one_and_at_its_address() {
    let article =
        |url: &str| format!(r#"{{"@type": "Article", "headline": "Ebb", "url": "{url}"}}"#);
    #[rustfmt::skip]
    let cases = [
        ("the address of the page",   article("https://tides.test/log"),  true),
        ("a place on the page",       article("#ebb"),                    true),
        ("no address",                article(""),                        true),
        ("another page",              article("/ebb"),                    false),
        ("several, one of them here", format!(r#"{{"@type": "Blog", "blogPost": [{}, {OTHER}]}}"#, article("/log/")), false),
    ];
    for (why, json, want) in cases {
        let feed = json_ld(&json).unwrap();
        assert_eq!(feed.entries.iter().any(|entry| entry.describes_page), want, "{why}");
    }
    let here = "<body><div class=h-entry><a class='p-name u-url' href='/log/'>A</a></div>";
    assert!(read(here).unwrap().entries[0].describes_page, "in microformats");
    let preferred = format!(
        "<link rel=canonical href=/ebb><script type='application/ld+json'>{}</script>",
        article("/ebb")
    );
    assert!(read(&preferred).unwrap().entries[0].describes_page, "at the address that it prefers");
}

#[test]
fn a_fault_in_one_script_hides_no_other() {
    let page = format!(
        "<script type='application/ld+json'>{{\"@type\": </script>\
         <script type='application/ld+json'>{},}}</script>",
        POST.trim_end_matches('}')
    );
    let feed = read(&page).unwrap();
    assert!(feed.repairs.iter().any(|repair| repair.code == RepairCode::BrokenJson));
    assert_eq!(entries(Ok(feed)), ["Ebb"]);
}

#[test]
fn hostile_data_is_read_up_to_a_limit() {
    let many: String = (0..MAX_ENTRIES + 7)
        .map(|n| format!(r#"{{"@type": "BlogPosting", "url": "/{n}"}},"#))
        .collect();
    let feed = json_ld(&format!("[{}]", many.trim_end_matches(','))).unwrap();
    assert_eq!(feed.entries.len(), MAX_ENTRIES);
    let circle = r##"{"@id": "#a", "@type": "Blog", "blogPost": [{"@id": "#a"}], "hasPart": {"@id": "#b"}},
        {"@id": "#b", "@type": "Blog", "hasPart": {"@id": "#a"}, "blogPost": {"@id": "#c"}},
        {"@id": "#c", "@type": "BlogPosting", "url": "/c", "author": {"@id": "#c"}}"##;
    assert_eq!(entries(json_ld(&format!("[{circle}]"))), ["https://tides.test/c"]);
    let nested = r#"{"@type":"Blog","hasPart":"#.repeat(60) + "1" + &"}".repeat(60);
    assert_eq!(entries(json_ld(&nested)), [""; 0]);
}

#[test]
fn what_many_entries_share_is_copied_up_to_a_limit() {
    let entries = |feed: &Feed| feed.entries.len();
    let of = |shared: &str, reference: &str| {
        let many: String = (0..4_000)
            .map(|n| format!(r#",{{"@type": "Article", "url": "/{n}", {reference}}}"#))
            .collect();
        let json = format!("[{shared}{many}]");
        (json.len(), json_ld(&json).unwrap())
    };
    let person = |name: &str| format!(r#"{{"@id": "a", "name": "{name}"}}"#);
    let author = r#""author": {"@id": "a"}"#;
    let (_, feed) = of(&person("Ada"), author);
    assert_eq!((entries(&feed), feed.entries[3_999].authors.len()), (4_000, 1));
    let (_, feed) = of(&person(&"a".repeat(400_000)), author);
    assert_eq!((entries(&feed), feed.entries[0].authors.len()), (4_000, 0), "too long for a name");
    let (length, feed) = of(&person(&"a".repeat(4_000)), author);
    let names = feed.entries.iter().flat_map(|entry| &entry.authors).map(|who| who.name.len());
    assert!(names.sum::<usize>() < 2 * length + 2 * 1024 * 1024);
    assert!(feed.repairs.iter().any(|repair| repair.code == RepairCode::TooManyEntries));
    let terms = format!(
        r#"{{"@id": "a", "name": "{}"}}"#,
        (0..9_999).map(|n| format!("{n},")).collect::<String>()
    );
    let (_, feed) = of(&terms, r#""keywords": {"@id": "a"}"#);
    assert!(feed.entries.iter().map(|entry| entry.categories.len()).sum::<usize>() < 100_000);
}

#[test]
fn an_entry_has_a_limited_number_of_everything() {
    let list = |of: &str| (0..3_000).map(|n| format!(r#""{of}{n}","#)).collect::<String>();
    let json = format!(
        r#"{{"@type": "Article", "url": "/1", "author": [{}"x"], "audio": [{}"y"], "keywords": "{}"}}"#,
        list("Ada "),
        list("https://cdn.test/"),
        (0..3_000).map(|n| format!("{n},")).collect::<String>()
    );
    let entry = json_ld(&json).unwrap().entries.remove(0);
    let counts = (entry.authors.len(), entry.links.len(), entry.categories.len());
    assert_eq!(counts, (64, 65, 256));
    let name = "n".repeat(100_000);
    let json =
        format!(r#"{{"@type": "Article", "url": "/1", "{name}": [{}1]}}"#, "1,".repeat(9_999));
    assert_eq!(json_ld(&json).unwrap().entries[0].extensions.len(), 0, "names are copied");
}
