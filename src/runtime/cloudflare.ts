/**
 * The runtime of a container that the platform attached to the object (`ctx.container`). It trusts neither `running`
 * nor error texts: only the agent's incarnation tells which start runs. See cloudflare-start.ts for how one comes up.
 */
import { BerthError } from "../protocol/errors.ts";
import type { Size } from "../protocol/fields/size.ts";
import { agentPort } from "../protocol/internal/agent.ts";
import { limits } from "../protocol/limits.ts";
import { readEarlyRefusal } from "./bodies.ts";
import { type Attached, startContainer } from "./cloudflare-start.ts";
import { CloudflareStarts } from "./cloudflare-starts.ts";
import type { Egress } from "./egress.ts";
import type { ContainerExit, ContainerRuntime, SavedTree } from "./runtime.ts";
import { type StartTimer, startNodeTimer } from "./timeout.ts";

export function cloudflareRuntime(
  attached: Attached,
  egress: Egress,
  startTimer: StartTimer = startNodeTimer,
  /** For sandboxes without a size; undefined: the platform's smallest. */
  instance?: Size["instance"],
): ContainerRuntime {
  const starts = new CloudflareStarts((options, isCurrent) =>
    startContainer({ attached, egress, startTimer, instance }, options, isCurrent),
  );
  return {
    keepsFiles: false,
    env: egress.env,
    savesFiles: typeof attached.snapshotContainer === "function",
    freezesToSave: false,
    comparesTrees: false,
    filtersHosts: true,
    renewEveryMs: limits.inactivityRenewMs,
    start: (options) => starts.start(options),
    async renew() {
      if (attached.running) await attached.setInactivityTimeout(limits.inactivityTimeoutMs);
    },
    destroy: async () => {
      starts.abandon();
      egress.forget();
      if (attached.running) await attached.destroy();
    },
    signal: async (signal) => attached.signal(signal),
    monitor: (_startId, waitMs) => readEnd(attached, waitMs, startTimer),
    async agent(_address, request, init) {
      // A new instance of the object that finds the container running must apply its egress rules before the first
      // request.
      await egress.apply();
      const hasBody = (typeof request === "string" ? init?.body : request.body) != null;
      const response = await attached.getTcpPort(agentPort).fetch(request, init);
      return hasBody ? readEarlyRefusal(response) : response;
    },
    snapshot: (snapshotId) => saveTree(attached, snapshotId),
    // The platform has no such call: unused snapshots expire.
    removeSnapshot: async () => undefined,
    // A snapshot of the platform can only be started from, not read.
    changes: async () => undefined,
  };
}

/**
 * How the container ended; undefined if it still runs after `waitMs`. Nobody waits for the end for longer than that: a
 * pending `monitor()` keeps the object in memory, which is billed. It never reports out-of-memory.
 */
function readEnd(
  attached: Attached,
  waitMs: number,
  startTimer: StartTimer,
): Promise<ContainerExit | undefined> {
  const unknown: ContainerExit = { exitCode: null, signal: null, reason: "unknown" };
  if (!attached.running) return Promise.resolve(unknown);
  return new Promise((resolve) => {
    const cancel = startTimer(waitMs, () => resolve(undefined));
    const finish = (exit: ContainerExit) => {
      cancel();
      resolve(exit);
    };
    attached.monitor().then(
      () => finish({ exitCode: 0, signal: null, reason: "exited" }),
      (error: unknown) => finish({ ...unknown, message: String(error) }),
    );
  });
}

async function saveTree(attached: Attached, snapshotId: string): Promise<SavedTree> {
  if (!attached.running)
    throw new BerthError(
      "not_running",
      "The container is not running, so there is nothing to save.",
    );
  const { id, size } = await attached.snapshotContainer({ name: snapshotId });
  return { handle: id, bytes: size };
}
