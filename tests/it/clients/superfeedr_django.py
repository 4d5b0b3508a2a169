"""Subscribes to a topic at a hub as an account, with the library `django-push`, whose setting
PUSH_CREDENTIALS is for Superfeedr. Prints "subscribed TOPIC", "notified TITLE" for each entry of a
notification, and "unsubscribed TOPIC" after a line of input.

Arguments: the hub, the topic, the login and the token.
"""

import sys
import tempfile
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server
from xml.etree import ElementTree

import django
from django.conf import settings

HUB, TOPIC, LOGIN, TOKEN = sys.argv[1:]
ENTRY = "{http://www.w3.org/2005/Atom}entry"
TITLE = "{http://www.w3.org/2005/Atom}title"


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


def credentials(hub):
    return (LOGIN, TOKEN)


def print_entries(sender, notification, **others):
    for entry in ElementTree.fromstring(notification).iter(ENTRY):
        print("notified", entry.findtext(TITLE), flush=True)


def main():
    folder = tempfile.TemporaryDirectory()
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{folder.name}/db"}},
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        INSTALLED_APPS=["django_push.subscriber"],
        PUSH_CREDENTIALS="__main__.credentials",
        ROOT_URLCONF="django_push.subscriber.urls",
        SECRET_KEY="-",
        USE_TZ=True,
    )
    django.setup()
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application
    from django_push.subscriber.models import Subscription
    from django_push.subscriber.signals import updated

    call_command("migrate", verbosity=0)
    updated.connect(print_entries)
    server = make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=QuietHandler)
    settings.PUSH_DOMAIN = f"127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()

    subscription = Subscription.objects.subscribe(TOPIC, hub=HUB)
    assert Subscription.objects.get(pk=subscription.pk).verified, "204 means that it is verified"
    print("subscribed", TOPIC, flush=True)
    sys.stdin.readline()
    subscription.unsubscribe()
    print("unsubscribed", TOPIC, flush=True)


if __name__ == "__main__":
    main()
