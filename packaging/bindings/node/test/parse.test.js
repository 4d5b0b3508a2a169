'use strict'

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const test = require('node:test')

const { NotAFeedError, parse, parseAsync, toAtom } = require('feedgate-feed')

const url = 'https://tides.test/feed.xml'
const atom = `<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">
  <id>urn:tides</id><title type="html">Tides &amp;amp; more</title><link href="/"/>
  <entry><id>urn:tides:1</id><title>Spring</title><updated>2002-09-07T10:00:00+02:00</updated>
    <author><name>Ada</name></author><category term="moon"/>
    <content type="html">&lt;script>x&lt;/script>High</content>
    <x:depth xmlns:x="urn:x" unit="m">4</x:depth></entry></feed>`

test('an entry has the fields of index.d.ts', () => {
  const feed = parse(Buffer.from(atom), { url })
  assert.deepEqual(
    [feed.format, feed.id, feed.language, feed.link],
    ['atom1.0', 'urn:tides', 'en', 'https://tides.test/'])
  assert.deepEqual(feed.title, { kind: 'html', value: 'Tides &amp; more', language: null, base: null })
  const [entry] = feed.entries
  assert.equal(entry.updated, '2002-09-07T10:00:00+02:00')
  assert.deepEqual(entry.authors, [{ name: 'Ada', email: null, uri: null }])
  assert.deepEqual(entry.categories, [{ term: 'moon', scheme: null, label: null }])
  const depth = entry.extensions.find(element => element.name === 'depth')
  assert.equal(depth.attributes[0].value, 'm')
  assert.deepEqual(depth.children, ['4'])
})

test('every field is declared in index.d.ts', () => {
  const types = readFileSync(join(__dirname, '..', 'index.d.ts'), 'utf8')
  const feed = parse(atom, { url })
  const [entry] = feed.entries
  for (const [name, value] of Object.entries({ Feed: feed, Entry: entry, Content: entry.content, Link: feed.links[0] })) {
    const [, body] = types.split(`export interface ${name} {`)
    const declared = body.split('\n}')[0].match(/^ {2}(\w+):/gm).map(line => line.trim().slice(0, -1))
    assert.deepEqual(Object.keys(value), declared, name)
  }
})

test('texts are sanitized on demand', () => {
  assert.match(parse(atom, { url }).entries[0].content.value, /script/)
  assert.equal(parse(atom, { url, sanitize: true }).entries[0].content.value, 'High')
})

test('headers say the encoding and the base', () => {
  const rss = '<rss><channel><title>Mar\u00e9e</title><item><link>a</link></item></channel></rss>'
  const headers = { 'Content-Type': 'text/xml; charset=iso-8859-1', 'Content-Location': '/b/c' }
  const feed = parse(Buffer.from(rss, 'latin1'), { url, headers })
  assert.equal(feed.title.value, 'Mar\u00e9e')
  assert.equal(feed.entries[0].link, 'https://tides.test/b/a')
})

test('a feed is read on another thread', async () => {
  assert.deepEqual(await parseAsync(Buffer.from(atom), { url }), parse(atom, { url }))
})

test('what is no feed is an error that says so', async () => {
  const page = '<!doctype html><html></html>'
  const isIt = error => error instanceof NotAFeedError && /an HTML page/.test(error.message)
  assert.throws(() => parse(page, { url }), isIt)
  await assert.rejects(parseAsync(page, { url }), isIt)
  assert.throws(() => parse(atom, { url: 'no address' }), /no address/)
  assert.throws(() => parse(atom), /options.url/)
  assert.throws(() => parse(7, { url }))
})

test('a feed is written as Atom', () => {
  assert.match(toAtom(atom, { url }), /<id>urn:tides:1<\/id>/)
})
