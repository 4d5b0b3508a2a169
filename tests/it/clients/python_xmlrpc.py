"""Python's own XML-RPC library, as a publisher and an aggregator.

Arguments: the gateway's /RPC2 and a feed. It registers, says so, pings when it is told to
by a line, and prints what it was notified of.
"""

import queue
import sys
import threading
import xmlrpc.client
import xmlrpc.server

cloud, feed = sys.argv[1:]
heard = queue.Queue()


def changed(url):
    heard.put(url)
    return True


server = xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
server.register_function(changed, "river.feedChanged")
threading.Thread(target=server.serve_forever, daemon=True).start()

gateway = xmlrpc.client.ServerProxy(cloud)
assert gateway.rssCloud.hello() is True
assert "rssCloud.pleaseNotify" in gateway.system.listMethods()
try:
    gateway.rssCloud.ping()
except xmlrpc.client.Fault as fault:
    assert fault.faultCode == 4, fault
else:
    raise AssertionError("a call without its parameter was taken")

port = server.server_address[1]
assert gateway.rssCloud.pleaseNotify("river.feedChanged", port, "/RPC2", "xml-rpc", [feed]) is True
print("tested", heard.get(timeout=60), flush=True)
sys.stdin.readline()
assert gateway.rssCloud.ping(feed) is True
print("notified", heard.get(timeout=60), flush=True)

answer = gateway.weblogUpdates.extendedPing("Tides & more", feed, feed)
assert answer["flerror"] is False and answer["message"] == "Thanks for the ping.", answer
