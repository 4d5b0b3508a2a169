"""Prints the ids of the entries of a stream, as "entry ID", in the order of the documents.

The library leaves it to its user to reconnect with the id of the last event.
"""

import json
import sys
import time

import httpx
import httpx_sse

headers = {}
with httpx.Client(timeout=60) as client:
    while True:
        try:
            with httpx_sse.connect_sse(client, "GET", sys.argv[1], headers=headers) as stream:
                for event in stream.iter_sse():
                    assert event.event == "notification", event
                    for item in json.loads(event.data)["items"]:
                        print("entry", item["id"], flush=True)
                    headers["Last-Event-ID"] = event.id
        except httpx.TransportError:
            pass
        time.sleep(0.1)
