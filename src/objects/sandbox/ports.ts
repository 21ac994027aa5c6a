/**
 * Owns which ports of a sandbox may be reached from outside, and by which token: its hash is a row, itself is nowhere.
 * Does not own the address that carries a token (worker/port-traffic.ts), nor the way of bytes to a server.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { PortCall, PortList } from "../../protocol/port.ts";
import type { SandboxActor } from "./actor.ts";
import { refuseWhenOver } from "./lifecycle/lifecycle.ts";

type Row = { port: number; hash: string; wake: number; made_at: number };

/** A port that is open already gets a new token; the old one is dead. */
export function open(
  actor: SandboxActor,
  { port, wake }: PortCall,
): { token: string; createdAt: string } {
  refuseWhenOver(actor);
  const { host } = actor;
  const others = rows(actor).filter((row) => row.port !== port);
  if (others.length >= limits.portsMax) {
    throw new BerthError("too_many", `${others.length} ports are open already.`, {
      hint: "Close one that is no longer needed.",
      facts: { portsMax: limits.portsMax },
    });
  }
  const token = host.draw(limits.portTokenChars);
  const now = actor.now();
  host.sql(
    "INSERT OR REPLACE INTO port VALUES (?, ?, ?, ?)",
    port,
    hashOf(token),
    Number(wake),
    now,
  );
  actor.commit({}, [{ type: "port", what: "opened", port }], "port opened");
  return { token, createdAt: new Date(now).toISOString() };
}

export function list(actor: SandboxActor): PortList {
  const ports = rows(actor).map(({ port, wake, made_at }) => ({
    port,
    wake: wake === 1,
    createdAt: new Date(made_at).toISOString(),
  }));
  return { ports, nextCursor: null };
}

/** Closing what is closed is success. */
export function close(actor: SandboxActor, port: number): void {
  refuseWhenOver(actor);
  if (!rows(actor).some((row) => row.port === port)) return;
  actor.host.sql("DELETE FROM port WHERE port = ?", port);
  actor.commit({}, [{ type: "port", what: "closed", port }], "port closed");
}

/** Whether a visitor may start the container. Whoever has no token that is good learns nothing of the sandbox. */
export function admitVisitor(actor: SandboxActor, port: number, token: string): { wake: boolean } {
  const row = actor.known === undefined ? undefined : rows(actor).find((one) => one.port === port);
  const given = Buffer.from(hashOf(token), "hex");
  const expected = Buffer.from(row?.hash ?? hashOf(""), "hex");
  if (!timingSafeEqual(given, expected) || row === undefined) throw noSuchPort();
  refuseWhenOver(actor);
  return { wake: row.wake === 1 };
}

export function noSuchPort(): BerthError {
  return new BerthError("not_found", "There is no such port, or it was closed.", {
    hint: "POST /v1/sandboxes/:id/ports opens one and tells its address.",
  });
}

function rows(actor: SandboxActor): Row[] {
  return actor.host.sql<Row>("SELECT * FROM port ORDER BY port");
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
