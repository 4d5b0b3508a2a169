"""The page docs/scoreboard.md."""

import collections
import datetime
import platform
from dataclasses import dataclass

import feeds
import votes

#: The longest value that the page shows.
LONGEST = 70


@dataclass
class Measured:
    """Everything that the page tells."""

    readers: list
    paths: list
    results: dict
    tally: votes.Tally
    repaired: dict
    memory: dict


def written(measured):
    parts = [heading(measured), entries(measured), fields(measured), texts(measured), faults(measured), costs(measured)]
    parts += [differences(measured), method(measured)]
    return "\n\n".join(parts) + "\n"


def table(names, rows):
    """Returns a table; the first column is text."""
    lines = ["| " + " | ".join(names) + " |", "| --- |" + " ---: |" * (len(names) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "–"


def heading(measured):
    size = sum(path.stat().st_size for path in measured.paths) / 1e6
    rows = [(reader.name, reader.language, reader.version) for reader in measured.readers]
    today = datetime.date.today()
    return f"""# Scoreboard

How readers of feeds compare on {len(measured.paths)} real feeds ({size:.1f} MB) that packages of PyPI and npm ship. Written by
`tests/conformance/scoreboard` on {today:%d %B %Y}, on {platform.machine()} with Python {platform.python_version()}; [how](#method).

""" + table(("reader", "for", "version"), rows).replace("---: |", "--- |")


def read(measured, name):
    return [result for result in measured.results[name].values() if not result["error"]]


def entries(measured):
    rows = []
    for reader in measured.readers:
        results = read(measured, reader.name)
        found = sum(len(result["entries"]) for result in results)
        rows.append((reader.name, len(results), len(measured.paths) - len(results), found))
    return "## Feeds and entries\n\n" + table(("reader", "feeds read", "refused", "entries found"), rows)


def fields(measured):
    tally = measured.tally
    rows = []
    for reader in measured.readers:
        agreed = tally.agreed[reader.name]
        shares = [percent(agreed[field], tally.asked[field]) for field in votes.FIELDS]
        everything = percent(sum(agreed.values()), sum(tally.asked.values()))
        rows.append((reader.name, *shares, everything))
    asked = [tally.asked[field] for field in votes.FIELDS]
    rows.append(("*values asked*", *asked, sum(asked)))
    return (
        "## Fields by vote\n\nThe share of values, in per cent, that are those of most readers. A value counts where at least three"
        " readers agree\nand more than half of those that have one; ours are one voter.\n\n"
        + table(("reader", *votes.FIELDS, "all"), rows)
    )


def texts(measured):
    rows = []
    for reader in measured.readers:
        working = every = 0
        for result in read(measured, reader.name):
            for entry in result["entries"]:
                of_text, all_of_text = votes.addresses(entry.get("text"))
                working, every = working + of_text, every + all_of_text
        rows.append((reader.name, every, every - working, percent(working, every)))
    return (
        "## Addresses in texts\n\nAddresses in `href` and `src` that work wherever the text is displayed: they are absolute, or"
        " begin with `#`.\n\n" + table(("reader", "addresses", "relative", "work, %"), rows)
    )


def faults(measured):
    rows = []
    for fault, scores in measured.repaired.items():
        row = [fault]
        for reader in measured.readers:
            share = scores.get(reader.name)
            row.append("–" if share is None else f"{100 * share:.0f}")
        rows.append(row)
    names = [reader.name for reader in measured.readers]
    means = ["*mean*"]
    for name in names:
        shares = [scores[name] for scores in measured.repaired.values() if scores.get(name) is not None]
        means.append(f"{100 * sum(shares) / len(shares):.0f}" if shares else "–")
    return (
        "## Damage\n\nEach feed with one fault: the share of entries, in per cent, that are found all the same.\n\n"
        + table(("fault", *names), [*rows, means])
    )


def costs(measured):
    """Speed over the feeds that all readers read."""
    common = set.intersection(*({result["file"] for result in read(measured, one.name)} for one in measured.readers))
    size = sum(path.stat().st_size for path in measured.paths if str(path) in common) / 1e6
    rows = []
    for reader in measured.readers:
        seconds = sum(measured.results[reader.name][file]["ns"] for file in common) / 1e9
        memory = measured.memory.get(reader.name)
        memory = "–" if memory is None else f"{memory:.0f}"
        rows.append((reader.name, f"{1000 * seconds:.1f}", f"{size / seconds:.1f}" if seconds else "–", memory))
    return (
        f"## Speed and memory\n\nReading the {len(common)} feeds that all read ({size:.1f} MB), one after the other, the shortest of"
        " three times each; called from\nthe language of the reader, until all entries can be read from the result. Memory is what a"
        " feed of 8 MB needs at most.\n\n" + table(("reader", "ms", "MB/s", "memory, MB"), rows)
    )


def shown(value):
    text = "nothing" if value is None else str(value)
    text = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    text = text.replace("|", "\\|").replace("`", "'").replace("\n", " ").replace("](", "] (")
    return f"`{text}`"


def differences(measured):
    """Each case in which we are the ones who differ: by feed and field, with the first entry of it."""
    groups = collections.OrderedDict()
    for path, index, field, ours, theirs, agreeing in measured.tally.differing:
        groups.setdefault((path, field), []).append((index, ours, theirs, agreeing))
    rows = []
    for (path, field), cases in groups.items():
        index, ours, theirs, agreeing = cases[0]
        rows.append((f"`{path}`", field, len(cases), index, shown(ours), shown(theirs), agreeing))
    count = len(measured.tally.differing)
    text = f"## Where we differ\n\nAll {count} values where the vote is another than ours, by feed and field, with the first of them."
    names = ("feed", "field", "values", "first entry", "ours", "vote", "voters")
    return text + "\n\n" + (table(names, rows) if rows else "None.")


def method(measured):
    packages = ", ".join(f"`{package}`" for _, package in [*feeds.ALL_PACKAGES])
    return f"""## Method

The feeds: {packages}; documents of at least {feeds.LEAST_BYTES // 1000} kB with a feed in them, each once. They are fetched when the
scoreboard runs, and are not a part of feedgate. Readers get the bytes, and where they take one an address at the host of the site.
Titles and texts are compared without markup and white space, texts by their first 400 letters; dates as instants; authors and
categories as sets, without case. feedgate always gives an id and a date, and addresses are absolute, so it differs where a feed has
none or a relative one.

`feedgate (as feedparser)` is the façade [`feedgate_feed.feedparser`](../packaging/bindings/python/README.md#in-place-of-feedparser), which reads
entries when they are first used: its time includes that of all of them. `feedgate` for Python makes objects of values when they are
asked for, which its time does not include. Times are those of the clock, so they are longer on a busy machine, for all readers."""
