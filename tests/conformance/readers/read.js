'use strict'
// Reads documents with a parser of npm, for tests/conformance/scoreboard.
//
//     read.js feedgate|feedsmith|rss-parser MANIFEST OUTPUT
//
// The manifest and the output are those of read.py.

const { createRequire } = require('node:module')
const { readFileSync, writeFileSync } = require('node:fs')
const path = require('node:path')

const [name, manifest, output] = process.argv.slice(2)
const load = createRequire(path.join(process.cwd(), 'x.js'))
const TIMES = 3

const list = value => (value === undefined || value === null ? [] : Array.isArray(value) ? value : [value])
const text = value => (value && typeof value === 'object' ? value.value ?? value._ : value)

const readers = {
  feedgate() {
    const { parse } = load('feedgate-feed')
    return [
      (data, url) => parse(data, { url }),
      feed => feed.entries.map(entry => ({
        id: entry.id,
        title: entry.title?.value,
        link: entry.link,
        published: entry.published ?? entry.updated,
        authors: entry.authors.map(author => author.name),
        categories: entry.categories.map(category => category.term),
        enclosures: entry.enclosures.map(link => link.href),
        text: entry.content?.value ?? entry.summary?.value
      }))
    ]
  },
  feedsmith() {
    const { parseFeed } = load('feedsmith')
    const href = (links, rel) => list(links).filter(link => (link.rel ?? 'alternate') === rel).map(link => link.href)
    return [
      data => parseFeed(data.toString()),
      ({ feed }) => (feed.items ?? feed.entries ?? []).map(entry => ({
        id: text(entry.guid) ?? entry.id ?? entry.rdf?.about,
        title: text(entry.title),
        link: entry.link ?? entry.url ?? href(entry.links, 'alternate')[0],
        published: entry.pubDate ?? entry.published ?? entry.updated ?? entry.date_published ?? entry.dc?.dates?.[0] ?? entry.dc?.date,
        authors: [...list(entry.authors), ...list(entry.dc?.creators)].map(author => author.name ?? author.email ?? author),
        categories: list(entry.categories ?? entry.tags).map(category => category.name ?? category.term ?? category),
        enclosures: [...list(entry.enclosures).map(enclosure => enclosure.url), ...href(entry.links, 'enclosure')],
        text: entry.content?.encoded ?? text(entry.content) ?? entry.content_html ?? text(entry.description) ?? text(entry.summary)
      }))
    ]
  },
  'rss-parser'() {
    const Parser = load('rss-parser')
    const parser = new Parser()
    return [
      data => parser.parseString(data.toString()),
      feed => feed.items.map(entry => ({
        id: text(entry.guid) ?? entry.id,
        title: text(entry.title),
        link: entry.link,
        published: entry.isoDate ?? entry.pubDate,
        authors: list(entry.creator ?? entry.author).map(text),
        categories: list(entry.categories).map(category => text(category) ?? category?.$?.term),
        enclosures: list(entry.enclosure).map(enclosure => enclosure.url),
        text: entry['content:encoded'] ?? entry.content ?? entry.summary
      }))
    ]
  }
}

async function main() {
  const [read, entriesOf] = readers[name]()
  const results = []
  for (const line of readFileSync(manifest, 'utf8').split('\n').filter(Boolean)) {
    const document = JSON.parse(line)
    const data = readFileSync(document.file)
    const result = { file: document.file, entries: [], error: null, ns: null }
    try {
      let feed
      for (let time = 0; time < (document.times ?? TIMES); time++) {
        const begun = process.hrtime.bigint()
        feed = await read(data, document.url)
        const taken = Number(process.hrtime.bigint() - begun)
        result.ns = result.ns === null ? taken : Math.min(result.ns, taken)
      }
      result.entries = entriesOf(feed)
    } catch (error) {
      result.error = `${error.name}: ${error.message}`.slice(0, 200)
    }
    results.push(JSON.stringify(result))
  }
  writeFileSync(output, results.join('\n') + '\n')
}

main()
