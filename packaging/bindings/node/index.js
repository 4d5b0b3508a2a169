'use strict'

const { existsSync } = require('node:fs')
const { join } = require('node:path')

/** Loads the addon for this machine. */
function load() {
  const name = `feedgate.${process.platform}-${process.arch}.node`
  const path = join(__dirname, name)
  if (!existsSync(path)) {
    throw new Error(`feedgate-feed has no ${name}: it was not built for this machine`)
  }
  return require(path)
}

const native = load()
const NOT_A_FEED = 'NOT_A_FEED'

/** The document is not a feed; the message says what it looks like. */
class NotAFeedError extends Error {
  constructor(message) {
    super(message)
    this.name = 'NotAFeedError'
    this.code = NOT_A_FEED
  }
}

function argumentsOf(data, options, writesAtom) {
  const { url, headers = {}, sanitize = false } = options ?? {}
  if (typeof url !== 'string') throw new TypeError('options.url: the address of the document is required')
  const bytes = typeof data === 'string' ? Buffer.from(data) : data
  const pairs = Object.entries(headers).flatMap(([name, value]) => [name, String(value)])
  return [bytes, url, pairs, sanitize, writesAtom]
}

function translated(error) {
  const mark = `${NOT_A_FEED}: `
  return error.message.startsWith(mark) ? new NotAFeedError(error.message.slice(mark.length)) : error
}

function read(data, options, writesAtom) {
  const given = argumentsOf(data, options, writesAtom)
  try {
    return native.read(...given)
  } catch (error) {
    throw translated(error)
  }
}

async function readAsync(data, options, writesAtom) {
  const given = argumentsOf(data, options, writesAtom)
  try {
    return await native.readAsync(...given)
  } catch (error) {
    throw translated(error)
  }
}

module.exports = {
  NotAFeedError,
  parse: (data, options) => JSON.parse(read(data, options, false)),
  parseAsync: async (data, options) => JSON.parse(await readAsync(data, options, false)),
  toAtom: (data, options) => read(data, options, true),
}
