require "json"

given = JSON.parse($stdin.read)
body, headers, secret = given.values_at("body", "headers", "secret")
hub = verify_hub_signature(body, headers["x-hub-signature"].to_s, secret)
puts [hub, verify_webhook(body, headers, secret)].to_json
