// Reads a feed with the rss-parser package of npm, and prints what it finds of the first item as JSON.

const Parser = require("rss-parser");

new Parser().parseURL(process.argv[2]).then((feed) => {
  const item = feed.items[0];
  console.log(
    JSON.stringify({
      title: item.title,
      link: item.link,
      id: item.guid,
      enclosure: item.enclosure && item.enclosure.url,
      duration: item.itunes && item.itunes.duration,
    }),
  );
});
