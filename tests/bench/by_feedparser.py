"""Reads all documents once per line of standard input, with feedparser as it comes.

The same questions and answers as contender.rs: processor time in nanoseconds and the
number of entries. The arguments are the documents.
"""

import io
import sys
import time

import feedparser

documents = [open(path, "rb").read() for path in sys.argv[1:]]
for _ in sys.stdin:
    begun = time.thread_time_ns()
    entries = sum(len(feedparser.parse(io.BytesIO(document)).entries) for document in documents)
    print(time.thread_time_ns() - begun, entries, flush=True)
