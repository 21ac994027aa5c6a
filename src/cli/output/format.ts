/** Formats ages and sizes in a few characters. */
const ageUnits: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
];

export function formatAge(since: string): string {
  const passedMs = Math.max(0, Date.now() - Date.parse(since));
  const [unit, ms] = ageUnits.find(([, ms]) => passedMs >= ms) ?? ["s", 1000];
  return `${Math.floor(passedMs / ms)}${unit}`;
}

const sizeUnits = ["B", "kB", "MB", "GB", "TB"];

export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < sizeUnits.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
  return `${value.toFixed(digits)} ${sizeUnits[unit]}`;
}
