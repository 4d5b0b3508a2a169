"""The readers that are compared: how each is run, and its version."""

import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent.parent / "readers"


#: Runs a program and prints the most memory that it had, in kB. A program counts the memory of the one
#: that starts it, so a small one does.
MEASURING = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@dataclass
class Reader:
    name: str
    language: str
    command: list[str]
    version: str
    folder: Path


def installed(cache):
    """Returns the readers that can be run."""
    python, node = cache / "python/bin/python", cache / "node"
    ours = version_of_ours()
    found = []
    if python.exists():
        for name, package in (
            ("feedgate", "feedgate-feed"),
            ("facade", "feedgate-feed"),
            ("feedparser", "feedparser"),
            ("fastfeedparser", "fastfeedparser"),
        ):
            shown = "feedgate (as feedparser)" if name == "facade" else name
            command = [str(python), "-B", str(HERE / "read.py"), name]
            version = ours if "feedgate" in package else version_in_python(python, package)
            found.append(Reader(shown, "Python", command, version, cache))
    for name in ("feedgate-feed", "feedsmith", "rss-parser"):
        manifest = node / "node_modules" / name / "package.json"
        if manifest.exists():
            ours_in_node = name == "feedgate-feed"
            shown = "feedgate (Node.js)" if ours_in_node else name
            command = ["node", str(HERE / "read.js"), "feedgate" if ours_in_node else name]
            version = ours if ours_in_node else json.loads(manifest.read_text())["version"]
            found.append(Reader(shown, "JavaScript", command, version, node))
    program = cache / "feed_rs/release/read-feed-rs"
    if program.exists():
        lock = (HERE / "feed_rs/Cargo.lock").read_text()
        version = re.search(r'name = "feed-rs"\nversion = "([^"]+)"', lock)[1]
        found.append(Reader("feed-rs", "Rust", [str(program)], version, cache))
    program = cache / "gofeed"
    if program.exists():
        package = "golang-github-mmcdole-gofeed-dev"
        version = output(["dpkg-query", "-W", "-f", "${Version}", package])
        found.append(Reader("gofeed", "Go", [str(program)], f"{version} (Debian)", cache))
    return found


def version_of_ours():
    commit = output(["git", "-C", str(HERE), "log", "-1", "--format=%h"])
    return f"0.1.0 ({commit})"


def version_in_python(python, package):
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return output([str(python), "-c", code])


def output(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def run(reader, documents):
    """Has a reader read documents, feedparser once because it is slow. Returns the results by file,
    and the most memory in kB."""
    with tempfile.TemporaryDirectory() as place:
        manifest, results = Path(place) / "manifest", Path(place) / "results"
        times = {"times": 1} if reader.name == "feedparser" else {}
        manifest.write_text("".join(json.dumps({**document, **times}) + "\n" for document in documents))
        command = [sys.executable, "-S", "-c", MEASURING, *reader.command, str(manifest), str(results)]
        measured = subprocess.run(command, cwd=reader.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        lines = results.read_text().splitlines() if results.exists() else []
    read = (json.loads(line) for line in lines if line)
    return {result["file"]: result for result in read}, int(measured.stdout)
