//! Rust source without its comments, strings and character literals.

/// The code in `text`, line for line.
pub(super) fn code_only(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = comment(rest).or_else(|| raw_string(rest)).or_else(|| quoted(rest));
        let length = skipped.unwrap_or(first.len_utf8());
        match skipped {
            Some(_) => code.extend(rest[..length].chars().filter(|c| *c == '\n')),
            None => code.push(first),
        }
        rest = &rest[length..];
    }
    code
}

/// The length of the comment with which `rest` begins.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    let inside = rest.strip_prefix("/*")?;
    Some(inside.find("*/").map_or(rest.len(), |end| end + 4))
}

/// The length of the raw string with which `rest` begins.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let inside = after.trim_start_matches('#');
    let hashes = &after[..after.len() - inside.len()];
    let inside = inside.strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let at = inside.find(&end).unwrap_or(inside.len().saturating_sub(end.len()));
    Some(rest.len() - inside.len() + at + end.len())
}

/// The length of the string or the character literal with which `rest` begins. A lifetime, which
/// begins like a character literal, is code.
fn quoted(rest: &str) -> Option<usize> {
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut inside = rest.char_indices().skip(1);
    let is_character = || rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'');
    if quote == '\'' && !is_character() {
        return None;
    }
    while let Some((at, c)) = inside.next() {
        if c == '\\' {
            inside.next();
        } else if c == quote {
            return Some(at + 1);
        }
    }
    Some(rest.len())
}

#[test]
fn strings_comments_and_characters_are_left_out_of_code() {
    let cases = [
        ("let a = \"door \\\" shelf\", b", "let a = , b"),
        ("a // door\nb /* door\n */ c", "a \nb \n c"),
        ("r#\"door \" shelf\"#; br\"door\" + x", "; b + x"),
        ("('\"', '\\'', 'd', b'\\\\') door", "(, , , b) door"),
        ("fn of<'d>(door: &'d str)", "fn of<'d>(door: &'d str)"),
        ("\"door\n  shelf\" mind", "\n mind"),
    ];
    for (text, want) in cases {
        assert_eq!(code_only(text), want, "{text}");
    }
}
