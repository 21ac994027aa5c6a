/**
 * Owns the rows of one plan: the only SQL beside the tables themselves (migrations.ts) and its history (history.ts).
 * Does not own what they mean. Writes what differs, by identity: untouched parts cost nothing.
 */
import type { Fate, Joining, Leaving, Member, PlanRecord, Run } from "../../core/plan/record.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import type { Place } from "../shared/host.ts";
import { storedVersion } from "../shared/migrate.ts";
import { endedRun, forgetAll, forgetOld, openRun } from "./history.ts";
import { migrate } from "./migrations.ts";

/** When whoever was asked and not heard is asked again, and how often that was in vain. */
export type Look = { tries: number; at: number };

type PlanRow = {
  tenant: string;
  name: string;
  created_at: number;
  life: PlanRecord["life"];
  newest: number;
  moves: number;
  tries: number;
  look_at: number;
};
/** As they are numbered in rows. */
const fates: readonly Fate[] = ["keep", "force", "destroy"];

type JoiningRow = {
  sandbox: string;
  key: string;
  added_at: number;
  makes: number;
  replaces: string | null;
  move: number;
};

/** Undefined for one that never was: nothing is written for that. */
export function load(place: Place): { plan: PlanRecord; look: Look } | undefined {
  if (storedVersion(place) === 0) return undefined;
  migrate(place);
  const [row] = place.sql<PlanRow>("SELECT * FROM plan");
  if (row === undefined) return undefined;
  const { tenant, name, created_at: createdAt, life, newest, moves } = row;
  return {
    plan: {
      tenant,
      name,
      createdAt,
      life,
      newest,
      moves,
      members: place.sql<Member>(
        "SELECT key, sandbox, added_at AS addedAt, committed FROM member ORDER BY rowid",
      ),
      joining: place.sql<JoiningRow>("SELECT * FROM joining ORDER BY rowid").map(joiningOf),
      leaving: place
        .sql<{ sandbox: string; phase: Leaving["phase"]; destroy: number; move: number }>(
          "SELECT sandbox, phase, destroy, move FROM leaving ORDER BY rowid",
        )
        .map(({ destroy, ...one }) => ({ ...one, fate: fates[destroy] ?? "keep" })),
      run: openRun(place),
      last: endedRun(place),
    },
    look: { tries: row.tries, at: row.look_at },
  };
}

/** `call`: what makes the one that joins with this; it is kept until it has. */
export function save(
  place: Place,
  before: PlanRecord | undefined,
  after: PlanRecord,
  call?: NewSandbox,
): void {
  if (before === undefined) {
    migrate(place);
    place.sql(
      "INSERT INTO plan VALUES (1, ?, ?, ?, ?, ?, ?, 0, 0)",
      after.tenant,
      after.name,
      after.createdAt,
      after.life,
      after.newest,
      after.moves,
    );
    return;
  }
  if (!isSame(before, after, "createdAt", "life", "newest", "moves")) {
    place.sql(
      "UPDATE plan SET created_at = ?, life = ?, newest = ?, moves = ?",
      after.createdAt,
      after.life,
      after.newest,
      after.moves,
    );
  }
  saveList(place, "member", before.members, after.members, insertMember);
  saveList(place, "joining", before.joining, after.joining, (_place, joining) =>
    insertJoining(place, joining, call),
  );
  saveList(place, "leaving", before.leaving, after.leaving, insertLeaving);
  if (after.run !== before.run) saveRun(place, before.run, after.run ?? after.last);
  if (before.run !== null && after.run === null && after.last !== null) {
    forgetOld(place, after.last);
  }
  if (after.life === "gone" && before.life !== "gone") forgetAll(place);
}

export function saveLook(place: Place, { tries, at }: Look): void {
  place.sql("UPDATE plan SET tries = ?, look_at = ?", tries, at);
}

export function callOf(place: Place, sandbox: string): NewSandbox | undefined {
  const [row] = place.sql<{ call: string | null }>(
    "SELECT call FROM joining WHERE sandbox = ?",
    sandbox,
  );
  return typeof row?.call === "string" ? (JSON.parse(row.call) as NewSandbox) : undefined;
}

/** First what is gone: another one may have its key. */
function saveList<One extends { sandbox: string }>(
  place: Place,
  table: "member" | "joining" | "leaving",
  before: readonly One[],
  after: readonly One[],
  insert: (place: Place, one: One) => void,
): void {
  if (after === before) return;
  const kept = new Set(after);
  for (const one of before) {
    if (!kept.has(one)) place.sql(`DELETE FROM ${table} WHERE sandbox = ?`, one.sandbox);
  }
  const known = new Set(before);
  for (const one of after) if (!known.has(one)) insert(place, one);
}

function insertMember(place: Place, { key, sandbox, addedAt, committed }: Member): void {
  place.sql(
    "INSERT INTO member (key, sandbox, added_at, committed) VALUES (?, ?, ?, ?)",
    key,
    sandbox,
    addedAt,
    committed,
  );
}

function insertJoining(
  place: Place,
  { key, sandbox, addedAt, makes, replaces, move }: Joining,
  call: NewSandbox | undefined,
): void {
  place.sql(
    "INSERT INTO joining (sandbox, key, added_at, makes, replaces, move, call) VALUES (?, ?, ?, ?, ?, ?, ?)",
    sandbox,
    key,
    addedAt,
    makes ? 1 : 0,
    replaces,
    move,
    makes && call !== undefined ? JSON.stringify(call) : null,
  );
}

function insertLeaving(place: Place, { sandbox, phase, fate, move }: Leaving): void {
  place.sql("INSERT INTO leaving VALUES (?, ?, ?, ?)", sandbox, phase, fates.indexOf(fate), move);
}

function saveRun(place: Place, before: Run | null, after: Run | null): void {
  if (after === null) return;
  const { parts, ...head } = after;
  place.sql(
    "INSERT OR REPLACE INTO run VALUES (?, ?, ?)",
    head.n,
    JSON.stringify(head),
    head.endedAt,
  );
  const known = new Set(before?.n === after.n ? before.parts : []);
  for (const part of parts) {
    if (known.has(part)) continue;
    place.sql(
      "INSERT OR REPLACE INTO part VALUES (?, ?, ?)",
      after.n,
      part.sandbox,
      JSON.stringify(part),
    );
  }
}

function joiningOf({
  sandbox,
  key,
  added_at: addedAt,
  makes,
  replaces,
  move,
}: JoiningRow): Joining {
  return { sandbox, key, addedAt, makes: makes === 1, replaces, move };
}

function isSame<Of, Name extends keyof Of>(before: Of, after: Of, ...names: Name[]): boolean {
  return names.every((name) => before[name] === after[name]);
}
