"""Verifies a notification with the standardwebhooks package of PyPI.

Reads {"secret", "is_encoded", "headers", "body"} as JSON, and prints "verified", or why it is not.
"""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

given = json.load(sys.stdin)
secret = given["secret"]
webhook = Webhook(secret if given["is_encoded"] else secret.encode())
try:
    webhook.verify(given["body"], given["headers"])
    print("verified")
except WebhookVerificationError as error:
    print(error)
