/** A call with a key that several send again at once, and whose agent refuses the first of them. */
import { expect, it, vi } from "vitest";
import { BerthError, errorBody, errors } from "../../../src/protocol/errors.ts";
import { agentProtocol } from "../../../src/protocol/internal/agent-wire.ts";
import { answerAsAgent } from "../../fakes/agent/answer.ts";
import { FakeBerth } from "../../fakes/berth.ts";
import type { FakeMachine } from "../../fakes/container.ts";

const sent = "POST /v1/exec";

async function running() {
  const berth = new FakeBerth();
  const local = berth.bind({ tenant: "local" });
  const { id } = await local.create({ waitMs: 10_000 });
  return { berth, id, box: local.sandbox(id), machine: berth.machine(id) };
}

/** Of the commands that are sent the first reaches nobody, the second is refused, the others run. */
function loseOneAndRefuseOne(machine: FakeMachine, refusal: () => Response): void {
  machine.answers = (request) => {
    const { agent } = machine;
    if (agent === undefined) throw new TypeError("connection refused");
    const isSent = `${request.method} ${new URL(request.url).pathname}` === sent;
    const times = machine.asked.filter((one) => one === sent).length;
    if (isSent && times === 1) throw new TypeError("connection reset");
    return isSent && times === 2 ? refusal() : answerAsAgent(agent, request);
  };
}

function refusalOf(incarnation: string, isSlow: boolean): Response {
  const text = JSON.stringify(errorBody(new BerthError("too_many", "256 run already"), "none"));
  const body = new ReadableStream<Uint8Array>({
    async start(to) {
      // On its way: whoever asks meanwhile is answered sooner.
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
  ["whose words come late", true],
])(
  "[K13] is sent again by one at a time: a refusal %s takes no key from another that runs",
  async (_how, isSlow) => {
    const { machine, box } = await running();
    const incarnation = machine.agent?.incarnation ?? "";
    loseOneAndRefuseOne(machine, () => refusalOf(incarnation, isSlow));
    const call = () => box.exec({ command: "echo once" }, { idempotencyKey: "k" });
    await expect(call()).rejects.toMatchObject({ code: "operation_interrupted" });
    const both = await Promise.allSettled([call(), call()]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const again = await call();
    expect(both).toContainEqual({ status: "fulfilled", value: again });
    expect(machine.agent?.ran).toEqual(["echo once"]);
  },
);

it("[K13] is looked for again behind the gate: one that was forgotten meanwhile is a call of its own, and leaves the gate once", async () => {
  const { machine, box, berth, id } = await running();
  loseOneAndRefuseOne(machine, () => Response.error());
  const lease = await box.acquireLease({ holder: "other" });
  if (!("token" in lease)) throw new Error("nobody else has it");
  const { token } = lease;
  const options = { idempotencyKey: "k" };
  await expect(
    box.exec({ command: "echo once" }, { ...options, lease: token }),
  ).rejects.toMatchObject({ code: "operation_interrupted" });
  machine.answers = undefined;
  const call = () => box.exec({ command: "echo once" }, { ...options, waitMs: 20_000 });
  const waiting = call();
  await vi.waitFor(async () => expect((await box.lease()).waiterCount).toBe(1));
  // As when its time is over.
  berth.rows(id, "DELETE FROM keyed");
  await box.releaseLease(token);
  const first = await waiting;
  expect(await call()).toEqual(first);
  expect(machine.agent?.ran).toEqual(["echo once"]);
  expect((await box.pause()).state).toBe("paused");
});
