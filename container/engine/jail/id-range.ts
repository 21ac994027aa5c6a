/** The ids of the machine that belong to one sandbox, and what each of them is for. */

export type IdRange = { first: number };

export const idsEach = 65_536;
/** Root inside is the first id. The last one has no name inside: it owns the namespace, and nothing runs as it. */
export const idsMapped = idsEach - 1;

export function ownerOf({ first }: IdRange): number {
  return first + idsMapped;
}

const nobody = 65_534;

/** The id of the sandbox for one of the machine; `nobody` for those of others, as the kernel shows them. */
export function inside({ first }: IdRange, id: number): number {
  return id >= first && id < first + idsMapped ? id - first : nobody;
}

/** The id of the machine for an id of the sandbox; without a range they are the same. */
export function outside(range: IdRange | undefined, id: number): number {
  return (range?.first ?? 0) + id;
}
