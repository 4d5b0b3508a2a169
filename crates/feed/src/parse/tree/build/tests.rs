//! Trees of malformed documents.

use proptest::prelude::*;

use super::super::Tree;
use super::super::element::WalkStep;
use super::*;

/// More nodes than any document of these tests has.
const NODES: usize = 1 << 20;

/// Returns the tree in brackets: `a(b("x"))`.
fn shape(tree: &Tree<'_>) -> String {
    let mut walk = tree.document().walk();
    let mut out = String::new();
    while let Some(step) = walk.next() {
        match step {
            WalkStep::Enter(element) => out += &format!("{}(", element.name()),
            WalkStep::Text(text) => out += &format!("{text:?}"),
            WalkStep::Leave(_) => out.push(')'),
        }
    }
    out
}

#[test]
fn any_text_becomes_a_tree() {
    #[rustfmt::skip]
    let cases = [
        ("sound",                      "<a><b>x</b><c/></a>",               r#"a(b("x")c())"#),
        ("an end is missing",          "<a><b>x</a>",                       r#"a(b("x"))"#),
        ("ends are crossed",           "<a><b><i>x</b></i>y</a>",           r#"a(b(i("x"))"y")"#),
        ("an end too many",            "<a></b>x</a>",                      r#"a("x")"#),
        ("an item in an item",         "<rss><item>x<item>y</item></rss>",  r#"rss(item("x")item("y"))"#),
        ("an item of an item",         "<rss><item>x<item>y</item></item></rss>", r#"rss(item("x")item("y"))"#),
        ("an item in an element",      "<rss><item><x>y<item/></x></item></rss>", r#"rss(item(x("y"item())))"#),
        ("layout",                     "<rss> <item>\n<x> </x>\n</item> </rss>", r#"rss(item(x(" ")))"#),
        ("no layout",                  "<rss>\n&gt; <x/>y \n</rss>",       r#"rss("\n> "x()"y \n")"#),
        ("an entry that is quoted",    "<entry><content><entry/></content></entry>", "entry(content(entry()))"),
        ("broken off in a text",       "<a><b>x",                           r#"a(b("x"))"#),
        ("broken off in a tag",        "<a><b>x</b><c d='",                 r#"a(b("x"))"#),
        ("a comment never closed",     "<a><b>x</b><!-- y <c>z</c></a>",    r#"a(b("x")c("z"))"#),
        ("CDATA never closed",         "<a><![CDATA[x <b>y</b></a>",        r#"a("x "b("y"))"#),
        ("texts are joined",           "<a>x &amp; <![CDATA[<y>]]>&#33;</a>", r#"a("x & <y>!")"#),
        ("bare ampersands",            "<a>AT&T & &nosuch; &eacute;</a>",   r#"a("AT&T & &nosuch; é")"#),
        ("ampersands after references", "<a>&lt;b&gt; & &amp;&& &nosuch; &#x; &;x</a>", r#"a("<b> & &&& &nosuch; &#x; &;x")"#),
        ("line ends after references", "<a>&lt;\r\n&gt;\r&amp;\r\r\n</a>", r#"a("<\n>\n&\n\n")"#),
        ("a section's end after a reference", "<a>&lt;x]]>y]] >&gt;]]>&amp;</a>", r#"a("<xy]] >>&")"#),
        ("a section after references", "<a>&lt;x&gt;<![CDATA[&lt;]]>y&gt;<b/>&amp;z</a>", r#"a("<x>&lt;y>"b()"&z")"#),
        ("line ends in CDATA",         "<a><![CDATA[x\r\ny\r[z]]]></a>",    r#"a("x\ny\n[z]")"#),
        ("CDATA in CDATA",             "<a><![CDATA[x <![CDATA[y]]> z]]></a>", r#"a("x y z")"#),
        ("markup in CDATA in CDATA",   "<a><![CDATA[<p>x<![CDATA[y]]>z</p>]]></a>", r#"a("<p>xyz</p>")"#),
        ("CDATA closed too late",      "<a><b><![CDATA[x</b><c><![CDATA[y]]></c></a>", r#"a(b("x")c("y"))"#),
        ("a quote is missing",         "<a><b c=\"d>x</b><b c=\"e\">y</b></a>", r#"a(b("x")b("y"))"#),
        ("markup in a value",          "<a><b c=\"<i>d</i>\">x</b></a>",   r#"a(b("x"))"#),
        ("a title not closed",         "<rss><item><title>x<link>y</link></item></rss>", r#"rss(item(title("x")link("y")))"#),
        ("several roots",              "x<a/>y<b/>",                        r#""x"a()"y"b()"#),
        ("void HTML elements",         "<a>x<br>y<img src=z>w</a>",         r#"a("x"br()"y"img()"w")"#),
        ("other case in the end",      "<A>x</a><B/>",                      r#"A("x")B()"#),
        ("line ends",                  "<a>x\r\ny\rz</a>",                  r#"a("x\ny\nz")"#),
        ("a document type of its own", "<!DOCTYPE a [<!ENTITY b \"c\">]><a d=\"&b;\">x &b; &e;</a>", r#"a("x c &e;")"#),
    ];
    for (why, text, want) in cases {
        assert_eq!(shape(&build(text, NODES, &mut Vec::new())), want, "{why}: {text}");
    }
}

#[test]
fn depth_and_size_do_no_harm() {
    let deep = "<a>".repeat(100_000) + "x";
    let tree = build(&deep, NODES, &mut Vec::new());
    assert_eq!(tree.document().text(), "x");
    let wide = format!("<a {}/>", "b='c' ".repeat(100_000));
    build(&wide, NODES, &mut Vec::new());
    let open = "<!--".repeat(100_000);
    build(&open, NODES, &mut Vec::new());
}

proptest! {
    #[test]
    fn a_tree_that_is_built_at_once_is_the_tree_of_the_tidied_text(
        at in prop::collection::vec(0..28_usize, 0..12),
    ) {
        #[rustfmt::skip]
        let pieces = [
            "<a>", "</a>", "<a>", "</a>", "<b c='d'>", "</b>", "<e/>", "x", " ", "&amp;", "&#65;", "]]>",
            "</ a>", "< a>", "<a b='<'>", "</a<>", "<!-- < -->", "<!-->", "<!--->", "-->",
            "<![CDATA[<]]>", "<?f < ?>", "<?>", "?>", "<!DOCTYPE a>", "<!DOCTYPE a [<!ENTITY e '<'>]>",
            "<!ELEMENT a>", "<é>",
        ];
        let text: String = at.into_iter().map(|at| pieces[at]).collect();
        let (mut repairs, mut of_tidied) = (Vec::new(), Vec::new());
        if let Some(tree) = build_sound(&text, NODES, &mut repairs) {
            let tidied = super::super::tidy(Cow::Borrowed(&text), &mut of_tidied);
            prop_assert_eq!(&tidied, &text);
            prop_assert_eq!(shape(&tree), shape(&build(&tidied, NODES, &mut of_tidied)));
            prop_assert_eq!(repairs, of_tidied);
        }
    }
}
