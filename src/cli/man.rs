//! `feedgate man`: man pages of the program and its commands, from the same texts as `--help`.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::{Cli, Outcome, help, print_bytes, print_note};

/// Headings of `--help`, and what man pages call them (man-pages(7)).
const HEADINGS: [(&str, &str); 4] = [
    ("Exit codes", "EXIT STATUS"),
    ("Environment", "ENVIRONMENT"),
    ("Examples", "EXAMPLES"),
    ("Documentation", "SEE ALSO"),
];

/// Print the man page of feedgate, or write the pages of all commands to a directory.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help::MAN.text())]
pub(super) struct ManArgs {
    /// The directory to write to, which is created if it does not exist.
    directory: Option<PathBuf>,
}

pub(super) fn run(args: &ManArgs) -> Outcome {
    let mut program = Cli::command().disable_help_subcommand(true);
    program.build();
    let Some(directory) = &args.directory else {
        print_bytes(&page(&program)?);
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(directory)?;
    let mut commands = vec![&program];
    let mut count = 0;
    while let Some(command) = commands.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name());
        fs::write(directory.join(format!("{name}.1")), page(command)?)?;
        commands.extend(command.get_subcommands());
        count += 1;
    }
    print_note(format!("wrote {count} pages to {}", directory.display()));
    Ok(ExitCode::SUCCESS)
}

/// Returns the man page of a command.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let source = format!("feedgate {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("feedgate manual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(end) = command.get_after_long_help() {
        help_end(&end.to_string()).to_writer(&mut page)?;
    }
    Ok(page)
}

/// Returns the end of `--help` with its headings as sections. Lines are not filled: they are lists and
/// commands.
fn help_end(text: &str) -> Roff {
    let mut roff = Roff::new();
    for part in text.split("\n\n").map(|part| part.trim_matches('\n')) {
        let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
        let Some(heading) = first.strip_suffix(':').filter(|_| rest.starts_with(' ')) else {
            roff.control("PP", []).text([roman(part)]);
            continue;
        };
        match HEADINGS.iter().find(|(known, _)| *known == heading) {
            Some((_, heading)) => roff.control("SH", [*heading]),
            None => roff.control("SS", [heading]),
        };
        roff.control("nf", []);
        for line in rest.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    roff
}
