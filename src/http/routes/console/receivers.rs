//! Programs that receive webhooks, in five languages. They are those of the quickstart in `docs/`, which tests
//! run as they are written.

const QUICKSTART: &str = include_str!("../../../../docs/quickstart.md");
const SIGNATURES: &str = include_str!("../../../../docs/api/signatures.md");

/// Of the languages without a library that verifies: the file with the functions of the page on signatures,
/// and what comes before them.
const VERIFYING: [(&str, &str, &str); 3] = [
    ("Go", "verify.go", "package main\n\n"),
    ("Ruby", "verify.rb", ""),
    ("PHP", "verify.php", "<?php\n"),
];

/// What is needed to receive webhooks in a language.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The language.
    pub(super) language: &'static str,
    /// The names and the texts of its files.
    pub(super) files: Vec<(String, String)>,
    /// The commands that install what it needs, and start it.
    pub(super) commands: String,
}

/// Returns the receivers of the quickstart.
pub(super) fn receivers() -> Vec<Receiver> {
    QUICKSTART.split("\n## ").skip(1).filter_map(receiver).collect()
}

fn receiver(section: &'static str) -> Option<Receiver> {
    let (language, text) = section.split_once('\n')?;
    let (mut files, mut commands) = (verifying_file(language), String::new());
    for (fence, block) in blocks(text) {
        if fence == "console" {
            commands.extend(block.lines().filter_map(command));
        } else if let Some(name) = file_name(block).filter(|name| !name.starts_with("stream.")) {
            files.push((name.to_owned(), block.to_owned()));
        }
    }
    Some(Receiver { language, files, commands })
}

/// Returns the fences and the contents of the blocks of code.
fn blocks(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
}

/// Returns the name in the first line of a program, a comment.
fn file_name(program: &str) -> Option<&str> {
    program.lines().next()?.rsplit(' ').next()
}

fn verifying_file(language: &str) -> Vec<(String, String)> {
    let file =
        VERIFYING.iter().find(|(name, ..)| *name == language).and_then(|(name, file, head)| {
            let section =
                SIGNATURES.split("\n## ").find(|section| section.lines().next() == Some(*name))?;
            let (_, functions) = blocks(section).next()?;
            Some(((*file).to_owned(), format!("{head}{functions}")))
        });
    file.into_iter().collect()
}

/// Returns a command without the programs that read a stream; `None` if nothing is left.
fn command(line: &str) -> Option<String> {
    let line = line.strip_prefix("$ ")?;
    let is_of_stream = |word: &str| word.trim_start_matches("./").starts_with("stream");
    if line.split(' ').any(is_of_stream) && !line.contains("webhook") {
        return None;
    }
    let words: Vec<&str> = line.split(' ').filter(|word| !is_of_stream(word)).collect();
    Some(format!("{}\n", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c06_each_language_of_the_quickstart_has_its_receiver() {
        let receivers = receivers();
        let named: Vec<(&str, Vec<&str>)> = receivers
            .iter()
            .map(|it| (it.language, it.files.iter().map(|(name, _)| name.as_str()).collect()))
            .collect();
        let want: [(&str, Vec<&str>); 5] = [
            ("Python", vec!["webhook.py"]),
            ("TypeScript", vec!["webhook.mts"]),
            ("Go", vec!["verify.go", "webhook.go"]),
            ("Ruby", vec!["verify.rb", "webhook.rb"]),
            ("PHP", vec!["verify.php", "subscribe.php", "webhook.php"]),
        ];
        assert_eq!(named, want);
        for Receiver { language, files, commands } in &receivers {
            assert!(commands.contains("webhook") && !commands.contains("stream"), "{commands}");
            let text: String = files.iter().map(|(_, text)| text.as_str()).collect();
            assert!(text.contains("SECRET") && !text.contains("```"), "{language}: {text}");
        }
        assert!(receivers[2].files[0].1.starts_with("package main\n\nimport ("));
    }
}
