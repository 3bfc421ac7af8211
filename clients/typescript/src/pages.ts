/** A page as the server sends it. */
export interface PageContent<T> {
  items: T[];
  total: number;
  limit: number;
  offset: number;
}

/** One page: `items`, and `total` of all pages. Iterating a page yields its items and those of all later pages. */
export class Page<T> implements AsyncIterable<T> {
  readonly items: T[];
  readonly total: number;
  readonly limit: number;
  readonly offset: number;

  constructor(
    content: PageContent<T>,
    private readonly fetchPage: (offset: number) => Promise<Page<T>>,
  ) {
    this.items = content.items;
    this.total = content.total;
    this.limit = content.limit;
    this.offset = content.offset;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    let seen = new Set<unknown>();
    let page: Page<T> = this;
    for (;;) {
      // Lists are newest first: an item that is created meanwhile moves the others to later pages.
      yield* page.items.filter((item) => !seen.has(getId(item)));
      const following = page.offset + page.items.length;
      if (page.items.length === 0 || following >= page.total) {
        return;
      }
      seen = new Set(page.items.map(getId).filter((id) => id !== undefined));
      page = await this.fetchPage(following);
    }
  }
}

function getId(item: unknown): unknown {
  return (item as { id?: unknown }).id;
}
