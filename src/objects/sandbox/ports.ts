/** Which ports of a sandbox can be reached from outside, and with which token. Only the hash of a token is stored. */
import { createHash, timingSafeEqual } from "node:crypto";
import { BerthError } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { PortCall, PortList } from "../../protocol/port.ts";
import { replaceInto } from "../shared/columns.ts";
import type { SandboxActor } from "./actor.ts";

type PortRow = { port: number; hash: string; wake: number; made_at: number };

/** Opening an open port again replaces its token. */
export function open(
  actor: SandboxActor,
  { port, wake }: PortCall,
): { token: string; createdAt: string } {
  actor.refuseIfDestroyed();
  const { host } = actor;
  const others = rows(actor).filter((row) => row.port !== port);
  if (others.length >= limits.portsMax) {
    throw new BerthError("too_many", `${others.length} ports are already open.`, {
      hint: "Close one that you no longer need.",
      facts: { portsMax: limits.portsMax },
    });
  }
  const token = host.randomId(limits.portTokenChars);
  const now = actor.now();
  const row: PortRow = { port, hash: hashOf(token), wake: Number(wake), made_at: now };
  replaceInto(host, "port", row);
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

/** Closing a closed port succeeds. */
export function close(actor: SandboxActor, port: number): void {
  actor.refuseIfDestroyed();
  if (!rows(actor).some((row) => row.port === port)) return;
  actor.host.sql("DELETE FROM port WHERE port = ?", port);
  actor.commit({}, [{ type: "port", what: "closed", port }], "port closed");
}

/**
 * Whether a request to the port may start the container. Callers without a valid token learn nothing. An empty token is
 * enough where the creator made the ports public.
 */
export function admitPortRequest(
  actor: SandboxActor,
  port: number,
  token: string,
): { wake: boolean } {
  const spec = actor.existing?.sandbox.spec;
  if (token === "" && spec?.publicPorts === true) {
    actor.refuseIfDestroyed();
    return { wake: spec.wake === "auto" };
  }
  const row =
    actor.existing === undefined ? undefined : rows(actor).find((row) => row.port === port);
  const given = Buffer.from(hashOf(token), "hex");
  const expected = Buffer.from(row?.hash ?? hashOf(""), "hex");
  if (!timingSafeEqual(given, expected) || row === undefined) throw noSuchPort();
  actor.refuseIfDestroyed();
  return { wake: row.wake === 1 };
}

function noSuchPort(): BerthError {
  return new BerthError("not_found", "There is no such port, or it is closed.", {
    hint: "`POST /v1/sandboxes/:id/ports` opens one and returns its address.",
  });
}

function rows(actor: SandboxActor): PortRow[] {
  return actor.host.sql<PortRow>("SELECT * FROM port ORDER BY port");
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
