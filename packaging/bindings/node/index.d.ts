/** Where a document was fetched, and how it is read. */
export interface Options {
  /** The address of the document, after redirects. Relative addresses are resolved against it. */
  url: string
  /** The headers of the response, by name. */
  headers?: Record<string, string>
  /** Whether everything that could act in a page is removed from texts. */
  sanitize?: boolean
}

export interface Text {
  kind: 'text' | 'html' | 'xhtml'
  value: string
  language: string | null
  base: string | null
}

export interface Content {
  /** `text`, `html`, `xhtml` or a media type. */
  kind: string
  value: string | null
  /** The address of content that is elsewhere. */
  src: string | null
  language: string | null
  base: string | null
}

export interface Person {
  name: string
  email: string | null
  uri: string | null
}

export interface Link {
  href: string
  rel: string
  type: string | null
  hreflang: string | null
  title: string | null
  /** In bytes. */
  length: number | null
}

export interface Category {
  term: string
  scheme: string | null
  label: string | null
}

export interface Generator {
  name: string
  uri: string | null
  version: string | null
}

/** An element without a counterpart in Atom, with all its content. */
export interface Element {
  namespace: string
  prefix: string
  name: string
  attributes: Attribute[]
  children: (string | Element)[]
}

export interface Attribute {
  namespace: string
  prefix: string
  name: string
  value: string
}

/** What was wrong with the document and was repaired, or was adapted. */
export interface Repair {
  code: string
  detail: string
  isAdaptation: boolean
}

export interface Entry {
  id: string
  title: Text | null
  summary: Text | null
  content: Content | null
  rights: Text | null
  /** In RFC 3339. */
  published: string | null
  /** In RFC 3339. */
  updated: string | null
  /** Whether the source has no date. */
  isDateAssumed: boolean
  /** The address of the page. */
  link: string | null
  links: Link[]
  enclosures: Link[]
  authors: Person[]
  contributors: Person[]
  categories: Category[]
  language: string | null
  extensions: Element[]
}

export interface Feed {
  /** The format of the document, such as `rss2.0`. */
  format: string
  id: string
  title: Text | null
  subtitle: Text | null
  rights: Text | null
  /** In RFC 3339. */
  updated: string | null
  /** The address of the web site. */
  link: string | null
  links: Link[]
  authors: Person[]
  contributors: Person[]
  categories: Category[]
  generator: Generator | null
  icon: string | null
  logo: string | null
  language: string | null
  extensions: Element[]
  /** In the order of the document. */
  entries: Entry[]
  repairs: Repair[]
  /** How unreliable the feed is, from 0 to 1. */
  bozoRank: number
}

/** The document is not a feed; the message says what it looks like. */
export class NotAFeedError extends Error {
  readonly code: 'NOT_A_FEED'
}

/** Reads a feed of any format, sound or broken. */
export function parse(data: Uint8Array | string, options: Options): Feed

/** Reads a feed on another thread. */
export function parseAsync(data: Uint8Array | string, options: Options): Promise<Feed>

/** Reads a feed and writes it as an Atom document. */
export function toAtom(data: Uint8Array | string, options: Options): string
