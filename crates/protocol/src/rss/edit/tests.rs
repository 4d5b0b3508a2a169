//! Posts added to feeds of every shape.

use super::*;
use crate::rss::Enclosure;

fn post(id: &str, text: &str) -> Post {
    Post {
        id: id.to_owned(),
        title: None,
        text: text.to_owned(),
        link: None,
        categories: Vec::new(),
        enclosure: None,
        at: DateTime::from_timestamp(1_790_000_000, 0).unwrap(),
    }
}

fn about() -> ChannelInfo {
    ChannelInfo {
        url: Some("https://a.test/rss.xml".to_owned()),
        cloud: Url::parse("https://cloud.test/").ok(),
        title: "A & B".to_owned(),
        description: String::new(),
    }
}

fn change<'c>(post: &'c Post, parent: Option<&'c str>) -> FeedEdit<'c> {
    FeedEdit { post, parent, keep: None }
}

#[test]
fn a_new_feed_says_all_that_its_readers_need() {
    let full = Post {
        title: Some("T".to_owned()),
        link: Some("https://a.test/?a&b".to_owned()),
        categories: vec!["x".to_owned(), "y".to_owned()],
        enclosure: Some(Enclosure {
            url: "https://a.test/a.mp3".to_owned(),
            length: 7,
            mime: "audio/mpeg".to_owned(),
        }),
        ..post("urn:x:1", "1 < 2 &\nso on")
    };
    let made = add(None, &change(&full, None), &about()).unwrap();
    let want = "<?xml version=\"1.0\" encoding=\"utf-8\"?>
<rss xmlns:atom=\"http://www.w3.org/2005/Atom\" xmlns:source=\"http://source.scripting.com/\" version=\"2.0\">
  <channel>
    <title>A &amp; B</title>
    <link>https://a.test/rss.xml</link>
    <description></description>
    <atom:link rel=\"self\" type=\"application/rss+xml\" href=\"https://a.test/rss.xml\"/>
    <atom:link rel=\"hub\" href=\"https://cloud.test/hub\"/>
    <cloud domain=\"cloud.test\" port=\"443\" path=\"/rsscloud/pleaseNotify\" registerProcedure=\"\" protocol=\"https-post\"/>
    <source:cloud>https://cloud.test/rsscloud/pleaseNotify</source:cloud>
    <lastBuildDate>Mon, 21 Sep 2026 14:13:20 GMT</lastBuildDate>
    <item>
      <title>T</title>
      <link>https://a.test/?a&amp;b</link>
      <description>1 &amp;lt; 2 &amp;amp;&lt;br&gt;
so on</description>
      <pubDate>Mon, 21 Sep 2026 14:13:20 GMT</pubDate>
      <guid isPermaLink=\"false\">urn:x:1</guid>
      <category>x</category>
      <category>y</category>
      <enclosure url=\"https://a.test/a.mp3\" length=\"7\" type=\"audio/mpeg\"/>
    </item>
  </channel>
</rss>
";
    assert_eq!(made, want);
}

#[test]
fn what_is_there_survives_and_is_not_said_twice() {
    let feed = "<rss version='2.0' xmlns:a='http://www.w3.org/2005/Atom' xmlns:source='urn:other' \
        xmlns:x='urn:x'><!-- mine --><channel x:y='1'>\n<a:link rel='hub' href='h'/><cloud domain='d'/>\
        <x:odd>&#233;<![CDATA[<b>]]></x:odd><lastBuildDate>once</lastBuildDate>\n\
        <item x:z=''><guid>old</guid></item>\n</channel></rss>";
    let made = add(Some(feed), &change(&post("new", "t"), None), &about()).unwrap();
    for piece in
        ["<!-- mine -->", "x:y='1'", "<x:odd>&#233;<![CDATA[<b>]]></x:odd>", "<item x:z=''>"]
    {
        assert!(made.contains(piece), "{piece}: {made}");
    }
    assert_eq!(made.matches("<cloud ").count(), 1, "{made}");
    assert_eq!(made.matches("rel=\"hub\"").count(), 0, "{made}");
    assert!(made.contains("<a:link rel=\"self\""), "the document's own prefix: {made}");
    assert!(made.contains("xmlns:source1=\"http://source.scripting.com/\""), "{made}");
    assert!(!made.contains("once") && made.matches("<lastBuildDate>").count() == 1, "{made}");
    assert!(made.find("new").unwrap() < made.find("old").unwrap(), "the newest is first");
    let again = add(Some(&made), &change(&post("newer", "t"), None), &about()).unwrap();
    assert_eq!(again.matches("<source1:cloud>").count(), 1);
    assert_eq!(again.matches("<item").count(), 3);
    check(again.as_bytes()).unwrap();
}

#[test]
fn an_item_may_stand_under_another_at_any_depth() {
    let one = add(None, &change(&post("1", "one"), None), &about()).unwrap();
    let two = add(Some(&one), &change(&post("2", "two"), Some("1")), &about()).unwrap();
    let three = add(Some(&two), &change(&post("3", "three"), Some("2")), &about()).unwrap();
    check(three.as_bytes()).unwrap();
    let (_, lines) = lines(&three);
    let found: Vec<_> = lines.iter().map(|line| (line.id.as_str(), line.depth)).collect();
    assert_eq!(found, [("1", 0), ("2", 1), ("3", 2)]);
    assert_eq!(three.matches("<rssCloud:item>").count(), 2, "{three}");
    assert_eq!(three.matches("xmlns:rssCloud").count(), 1, "{three}");
    let nowhere = add(Some(&three), &change(&post("4", "x"), Some("9")), &about());
    assert_eq!(nowhere, Err(BadFeed::NoParent("9".to_owned())));
}

#[test]
fn the_oldest_leave_where_few_are_kept() {
    let mut feed = None;
    for n in 0..5 {
        let post = post(&format!("n{n}"), "t");
        let change = FeedEdit { post: &post, parent: None, keep: Some(3) };
        feed = Some(add(feed.as_deref(), &change, &about()).unwrap());
    }
    let (_, lines) = lines(&feed.unwrap());
    let ids: Vec<_> = lines.iter().map(|line| line.id.as_str()).collect();
    assert_eq!(ids, ["n4", "n3", "n2"]);
}

#[test]
fn what_a_post_stands_under_does_not_leave() {
    let mut feed = None;
    for n in 0..3 {
        let post = post(&format!("n{n}"), "t");
        feed = Some(add(feed.as_deref(), &change(&post, None), &about()).unwrap());
    }
    let answer = post("answer", "t");
    let change = FeedEdit { post: &answer, parent: Some("n0"), keep: Some(1) };
    let (_, lines) = lines(&add(feed.as_deref(), &change, &about()).unwrap());
    let ids: Vec<_> = lines.iter().map(|line| line.id.as_str()).collect();
    assert_eq!(ids, ["n2", "n0", "answer"]);
}

#[test]
fn what_is_no_rss_is_left_alone() {
    // In RSS 1.0, items are siblings of the channel, which lists them separately.
    let old = "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><channel>\
        <title>t</title></channel><item/></r:RDF>";
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'/>";
    for feed in [atom, "<rss><channel/></rss>", old] {
        let made = add(Some(feed), &change(&post("1", "t"), None), &about());
        assert_eq!(made, Err(BadFeed::NotRss), "{feed}");
    }
    let broken =
        add(Some("<rss><channel>&</channel></rss>"), &change(&post("1", "t"), None), &about());
    assert!(matches!(broken, Err(BadFeed::Unsound(_))));
}

#[test]
fn whom_a_feed_wants_told_is_found() {
    let made = add(None, &change(&post("1", "t"), None), &about()).unwrap();
    let told = told(&made);
    assert_eq!(told.url.as_deref(), Some("https://a.test/rss.xml"));
    assert_eq!(told.source_cloud.as_deref(), Some("https://cloud.test/rsscloud/pleaseNotify"));
    assert!(told.cloud.contains(&("domain".to_owned(), "cloud.test".to_owned())));
}
