/**
 * Reads the Range header of a request.
 */

export type Range = { start: number; end: number };

/**
 * Undefined: the whole file, also for several ranges or other units, as the standard allows. "outside": the file has no
 * byte of the range. `end` is the byte after the last one.
 */
export function rangeOf(header: string | null, size: number): Range | "outside" | undefined {
  const [, first = "", last = ""] = /^bytes=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? "outside" : { start: size - length, end: size };
  }
  const start = Number(first);
  const end = last === "" ? size : Math.min(Number(last) + 1, size);
  if (last !== "" && Number(last) < start) return undefined;
  return start >= size ? "outside" : { start, end };
}
