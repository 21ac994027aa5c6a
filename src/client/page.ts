/** The form of every list. */

/** One page of a list: an array that knows where the next page begins. */
export type Page<Item> = Item[] & {
  /** Pass it as `cursor` to get the next page; null: this is the last one. */
  readonly nextCursor: string | null;
};

/** Not enumerable, so that a page compares, prints and spreads as the array that it is. */
export function toPage<Item, More extends object>(items: Item[], more: More): Item[] & More {
  const page = [...items];
  for (const [name, value] of Object.entries(more)) Object.defineProperty(page, name, { value });
  return page as Item[] & More;
}
