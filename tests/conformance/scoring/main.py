"""Compares the readers of feeds, and writes docs/scoreboard.md."""

import re
import sys
import tempfile
from pathlib import Path

import feeds
import page
import readers
import votes

ROOT = Path(__file__).parents[3]

#: The size of the feed by which memory is measured, in bytes.
LARGE_BYTES = 8_000_000


def manifest(paths, times=3):
    documents = []
    for path in paths:
        documents.append({"file": str(path), "url": feeds.url_of(path, path.read_bytes()), "times": times})
    return documents


def compare(found, paths):
    """Has all readers read all feeds. Returns the results by reader, and the tally of the votes."""
    documents = manifest(paths)
    results = {reader.name: readers.run(reader, documents)[0] for reader in found}
    tally = votes.Tally()
    for path in paths:
        read = {name: of.get(str(path), {}).get("entries", []) for name, of in results.items()}
        tally.count(read, path.name)
    return results, tally


def repaired(found, paths, results):
    """Returns how many entries each reader finds in damaged feeds, of those in sound ones, by fault."""
    scores = {}
    with tempfile.TemporaryDirectory() as place:
        for number, (fault, damage) in enumerate(feeds.FAULTS.items()):
            damaged = {}
            for path in paths:
                data = path.read_bytes()
                made = damage(data)
                if made:
                    copy = Path(place) / f"{number}-{path.name}"
                    copy.write_bytes(made)
                    damaged[path] = copy
            documents = [
                {"file": str(copy), "url": feeds.url_of(path, path.read_bytes()), "times": 1}
                for path, copy in damaged.items()
            ]
            for reader in found:
                read = readers.run(reader, documents)[0]
                kept = all_entries = 0
                for path, copy in damaged.items():
                    expected = expected_entries(fault, path, results)
                    kept += min(expected, len(read.get(str(copy), {}).get("entries", [])))
                    all_entries += expected
                scores.setdefault(fault, {})[reader.name] = kept / all_entries if all_entries else None
    return scores


def expected_entries(fault, path, results):
    """Returns how many entries most readers find in a sound feed, or those before it was cut."""
    counts = sorted(len(of.get(str(path), {}).get("entries", [])) for of in results.values())
    most = max(set(counts), key=counts.count)
    if fault == "cut off in the middle":
        _, before = feeds.middle(path.read_bytes())
        return min(before, most)
    return most


def memory(found, paths):
    """Returns how much memory each reader needs for a large feed, in MB, without that for none."""
    largest = max(paths, key=lambda path: (b"<item" in path.read_bytes(), path.stat().st_size))
    data = largest.read_bytes()
    first = re.search(rb"<item[\s>]", data).start()
    last = data.rfind(b"</item>") + len(b"</item>")
    items = data[first:last]
    with tempfile.TemporaryDirectory() as place:
        large = Path(place) / "large.xml"
        large.write_bytes(data[:first] + items * (LARGE_BYTES // len(items)) + data[last:])
        url = "https://feeds.test/large.xml"
        needed = {}
        for reader in found:
            read, most = readers.run(reader, [{"file": str(large), "url": url, "times": 1}])
            _, least = readers.run(reader, [])
            is_read = bool(read.get(str(large), {}).get("entries"))
            needed[reader.name] = (most - least) / 1000 if is_read else None
    return needed


def main():
    cache, *options = sys.argv[1:]
    found = readers.installed(Path(cache))
    paths = feeds.gathered(Path(cache))
    results, tally = compare(found, paths)
    counted = page.Measured(
        readers=found,
        paths=paths,
        results=results,
        tally=tally,
        repaired=repaired(found, paths, results),
        memory=memory(found, paths),
    )
    written = page.written(counted)
    (ROOT / "docs/scoreboard.md").write_text(written)
    print(written)
    if "--lists" in options:
        for case in tally.differing:
            print(*case, sep="\t")


if __name__ == "__main__":
    main()
