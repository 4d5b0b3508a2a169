//! The content of the page for authors: a form for a post, and the author's feed as it is served.

use maud::{Markup, html};
use url::form_urlencoded;

use crate::http::kit::html::{HtmlPage, Interaction, Place, Width};
use feedgate_feed::model::{Text, TextKind};
use feedgate_protocol::form::Form;
use feedgate_protocol::rss::{OutlineLine, SHORT_CHARS};

/// The maximum length of an item on the page, in characters.
const MAX_ITEM_CHARS: usize = 300;
/// The maximum number of items on the page.
const MAX_ITEMS: usize = 50;
/// The fields that may be empty, with their types and labels.
const OPTIONAL: [(&str, &str, &str); 4] = [
    ("title", "text", "Title"),
    ("link", "url", "Link"),
    ("category", "text", "Categories, separated by commas"),
    ("enclosure", "url", "URL of a picture or recording"),
];
/// The maximum indentation of items.
const MAX_DEPTH: usize = 8;

/// The content of the page.
pub(super) struct AuthorPage<'p> {
    /// The submitted form; a rejected post stays in it.
    pub(super) form: &'p Form,
    /// The reason why the post was rejected.
    pub(super) why: Option<&'p str>,
    /// The author's feed.
    pub(super) feed: Option<AuthorFeed>,
}

/// The feed of the author, as displayed on the page.
pub(super) struct AuthorFeed {
    /// The public address.
    pub(super) url: String,
    /// The title.
    pub(super) title: String,
    /// The items.
    pub(super) lines: Vec<OutlineLine>,
}

impl AuthorPage<'_> {
    /// Returns the page.
    pub(super) fn page(&self) -> HtmlPage<'static> {
        HtmlPage {
            title: "Write a post",
            width: Width::Text,
            interaction: Interaction::Forms,
            place: Place::public("author"),
            content: html! {
                p { "A post appears in the feed of your account, and its subscribers are notified." }
                (self.outcome())
                (self.post())
                (self.feed())
            },
        }
    }

    fn value(&self, name: &str) -> &str {
        self.form.get(name).unwrap_or_default()
    }

    /// Returns the address of this page for the same account, with these parameters.
    fn address(&self, parameters: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("user", self.value("user").trim()).extend_pairs(parameters);
        format!("author?{}", query.finish())
    }

    /// Renders the result of the last post.
    fn outcome(&self) -> Markup {
        let chars: usize = self.value("chars").parse().unwrap_or(0);
        html! {
            @if let Some(why) = self.why {
                p role="alert" { (why) }
            } @else if !self.value("posted").is_empty() {
                p role="status" {
                    "Posted."
                    @if chars > SHORT_CHARS {
                        " It has " (chars) " characters; readers of such feeds expect at most "
                        (SHORT_CHARS) "."
                    }
                    @if !self.value("untold").is_empty() {
                        " Subscribers could not be notified yet, and will be notified later."
                    }
                }
            }
        }
    }

    fn post(&self) -> Markup {
        html! {
            form.stacked method="post" action="author" {
                (self.parent())
                label for="text" {
                    "Text "
                    small {
                        "(usually at most " (SHORT_CHARS) " characters, not counting the title, \
                         link, categories and media file)"
                    }
                }
                // HTML parsers drop the first line end of a text area.
                textarea id="text" name="text" rows="4" required { "\n" (self.value("text")) }
                details open[OPTIONAL.iter().any(|(name, ..)| !self.value(name).is_empty())] {
                    summary { "Title, link, categories, picture or recording" }
                    @for (name, kind, label) in OPTIONAL { (self.optional(name, kind, label)) }
                }
                label for="user" { "Account" }
                input id="user" name="user" type="text" value=(self.value("user")) required
                    autocomplete="username" autocapitalize="none" spellcheck="false";
                label for="password" { "Password" }
                input id="password" name="password" type="password" required
                    autocomplete="current-password";
                button.primary type="submit" { "Post" }
            }
        }
    }

    fn optional(&self, name: &str, kind: &str, label: &str) -> Markup {
        html! {
            label for=(name) { (label) }
            input id=(name) name=(name) type=(kind) value=(self.value(name));
        }
    }

    /// Renders the item that the post replies to.
    fn parent(&self) -> Markup {
        let parent = self.value("parent");
        let mut lines = self.feed.iter().flat_map(|feed| &feed.lines);
        let found = lines.find(|line| line.id == parent);
        html! {
            @if !parent.is_empty() {
                p {
                    "In reply to: " (found.map_or_else(|| parent.to_owned(), plain)) " "
                    a href=(self.address(&[])) { "Cancel reply" }
                }
                input type="hidden" name="parent" value=(parent);
            }
        }
    }

    /// Renders the feed.
    fn feed(&self) -> Markup {
        html! {
            @if let Some(AuthorFeed { url, title, lines }) = &self.feed {
                h2 { (title) }
                p { a href=(url) { (url) } }
                ul.posts { (self.items(&lines[..lines.len().min(MAX_ITEMS)], 0)) }
            } @else {
                h2 { "Your feed" }
                p { "Your feed is shown here after you have posted with your account and its password." }
            }
        }
    }

    /// Renders items in the order of the feed, each with its replies as a nested list.
    fn items(&self, lines: &[OutlineLine], level: usize) -> Markup {
        html! {
            @for (line, replies) in threads(lines, level < MAX_DEPTH) {
                li {
                    (self.item(line))
                    @if !replies.is_empty() { ul { (self.items(replies, level + 1)) } }
                }
            }
        }
    }

    fn item(&self, line: &OutlineLine) -> Markup {
        let text = plain(line);
        html! {
            (text) br;
            small { (line.date) }
            @if !line.id.is_empty() {
                " "
                a href=(self.address(&[("parent", &line.id)])) aria-label={ "Reply to: " (text) } {
                    "Reply"
                }
            }
        }
    }
}

/// Returns each item with its replies, which are the more deeply nested items after it. Without
/// nesting, returns each item alone.
fn threads(mut lines: &[OutlineLine], nests: bool) -> Vec<(&OutlineLine, &[OutlineLine])> {
    let mut threads = Vec::new();
    while let Some((line, after)) = lines.split_first() {
        let deeper = after.iter().take_while(|next| nests && next.depth > line.depth).count();
        let (replies, next) = after.split_at(deeper);
        threads.push((line, replies));
        lines = next;
    }
    threads
}

/// Returns the text of an item, cut to [`MAX_ITEM_CHARS`].
fn plain(line: &OutlineLine) -> String {
    let html = Text { kind: TextKind::Html, value: line.text.clone(), ..Text::default() };
    let text = html.to_plain();
    let mut excerpt: String = text.chars().take(MAX_ITEM_CHARS).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_stand_inside_of_what_they_reply_to_down_to_a_depth() {
        let line = |(n, depth): (usize, &usize)| OutlineLine {
            id: String::new(),
            depth: *depth,
            text: n.to_string(),
            date: String::new(),
        };
        let outline = |depths: &[usize]| {
            let lines: Vec<OutlineLine> = depths.iter().enumerate().map(line).collect();
            let author = AuthorPage { form: &Form::default(), why: None, feed: None };
            let items = author.items(&lines, 0).into_string();
            items.replace("<br><small></small>", "").replace("<li>", "(").replace("</li>", ")")
        };
        #[rustfmt::skip]
        let cases: [(&[usize], &str); 4] = [
            (&[],              ""),
            (&[0, 1, 1, 0],    "(0<ul>(1)(2)</ul>)(3)"),
            (&[0, 1, 2, 1],    "(0<ul>(1<ul>(2)</ul>)(3)</ul>)"),
            (&[2, 0, 3],       "(0)(1<ul>(2)</ul>)"),
        ];
        for (depths, want) in cases {
            assert_eq!(outline(depths), want, "{depths:?}");
        }
        let deepest = outline(&(0..20).collect::<Vec<_>>());
        assert_eq!(deepest.matches("<ul>").count(), MAX_DEPTH, "{deepest}");
    }
}
