// Prints the ids of the entries of a stream, as "entry ID", in the order of the documents. The library
// reconnects by itself, with the id of the last event.
const { EventSource } = require("eventsource");

const stream = new EventSource(process.argv[2]);
stream.addEventListener("notification", (event) => {
  for (const item of JSON.parse(event.data).items) console.log(`entry ${item.id}`);
});
