/** Several callers repeat a call with a key at once, and the agent refuses the first of them. */
import { expect, it, vi } from "vitest";
import { BerthError, errorBody, errors } from "../../../src/protocol/errors.ts";
import { agentProtocol } from "../../../src/protocol/internal/agent-wire.ts";
import { respondAsAgent } from "../../fakes/agent/respond.ts";
import type { FakeContainer } from "../../fakes/container.ts";
import { interrupted, startSandbox } from "./harness.ts";

const execRequest = "POST /v1/exec";

/** Drops the first command, refuses the second, and runs the others. */
function loseOneAndRefuseOne(container: FakeContainer, refusal: () => Response): void {
  container.respond = (request) => {
    const { agent } = container;
    if (agent === undefined) throw new TypeError("connection refused");
    const isSent = `${request.method} ${new URL(request.url).pathname}` === execRequest;
    const times = container.requests.filter((line) => line === execRequest).length;
    if (isSent && times === 1) throw new TypeError("connection reset");
    return isSent && times === 2 ? refusal() : respondAsAgent(agent, request);
  };
}

function refusalOf(incarnation: string, isSlow: boolean): Response {
  const text = JSON.stringify(errorBody(new BerthError("too_many", "256 run already"), "none"));
  const body = new ReadableStream<Uint8Array>({
    async start(to) {
      // While the body is on its way, other requests are faster.
      if (isSlow) await new Promise((resolve) => setTimeout(resolve, 100));
      to.enqueue(new TextEncoder().encode(text));
      to.close();
    },
  });
  const headers = {
    "berth-incarnation": incarnation,
    "berth-protocol": String(agentProtocol),
    "content-length": String(text.length),
  };
  return new Response(body, { status: errors.too_many.status, headers });
}

it.each([
  ["at once", false],
  ["with a late body", true],
])(
  "[K13] a key is retried by one call at a time: a refusal %s does not free the key of a call that runs",
  async (_how, isSlow) => {
    const { container, sandbox } = await startSandbox();
    const incarnation = container.agent?.incarnation ?? "";
    loseOneAndRefuseOne(container, () => refusalOf(incarnation, isSlow));
    const call = () => sandbox.exec({ command: "echo once" }, { idempotencyKey: "k" });
    await expect(call()).rejects.toMatchObject(interrupted);
    const both = await Promise.allSettled([call(), call()]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const repeated = await call();
    expect(both).toContainEqual({ status: "fulfilled", value: repeated });
    expect(container.agent?.commandsRun).toEqual(["echo once"]);
  },
);

it("[K13] a key is looked up again after admission: if it expired meanwhile, the call runs as a new one and is admitted once", async () => {
  const { container, sandbox, berth, id } = await startSandbox();
  loseOneAndRefuseOne(container, () => Response.error());
  const lease = await sandbox.acquireLease({ holder: "other" });
  if (!("token" in lease)) throw new Error("nobody else has it");
  const { token } = lease;
  const options = { idempotencyKey: "k" };
  await expect(
    sandbox.exec({ command: "echo once" }, { ...options, lease: token }),
  ).rejects.toMatchObject(interrupted);
  container.respond = undefined;
  const call = () => sandbox.exec({ command: "echo once" }, { ...options, waitMs: 20_000 });
  const waiting = call();
  await vi.waitFor(async () => expect((await sandbox.lease()).waiterCount).toBe(1));
  // As if the key had expired.
  berth.rows(id, "DELETE FROM keyed");
  await sandbox.releaseLease(token);
  const first = await waiting;
  expect(await call()).toEqual(first);
  expect(container.agent?.commandsRun).toEqual(["echo once"]);
  expect((await sandbox.pause()).state).toBe("paused");
});
