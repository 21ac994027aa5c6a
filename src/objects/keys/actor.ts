/** Keeps the keys of an installation by their digest, and has the tenants end what removed keys opened. */
import { BerthError } from "../../protocol/errors.ts";
import type { Key, KeyCall, KeyFile } from "../../protocol/key.ts";
import { limits } from "../../protocol/limits.ts";
import { type Right, rights } from "../../protocol/rights.ts";
import { Alarm } from "../shared/alarm.ts";
import type { ObjectHost } from "../shared/host.ts";
import { messageOf } from "../shared/result.ts";
import { migrate } from "./migrations.ts";

/** What the Worker needs to know of a key. */
export type HeldKey = {
  id: string;
  tenant: string;
  name: string;
  rights: readonly Right[];
  expiresAt: number | null;
  /** The id of the key that signed in, if this is the key of a session. */
  signedInBy?: string;
};

/** Whose rights a session gets. */
export type SessionHolder = {
  tenant: string;
  name: string;
  rights: readonly Right[];
  signedInBy: string;
};

/** The digest of a ticket, or the holder of a key that was given itself. */
export type SignInBy = { ticket: string } | SessionHolder;

/** The Directory of a tenant, as this object calls it. */
export type EndKey = (tenant: string, id: string) => Promise<void>;

type Row = {
  hash: string;
  id: string;
  tenant: string;
  name: string;
  rights: string;
  source: Key["source"];
  signed_in_by: string | null;
  created_at: number;
  expires_at: number | null;
  used_at: number | null;
};

type Ending = { id: string; tenant: string; last_at: number; tries: number; try_at: number };

const keyIdChars = 16;
const minuteMs = 60_000;
const retryMs = 1_000;
const retryMaxMs = 60_000;
/** Workers trust a lookup for up to twice `keyCacheMs`: what they admitted meanwhile is ended by a second pass. */
const lastPassMs = 3 * limits.keyCacheMs;

export class KeysActor {
  readonly #host: ObjectHost;
  readonly #endKey: EndKey;
  readonly #alarm: Alarm;

  constructor(host: ObjectHost, endKey: EndKey) {
    this.#host = host;
    this.#endKey = endKey;
    this.#alarm = new Alarm(host);
    migrate(host);
    this.#arm();
  }

  /** `by`: the digest of a key, or its id, which a token names. Notes the use. */
  find(by: { hash: string } | { id: string }): HeldKey | null {
    const [column, value] = "hash" in by ? ["hash", by.hash] : ["id", by.id];
    const [row] = this.#host.sql<Row>(`SELECT * FROM key WHERE ${column} = ?`, value);
    const now = this.#host.clock();
    if (row === undefined || (row.expires_at !== null && row.expires_at <= now)) return null;
    if (now - (row.used_at ?? 0) >= minuteMs) {
      this.#host.sql("UPDATE key SET used_at = ? WHERE hash = ?", now, row.hash);
    }
    return toHeldKey(row);
  }

  /** The digests of keys that come from a file. Their form does not show that they are Berth's. */
  fileHashes(): string[] {
    return this.#host
      .sql<{ hash: string }>("SELECT hash FROM key WHERE source = 'file'")
      .map(({ hash }) => hash);
  }

  tenants(): string[] {
    return this.#host.sql<{ name: string }>("SELECT name FROM tenant").map(({ name }) => name);
  }

  /** A tenant stays known when its last key is removed: it may still have sandboxes. */
  noteTenant(tenant: string): void {
    this.#host.sql("INSERT OR IGNORE INTO tenant (name) VALUES (?)", tenant);
  }

  create({ name, tenant, rights: given, ttlMs }: KeyCall, hash: string): Key {
    this.#refuseTaken(tenant, name);
    const [{ n } = { n: 0 }] = this.#host.sql<{ n: number }>(
      "SELECT count(*) AS n FROM key WHERE source != 'session'",
    );
    if (n >= limits.keysMadeMax) {
      throw new BerthError("too_many", `This installation has ${n} keys.`, {
        hint: "Remove keys that are no longer used.",
        facts: { keysMax: limits.keysMadeMax },
      });
    }
    const expiresAt = ttlMs === undefined ? null : this.#host.clock() + ttlMs;
    this.#insert({ name, tenant, rights: given, sha256: hash }, "api", expiresAt);
    this.#arm();
    return toKey(this.#row(hash));
  }

  /** Keeps the digest of a ticket for one sign-in; returns when it expires. */
  createSignIn(holder: SessionHolder, ticket: string): number {
    const now = this.#host.clock();
    this.#host.sql("DELETE FROM sign_in WHERE expires_at <= ?", now);
    const [{ n } = { n: 0 }] = this.#host.sql<{ n: number }>(
      "SELECT count(*) AS n FROM sign_in WHERE tenant = ?",
      holder.tenant,
    );
    if (n >= limits.signInTicketsMax) {
      throw new BerthError("too_many", `There are ${n} unused tickets of this tenant.`, {
        hint: "Use one of them, or wait for a minute.",
        facts: { signInTicketsMax: limits.signInTicketsMax },
      });
    }
    const expiresAt = now + limits.signInTicketMs;
    this.#host.sql(
      "INSERT INTO sign_in (ticket, tenant, holder, expires_at) VALUES (?, ?, ?, ?)",
      ticket,
      holder.tenant,
      JSON.stringify(holder),
      expiresAt,
    );
    return expiresAt;
  }

  /** The ticket is used up in the commit that makes the session. */
  signIn(by: SignInBy, hash: string): HeldKey {
    const key = this.#host.transaction(() => {
      const holder = "ticket" in by ? this.#useTicket(by.ticket) : by;
      const { tenant, name, rights: given, signedInBy } = holder;
      const [parent] = this.#host.sql<Row>("SELECT * FROM key WHERE id = ?", signedInBy);
      const isVariable = signedInBy.startsWith("variable:");
      if (parent === undefined && !isVariable) throw unusableTicket();
      const expiresAt = Math.min(
        this.#host.clock() + limits.sessionKeyMs,
        parent?.expires_at ?? Number.POSITIVE_INFINITY,
      );
      const oldest = this.#host.sql<Row>(
        "SELECT * FROM key WHERE tenant = ? AND source = 'session' ORDER BY created_at DESC LIMIT -1 OFFSET ?",
        tenant,
        limits.sessionKeysMax - 1,
      );
      for (const row of oldest) this.#remove(row);
      const session = { tenant, name: sessionName(name, hash), rights: given, sha256: hash };
      this.#insert(session, "session", expiresAt);
      this.#host.sql("UPDATE key SET signed_in_by = ? WHERE hash = ?", signedInBy, hash);
      return toHeldKey(this.#row(hash));
    });
    this.#arm();
    return key;
  }

  /** Ends a session; a key that is none stays. Ending one that is gone succeeds. */
  signOut(id: string): void {
    const [row] = this.#host.sql<Row>("SELECT * FROM key WHERE id = ?", id);
    if (row?.source === "session") this.remove(id);
  }

  #useTicket(ticket: string): SessionHolder {
    const [row] = this.#host.sql<{ holder: string; expires_at: number }>(
      "DELETE FROM sign_in WHERE ticket = ? RETURNING holder, expires_at",
      ticket,
    );
    if (row === undefined || row.expires_at <= this.#host.clock()) throw unusableTicket();
    return JSON.parse(row.holder) as SessionHolder;
  }

  list(): Key[] {
    return this.#host.sql<Row>("SELECT * FROM key ORDER BY tenant, name").map(toKey);
  }

  /** Removing a key that is not there succeeds. */
  remove(id: string): void {
    const [row] = this.#host.sql<Row>("SELECT * FROM key WHERE id = ?", id);
    if (row?.source === "file") {
      throw new BerthError("bad_request", `keyId: ${id} comes from the keys file of the server.`, {
        hint: "Remove its line from the file.",
        facts: { field: "keyId" },
      });
    }
    if (row !== undefined) this.#host.transaction(() => this.#remove(row));
    this.#arm();
  }

  /** Changes nothing if one of the names is taken. */
  replaceFile({ keys }: KeyFile): Key[] {
    this.#host.transaction(() => {
      const listed = new Map(keys.map((key) => [key.sha256, key]));
      for (const row of this.#host.sql<Row>("SELECT * FROM key WHERE source = 'file'")) {
        const key = listed.get(row.hash);
        if (key !== undefined && isSame(row, key)) listed.delete(row.hash);
        else this.#remove(row);
      }
      for (const key of listed.values()) {
        this.#refuseTaken(key.tenant, key.name);
        const expiresAt = key.expiresAt === undefined ? null : Date.parse(key.expiresAt);
        this.#insert(key, "file", expiresAt);
      }
    });
    this.#arm();
    return this.list();
  }

  async alarm(): Promise<void> {
    this.#alarm.rang();
    const now = this.#host.clock();
    const expired = this.#host.sql<Row>("SELECT * FROM key WHERE expires_at <= ?", now);
    for (const row of expired) this.#host.transaction(() => this.#remove(row));
    const due = this.#host.sql<Ending>("SELECT * FROM ending WHERE try_at <= ?", now);
    await Promise.all(due.map((ending) => this.#end(ending)));
    this.#arm();
  }

  async #end(ending: Ending): Promise<void> {
    const { id, tenant, last_at: lastAt, tries } = ending;
    try {
      await this.#endKey(tenant, id);
    } catch (error) {
      this.#host.log({ object: "keys", failed: "ending a key", id, message: messageOf(error) });
      const pauseMs = Math.min(retryMs * 2 ** tries, retryMaxMs);
      const tryAt = this.#host.clock() + pauseMs;
      this.#host.sql("UPDATE ending SET tries = ?, try_at = ? WHERE id = ?", tries + 1, tryAt, id);
      return;
    }
    // What a Worker admitted just before the removal may have opened something after this pass.
    if (ending.try_at >= lastAt) this.#host.sql("DELETE FROM ending WHERE id = ?", id);
    else this.#host.sql("UPDATE ending SET tries = 0, try_at = ? WHERE id = ?", lastAt, id);
  }

  #insert(
    key: { name: string; tenant: string; rights: readonly Right[]; sha256: string },
    source: Row["source"],
    expiresAt: number | null,
  ): void {
    const id = key.sha256.slice(0, keyIdChars);
    this.noteTenant(key.tenant);
    this.#host.sql(
      "INSERT INTO key (hash, id, tenant, name, rights, source, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      key.sha256,
      id,
      key.tenant,
      key.name,
      JSON.stringify(key.rights),
      source,
      this.#host.clock(),
      expiresAt,
    );
    // A line that was removed from a file may return: what the key opens from now on stays.
    this.#host.sql("DELETE FROM ending WHERE id = ?", id);
  }

  #remove({ hash, id, tenant }: Row): void {
    const now = this.#host.clock();
    // A session ends with the key that signed in.
    for (const session of this.#host.sql<Row>("SELECT * FROM key WHERE signed_in_by = ?", id)) {
      this.#remove(session);
    }
    this.#host.sql("DELETE FROM key WHERE hash = ?", hash);
    this.#host.sql(
      "INSERT OR REPLACE INTO ending (id, tenant, last_at, try_at) VALUES (?, ?, ?, ?)",
      id,
      tenant,
      now + lastPassMs,
      now,
    );
  }

  #row(hash: string): Row {
    const [row] = this.#host.sql<Row>("SELECT * FROM key WHERE hash = ?", hash);
    if (row === undefined) throw new Error("the key was not stored");
    return row;
  }

  #refuseTaken(tenant: string, name: string): void {
    const [taken] = this.#host.sql<Row>(
      "SELECT * FROM key WHERE tenant = ? AND name = ?",
      tenant,
      name,
    );
    if (taken === undefined) return;
    throw new BerthError("name_taken", `The tenant ${tenant} has a key named ${name}.`, {
      hint: "Remove it first, or choose another name.",
      facts: { id: taken.id },
    });
  }

  #arm(): void {
    const [{ at } = { at: null }] = this.#host.sql<{ at: number | null }>(
      "SELECT min(at) AS at FROM (SELECT min(expires_at) AS at FROM key UNION ALL SELECT min(try_at) FROM ending)",
    );
    if (at !== null) this.#alarm.setBy(at);
  }
}

function isSame(row: Row, key: KeyFile["keys"][number]): boolean {
  const expiresAt = key.expiresAt === undefined ? null : Date.parse(key.expiresAt);
  return (
    row.tenant === key.tenant &&
    row.name === key.name &&
    row.rights === JSON.stringify(key.rights) &&
    row.expires_at === expiresAt
  );
}

function toKey(row: Row): Key {
  const stored = JSON.parse(row.rights) as Right[];
  return {
    id: row.id,
    name: row.name,
    tenant: row.tenant,
    rights: rights.filter((right) => stored.includes(right)),
    createdAt: toIso(row.created_at),
    ...(row.expires_at === null ? {} : { expiresAt: toIso(row.expires_at) }),
    ...(row.used_at === null ? {} : { lastUsedAt: toIso(row.used_at) }),
    source: row.source,
    ...(row.signed_in_by === null ? {} : { signedInBy: row.signed_in_by }),
  };
}

function toHeldKey(row: Row): HeldKey {
  return {
    id: row.id,
    tenant: row.tenant,
    name: row.name,
    rights: JSON.parse(row.rights) as Right[],
    expiresAt: row.expires_at,
    ...(row.signed_in_by === null ? {} : { signedInBy: row.signed_in_by }),
  };
}

const sessionNameCharsMax = 50;
const sessionDigits = 6;

/** Says who signed in, and tells the browsers of one person apart. */
function sessionName(name: string, hash: string): string {
  return `${name.slice(0, sessionNameCharsMax)}.web-${hash.slice(0, sessionDigits)}`;
}

function unusableTicket(): BerthError {
  return new BerthError("unauthenticated", "The ticket is used, expired or unknown.", {
    hint: "Make a new link with `berth dashboard`.",
  });
}

function toIso(time: number): string {
  return new Date(time).toISOString();
}
