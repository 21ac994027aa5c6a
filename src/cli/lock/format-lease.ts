/**
 * Formats the state of a lease.
 */
import type { LeaseView } from "../../protocol/lease.ts";

export function formatLease(view: LeaseView, now: number): string[] {
  const lines = [formatState(view, now)];
  for (const { holder, waitingMs } of view.waiters) {
    lines.push(`Waiting: ${holder}, for ${formatDuration(waitingMs)}`);
  }
  const more = view.waiterCount - view.waiters.length;
  if (more > 0) lines.push(`And ${more} more`);
  return lines;
}

function formatState(view: LeaseView, now: number): string {
  switch (view.state) {
    case "free":
      return "Free";
    case "offered":
      return "Offered to the first waiter";
    case "draining":
      return `Ending the work of ${view.holder}: ${view.reason}`;
    case "held": {
      const since = view.acquiredAt === undefined ? 0 : now - Date.parse(view.acquiredAt);
      return `Held by ${view.holder}, for ${formatDuration(Math.max(0, since))}`;
    }
  }
}

function formatDuration(ms: number): string {
  const all = Math.round(ms / 1000);
  return all < 120 ? `${all} s` : `${Math.floor(all / 60)} min`;
}
