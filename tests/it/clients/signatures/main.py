import json, sys

given = json.load(sys.stdin)
body, headers, secret = given["body"].encode(), given["headers"], given["secret"]
hub = verify_hub_signature(body, headers.get("x-hub-signature", ""), secret)
print(json.dumps([hub, verify_webhook(body, headers, secret)]))
