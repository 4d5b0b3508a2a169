"""Verifies signed requests with the http-message-signatures package of PyPI, as a publisher would.

Reads {"directory", "requests": [{"method", "url", "headers"}]} as JSON. Fetches the directory of keys, and
verifies its own signatures. Prints "directory KEYID ..." and then a line for each request: "verified
KEYID COMPONENT ...", or why it is not.
"""

import base64
import json
import sys
import urllib.request
from types import SimpleNamespace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, InvalidSignature
from http_message_signatures.algorithms import ED25519

MEDIA_TYPE = "application/http-message-signatures-directory+json"

given = json.load(sys.stdin)
with urllib.request.urlopen(given["directory"]) as response:
    assert response.headers["Content-Type"] == MEDIA_TYPE, response.headers["Content-Type"]
    headers, body = dict(response.headers.items()), response.read()


class Directory(HTTPSignatureKeyResolver):
    def __init__(self, keys):
        self.keys = {key["kid"]: key for key in keys}

    def resolve_public_key(self, key_id):
        key = self.keys[key_id]
        assert (key["kty"], key["crv"], key["use"]) == ("OKP", "Ed25519", "sig"), key
        return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "=="))


keys = json.loads(body)["keys"]
verifier = HTTPMessageVerifier(signature_algorithm=ED25519, key_resolver=Directory(keys))
asked = SimpleNamespace(method="GET", url=given["directory"], headers={})
answer = SimpleNamespace(status_code=200, headers=headers, request=asked, url=given["directory"])
proofs = verifier.verify(answer, expect_tag="http-message-signatures-directory", body=body)
assert {proof.parameters["keyid"] for proof in proofs} == {key["kid"] for key in keys}, proofs
print("directory", *(proof.parameters["keyid"] for proof in proofs))

for request in given["requests"]:
    message = SimpleNamespace(**request)
    try:
        (result,) = verifier.verify(message, expect_tag="web-bot-auth")
    except InvalidSignature as error:
        print("not verified:", error)
        continue
    life = result.parameters["expires"] - result.parameters["created"]
    assert 0 < life <= 300, result
    assert len(base64.b64decode(result.nonce)) == 64, result
    print("verified", result.parameters["keyid"], *result.covered_components)
