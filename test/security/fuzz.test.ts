/** Random calls of every route, made from its schema: never a 5xx, always the contract's form, and Berth continues. */
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { errors } from "../../src/protocol/error-codes.ts";
import { type VerbName, type VerbRow, verbs } from "../../src/protocol/verbs.ts";
import { until } from "../until.ts";
import { type Answered, Attacked, post, type Sent } from "./attacked-server.ts";
import { randomCall } from "./random-calls.ts";
import type { CallParts } from "./routes.ts";

const runs = 40;
/** The calls of each route that must be sent even where its time ends before all were. */
const runsMin = 8;
const seed = 8_215_019;
/** What the platform has and one machine has not, and what nothing in the sandbox serves. */
const unsupported = ["unsupported"];

const all = Object.keys(verbs) as VerbName[];
/** The key of a tenant may not call these, or there is no such ticket, key or image. */
const isAlwaysRefused = (name: VerbName) =>
  (verbs[name] as VerbRow).right === "administrator" ||
  ["signIn", "getImage"].includes(name) ||
  // There is no such template.
  (verbs[name] as VerbRow).path.includes(":template");
/** An answer to these may go on for as long as it is read. */
const streams: VerbName[] = ["watchFiles", "processLogs", "listEvents", "listTenantEvents"];

describe("random calls", () => {
  const berth = Attacked.shared();
  let id: string;
  let sent = 0;
  const sentOf = new Map<string, number>();
  const accepted = new Map<string, number>();

  beforeAll(async () => {
    // A random end pauses it: the others are to have it too.
    id = await berth.create({ idleTimeoutMs: 600_000, endAfterMs: 86_400_000, onEnd: "pause" });
  });

  /** A random call may have taken the lease, which would block the others. */
  const freeLease = async () => {
    const path = `/v1/sandboxes/${id}/lease?break=true&reason=over`;
    await berth.send({ method: "DELETE", path });
    await until("the lease is free", async () => {
      const { state } = await berth.ok("GET", `/v1/sandboxes/${id}/lease`);
      return state === "free";
    });
  };
  /** What the calls are sent to: they may have ended it. */
  const makeParts = async (name: VerbName): Promise<CallParts> => {
    const of = (tail: string) => `/v1/sandboxes/${id}${tail}`;
    await freeLease();
    await berth.ok("POST", of("/start"));
    await berth.exec(id, { command: "echo text > sample" });
    await berth.ok("PUT", "/v1/plans/mine", {});
    await berth.ok("PUT", "/v1/plans/mine/sandboxes/nobodys", { create: { start: false } });
    if (name === "rollbackPlan") {
      await berth.ok("POST", "/v1/plans/mine/commit", { allowEmpty: true });
    }
    const argv = ["sh", "-c", "echo out; echo err >&2; exec sleep 600"];
    const process = await berth.ok("POST", of("/processes"), { argv });
    await berth.ok("POST", of("/terminals"), { id: "somebodys" });
    await berth.send(post(of("/sessions"), { id: "somebodys" }));
    const { checkpoints } = (await berth.ok("GET", of("/checkpoints"))) as {
      checkpoints: { id: string }[];
    };
    const { id: checkpoint } = checkpoints[0] ?? (await berth.ok("POST", of("/checkpoints"), {}));
    return {
      process: String(process.id),
      session: "somebodys",
      terminal: "somebodys",
      checkpoint: String(checkpoint),
    };
  };

  /** What holds for one call only: the token of a lease, the version of the metadata. */
  const currentHeaders = async (name: VerbName, { headers = {} }: Sent) => {
    const of = (tail: string) => `/v1/sandboxes/${id}${tail}`;
    if (name === "replaceMetadata" && headers["if-match"] === '"0"') {
      return { "if-match": `"${(await berth.ok("GET", of("/metadata"))).version}"` };
    }
    if (!/^(renew|release)Lease$/.test(name) || headers["berth-lease"] !== "no-lease-of-anybody")
      return {};
    await freeLease();
    return { "berth-lease": String((await berth.ok("POST", of("/lease"), {})).token) };
  };

  const verdictOn = ({ status, body, text }: Answered): string => {
    if (status < 400) return "well";
    const code = body.error?.code ?? text;
    if (!(code in errors)) return `no code of ours: ${status} ${text}`;
    const known = errors[code as keyof typeof errors];
    if (known.status !== status) return `${code} with ${status}`;
    if (status >= 500 && !unsupported.includes(code)) return `${status} ${text}`;
    return code === "bad_request" && body.error?.field === undefined ? `no field: ${text}` : "well";
  };

  it.each(all)("[SC13] of %s are answered in form", async (name) => {
    const good = (verbs[name] as VerbRow).right === undefined ? {} : await makeParts(name);
    await fc.assert(
      fc.asyncProperty(randomCall(name, id, "mine", good), async (call) => {
        const leaves = streams.includes(name);
        // This one ends it, and the others are to have one.
        const target = name === "destroySandbox" ? await berth.create({ start: false }) : id;
        const path = call.path.replace(id, target);
        const headers = { ...call.headers, ...(await currentHeaders(name, call)) };
        const answer = await berth.send({ ...call, path, headers, leaves });
        sent += 1;
        sentOf.set(name, (sentOf.get(name) ?? 0) + 1);
        if (answer.status < 300) accepted.set(name, (accepted.get(name) ?? 0) + 1);
        expect(verdictOn(answer)).toBe("well");
      }),
      {
        ...{ numRuns: runs, seed, endOnFailure: true },
        ...{ interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
      },
    );
    const { sandboxes } = await berth.ok("GET", "/v1/sandboxes");
    for (const { id: made } of sandboxes as { id: string }[]) {
      if (made === id) continue;
      await berth.send({ method: "DELETE", path: `/v1/sandboxes/${made}?force=true` });
    }
  });

  it("[SC13] were many, and the sandbox that they were sent to still works", async () => {
    expect(sent).toBeGreaterThan(all.length * runs * 0.6);
    expect(all.filter((name) => (sentOf.get(name) ?? 0) < runsMin)).toEqual([]);
    // Not all of them were turned away at the first look, of no route.
    const well = [...accepted.values()].reduce((sum, count) => sum + count, 0);
    expect(all.filter((name) => !accepted.has(name) && !isAlwaysRefused(name))).toEqual([]);
    expect(well).toBeGreaterThan(sent / 4);
    expect(well).toBeLessThan(sent);
    await freeLease();
    const { state } = await berth.ok("POST", `/v1/sandboxes/${id}/start`);
    expect(["running", "starting"]).toContain(state);
    const ran = await berth.exec(id, { command: "echo works" });
    expect(ran.stdout).toBe("works\n");
  });
});
