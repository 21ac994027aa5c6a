/**
 * Owns how the state of a lease is put into words.
 */
import type { LeaseView } from "../../protocol/lease.ts";

export function viewWords(view: LeaseView, now: number): string[] {
  const lines = [stateWords(view, now)];
  for (const { holder, waitingMs } of view.waiters) {
    lines.push(`waiting: ${holder}, for ${seconds(waitingMs)}`);
  }
  const more = view.waiterCount - view.waiters.length;
  if (more > 0) lines.push(`and ${more} more`);
  return lines;
}

function stateWords(view: LeaseView, now: number): string {
  switch (view.state) {
    case "free":
      return "free";
    case "offered":
      return "about to go to the first who waits";
    case "draining":
      return `being taken from ${view.holder}: ${view.reason}`;
    case "held": {
      const since = view.acquiredAt === undefined ? 0 : now - Date.parse(view.acquiredAt);
      return `held by ${view.holder}, for ${seconds(Math.max(0, since))}`;
    }
  }
}

function seconds(ms: number): string {
  const all = Math.round(ms / 1000);
  return all < 120 ? `${all} s` : `${Math.floor(all / 60)} min`;
}
