'use strict'

const assert = require('node:assert/strict')
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const test = require('node:test')
const vm = require('node:vm')

test('the example of the README prints what it says', () => {
  const readme = readFileSync(join(__dirname, '..', 'README.md'), 'utf8')
  const [, example] = readme.match(/```js\n(.*?)```/s)
  const expected = [...example.matchAll(/^console\.log.*\/\/ (.*)$/gm)].map(([, text]) => text)
  const printed = []
  const console = { log: text => printed.push(text) }
  vm.runInNewContext(example, { Buffer, console, require })
  assert.ok(expected.length > 3)
  assert.deepEqual(printed, expected)
})
