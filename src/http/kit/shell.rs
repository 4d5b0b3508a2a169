//! Commands that people copy from pages into a shell.
//!
//! Whatever a command contains was sent or written by others. Everything is in single quotes, in which a
//! POSIX shell expands nothing, and control characters are left out: a terminal would act on those that are
//! pasted into it.

use std::fmt::Write;

/// The longest body that stands in a command, in bytes. Shells and people take longer ones from a file.
const LONGEST_BODY_BYTES: usize = 16 << 10;
/// The file from which a command takes a body that does not stand in it.
pub(crate) const BODY_FILE: &str = "body";
/// Headers that `curl` makes itself.
const OWN_HEADERS: [&str; 3] = ["content-length", "host", "transfer-encoding"];

/// Returns a text as one word of a command.
pub(crate) fn quoted(text: &str) -> String {
    let text: String = text.chars().filter(|c| is_pasted_as_text(*c)).collect();
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns whether a body can stand in a command: it is short text.
pub(crate) fn fits_in_command(body: &[u8]) -> bool {
    let text = std::str::from_utf8(body);
    body.len() <= LONGEST_BODY_BYTES && text.is_ok_and(|text| text.chars().all(is_pasted_as_text))
}

/// Returns the `curl` command that posts a body. A body that does not fit is taken from [`BODY_FILE`], and so
/// is one that is not known.
pub(crate) fn curl_post<'h>(
    url: &str,
    headers: impl Iterator<Item = (&'h str, &'h str)>,
    body: Option<&[u8]>,
) -> String {
    // Without it, `curl` expands brackets and braces in addresses.
    let mut command = format!("curl --globoff {}", quoted(url));
    for (name, value) in headers.filter(|(name, _)| !OWN_HEADERS.contains(name)) {
        let value = value.replace(['\t', '\n'], " ");
        // `curl` leaves out a header without a value, unless a semicolon follows its name.
        let line = if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") };
        let _ = write!(command, " \\\n  -H {}", quoted(&line));
    }
    let text = body.filter(|body| fits_in_command(body));
    let _ = match text.and_then(|body| std::str::from_utf8(body).ok()) {
        Some(text) => write!(command, " \\\n  --data-raw {}", quoted(text)),
        None => write!(command, " \\\n  --data-binary @{BODY_FILE}"),
    };
    command
}

fn is_pasted_as_text(c: char) -> bool {
    !c.is_control() || matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const HOSTILE: [&str; 9] = [
        "",
        "plain",
        "it's",
        "'; touch /tmp/pwned; '",
        "$(id) `id` ${HOME} !! \\ \\' \"",
        "'\\''",
        "a\n'\nb; id\n",
        "-n @/etc/passwd",
        "日本 \u{202e}gnp",
    ];

    /// Runs a command with a `curl` that prints its arguments, each followed by a full stop on a line.
    fn arguments(command: &str) -> Vec<String> {
        let script = format!("curl() {{ printf '%s\\n.\\n' \"$@\"; }}\n{command}");
        let run = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(run.status.success() && run.stderr.is_empty(), "{run:?}: {command}");
        let printed = String::from_utf8(run.stdout).unwrap();
        let printed = printed.strip_suffix("\n.\n").unwrap();
        printed.split("\n.\n").map(str::to_owned).collect()
    }

    #[test]
    fn c03_a_shell_reads_hostile_values_and_bodies_as_they_are() {
        for text in HOSTILE {
            let value = text.replace('\n', " ");
            let command = curl_post(text, [("x-a", text)].into_iter(), Some(text.as_bytes()));
            let header = if text.is_empty() { "x-a;".to_owned() } else { format!("x-a: {value}") };
            let want = ["--globoff", text, "-H", &header, "--data-raw", text];
            assert_eq!(arguments(&command), want, "{command}");
        }
    }

    #[test]
    fn c03_what_a_terminal_acts_on_is_not_in_a_command() {
        let escape = "a\x1b[31m\x03\u{9b}2J\x7f\r";
        let headers = [("x-a", escape), ("host", "a.test"), ("content-length", "7")];
        let command = curl_post("http://a.test/", headers.into_iter(), Some(escape.as_bytes()));
        let want = ["--globoff", "http://a.test/", "-H", "x-a: a[31m2J", "--data-binary", "@body"];
        assert_eq!(arguments(&command), want);
        assert!(!fits_in_command(&vec![b'x'; LONGEST_BODY_BYTES + 1]));
        assert!(!fits_in_command(b"\xff"));
        let unknown = curl_post("http://a.test/", [].into_iter(), None);
        assert!(unknown.ends_with("--data-binary @body"), "{unknown}");
    }
}
