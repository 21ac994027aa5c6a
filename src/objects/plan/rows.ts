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
import { insertInto, replaceInto, saveList } from "../shared/columns.ts";
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
    const { tenant, name, createdAt, status, newestRun, membershipRevision } = after;
    insertInto(host, "plan", {
      ...{ one: 1, tenant, name, created_at: createdAt, life: status },
      ...{ newest: newestRun, moves: membershipRevision, tries: 0, look_at: 0 },
    });
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
  saveList(host, "member", "sandbox", before.members, after.members, memberColumns);
  saveList(host, "joining", "sandbox", before.joining, after.joining, (joining) =>
    joiningColumns(joining, call),
  );
  saveList(host, "leaving", "sandbox", before.leaving, after.leaving, leavingColumns);
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

function memberColumns({ key, sandbox, addedAt, committed }: Member) {
  return { key, sandbox, added_at: addedAt, committed };
}

function joiningColumns(
  { key, sandbox, addedAt, createsSandbox, replaces, membershipRevision }: Joining,
  call: NewSandbox | undefined,
) {
  return {
    ...{ sandbox, key, added_at: addedAt, replaces, move: membershipRevision },
    makes: createsSandbox ? 1 : 0,
    call: createsSandbox && call !== undefined ? JSON.stringify(call) : null,
  };
}

function leavingColumns({ sandbox, phase, disposition, membershipRevision }: Leaving) {
  const destroy = dispositions.indexOf(disposition);
  return { sandbox, phase, destroy, move: membershipRevision };
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
