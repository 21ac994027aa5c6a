/** Ends a page before its rows exceed the bytes of one response, because each caller that does not read holds one in memory. */

/** The first rows that fit together, but at least one: a cursor cannot continue after an empty page. */
export function takeFitting<Row extends { bytes: number }>(rows: Row[], bytesMax: number): Row[] {
  let bytes = 0;
  const tooMany = rows.findIndex((row) => {
    bytes += row.bytes;
    return bytes > bytesMax;
  });
  return tooMany < 0 ? rows : rows.slice(0, Math.max(1, tooMany));
}
