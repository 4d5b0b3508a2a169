//! What programs write instead of what the formats say, and what is read from it.

use url::Url;

use crate::context::Context;
use crate::model::{Content, Entry, Feed, TextKind};
use crate::parse::parse;
use crate::repair::RepairCode;

fn read(document: &str) -> Feed {
    let context = Context::new(Url::parse("https://tides.test/feed").unwrap());
    parse(document.as_bytes(), &context).unwrap_or_else(|why| panic!("{why}: {document}"))
}

fn item(inside: &str) -> Entry {
    let feed = read(&format!("<rss version='2.0'><channel><item>{inside}</item></channel></rss>"));
    feed.entries.into_iter().next().unwrap()
}

fn links<'e>(links: &'e [crate::model::Link], rel: &str) -> Vec<&'e str> {
    links.iter().filter(|link| link.rel == rel).map(|link| link.href.as_str()).collect()
}

fn extensions(entry: &Entry) -> Vec<(&str, String)> {
    let named = entry.extensions.iter();
    named.map(|element| (element.name.as_str(), element.text())).collect()
}

#[test]
fn an_element_with_an_address_and_no_end_tag_holds_nothing() {
    #[rustfmt::skip]
    let cases = [
        "<enclosure url='http://a.test/1.mp3' type='audio/mpeg'><author>ann</author><title>one</title>",
        "<title>one</title><enclosure url='http://a.test/1.mp3'>\n<author>ann</author>",
        "<title>one</title><enclosure url='http://a.test/0.mp3'><enclosure url='http://a.test/1.mp3'><author>ann</author>",
    ];
    for case in cases {
        let entry = item(case);
        assert_eq!(entry.authors.first().map(|author| &*author.name), Some("ann"), "{case}");
        assert_eq!(entry.title.map(|title| title.value).as_deref(), Some("one"), "{case}");
        assert_eq!(links(&entry.links, "enclosure").last(), Some(&"http://a.test/1.mp3"), "{case}");
    }
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title><link href='/'>\
                <entry><link href='/1'><summary>low</summary><author><name>ann</name></author>\
                </entry></feed>";
    let feed = read(atom);
    assert_eq!(links(&feed.links, "alternate"), ["/"]);
    let entry = &feed.entries[0];
    assert_eq!(links(&entry.links, "alternate"), ["/1"]);
    assert!(entry.summary.is_some() && entry.authors.len() == 1);
}

#[test]
fn an_untyped_content_of_rss_is_what_it_looks_like() {
    for (written, kind) in [
        ("&lt;p&gt;low &amp;amp; high&lt;/p&gt;", TextKind::Html),
        ("fish &amp;amp; chips", TextKind::Html),
        ("1 &lt; 2", TextKind::Text),
    ] {
        let entry = item(&format!("<content>{written}</content>"));
        let Some(Content::Text(text)) = entry.content else { panic!("{written}") };
        assert_eq!(text.kind, kind, "{written}");
        let entry = item(&format!("<summary>{written}</summary>"));
        assert_eq!(entry.summary.map(|text| text.kind), Some(kind), "{written}");
    }
}

#[test]
fn the_address_of_an_item_is_found_where_programs_leave_it() {
    for (written, want) in [
        ("<link/>http://a.test/1\n<title>one</title>", "http://a.test/1"),
        ("<guid isPermaLink='true'>/1</guid>", "https://tides.test/1"),
        ("<guid>http://a.test/2</guid>", "http://a.test/2"),
    ] {
        let entry = item(written);
        let found = links(&entry.links, "alternate");
        let base = Url::parse("https://tides.test/").unwrap();
        assert_eq!(base.join(found[0]).unwrap().as_str(), want, "{written}");
    }
    assert!(item("<guid>a/b</guid>").links.is_empty());
}

#[test]
fn what_has_a_place_only_once_is_kept_beside_it() {
    let entry =
        item("<comments>5</comments><source url='/a'>a</source><source url='/b'>b</source>");
    assert!(links(&entry.links, "replies").is_empty());
    assert_eq!(extensions(&entry), [("comments", "5".to_owned()), ("source", "b".to_owned())]);
}

#[test]
fn of_alternatives_the_markup_is_read() {
    let atom = "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><entry>\
                <content type='multipart/alternative'>\
                <content type='text/plain' mode='escaped'>low</content>\
                <content type='text/html' mode='escaped'>&lt;p&gt;low&lt;/p&gt;</content>\
                </content></entry></feed>";
    let entry = read(atom).entries.remove(0);
    let Some(Content::Text(text)) = entry.content else { panic!("{:?}", entry.content) };
    assert_eq!((text.kind, text.value.as_str()), (TextKind::Html, "<p>low</p>"));
}

#[test]
fn a_feed_may_be_escaped_in_a_string() {
    let escaped = "<?xml version='1.0'?>\n<string xmlns='http://a.test/'>&lt;rss&gt;&lt;channel&gt;\
                   &lt;item&gt;&lt;title&gt;a &amp;amp; b&lt;/title&gt;&lt;/item&gt;&lt;/channel&gt;\
                   &lt;/rss&gt;</string>";
    assert_eq!(read(escaped).entries[0].title.as_ref().unwrap().value, "a & b");
}

#[test]
fn a_cdata_section_may_be_in_small_letters() {
    let entry = item("<description><![cdata[<p>a]]&gt;</p>]]></description>");
    assert_eq!(entry.summary.unwrap().value, "<p>a]]&gt;</p>");
}

#[test]
fn texts_of_cdf_may_be_attributes() {
    let cdf = "<CHANNEL HREF='/'><TITLE VALUE='Tides'/><ITEM HREF='/1'><TITLE VALUE='one'/>\
               <ABSTRACT VALUE='low water'/></ITEM></CHANNEL>";
    let feed = read(cdf);
    assert_eq!(feed.title.unwrap().value, "Tides");
    assert_eq!(feed.entries[0].summary.as_ref().unwrap().value, "low water");
}

#[test]
fn fields_of_json_may_have_other_types() {
    let json = r#"{"version": "https://jsonfeed.org/version/1.1", "title": {"rendered": "Tides"},
        "hubs": [{"type": "rssCloud", "url": "http://a.test/cloud"},
                 {"type": "WebSub", "url": "http://a.test/hub"}],
        "items": {"0": {"id": 1, "image": {"url": "http://a.test/1.png", "width": 9},
            "tags": [{"name": "sea"}, "low"],
            "attachments": [{"url": "http://a.test/1.mp3", "bitrate": 128}]},
          "1": {"id": 2}}}"#;
    let feed = read(json);
    assert_eq!(feed.title.unwrap().value, "Tides");
    assert_eq!(links(&feed.links, "hub"), ["http://a.test/hub"]);
    assert!(feed.extensions.iter().any(|kept| kept.text().contains("http://a.test/cloud")));
    assert_eq!(feed.entries.len(), 2);
    let entry = &feed.entries[0];
    let terms: Vec<&str> = entry.categories.iter().map(|category| &*category.term).collect();
    assert_eq!(terms, ["sea", "low"]);
    assert_eq!(entry.links[0].attributes[0].value, "128");
    let image = entry.extensions.iter().find(|kept| kept.name == "image");
    assert!(image.is_some_and(|image| image.text().contains("width")), "{:?}", entry.extensions);
    assert!(entry.extensions.iter().any(|kept| kept.name == "thumbnail"));
}

#[test]
fn n05_json_is_a_feed_if_it_says_so_or_its_items_are_entries() {
    #[rustfmt::skip]
    let cases = [
        ("the version",             r#"{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1"}]}"#, true),
        ("without items yet",       r#"{"version": "https://jsonfeed.org/version/1", "title": "Tides"}"#,          true),
        ("an id and a title",       r#"{"items": [{"id": "1", "title": "One"}]}"#,                                 true),
        ("an id and a text",        r#"{"items": [{"id": 1, "content_text": "One"}]}"#,                            true),
        ("an id and an address",    r#"{"items": [{"id": "1", "url": "https://a.test/1"}]}"#,                      true),
        ("one of three is odd",     r#"{"items": [{"id": 1, "title": "x"}, {"id": 2, "title": "y"}, {}]}"#,        true),
        ("the stock of a shop",     r#"{"items": [{"sku": "a", "price": 9}], "total": 1}"#,                        false),
        ("an id alone",             r#"{"items": [{"id": "1"}, {"id": "2"}]}"#,                                    false),
        ("a title alone",           r#"{"items": [{"title": "One"}]}"#,                                            false),
        ("a search of videos",      r#"{"items": [{"id": {"videoId": "x"}, "snippet": {"title": "One"}}]}"#,       false),
        ("another version",         r#"{"version": "2.0", "items": [{"name": "x"}]}"#,                             false),
        ("words",                   r#"{"items": ["a", "b"]}"#,                                                    false),
        ("an empty list",           r#"{"items": []}"#,                                                            false),
        ("one of three is an item", r#"{"items": [{"id": 1, "title": "x"}, {"id": 2}, {"id": 3}]}"#,               false),
    ];
    let context = Context::new("http://a.test/".parse().unwrap());
    for (why, json, is_feed) in cases {
        let parsed = crate::parse::parse(json.as_bytes(), &context);
        assert_eq!(parsed.is_ok(), is_feed, "{why}: {parsed:?}");
    }
}

#[test]
fn a_json_feed_may_follow_other_output() {
    let json = r#"{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "1"}]}"#;
    for before in ["<br />\n<b>Warning</b>: {x} in a.php", ")]}'\n", "while(1);", "/* {cached} */ "]
    {
        assert_eq!(read(&format!("{before}{json}")).entries.len(), 1, "{before}");
    }
}

#[test]
fn a_text_that_was_encoded_twice_is_repaired_in_every_format() {
    let json = r#"{"version": "https://jsonfeed.org/version/1.1", "title": "MarÃ©e",
        "items": [{"id": "1", "content_text": "cafÃ©", "tags": ["thÃ©"]}]}"#;
    let feed = read(json);
    assert_eq!(feed.title.unwrap().value, "Marée");
    assert_eq!(feed.entries[0].categories[0].term, "thé");
    let found: Vec<_> = feed.repairs.iter().map(|fault| (fault.code, &*fault.detail)).collect();
    assert_eq!(found, [(RepairCode::DoubleEncoded, "3 times")]);
    let rss =
        read("<rss><channel><title>MarÃ©e</title><item><title>a</title></item></channel></rss>");
    assert_eq!(rss.title.unwrap().value, "Marée");
    #[cfg(feature = "html")]
    {
        let page =
            "<div class=h-feed><div class=h-entry><p class=p-summary lang=fr>MarÃ©e</div></div>";
        assert_eq!(read(page).entries[0].summary.as_ref().unwrap().value, "Marée");
    }
}

#[test]
fn items_of_cdf_may_be_in_a_namespace() {
    let feed = read(
        "<CHANNEL xmlns='http://a.test/cdf' HREF='http://a.test/'><TITLE>t</TITLE>\
         <ITEM HREF='http://a.test/1'><TITLE>one</TITLE></ITEM></CHANNEL>",
    );
    assert_eq!(feed.entries.len(), 1);
}

#[test]
fn n08_what_is_not_well_formed_is_a_fault_and_what_is_sound_is_none() {
    const ITEM: &str = "<link>http://a.test/1</link><guid isPermaLink='false'>one</guid>";
    let channel = |inside: &str| {
        format!("<rss version='2.0'><channel><title>T</title><item>{inside}</item></channel></rss>")
    };
    let title = |text: &str| channel(&format!("<title>{text}</title>{ITEM}"));
    let sound = || title("One");
    #[rustfmt::skip]
    let cases = [
        ("sound",                          sound(),                                    ""),
        ("sound, with references",         title("A &amp; b &#233; <![CDATA[& &nbsp; <br>]]>"), ""),
        ("sound, with an empty element",   title("A<br/>b<br></br>"),                  ""),
        ("declared entities",              format!("<!DOCTYPE rss [<!ENTITY nbsp '&#160;'>]>{}", title("A&nbsp;b")), ""),
        ("a declaration and a comment",    format!("<?xml version='1.0'?>\n<!-- x -->\n{}\n<!-- y -->", sound()), ""),
        ("an ampersand",                   title("A & b"),                             "bare_ampersand"),
        ("an ampersand in a value",        channel(&format!("{ITEM}<enclosure url='/?a=1&b=2' type='a/b'/>")), "bare_ampersand"),
        ("an entity of HTML",              title("A&nbsp;b"),                          "undeclared_entity"),
        ("an entity of HTML in a value",   channel(&format!("{ITEM}<enclosure url='/&eacute;' type='a/b'/>")), "undeclared_entity"),
        ("an element of HTML left open",   channel(&format!("{ITEM}<description>a<br>b</description>")), "missing_end"),
        ("a tag in other letters",         sound().replace("</title>", "</Title>"),    "missing_end"),
        ("a less-than in a value",         channel(&format!("{ITEM}<enclosure url='/a&lt;b' type='a<b'/>")), "bare_less_than"),
        ("text before the feed",           format!("warning {}", sound()),             "outside_root"),
        ("an element behind the feed",     format!("{}<script>x</script>", sound()),   "outside_root"),
        ("space before the declaration",   format!("\n<?xml version='1.0'?>{}", sound()), "late_declaration"),
        ("an end is missing",              sound().replace("</rss>", ""),              "truncated"),
    ];
    let context = Context::new("http://a.test/".parse().unwrap());
    for (why, document, want) in cases {
        let normalized = crate::normalize(document.as_bytes(), &context).unwrap();
        let kinds = crate::repair::codes_by_kind(normalized.repairs());
        let faults: Vec<&str> = kinds
            .iter()
            .filter(|kind| kind.0 == "repaired")
            .flat_map(|kind| kind.1.clone())
            .collect();
        let wanted: Vec<&str> = if want.is_empty() { vec![] } else { vec![want] };
        assert_eq!(faults, wanted, "{why}");
        let listed = crate::repair::listed_codes(normalized.repairs());
        assert!(
            listed.contains("adapted: author_missing, date_missing, id_not_an_iri"),
            "{listed}"
        );
    }
}
