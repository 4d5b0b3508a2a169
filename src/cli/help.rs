//! The end of `--help` of each command: what it returns, which environment it reads, examples, and where
//! the documentation is. Man pages have the same under their own headings, see `man.rs`.

mod remote;

pub(super) use remote::{IMPORT_SUPERFEEDR, LIST, REPLAY, SUBSCRIBE, TAIL};

/// The end of the help of a command.
pub(super) struct HelpEnd {
    /// What does not fit into the summary; empty if there is nothing.
    note: &'static str,
    /// What exit code 0 means.
    success: &'static str,
    /// What exit code 1 means.
    failure: &'static str,
    /// The variables that the command reads, each with its meaning.
    environment: &'static [&'static str],
    examples: &'static [&'static str],
    /// The page of the documentation.
    documentation: &'static str,
}

/// The variables of a command that reads the settings of a gateway.
const SETTINGS: &[&str] = &[
    "FEEDGATE_CONFIG    the file with settings, by default /etc/feedgate/feedgate.toml; --config takes precedence",
    "FEEDGATE_DATABASE  the database; --database takes precedence",
    "FEEDGATE_…         every other setting; \"feedgate serve --help\" lists all of them",
];
/// The variables of a command that reads settings and no database.
const SETTINGS_WITHOUT_DATABASE: &[&str] = &[
    "FEEDGATE_CONFIG    the file with settings, by default /etc/feedgate/feedgate.toml; --config takes precedence",
    "FEEDGATE_…         every other setting; \"feedgate serve --help\" lists all of them",
];
const NONE: &[&str] = &["no variables are read"];
const FAILED: &str = "it failed; the reason is on standard error";
const EXPECTS_DATABASE: &str = "The commands expect the database of a gateway, and create none.";

impl HelpEnd {
    /// Returns the text, with a heading for each part.
    pub(super) fn text(&self) -> String {
        let mut parts = Vec::new();
        if !self.note.is_empty() {
            parts.push(self.note.to_owned());
        }
        let codes = [
            format!("0  {}", self.success),
            format!("1  {}", self.failure),
            "2  an option or argument is wrong".to_owned(),
        ];
        parts.push(part("Exit codes", codes.iter().map(String::as_str)));
        parts.push(part("Environment", self.environment.iter().copied()));
        parts.push(part("Examples", self.examples.iter().copied()));
        parts.push(part("Documentation", [self.documentation].into_iter()));
        parts.join("\n\n")
    }

    /// Returns the text with a longer part before it.
    pub(super) fn text_after(&self, before: &str) -> String {
        format!("{}\n\n{}", before.trim_end(), self.text())
    }
}

fn part<'l>(heading: &str, lines: impl Iterator<Item = &'l str>) -> String {
    let lines = lines.map(|line| format!("\n  {line}"));
    format!("{heading}:{}", lines.collect::<String>())
}

pub(super) const PROGRAM: HelpEnd = HelpEnd {
    note: "Settings come from the command line, from the environment (FEEDGATE_…) and from the file that \
           --config or FEEDGATE_CONFIG names, or else from /etc/feedgate/feedgate.toml.",
    success: "the command did what it says",
    failure: FAILED,
    environment: SETTINGS,
    examples: &[
        "feedgate serve",
        "feedgate poll https://example.org/feed",
        "curl -s https://example.org/feed | feedgate normalize --format json",
    ],
    documentation: "README.md and docs/operations.md",
};

pub(super) const SERVE: HelpEnd = HelpEnd {
    note: "",
    success: "it was stopped by a signal",
    failure: "it could not start, or a part of it broke; the reason is on standard error",
    environment: SETTINGS,
    examples: &[
        "feedgate serve",
        "feedgate serve --allow-local",
        "feedgate serve --listen 0.0.0.0:8080 --database sqlite:/var/lib/feedgate",
    ],
    documentation: "docs/operations.md",
};

pub(super) const DEMO: HelpEnd = HelpEnd {
    note: "",
    success: "everything that was published was received",
    failure: "a notification is missing at the end",
    environment: NONE,
    examples: &["feedgate demo", "feedgate demo --for 20s"],
    documentation: "README.md",
};

pub(super) const NORMALIZE: HelpEnd = HelpEnd {
    note: "",
    success: "every document was normalized",
    failure: "at least one was not",
    environment: NONE,
    examples: &[
        "feedgate normalize --url https://example.org/feed.xml feed.xml",
        "feedgate normalize --ndjson --format json a.xml b.xml | jq -r .feed.title",
        "feedgate normalize --batch manifest.jsonl --out results",
    ],
    documentation: "docs/normalizer.md",
};

pub(super) const POLL: HelpEnd = HelpEnd {
    note: "",
    success: "the fetch succeeded",
    failure: "it failed",
    environment: SETTINGS_WITHOUT_DATABASE,
    examples: &[
        "feedgate poll https://example.org/feed",
        "feedgate poll --json https://example.org/feed",
        "feedgate poll --explain https://example.org/",
    ],
    documentation: "docs/operations.md#why-a-poll-was-late",
};

pub(super) const POST: HelpEnd = HelpEnd {
    note: "The password of --user is read from standard input or from a setting, and is never an argument.",
    success: "the post was published",
    failure: FAILED,
    environment: SETTINGS,
    examples: &[
        "feedgate post \"Hello\" --feed feed.xml --url https://example.org/feed.xml",
        "feedgate post \"Hello\" --cloud https://gate.example.org/ --user writer < password",
    ],
    documentation: "docs/operations.md#accounts-that-store-feeds",
};

pub(super) const CONSUME: HelpEnd = HelpEnd {
    note: "",
    success: "all entries were handled, or the reader of the output has closed it",
    failure: "an entry was not handled, or the archive could not be read",
    environment: NONE,
    examples: &[
        "feedgate consume https://gateway.example.org/feeds/1/recent --state place",
        "feedgate consume https://gateway.example.org/feeds/1/recent | head -n 3",
        "feedgate consume https://ann:0123456789@gateway.example.org/accounts/ann/recent",
    ],
    documentation: "docs/archives.md#feedgate-consume",
};

pub(super) const LISTEN: HelpEnd = HelpEnd {
    note: "Each notification is printed with its headers, its body and whether its signatures are valid.",
    success: "it was interrupted, and had subscribed",
    failure: FAILED,
    environment: SETTINGS_WITHOUT_DATABASE,
    examples: &[
        "feedgate listen --feed https://example.org/feed",
        "feedgate listen --feed https://example.org/feed --cloud https://gateway.example.org/hub --json",
        "FEEDGATE_TOKEN=ann:0123456789 feedgate listen --feed https://example.org/feed \\",
        "  --cloud https://gateway.example.org --forward-to http://localhost:3000/webhook",
    ],
    documentation: "docs/operations.md#testing-a-hub-or-cloud",
};

pub(super) const SIMULATE: HelpEnd = HelpEnd {
    note: "",
    success: "the tables were printed",
    failure: "the trace could not be read",
    environment: SETTINGS_WITHOUT_DATABASE,
    examples: &[
        "feedgate simulate-schedule trace.csv",
        "feedgate simulate-schedule --budget 24 trace.csv",
    ],
    documentation: "docs/operations.md#checking-the-schedule",
};

pub(super) const TOKEN: HelpEnd = HelpEnd {
    note: EXPECTS_DATABASE,
    success: "the command did what it says",
    failure: FAILED,
    environment: SETTINGS,
    examples: &[
        "feedgate token create --login ann",
        "feedgate token list --json",
        "feedgate token revoke 3",
    ],
    documentation: "docs/operations.md#tokens",
};

pub(super) const ACCOUNT: HelpEnd = HelpEnd {
    note: EXPECTS_DATABASE,
    success: "the command did what it says",
    failure: FAILED,
    environment: SETTINGS,
    examples: &[
        "echo 'correct horse battery' | feedgate account add writer",
        "feedgate account list --json",
        "feedgate account remove writer",
    ],
    documentation: "docs/operations.md#accounts-that-store-feeds",
};

pub(super) const MIGRATE: HelpEnd = HelpEnd {
    note: "",
    success: "the schema is up to date",
    failure: FAILED,
    environment: SETTINGS,
    examples: &["feedgate migrate --database postgres://feedgate@localhost/feedgate"],
    documentation: "docs/operations.md#upgrading",
};

pub(super) const BACKUP: HelpEnd = HelpEnd {
    note: "",
    success: "the backup is complete",
    failure: FAILED,
    environment: SETTINGS,
    examples: &[
        "feedgate backup /backups/monday.db",
        "feedgate backup --database sqlite:/var/lib/feedgate /backups/monday.db",
    ],
    documentation: "docs/operations.md#backup",
};

pub(super) const RESTORE: HelpEnd = HelpEnd {
    note: "",
    success: "the database is restored",
    failure: FAILED,
    environment: SETTINGS,
    examples: &[
        "feedgate restore /backups/monday.db",
        "feedgate restore --database sqlite:/var/lib/feedgate /backups/monday.db",
    ],
    documentation: "docs/operations.md#backup",
};

pub(super) const COPY: HelpEnd = HelpEnd {
    note: "",
    success: "the copy is complete",
    failure: "it is not; the same command continues it",
    environment: SETTINGS,
    examples: &[
        "feedgate copy --from sqlite:feedgate-data --to postgres://feedgate@localhost/feedgate --cells 1",
    ],
    documentation: "docs/operations.md#moving-to-another-database",
};

pub(super) const ROTATE_KEY: HelpEnd = HelpEnd {
    note: "",
    success: "all secrets are encrypted with FEEDGATE_SECRETS_KEY; no other key is needed any more",
    failure: "some are not; the reason is on standard error",
    environment: SETTINGS,
    examples: &["feedgate rotate-key", "feedgate rotate-key --database sqlite:/var/lib/feedgate"],
    documentation: "docs/operations.md#secrets-at-rest",
};

pub(super) const EXPORT: HelpEnd = HelpEnd {
    note: "",
    success: "the export is complete",
    failure: FAILED,
    environment: SETTINGS,
    examples: &[
        "feedgate export --with-secrets gateway.jsonl",
        "feedgate backup copy.db && feedgate export --database sqlite:copy.db - | gzip > gateway.jsonl.gz",
    ],
    documentation: "docs/operations.md#export-and-import",
};

pub(super) const IMPORT: HelpEnd = HelpEnd {
    note: "",
    success: "every line is in the database",
    failure: "a line was refused, or the import failed; the same command repeats it",
    environment: SETTINGS,
    examples: &[
        "feedgate import gateway.jsonl",
        "zcat gateway.jsonl.gz | feedgate import --database postgres://feedgate@localhost/feedgate -",
    ],
    documentation: "docs/operations.md#export-and-import",
};

pub(super) const CHECK_CONFIG: HelpEnd = HelpEnd {
    note: "",
    success: "all settings are valid",
    failure: "one is not; the reason is on standard error",
    environment: SETTINGS,
    examples: &[
        "feedgate check-config",
        "feedgate check-config --config /etc/feedgate/feedgate.toml",
    ],
    documentation: "docs/operations.md#settings",
};

pub(super) const HEALTHCHECK: HelpEnd = HelpEnd {
    note: "",
    success: "the gateway is ready",
    failure: "it is not, or does not respond",
    environment: SETTINGS,
    examples: &["feedgate healthcheck", "feedgate healthcheck --url http://127.0.0.1:8080/"],
    documentation: "docs/operations.md#monitoring",
};

pub(super) const COMPLETIONS: HelpEnd = HelpEnd {
    note: "",
    success: "the script was printed",
    failure: FAILED,
    environment: NONE,
    examples: &[
        "feedgate completions bash > /usr/share/bash-completion/completions/feedgate",
        "feedgate completions zsh > ~/.zfunc/_feedgate",
        "feedgate completions fish > ~/.config/fish/completions/feedgate.fish",
    ],
    documentation: "docs/operations.md#installing",
};

pub(super) const MAN: HelpEnd = HelpEnd {
    note: "",
    success: "the pages were written",
    failure: FAILED,
    environment: NONE,
    examples: &["feedgate man | man -l -", "feedgate man /usr/local/share/man/man1"],
    documentation: "docs/operations.md#installing",
};
