/** Copies a sandbox: each copy has the files of now, and runs on its own. */
import { limits } from "../../protocol/limits.ts";
import type { Sandbox } from "../../protocol/sandbox.ts";
import type { ControlCall } from "./control.ts";
import { toWireError, WireError } from "./errors.ts";
import { read, requireRunning, timeoutOf, withToken } from "./sandboxes.ts";
import { withCheckpoint } from "./snapshots.ts";

const countMax = 100;
const concurrency = 4;

export async function forkSandbox({ calls, id, body }: ControlCall): Promise<Response> {
  const { count = 1 } = body;
  if (typeof count !== "number" || !Number.isInteger(count) || count < 1 || count > countMax) {
    throw new WireError(400, `count must be a whole number from 1 to ${countMax}`);
  }
  const endAfterMs = timeoutOf(body, 15) * 1000;
  if (endAfterMs < 1000) throw new WireError(400, "timeout must be at least 1 second");
  await read(calls, id);
  const forks = await withCheckpoint(calls, id, async (from) => {
    const forkOne = async () => {
      try {
        const call = { from, endAfterMs, waitMs: limits.waitMaxMs };
        const sandbox = await calls.json<Sandbox>("POST", "/v1/sandboxes", call);
        await requireRunning(calls, sandbox);
        return { sandbox: await withToken(calls, sandbox) };
      } catch (thrown) {
        const error = toWireError(thrown);
        if (error === undefined) throw thrown;
        return { error: { code: error.status, message: error.message } };
      }
    };
    const all: Awaited<ReturnType<typeof forkOne>>[] = [];
    while (all.length < count) {
      const some = Math.min(concurrency, count - all.length);
      all.push(...(await Promise.all(Array.from({ length: some }, forkOne))));
    }
    return all;
  });
  return Response.json(forks, { status: 201 });
}
