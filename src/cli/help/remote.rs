//! The ends of the help of commands that send requests to a gateway which runs anywhere.

use super::HelpEnd;

/// What a command that sends a request to a gateway adds to its exit codes.
const TRY_AGAIN: &str =
    "Exit code 3: the server was not reached, is busy or limits requests. Try again later.";
/// The variables of a command that sends a request to a gateway.
const CREDENTIALS: &[&str] =
    &["FEEDGATE_TOKEN  the login and the token, with a colon between; --user takes precedence"];
const REFUSED: &str = "the server refused the request; the reason is on standard error";

pub(in crate::cli) const SUBSCRIBE: HelpEnd = HelpEnd {
    note: TRY_AGAIN,
    success: "done, or accepted: the callback is being verified",
    failure: REFUSED,
    environment: CREDENTIALS,
    examples: &[
        "feedgate subscribe https://example.org/feed --callback https://example.com/hook --secret opensesame",
        "export FEEDGATE_TOKEN=ann:0123456789",
        "feedgate subscribe https://example.org/feed --callback https://example.com/hook --format json",
        "feedgate unsubscribe https://example.org/feed",
    ],
    documentation: "docs/operations.md and docs/receiving.md",
};

pub(in crate::cli) const LIST: HelpEnd = HelpEnd {
    note: TRY_AGAIN,
    success: "the list is complete",
    failure: REFUSED,
    environment: CREDENTIALS,
    examples: &[
        "FEEDGATE_TOKEN=ann:0123456789 feedgate list",
        "FEEDGATE_TOKEN=ann:0123456789 feedgate list --server https://gateway.example.org --json",
    ],
    documentation: "docs/operations.md",
};

pub(in crate::cli) const REPLAY: HelpEnd = HelpEnd {
    note: TRY_AGAIN,
    success: "accepted: the entries are being sent",
    failure: REFUSED,
    environment: CREDENTIALS,
    examples: &[
        "FEEDGATE_TOKEN=ann:0123456789 feedgate replay https://example.org/feed \\",
        "  --callback https://example.com/hook --count 5",
    ],
    documentation: "docs/operations.md",
};

pub(in crate::cli) const TAIL: HelpEnd = HelpEnd {
    note: "Exit code 3: the gateway was not reached, is busy or limits requests. Once it was reached, tail \
           connects again after each interruption and continues where it was.",
    success: "it was interrupted, or the reader of the output has closed it",
    failure: REFUSED,
    environment: &[
        "FEEDGATE_TOKEN           the login and the token, with a colon between; --user takes precedence",
        "FEEDGATE_WEBHOOK_SECRET  the secret that signs; --secret-file takes precedence",
    ],
    examples: &[
        "export FEEDGATE_TOKEN=ann:0123456789",
        "feedgate tail --forward-to http://localhost:3000 --server https://gateway.example.org",
        "feedgate tail https://example.org/feed --subscribe --count 3 --forward-to http://localhost:3000",
        "feedgate tail https://example.org/feed | jq -r '.items[].title'",
    ],
    documentation: "docs/receiving.md#without-a-public-address",
};

pub(in crate::cli) const IMPORT_SUPERFEEDR: HelpEnd = HelpEnd {
    note: "Exit code 3: a server was not reached, is busy or limits requests. The same command goes on later.",
    success: "all was done, and all feeds that were compared have the same entries",
    failure: "some was not, or differs: each has a line on standard output; or the command failed",
    environment: &[
        "SUPERFEEDR_TOKEN  the login and a token at Superfeedr, with a colon between",
        "FEEDGATE_TOKEN    the login and the token at the gateway; --user takes precedence",
    ],
    examples: &[
        "export SUPERFEEDR_TOKEN FEEDGATE_TOKEN  # both LOGIN:TOKEN",
        "feedgate import-superfeedr --state move.jsonl --server https://gateway.example.org",
        "feedgate import-superfeedr --state move.jsonl --server https://gateway.example.org --compare --for 2d",
        "feedgate import-superfeedr --state move.jsonl --server https://gateway.example.org --switch",
    ],
    documentation: "docs/from-superfeedr.md#moving-an-account",
};
