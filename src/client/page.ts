/** The form of every list. */

/** One page of a list: an array that knows where the next page begins. */
export type Page<Item> = Item[] & {
  /** Pass it as `cursor` to get the next page; null: this is the last one. */
  readonly nextCursor: string | null;
};

export function toPage<Item>(items: Item[], nextCursor: string | null): Page<Item> {
  return Object.assign([...items], { nextCursor });
}
