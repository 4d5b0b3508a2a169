const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { body, headers, secret } = given;
const hub = verifyHubSignature(body, headers["x-hub-signature"] ?? "", secret);
console.log(JSON.stringify([hub, verifyWebhook(body, headers, secret)]));
