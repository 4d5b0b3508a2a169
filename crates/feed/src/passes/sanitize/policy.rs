//! What is allowed in sanitized markup: elements, attributes and addresses.
//!
//! The lists are those that readers of feeds use: what old and new pages need for text, tables,
//! pictures and recordings. Left out are scripts, styles, frames, plugins, drawings, and
//! everything that sends a request when it is clicked, except links.

use super::{Shape, style};

#[rustfmt::skip]
const CONTAINERS: &[&str] = &[
    "a", "abbr", "acronym", "address", "article", "aside", "audio", "b", "bdi", "bdo", "big",
    "blockquote", "button", "canvas", "caption", "center", "cite", "code", "colgroup", "datagrid",
    "datalist", "dd", "del", "details", "dfn", "dialog", "dir", "div", "dl", "dt", "em", "fieldset",
    "figcaption", "figure", "font", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "i", "ins", "kbd", "label", "legend", "li", "m", "map", "mark", "menu", "meter", "multicol",
    "nav", "ol", "optgroup", "option", "output", "p", "picture", "pre", "progress", "q", "rp", "rt",
    "ruby", "s", "samp", "section", "select", "small", "sound", "span", "strike", "strong", "sub",
    "summary", "sup", "table", "tbody", "td", "textarea", "tfoot", "th", "thead", "time", "tr",
    "tt", "u", "ul", "var", "video",
];

#[rustfmt::skip]
const VOIDS: &[&str] = &[
    "area", "br", "col", "command", "hr", "img", "input", "keygen", "nextid", "source", "spacer",
    "wbr",
];

/// Elements whose content is never shown as text.
const RAW: &[&str] = &["applet", "noembed", "noframes", "script", "style", "template", "xmp"];

#[rustfmt::skip]
const ATTRIBUTES: &[&str] = &[
    "abbr", "accept", "accept-charset", "accesskey", "align", "alt", "autocomplete", "axis",
    "balance", "bgcolor", "bgproperties", "border", "bordercolor", "bordercolordark",
    "bordercolorlight", "bottompadding", "cellpadding", "cellspacing", "ch", "challenge", "char",
    "charoff", "charset", "checked", "choff", "class", "clear", "color", "cols", "colspan",
    "compact", "contenteditable", "controls", "coords", "datafld", "datapagesize", "datetime",
    "default", "delay", "dir", "disabled", "draggable", "end", "face", "for", "form", "frame",
    "galleryimg", "gutter", "headers", "height", "hidden", "hidefocus", "high", "hreflang",
    "hspace", "id", "inputmode", "ismap", "keytype", "label", "lang", "leftspacing", "list", "loop",
    "loopcount", "loopend", "loopstart", "low", "max", "maxlength", "media", "min", "multiple",
    "name", "nohref", "noshade", "nowrap", "open", "optimum", "pattern", "point-size", "pqg",
    "preload", "prompt", "radiogroup", "readonly", "rel", "repeat-max", "repeat-min", "replace",
    "required", "rev", "rightspacing", "rows", "rowspan", "rules", "scope", "selected", "shape",
    "size", "span", "start", "step", "summary", "suppress", "tabindex", "target", "title",
    "toppadding", "type", "unselectable", "valign", "value", "variable", "volume", "vspace",
    "width", "wrap", "xml:lang",
];

/// Attributes that contain one address.
#[rustfmt::skip]
const ADDRESSES: &[&str] = &[
    "background", "cite", "data", "datasrc", "dynsrc", "href", "icon", "longdesc", "lowsrc",
    "poster", "src", "urn", "usemap", "vrml",
];

/// Schemes of addresses that neither run code nor read the reader's own files.
const SCHEMES: &[&str] = &[
    "acct", "ed2k", "feed", "ftp", "geo", "gopher", "http", "https", "irc", "ircs", "magnet",
    "mailto", "mms", "news", "nntp", "rtsp", "sip", "sips", "sms", "tag", "tel", "urn", "webcal",
    "xmpp",
];

/// Pictures that may be contained in an address.
const IMAGES: &[&str] = &["data:image/gif", "data:image/jpeg", "data:image/png", "data:image/webp"];

/// Returns how an allowed element is written. `name` is in lower case.
pub(super) fn element(name: &str) -> Option<Shape> {
    if VOIDS.contains(&name) {
        return Some(Shape::Void);
    }
    CONTAINERS.contains(&name).then_some(Shape::Container)
}

/// Whether the content of an element is left out with its tags.
pub(super) fn is_raw(name: &str) -> bool {
    RAW.contains(&name)
}

/// Returns the allowed value of an attribute. `name` is in lower case, `value` is decoded.
pub(super) fn attribute(name: &str, value: &str) -> Option<String> {
    if name == "style" {
        return Some(style::allowed(value)).filter(|style| !style.is_empty());
    }
    let is_allowed = ATTRIBUTES.contains(&name) || (ADDRESSES.contains(&name) && is_safe(value));
    is_allowed.then(|| value.to_owned())
}

/// Whether an address is relative, a picture or of an allowed scheme. Browsers ignore white space
/// and control characters in a scheme, so they are ignored here.
fn is_safe(address: &str) -> bool {
    let text: String = address.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    let end = text.find([':', '/', '?', '#']).unwrap_or(text.len());
    if !text[end..].starts_with(':') {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    SCHEMES.contains(&&lower[..end]) || IMAGES.iter().any(|image| lower.starts_with(image))
}

/// Whether content of this media type cannot act: a text, or a picture, recording or video.
pub(super) fn is_passive(mime: &str) -> bool {
    let mime = mime.trim().to_ascii_lowercase();
    let passive = ["text/plain", "image/", "audio/", "video/"];
    passive.iter().any(|kind| mime.starts_with(kind)) && !mime.contains("xml")
}
