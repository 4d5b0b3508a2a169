"""Reads documents with a parser of Python, for tests/conformance/scoreboard.

    read.py feedgate|facade|feedparser|fastfeedparser MANIFEST OUTPUT

The manifest and the output are JSON lines, one for each document: its file and URL there, the
entries and the shortest of some times here.
"""

import importlib
import json
import sys
import time

TIMES = 3


def feedgate(module, data, url):
    feed = module.parse(data, url)
    return lambda: [
        {
            "id": entry.id,
            "title": entry.title and entry.title.value,
            "link": entry.link,
            "published": (entry.published or entry.updated) and (entry.published or entry.updated).isoformat(),
            "authors": [author.name for author in entry.authors],
            "categories": [category.term for category in entry.categories],
            "enclosures": [link.href for link in entry.enclosures],
            "text": (entry.content and entry.content.value) or (entry.summary and entry.summary.value),
        }
        for entry in feed.entries
    ]


def feedparser(module, data, url):
    result = module.parse(data, response_headers={"content-location": url, "content-type": "application/xml"})
    entries = [dict(entry.items()) for entry in result.entries]
    if not entries and result.get("bozo_exception"):
        raise result["bozo_exception"]

    def date(entry):
        parsed = entry.get("published_parsed") or entry.get("updated_parsed")
        return parsed and time.strftime("%Y-%m-%dT%H:%M:%SZ", parsed)

    return lambda: [
        {
            "id": entry.get("id"),
            "title": entry.get("title"),
            "link": entry.get("link"),
            "published": date(entry),
            "authors": [author.get("name") or author.get("email") for author in entry.get("authors", []) if author],
            "categories": [tag.get("term") or tag.get("label") for tag in entry.get("tags") or []],
            "enclosures": [link.get("href") for link in entry.get("links", []) if link.get("rel") == "enclosure"],
            "text": (entry.get("content") or [{}])[0].get("value") or entry.get("summary"),
        }
        for entry in entries
    ]


def fastfeedparser(module, data, url):
    feed = module.parse(data)
    return lambda: [
        {
            "id": entry.get("id"),
            "title": entry.get("title"),
            "link": entry.get("link"),
            "published": entry.get("published") or entry.get("updated"),
            "authors": [entry["author"]] if entry.get("author") else [],
            "categories": [tag.get("term") for tag in entry.get("tags") or []],
            "enclosures": [enclosure.get("url") for enclosure in entry.get("enclosures") or []],
            "text": (entry.get("content") or [{}])[0].get("value") or entry.get("description") or entry.get("summary"),
        }
        for entry in feed.entries
    ]


READERS = {
    "feedgate": ("feedgate_feed", feedgate),
    "facade": ("feedgate_feed.feedparser", feedparser),
    "feedparser": ("feedparser", feedparser),
    "fastfeedparser": ("fastfeedparser", fastfeedparser),
}


def main():
    name, manifest, output = sys.argv[1:]
    module_name, read = READERS[name]
    module = importlib.import_module(module_name)
    with open(manifest) as lines, open(output, "w") as out:
        for line in lines:
            document = json.loads(line)
            with open(document["file"], "rb") as file:
                data = file.read()
            result = {"file": document["file"], "entries": [], "error": None, "ns": None}
            try:
                shortest = None
                for _ in range(document.get("times", TIMES)):
                    begun = time.perf_counter_ns()
                    entries = read(module, data, document["url"])
                    taken = time.perf_counter_ns() - begun
                    shortest = taken if shortest is None else min(shortest, taken)
                result["ns"] = shortest
                result["entries"] = entries()
            except Exception as error:
                result["error"] = f"{type(error).__name__}: {error}"[:200]
            out.write(json.dumps(result, default=str) + "\n")


main()
