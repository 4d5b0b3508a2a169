"""Reads all documents once per line of standard input, with a parser of Python as it comes.

The same questions and answers as contender.rs: processor time in nanoseconds and the
number of entries. The arguments are the name of the parser and the documents.
"""

import importlib
import io
import sys
import time

parser = importlib.import_module(sys.argv[1])
# Given bytes, feedparser looks for an address in them first.
wrap = io.BytesIO if parser.__name__ == "feedparser" else bytes


def read(document):
    try:
        return len(parser.parse(wrap(document)).entries)
    except Exception:  # fastfeedparser refuses documents that are not well-formed
        return 0


documents = [open(path, "rb").read() for path in sys.argv[2:]]
for _ in sys.stdin:
    begun = time.thread_time_ns()
    entries = sum(map(read, documents))
    print(time.thread_time_ns() - begun, entries, flush=True)
