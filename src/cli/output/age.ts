/**
 * Formats how long ago something was, in two or three characters.
 */
const units: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
];

export function formatAge(since: string, now = Date.now()): string {
  const passedMs = Math.max(0, now - Date.parse(since));
  for (const [unit, ms] of units) {
    if (passedMs >= ms) return `${Math.floor(passedMs / ms)}${unit}`;
  }
  return "0s";
}
