/** How times, spans, sizes and scopes are written for a person. */

const units: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/** The largest unit that fits, such as `4 min`. */
export function formatSpan(ms: number): string {
  const [unit, size] = units.find(([, one]) => ms >= one) ?? ["s", 1000];
  return `${Math.max(0, Math.floor(ms / size))} ${unit}`;
}

/** Minutes and seconds while less than an hour is left, so that a person sees it count. */
export function formatCountdown(ms: number): string {
  if (ms >= 3_600_000) return formatSpan(ms);
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const names = ["KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let name = "";
  for (name of names) {
    value /= 1024;
    if (value < 1024) break;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${name}`;
}

export function formatTime(iso: string): string {
  return new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

type Scope = {
  repo?: string | undefined;
  branch?: string | undefined;
  config?: string | undefined;
};

/** The branch is what tells two scopes of a repository apart, so the host is left out and the branch stays. */
export function formatScope(scope: Scope | undefined): string {
  if (scope === undefined) return "";
  const repo = scope.repo?.split("/").slice(-2).join("/");
  return [repo, scope.branch, scope.config].filter((part) => (part ?? "") !== "").join(" · ");
}
