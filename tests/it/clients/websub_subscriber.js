// Subscribes to a topic at a hub, and prints "subscribed TOPIC", and "notified TOPIC" for each
// notification whose signature is right. Arguments: the hub and the topic.
//
// The library gives the hub a secret that it derives from its own and the topic, but verifies
// notifications with its own. So one instance subscribes, and another, with the derived secret, listens.
const { createHmac } = require("crypto");
const pubSubHubbub = require("pubsubhubbub");

const [hub, topic] = process.argv.slice(2);
const secret = "mine";
const derived = createHmac("sha1", secret).update(topic).digest("hex");
const listener = pubSubHubbub.createServer({ callbackUrl: "", secret: derived });

listener.on("subscribe", (data) => console.log(`subscribed ${data.topic}`));
listener.on("feed", (data) => console.log(`notified ${data.topic}`));
listener.on("listen", () => {
  const callbackUrl = `http://127.0.0.1:${listener.server.address().port}/callback`;
  const subscriber = pubSubHubbub.createServer({ callbackUrl, secret });
  subscriber.subscribe(topic, hub, (error) => {
    if (error) throw error;
  });
});
listener.listen(0, "127.0.0.1");
