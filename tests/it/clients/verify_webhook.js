// Verifies a notification with the standardwebhooks package of npm.
//
// Reads {"secret", "is_encoded", "headers", "body"} as JSON, and prints "verified", or why it is not.

const { Webhook, WebhookVerificationError } = require("standardwebhooks");

const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const webhook = new Webhook(given.secret, given.is_encoded ? {} : { format: "raw" });
try {
  webhook.verify(given.body, given.headers);
  console.log("verified");
} catch (error) {
  if (!(error instanceof WebhookVerificationError)) throw error;
  console.log(error.message);
}
