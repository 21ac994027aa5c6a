/** Makes copies of a sandbox: a checkpoint, and new sandboxes from it. */
import { BerthError } from "../../protocol/error-codes.ts";
import type { CreateInput, Sandbox as SandboxInfo } from "../../protocol/sandbox.ts";
import type { CallOptions, ChangeOptions } from "../http/request.ts";
import type { Sandbox } from "../sandbox.ts";

/** Options of `sandbox.fork`. */
export type ForkOptions = ChangeOptions & {
  /** Settings of the new sandboxes that differ from this one. Default: none. */
  settings?: Omit<CreateInput, "from" | "scope" | "onExisting" | "start" | "waitMs"> | undefined;
};

type Forking = {
  source: Sandbox;
  create(input: CreateInput, options: CallOptions): Promise<SandboxInfo>;
  open(info: SandboxInfo): Sandbox;
};

/** At once, so that many copies neither wait for each other nor exceed a limit on creates. */
const parallelMax = 8;

export async function forkSandbox(
  { source, create, open }: Forking,
  count: number,
  { settings = {}, lease, waitMs, wake, ...options }: ForkOptions,
): Promise<Sandbox[]> {
  if (!Number.isSafeInteger(count) || count < 1) {
    throw new BerthError("bad_request", `fork: \`count\` must be 1 or more, not ${count}.`, {
      facts: { field: "count" },
    });
  }
  const gate = { lease, waitMs, wake };
  const { id: from } = await source.checkpoints.create("fork", { ...options, ...gate });
  const forks: Sandbox[] = [];
  const makeNext = async () => {
    while (forks.length < count && started < count) {
      started += 1;
      const fork = open(await create({ ...settings, from }, options));
      forks.push(fork);
      await fork.waitUntilRunning(options.signal === undefined ? {} : { signal: options.signal });
    }
  };
  let started = 0;
  const workers = Array.from({ length: Math.min(count, parallelMax) }, makeNext);
  const failed = (await Promise.allSettled(workers)).find(({ status }) => status === "rejected");
  // What is left behind must not depend on the caller's signal.
  if (failed !== undefined) await Promise.allSettled(forks.map((fork) => fork.delete()));
  await source.checkpoints.delete(from).catch(() => undefined);
  if (failed?.status === "rejected") throw failed.reason;
  return forks;
}
