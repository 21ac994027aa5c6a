/** Checks whether a caller, whose signature the Worker has checked, may use this very sandbox. Keeps connect tickets. */
import { BerthError, unknownSandbox } from "../../../protocol/errors.ts";
import { limits } from "../../../protocol/limits.ts";
import type { Caller, ConnectTicket, Right } from "../../../protocol/rights.ts";
import type { SandboxActor } from "../actor.ts";
import type { Opener } from "./opener.ts";
import { incarnationIn, revokedError } from "./revocation.ts";

/** A caller of another tenant gets the same error as for an unknown id. */
export function checkCaller(actor: SandboxActor, caller: Pick<Caller, "tenant" | "token">): void {
  const facts = actor.existing;
  if (facts === undefined || facts.sandbox.spec.tenant !== caller.tenant) throw unknownSandbox();
  const { token } = caller;
  if (token !== undefined && token.generation !== facts.tokenGeneration) throw revokedError();
}

/** Opens nothing new from here on, and ends what is open. */
export function revokeTokens(actor: SandboxActor): void {
  const { tokenGeneration, sandbox } = actor.facts;
  // A revoked token may have made any of them.
  actor.host.sql("DELETE FROM connect_ticket");
  const change = {
    tokenGeneration: tokenGeneration + 1,
    revoking: incarnationIn(sandbox.state)?.incarnation ?? null,
  };
  actor.commit(change, [{ type: "tokens", what: "revoked" }], "tokens revoked");
  actor.revocation.onRevoked();
}

/** A ticket has the rights of its maker, and what it opens ends with its maker's token. */
export function makeConnectTicket(
  actor: SandboxActor,
  { rights, token, keyId }: Pick<Caller, "rights" | "token" | "keyId">,
): ConnectTicket {
  const { host } = actor;
  const now = actor.now();
  host.sql("DELETE FROM connect_ticket WHERE expires_at <= ?", now);
  const [{ n } = { n: 0 }] = host.sql<{ n: number }>("SELECT count(*) AS n FROM connect_ticket");
  if (n >= limits.connectTicketsMax) {
    throw new BerthError("too_many", `${n} connect tickets wait to be used.`, {
      facts: { ticketsMax: limits.connectTicketsMax },
    });
  }
  const ticket = host.randomId(32);
  const expiresAt = now + limits.connectTicketMs;
  host.sql(
    "INSERT INTO connect_ticket (ticket, expires_at, rights, of_token, of_key) VALUES (?, ?, ?, ?, ?)",
    ticket,
    expiresAt,
    JSON.stringify(rights),
    token === undefined ? 0 : 1,
    keyId ?? null,
  );
  return { ticket, expiresAt: new Date(expiresAt).toISOString() };
}

/**
 * Uses up the ticket, unless it lacks the right. Any caller may use it: its maker had the right. What it opens depends on
 * its maker's token or key.
 */
export function spendConnectTicket(actor: SandboxActor, ticket: string, right: Right): Opener {
  const { host } = actor;
  if (actor.existing === undefined) throw unknownSandbox();
  const [known] = host.sql<{
    expires_at: number;
    rights: string;
    of_token: number;
    of_key: string | null;
  }>("SELECT expires_at, rights, of_token, of_key FROM connect_ticket WHERE ticket = ?", ticket);
  if (known === undefined || known.expires_at <= actor.now()) {
    throw new BerthError("unauthenticated", "The connect ticket is used, expired or unknown.", {
      hint: "Make a new one with POST /v1/sandboxes/:id/tickets.",
    });
  }
  if (!(JSON.parse(known.rights) as Right[]).includes(right)) {
    throw new BerthError("forbidden", `The maker of the connect ticket lacks the right ${right}.`, {
      facts: { right },
    });
  }
  host.sql("DELETE FROM connect_ticket WHERE ticket = ?", ticket);
  return {
    ...(known.of_token === 0 ? {} : { generation: actor.facts.tokenGeneration }),
    ...(known.of_key === null ? {} : { keyId: known.of_key }),
  };
}
