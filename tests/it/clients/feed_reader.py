"""Reads a feed with a package of PyPI, and prints what it finds of the first item as JSON.

The arguments are the name of the package, feedparser or podcastparser, and the address of the feed.
"""

import json
import sys
import urllib.request

package, url = sys.argv[1:]
with urllib.request.urlopen(url) as response:
    document = response.read()
if package == "feedparser":
    import feedparser

    feed = feedparser.parse(document)
    assert not feed.bozo, feed.bozo_exception
    entry = feed.entries[0]
    found = {
        "title": entry.title,
        "link": entry.link,
        "id": entry.id,
        "enclosure": entry.enclosures[0].href,
        "duration": entry.itunes_duration,
    }
else:
    import io

    import podcastparser

    entry = podcastparser.parse(url, io.BytesIO(document))["episodes"][0]
    found = {
        "title": entry["title"],
        "link": entry["link"],
        "id": entry["guid"],
        "enclosure": entry["enclosures"][0]["url"],
        "duration": entry["total_time"],
    }
print(json.dumps(found))
