/** The rows of one plan. Compares by identity and writes only what differs. See history.ts for the rows of runs. */
import type {
  Disposition,
  Joining,
  Leaving,
  Member,
  PlanRecord,
  Run,
} from "../../core/plan/record.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { insertInto, replaceInto } from "../shared/columns.ts";
import type { ObjectHost } from "../shared/host.ts";
import { storedVersion } from "../shared/migrate.ts";
import { deleteAllRuns, deleteOldRuns, loadLastRun, loadOpenRun } from "./history.ts";
import { migrate } from "./migrations.ts";

/** When failed requests are sent again, and how often they have failed in a row. */
export type Retry = { tries: number; dueAt: number };

type PlanRow = Retry &
  Pick<PlanRecord, "tenant" | "name" | "createdAt" | "status" | "newestRun" | "membershipRevision">;

/** The index is the number that the column `destroy` holds. */
const dispositions: readonly Disposition[] = ["keep", "force", "destroy"];

type JoiningRow = Omit<Joining, "createsSandbox"> & { makes: number };
type LeavingRow = Omit<Leaving, "disposition"> & { destroy: number };

/** Undefined for a plan that never existed; reading it writes nothing. */
export function loadPlan(host: ObjectHost): { plan: PlanRecord; retry: Retry } | undefined {
  if (storedVersion(host) === 0) return undefined;
  migrate(host);
  const [row] = host.sql<PlanRow>(
    `SELECT tenant, name, created_at AS createdAt, life AS status, newest AS newestRun,
            moves AS membershipRevision, tries, look_at AS dueAt
       FROM plan`,
  );
  if (row === undefined) return undefined;
  const { tries, dueAt, ...identity } = row;
  const members = host.sql<Member>(
    "SELECT key, sandbox, added_at AS addedAt, committed FROM member ORDER BY rowid",
  );
  const joining = host.sql<JoiningRow>(
    `SELECT sandbox, key, added_at AS addedAt, makes, replaces, move AS membershipRevision
       FROM joining ORDER BY rowid`,
  );
  const leaving = host.sql<LeavingRow>(
    "SELECT sandbox, phase, destroy, move AS membershipRevision FROM leaving ORDER BY rowid",
  );
  return {
    plan: {
      ...identity,
      members,
      joining: joining.map(({ makes, ...rest }) => ({ ...rest, createsSandbox: makes === 1 })),
      leaving: leaving.map(({ destroy, ...rest }) => ({
        ...rest,
        disposition: dispositions[destroy] ?? "keep",
      })),
      run: loadOpenRun(host),
      lastRun: loadLastRun(host),
    },
    retry: { tries, dueAt },
  };
}

/** `call` creates the sandbox of the member that joins with this change; it is stored until that has joined. */
export function savePlan(
  host: ObjectHost,
  before: PlanRecord | undefined,
  after: PlanRecord,
  call?: NewSandbox,
): void {
  if (before === undefined) {
    migrate(host);
    host.sql(
      "INSERT INTO plan VALUES (1, ?, ?, ?, ?, ?, ?, 0, 0)",
      after.tenant,
      after.name,
      after.createdAt,
      after.status,
      after.newestRun,
      after.membershipRevision,
    );
    return;
  }
  if (!hasSame(before, after, "createdAt", "status", "newestRun", "membershipRevision")) {
    host.sql(
      "UPDATE plan SET created_at = ?, life = ?, newest = ?, moves = ?",
      after.createdAt,
      after.status,
      after.newestRun,
      after.membershipRevision,
    );
  }
  saveList(host, "member", before.members, after.members, insertMember);
  saveList(host, "joining", before.joining, after.joining, (_host, joining) =>
    insertJoining(host, joining, call),
  );
  saveList(host, "leaving", before.leaving, after.leaving, insertLeaving);
  if (after.run !== before.run) saveRun(host, before.run, after.run ?? after.lastRun);
  if (before.run !== null && after.run === null && after.lastRun !== null) {
    deleteOldRuns(host, after.lastRun);
  }
  if (after.status === "gone" && before.status !== "gone") deleteAllRuns(host);
}

export function saveRetry(host: ObjectHost, { tries, dueAt }: Retry): void {
  host.sql("UPDATE plan SET tries = ?, look_at = ?", tries, dueAt);
}

export function loadCreateCall(host: ObjectHost, sandbox: string): NewSandbox | undefined {
  const [row] = host.sql<{ call: string | null }>(
    "SELECT call FROM joining WHERE sandbox = ?",
    sandbox,
  );
  return typeof row?.call === "string" ? (JSON.parse(row.call) as NewSandbox) : undefined;
}

/** Deletes before it inserts, because a new row may have the key of a deleted one. */
function saveList<Entry extends { sandbox: string }>(
  host: ObjectHost,
  table: "member" | "joining" | "leaving",
  before: readonly Entry[],
  after: readonly Entry[],
  insert: (host: ObjectHost, entry: Entry) => void,
): void {
  if (after === before) return;
  const kept = new Set(after);
  for (const entry of before) {
    if (!kept.has(entry)) host.sql(`DELETE FROM ${table} WHERE sandbox = ?`, entry.sandbox);
  }
  const known = new Set(before);
  for (const entry of after) if (!known.has(entry)) insert(host, entry);
}

function insertMember(host: ObjectHost, { key, sandbox, addedAt, committed }: Member): void {
  insertInto(host, "member", { key, sandbox, added_at: addedAt, committed });
}

function insertJoining(
  host: ObjectHost,
  { key, sandbox, addedAt, createsSandbox, replaces, membershipRevision }: Joining,
  call: NewSandbox | undefined,
): void {
  insertInto(host, "joining", {
    ...{ sandbox, key, added_at: addedAt, replaces, move: membershipRevision },
    makes: createsSandbox ? 1 : 0,
    call: createsSandbox && call !== undefined ? JSON.stringify(call) : null,
  });
}

function insertLeaving(
  host: ObjectHost,
  { sandbox, phase, disposition, membershipRevision: move }: Leaving,
): void {
  insertInto(host, "leaving", { sandbox, phase, destroy: dispositions.indexOf(disposition), move });
}

function saveRun(host: ObjectHost, before: Run | null, after: Run | null): void {
  if (after === null) return;
  const { parts, ...head } = after;
  const { n, endedAt } = head;
  replaceInto(host, "run", { n, head: JSON.stringify(head), ended_at: endedAt });
  const known = new Set(before?.n === n ? before.parts : []);
  for (const part of parts) {
    if (known.has(part)) continue;
    replaceInto(host, "part", { n, sandbox: part.sandbox, body: JSON.stringify(part) });
  }
}

function hasSame<T>(before: T, after: T, ...names: (keyof T)[]): boolean {
  return names.every((name) => before[name] === after[name]);
}
