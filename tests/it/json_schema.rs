//! Notifications in JSON: they have what Superfeedr documents, whole, and the modules of podcasts
//! and videos.

use http::StatusCode;
use serde_json::{Value, json};

use crate::support::feeds::rss;
use crate::support::server::client;
use crate::support::world::World;

/// The entry that Superfeedr's documentation has as its example ("Entries").
const DOCUMENTED_ENTRY: &str = r#"
<entry xmlns="http://www.w3.org/2005/Atom" xmlns:geo="http://www.georss.org/georss"
       xmlns:as="http://activitystrea.ms/spec/1.0/" xml:lang="en">
   <id>domain.tld:09/05/03-1</id>
   <published>2013-04-21T14:00:40+02:00</published>
   <updated>2013-04-21T14:00:40+02:00</updated>
   <title>Entry published on hour ago</title>
   <content type="text">Entry published on hour ago when it was shinny outside, but now it's raining</content>
   <summary type="text">Entry published on hour ago...</summary>
   <geo:point>47.597553 -122.15925</geo:point>
   <link type="text/html" title="" href="http://domain.tld/entry/1" rel="alternate"/>
   <link type="application/atom+xml" href="http://domain.tld/entry/1.xml" rel="replies"/>
   <link type="image/png" title="A beautiful picture that illustrates the entry" href="http://domain.tld/entry/image_.png" rel="picture"/>
   <category term="Things"/>
   <category term="Picture"/>
   <author>
      <name>First</name>
      <uri>http://domain.tld/first</uri>
      <email>first@domain.tld</email>
      <id>id-first</id>
      <title>First</title>
      <as:object-type>http://activitystrea.ms/schema/1.0/person</as:object-type>
      <as:object-type>http://activitystrea.ms/schema/1.0/dude</as:object-type>
      <link type="image/png" title="A beautiful picture that illustrates the author" href="http://domain.tld/first.png" rel="picture"/>
      <link type="text/html" title="The profile page of the author" href="http://domain.tld/first/profile" rel="alternate"/>
  </author>
  <author>
      <name>Second</name>
      <uri>http://domain.tld/second</uri>
      <email>second@domain.tld</email>
  </author>
  <as:verb>http://activitystrea.ms/schema/1.0/post</as:verb>
  <as:verb>http://activitystrea.ms/schema/1.0/publish</as:verb>
  <as:object>
      <as:object-type>http://gowalla.com/schema/1.0/spot</as:object-type>
      <as:object-type>http://activitystrea.ms/schema/1.0/place</as:object-type>
      <id>object-id</id>
      <title>Title of the Object</title>
      <published>2013-04-20T15:00:40+02:00</published>
      <updated>2013-04-21T14:00:40+02:00</updated>
      <content>hello world</content>
      <author>
         <name>Second</name>
         <uri>http://domain.tld/second</uri>
         <email>second@domain.tld</email>
     </author>
     <link type="text/html" title="" href="http://domain.tld/object/2" rel="alternate"/>
  </as:object>
  <source>
    <id>http://blog.superfeedr.com/</id>
    <title>Superfeedr Blog</title>
    <updated>2009-06-23T18:25:53Z</updated>
    <link href="http://blog.superfeedr.com/" rel="alternate" type="text/html"/>
  </source>
</entry>"#;

/// The same entry as the documentation has it in JSON, with the times of the entry above.
fn documented_item() -> Value {
    json!({
        "geo": { "type": "point", "coordinates": [47.597553, -122.15925] },
        "standardLinks": {
            "picture": [{
                "type": "image/png",
                "href": "http://domain.tld/entry/image_.png",
                "title": "A beautiful picture that illustrates the entry",
            }],
            "replies": [{
                "type": "application/atom+xml",
                "href": "http://domain.tld/entry/1.xml",
                "title": null,
            }],
        },
        "permalinkUrl": "http://domain.tld/entry/1",
        "verb": "publish",
        "content": "Entry published on hour ago when it was shinny outside, but now it's raining",
        "published": 1_366_545_640,
        "actor": {
            "displayName": "First",
            "image": "http://domain.tld/first.png",
            "permalinkUrl": "http://domain.tld/first/profile",
            "id": "id-first",
            "objectType": "dude",
            "title": "First",
        },
        "categories": ["Things", "Picture"],
        "object": {
            "permalinkUrl": "http://domain.tld/object/2",
            "content": "hello world",
            "published": 1_366_462_840,
            "actor": { "displayName": "Second", "permalinkUrl": "http://domain.tld/second" },
            "id": "object-id",
            "updated": 1_366_545_640,
            "title": "Title of the Object",
            "objectType": "place",
        },
        "title": "Entry published on hour ago",
        "updated": 1_366_545_640,
        "source": {
            "id": "http://blog.superfeedr.com/",
            "title": "Superfeedr Blog",
            "updated": 1_245_781_553,
            "permalinkUrl": "http://blog.superfeedr.com/",
        },
        "language": "en",
    })
}

/// Fails unless `got` has all of `want`; objects may have further keys.
fn assert_includes(got: &Value, want: &Value, path: &str) {
    match want {
        Value::Object(fields) => {
            for (name, value) in fields {
                assert!(got.get(name).is_some(), "{path}.{name} is missing: {got}");
                assert_includes(&got[name], value, &format!("{path}.{name}"));
            }
        }
        _ => assert_eq!(got, want, "{path}"),
    }
}

/// A feed in Atom with this inside.
fn atom(inside: &str) -> String {
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" \
         xmlns:media=\"http://search.yahoo.com/mrss/\"><id>urn:x:feed</id><title>Feed</title>\
         <updated>2013-04-21T12:00:40Z</updated>{inside}</feed>"
    )
}

/// A podcast in RSS with this inside.
fn podcast(inside: &str) -> String {
    format!(
        "<rss version=\"2.0\" xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\" \
         xmlns:podcast=\"https://podcastindex.org/namespace/1.0\"><channel>\
         <title>Tides</title><link>https://tides.test/</link><description>Every day</description>\
         <itunes:image href=\"https://tides.test/cover.jpg\"/>{inside}</channel></rss>"
    )
}

/// Publishes `before`, subscribes in JSON, publishes `after`; the notification.
async fn notification(before: &str, after: &str) -> Value {
    let world = World::with_tides(0, &[]).await;
    world.publisher.put("/feed", "application/xml", before.to_owned());
    let callback = world.subscriber.url("/cb");
    world.gateway.subscribe_superfeedr(&world.topic, &callback, "json").await;
    world.publisher.put("/feed", "application/xml", after.to_owned());
    world.gateway.post("/", &[("hub.mode", "publish"), ("hub.url", &world.topic)]).await;
    world.subscriber.until("/cb", |told| !told.is_empty()).await;
    serde_json::from_str(&world.subscriber.notified("/cb").remove(0).text()).unwrap()
}

#[tokio::test]
async fn f7_the_documented_entry_is_the_documented_item() {
    let notification = notification(&atom(""), &atom(DOCUMENTED_ENTRY)).await;
    assert_includes(&notification["items"][0], &documented_item(), "item");
    let alternates = &notification["items"][0]["standardLinks"]["alternate"];
    assert_eq!(alternates[0]["href"], "http://domain.tld/entry/1");
}

#[tokio::test]
async fn f4_a_status_has_the_time_of_its_maintenance_before_the_first_maintenance() {
    let notification = notification(&rss("tides", 1..2), &rss("tides", 1..3)).await;
    let at = notification["status"]["lastMaintenanceAt"].as_i64().unwrap();
    let fetched = notification["status"]["lastFetch"].as_i64().unwrap();
    assert!((1..=fetched).contains(&at), "{notification}");

    let world = World::with_tides(1, &[]).await;
    world.gateway.subscribe_superfeedr(&world.topic, &world.subscriber.url("/cb"), "atom").await;
    let form = [("hub.mode", "retrieve"), ("hub.topic", world.topic.as_str())];
    let (_, atom) = world.gateway.superfeedr(&form).await;
    assert!(atom.contains("<last_maintenance_at>20"), "{atom}");
}

#[tokio::test]
async fn n05_the_answer_of_a_service_is_delivered_as_it_is() {
    let stock =
        |price: u32| format!(r#"{{"items": [{{"sku": "a", "price": {price}}}], "total": 1}}"#);
    let notification = notification(&stock(9), &stock(12)).await;
    let content = notification["items"][0]["content"].as_str().unwrap_or_default();
    assert!(content.contains(r#""price": 12"#), "{notification}");
    assert!(!notification["items"][0]["published"].is_null(), "{notification}");
}

#[tokio::test]
async fn f8_every_author_has_an_id_that_stays_the_same() {
    let entry = |n: usize, author: &str| {
        format!(
            "<entry><id>urn:x:{n}</id><title>{n}</title><updated>2013-04-21T12:00:4{n}Z</updated>\
             <author>{author}</author></entry>"
        )
    };
    let (ada, bob) = ("<name>Ada</name>", "<name>Bob</name><uri>https://bob.test/</uri>");
    let feed = atom(&(entry(3, ada) + &entry(2, bob) + &entry(1, ada)));
    let first = notification(&atom(""), &feed).await;
    let second = notification(&atom(""), &feed).await;
    let ids = |notification: &Value| {
        let items = notification["items"].as_array().unwrap().clone();
        let mut ids: Vec<(Value, Value)> =
            items.iter().map(|it| (it["title"].clone(), it["actor"]["id"].clone())).collect();
        ids.sort_by_key(|(title, _)| title.to_string());
        ids.into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    let [one, two, three] = &ids(&first)[..] else { panic!("{first}") };
    assert!(one.as_str().unwrap().starts_with("tag:feedgate,2026:person:"), "{one}");
    assert_eq!((one, two), (three, &json!("https://bob.test/")));
    assert_eq!(ids(&first), ids(&second), "another gateway generates the same ids");
}

#[tokio::test]
async fn f9_a_video_has_content_summary_and_picture() {
    let video = "<entry><id>yt:video:1</id><title>High water</title>\
        <link rel=\"alternate\" href=\"https://www.youtube.test/watch?v=1\"/>\
        <author><name>Ada</name><uri>https://www.youtube.test/channel/1</uri></author>\
        <published>2026-11-01T10:00:00+00:00</published><updated>2026-11-01T10:00:00+00:00</updated>\
        <media:group><media:title>High water</media:title>\
        <media:content url=\"https://www.youtube.test/v/1\" type=\"application/x-shockwave-flash\" width=\"640\" height=\"390\"/>\
        <media:thumbnail url=\"https://i1.ytimg.test/1.jpg\" width=\"480\" height=\"360\"/>\
        <media:description>The flood of November.</media:description>\
        <media:community><media:statistics views=\"7\"/></media:community></media:group></entry>";
    let item = notification(&atom(""), &atom(video)).await["items"][0].take();
    assert_eq!(item["content"], "The flood of November.");
    assert_eq!(item["summary"], "The flood of November.");
    let picture = &item["standardLinks"]["picture"][0];
    assert_eq!(picture["href"], "https://i1.ytimg.test/1.jpg");
    let content = &item["media"]["content"][0];
    assert_eq!(content["width"], "640");
    assert_eq!(content["description"], json!([{ "value": "The flood of November." }]));
    assert_eq!(content["community"][0]["statistics"][0]["views"], "7");
}

#[tokio::test]
async fn f9_an_episode_has_its_podcast_elements_and_picture() {
    let episode = "<item><guid isPermaLink=\"false\">urn:x:1</guid><title>One</title>\
        <description>Of tides</description><itunes:image href=\"https://tides.test/1.jpg\"/>\
        <itunes:duration>31:07</itunes:duration>\
        <podcast:transcript url=\"https://tides.test/1.vtt\" type=\"text/vtt\"/>\
        <podcast:transcript url=\"https://tides.test/1.srt\" type=\"application/srt\"/></item>";
    let notification = notification(&podcast(""), &podcast(episode)).await;
    let cover = &notification["standardLinks"]["picture"][0]["href"];
    assert_eq!(cover, "https://tides.test/cover.jpg");
    let item = &notification["items"][0];
    assert_eq!(item["standardLinks"]["picture"][0]["href"], "https://tides.test/1.jpg");
    assert_eq!(item["itunes"]["duration"], json!([{ "value": "31:07" }]));
    assert_eq!(item["podcast"]["transcript"][1]["url"], "https://tides.test/1.srt");
}

#[tokio::test]
async fn f7_the_schemas_are_served() {
    let world = World::with_tides(0, &[]).await;
    let url = world.gateway.url("/schemas/notification.schema.json");
    let answer = client().get(url).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/schema+json");
    let schema: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(schema["required"], json!(["status", "title"]));
    for name in ["atom.rng", "changes.rng", "opml.rng"] {
        let (status, text) = world.gateway.get(&format!("/schemas/{name}")).await;
        assert_eq!(status, StatusCode::OK, "{name}");
        assert!(text.contains("http://relaxng.org/ns/structure/1.0"), "{name}: {text}");
    }
    assert_eq!(world.gateway.get("/schemas/none.rng").await.0, StatusCode::NOT_FOUND);
}
