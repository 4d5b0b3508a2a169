//! The end of `--help` of the commands: examples, the environment and exit codes.

/// The end of `feedgate --help`.
pub(super) const PROGRAM: &str = "\
Exit codes:
  0  the command did what it says
  1  it failed; the reason is on standard error
  2  an option or argument is wrong

Settings come from the command line, from the environment (FEEDGATE_…) and from the file that --config or
FEEDGATE_CONFIG names. \"feedgate serve --help\" lists all of them.

Examples:
  feedgate serve
  feedgate poll https://example.org/feed
  curl -s https://example.org/feed | feedgate normalize --format json";

/// The end of `feedgate token --help`.
pub(super) const TOKEN: &str = "\
The commands expect the database of a gateway, and create none.

Examples:
  feedgate token create --login ann
  feedgate token list --json
  feedgate token revoke 3";

/// The end of `feedgate account --help`.
pub(super) const ACCOUNT: &str = "\
The commands expect the database of a gateway, and create none.

Examples:
  echo 'correct horse battery' | feedgate account add writer
  feedgate account list --json
  feedgate account remove writer";

/// The end of `feedgate backup --help`.
pub(super) const BACKUP: &str = "\
Examples:
  feedgate backup /backups/monday.db
  feedgate backup --database sqlite:/var/lib/feedgate /backups/monday.db";

/// The end of `feedgate restore --help`.
pub(super) const RESTORE: &str = "\
Examples:
  feedgate restore /backups/monday.db
  feedgate restore --database sqlite:/var/lib/feedgate /backups/monday.db";

/// The end of `feedgate copy --help`.
pub(super) const COPY: &str = "\
Examples:
  feedgate copy --from sqlite:feedgate-data --to postgres://feedgate@localhost/feedgate --cells 1";

/// The end of `feedgate consume --help`.
pub(super) const CONSUME: &str = "\
Exit codes:
  0  all entries were handled, or the reader of the output has closed it
  1  an entry was not handled, or the archive could not be read

Examples:
  feedgate consume https://gateway.example.org/feeds/1/recent --state place
  feedgate consume https://gateway.example.org/feeds/1/recent | head -n 3";

/// The end of `feedgate normalize --help`.
pub(super) const NORMALIZE: &str = "\
Exit codes:
  0  every document was normalized
  1  at least one was not

Examples:
  feedgate normalize --url https://example.org/feed.xml feed.xml
  feedgate normalize --batch manifest.jsonl --out results";
