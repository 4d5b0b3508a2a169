//! The page for authors, as HTML: for any browser and any screen.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use feedgate_feed::model::{Text, TextKind};
use feedgate_protocol::form::Form;
use feedgate_protocol::rss::{Line, SHORT_CHARS};
use feedgate_protocol::xml::escaped;

/// How much of an item is shown, in characters.
const SHOWN_CHARS: usize = 300;
/// How many items are shown.
const SHOWN_ITEMS: usize = 50;
/// How far items are indented, at most.
const SHOWN_DEPTH: usize = 8;

const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:0 auto;padding:1rem}
label{display:block;margin-top:.75rem;font-weight:600}
input,textarea{width:100%;box-sizing:border-box;font:inherit;padding:.5rem}
button{font:inherit;padding:.6rem 1.2rem;margin-top:1rem}
.hint{font-weight:400;font-size:.9rem}
[role=alert],[role=status]{border-left:.3rem solid;padding:.5rem .75rem}
ul{list-style:none;padding:0}ul ul{padding-left:1.25rem}
li{margin:.75rem 0;overflow-wrap:anywhere}";

/// What may be done on the page: forms go home, its own style applies, nothing else.
pub(super) fn policy() -> String {
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    )
}

/// What stands on the page.
pub(super) struct Page<'p> {
    /// What was sent; a post that was refused is not lost.
    pub(super) form: &'p Form,
    /// Why it was refused.
    pub(super) why: Option<&'p str>,
    /// The author's feed.
    pub(super) shown: Option<Shown>,
}

/// A feed that is shown.
pub(super) struct Shown {
    /// Its public address.
    pub(super) url: String,
    /// Its title.
    pub(super) title: String,
    /// Its items.
    pub(super) lines: Vec<Line>,
}

impl Page<'_> {
    /// The whole document.
    pub(super) fn to_html(&self) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>Write a post</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>Write a post</h1>\n{}{}{}</main>\n</body>\n</html>\n",
            self.news(),
            self.write(),
            self.feed()
        )
    }

    fn value(&self, name: &str) -> &str {
        self.form.get(name).unwrap_or_default()
    }

    /// What became of the last post.
    fn news(&self) -> String {
        if let Some(why) = self.why {
            return format!("<p role=\"alert\">{}</p>\n", escaped(why));
        }
        if self.value("posted").is_empty() {
            return String::new();
        }
        let chars: usize = self.value("chars").parse().unwrap_or(0);
        let long = match chars > SHORT_CHARS {
            true => {
                format!(" It has {chars} characters; readers of such feeds expect {SHORT_CHARS}.")
            }
            false => String::new(),
        };
        let told = match self.value("untold").is_empty() {
            true => "",
            false => " Nobody could be told of it now; those who watch the feed are told later.",
        };
        format!("<p role=\"status\">Posted.{long}{told}</p>\n")
    }

    fn write(&self) -> String {
        let field = |name: &str, label: &str, kind: &str, more: &str| {
            let value = escaped(self.value(name));
            format!(
                "<label for=\"{name}\">{label}</label>\n\
                 <input id=\"{name}\" name=\"{name}\" type=\"{kind}\" value=\"{value}\"{more}>\n"
            )
        };
        let optional = " <span class=\"hint\">(optional)</span>";
        let login =
            " required autocomplete=\"username\" autocapitalize=\"none\" spellcheck=\"false\"";
        let reply = match self.value("parent") {
            "" => String::new(),
            parent => {
                let (parent, what) = (escaped(parent), escaped(&self.replied(parent)));
                let user = form_urlencoded::byte_serialize(self.value("user").as_bytes());
                let user: String = user.collect();
                format!(
                    "<p>Under: {what} <a href=\"author?user={user}\">not under it</a></p>\n\
                     <input type=\"hidden\" name=\"parent\" value=\"{parent}\">\n"
                )
            }
        };
        format!(
            "<form method=\"post\" action=\"author\">\n{reply}\
             <label for=\"text\">What do you want to say? <span class=\"hint\">{SHORT_CHARS} \
             characters are the custom; links, categories and pictures below do not count\
             </span></label>\n\
             <textarea id=\"text\" name=\"text\" rows=\"4\" required>\n{}</textarea>\n{}{}{}{}{}\
             <label for=\"password\">Password</label>\n<input id=\"password\" name=\"password\" \
             type=\"password\" required autocomplete=\"current-password\">\n\
             <button>Post</button>\n</form>\n",
            escaped(self.value("text")),
            field("title", &format!("Title{optional}"), "text", ""),
            field("link", &format!("Link{optional}"), "url", ""),
            field("category", &format!("Categories, separated by commas{optional}"), "text", ""),
            field("enclosure", &format!("Address of a picture or recording{optional}"), "url", ""),
            field("user", "Account", "text", login),
        )
    }

    /// The beginning of the item that is answered.
    fn replied(&self, parent: &str) -> String {
        let lines = self.shown.iter().flat_map(|shown| &shown.lines);
        let mut found = lines.filter(|line| line.id == parent);
        found.next().map_or_else(|| parent.to_owned(), plain)
    }

    /// The feed as it is.
    fn feed(&self) -> String {
        let Some(Shown { url, title, lines }) = &self.shown else {
            return "<h2>Your feed</h2>\n<p>It is shown here once it holds something: \
                    <a href=\"#user\">name your account</a> and write.</p>\n"
                .to_owned();
        };
        let user = form_urlencoded::byte_serialize(self.value("user").trim().as_bytes());
        let user: String = user.collect();
        let mut out = format!(
            "<h2>{}</h2>\n<p><a href=\"{url}\">{url}</a></p>\n<ul>\n",
            escaped(title),
            url = escaped(url)
        );
        let mut depth = 0;
        for line in lines.iter().take(SHOWN_ITEMS) {
            let wanted = line.depth.min(SHOWN_DEPTH);
            for _ in depth..wanted {
                out.push_str("<li><ul>\n");
            }
            for _ in wanted..depth {
                out.push_str("</ul></li>\n");
            }
            depth = wanted;
            let (text, date) = (escaped(&plain(line)), escaped(&line.date));
            out.push_str(&format!("<li>{text}<br><small>{date}</small>"));
            if !line.id.is_empty() {
                let id: String = form_urlencoded::byte_serialize(line.id.as_bytes()).collect();
                out.push_str(&format!(
                    " <a href=\"author?user={user}&amp;parent={id}\">write under this</a>"
                ));
            }
            out.push_str("</li>\n");
        }
        for _ in 0..depth {
            out.push_str("</ul></li>\n");
        }
        out.push_str("</ul>\n");
        out
    }
}

/// The text of an item, cut to what is shown.
fn plain(line: &Line) -> String {
    let html = Text { kind: TextKind::Html, value: line.text.clone(), ..Text::default() };
    let text = html.to_plain();
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
