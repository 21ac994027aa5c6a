/**
 * The runtime of a container that the platform attached to the object (`ctx.container`). It trusts neither `running`
 * nor error texts: only the agent's incarnation tells which start runs.
 */
import { BerthError } from "../protocol/errors.ts";
import { type Size, sizeError } from "../protocol/fields/size.ts";
import type { Isolation } from "../protocol/health.ts";
import {
  agentHeaders,
  agentHealthSchema,
  agentPaths,
  agentPort,
} from "../protocol/internal/agent.ts";
import { limits } from "../protocol/limits.ts";
import { parseJson, readBoundedText, readEarlyRefusal } from "./bodies.ts";
import type { Egress } from "./egress.ts";
import type { ContainerRuntime, SavedTree, Started, StartOptions } from "./runtime.ts";
import { withTimeout } from "./timeout.ts";

type Attached = NonNullable<DurableObjectState["container"]>;

/** An evicted object must not end its container; the object's own deadlines do that. */
const inactivityMs = 24 * 60 * 60 * 1000;
const defaultImage = "default";
const firstPauseMs = 20;
const pauseMaxMs = 500;

export function cloudflareRuntime(attached: Attached, egress: Egress): ContainerRuntime {
  const starts = new CloudflareStarts((options, isCurrent) =>
    start(attached, egress, options, isCurrent),
  );
  return {
    keepsFiles: false,
    savesFiles: typeof attached.snapshotContainer === "function",
    comparesTrees: false,
    filtersHosts: true,
    start: (options) => starts.start(options),
    destroy: async () => {
      starts.abandon();
      if (attached.running) await attached.destroy();
    },
    signal: async (signal) => attached.signal(signal),
    // The platform reports an exit only to a call that is already waiting, which keeps the object awake, and never
    // reports out-of-memory.
    monitor: async () => ({ exitCode: null, signal: null, reason: "unknown" }),
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

async function start(
  attached: Attached,
  egress: Egress,
  options: StartOptions,
  isCurrent: () => boolean,
): Promise<Started> {
  // A start that is abandoned while it waits must not run next to its successor.
  const requireCurrent = () => {
    if (!isCurrent()) throw startAbandoned(options.startId);
  };
  if (attached.running) {
    const joined = await probeAgent(attached, options.secret);
    requireCurrent();
    if (joined?.incarnation.startsWith(`${options.startId}.`))
      return withSavedFiles(joined, options);
    if (attached.running) await attached.destroy();
    requireCurrent();
  }
  const instance = options.size === undefined ? undefined : instanceOf(options.size);
  const saved = options.snapshot ?? options.base;
  // A saved tree includes its image.
  const files =
    saved === undefined
      ? { image: imageOf(attached, options.image) }
      : { containerSnapshot: { id: saved } };
  await egress.apply();
  requireCurrent();
  attached.start({
    ...files,
    ...(instance === undefined ? {} : { instance }),
    enableInternet: egress.direct,
    env: {
      BERTH_BOOT: JSON.stringify({
        startId: options.startId,
        secret: options.secret,
        env: { ...egress.env, ...options.env },
      }),
    },
  });
  await attached.setInactivityTimeout(inactivityMs);
  return waitUntilReady(attached, options, requireCurrent);
}

function withSavedFiles(started: Started, { snapshot, base }: StartOptions): Started {
  return snapshot === undefined && base === undefined ? started : { ...started, files: "snapshot" };
}

async function waitUntilReady(
  attached: Attached,
  options: StartOptions,
  requireCurrent: () => void,
): Promise<Started> {
  const isSaved = options.snapshot !== undefined || options.base !== undefined;
  const deadline = Date.now() + (isSaved ? limits.snapshotTimeoutMs : limits.startTimeoutMs);
  for (
    let pauseMs = firstPauseMs;
    Date.now() < deadline;
    pauseMs = Math.min(pauseMs * 2, pauseMaxMs)
  ) {
    const started = await probeAgent(attached, options.secret);
    requireCurrent();
    if (started?.incarnation.startsWith(`${options.startId}.`))
      return withSavedFiles(started, options);
    // The platform has noticed that the container did not start or has ended.
    if (!attached.running) throw exitedEarly(isSaved);
    await scheduler.wait(pauseMs);
    requireCurrent();
  }
  throw notStarted("The container did not respond in time.");
}

/**
 * A start from an image is retried. The platform does not say why a saved tree fails; most likely it no longer
 * exists.
 */
function exitedEarly(isSaved: boolean): BerthError {
  if (!isSaved) return notStarted("The container ended before its agent responded.");
  return new BerthError("start_failed", "The platform did not start from the saved files.", {
    hint: "They may no longer exist. Start from another checkpoint.",
    facts: { reason: "snapshot_missing" },
  });
}

/** The reason `never_up` lets the caller retry: this failure alone does not show that the container can never start. */
function notStarted(message: string): BerthError {
  return new BerthError("unavailable", message, { facts: { reason: "never_up" } });
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

async function probeAgent(attached: Attached, secret: string): Promise<Started | undefined> {
  const result = await withTimeout(limits.agentHeadersMs, async (signal) => {
    const request = new Request(`http://agent${agentPaths.health}`, {
      headers: { authorization: `Bearer ${secret}` },
      redirect: "manual",
      signal,
    });
    const response = await attached.getTcpPort(agentPort).fetch(request);
    return { response, body: parseJson(await readBoundedText(response, limits.agentJsonBytesMax)) };
  }).catch(() => undefined);
  if (result === undefined) return undefined;
  const { response, body } = result;
  const health = agentHealthSchema.safeParse(body);
  const incarnation = response.headers.get(agentHeaders.incarnation);
  if (!response.ok || !health.success || incarnation === null) return undefined;
  return {
    incarnation,
    address: "",
    files: "image",
    isolation: isolationOf(health.data.tree),
    notes: [],
  };
}

function imageOf(attached: Attached, name: string | undefined): string {
  const image = attached.images[name ?? defaultImage];
  if (image !== undefined) return image;
  throw new BerthError("bad_request", `No image named ${name ?? defaultImage} is configured.`, {
    hint: `Configured images: ${Object.keys(attached.images).join(", ") || "none"}.`,
    facts: { field: "image" },
  });
}

function instanceOf({ name, instance }: Size): NonNullable<Size["instance"]> {
  if (instance !== undefined) return instance;
  throw sizeError(name, "names no instance type of the platform (`instance=`)");
}

function isolationOf(tree: Isolation["tree"]): Isolation {
  return {
    engine: "platform",
    user: "vm",
    files: "vm",
    processes: "vm",
    network: "vm",
    tree,
    memoryLimit: true,
    processLimit: false,
    diskLimit: true,
  };
}

type StartContainer = (options: StartOptions, isCurrent: () => boolean) => Promise<Started>;

/** A start is abandoned within minutes, so older start ids cannot come back. */
const abandonedMax = 100;

class CloudflareStarts {
  readonly #startContainer: StartContainer;
  #current: string | undefined;
  #running: { startId: string; started: Promise<Started> } | undefined;
  readonly #abandoned = new Set<string>();

  constructor(startContainer: StartContainer) {
    this.#startContainer = startContainer;
  }

  start(options: StartOptions): Promise<Started> {
    const { startId } = options;
    if (this.#abandoned.has(startId)) return Promise.reject(startAbandoned(startId));
    if (this.#running?.startId === startId) return this.#running.started;
    if (this.#current !== startId) this.abandon();
    this.#current = startId;
    const started = this.#startContainer(options, () => this.#current === startId).finally(() => {
      if (this.#running?.started === started) this.#running = undefined;
    });
    this.#running = { startId, started };
    return started;
  }

  abandon(): void {
    if (this.#current === undefined) return;
    this.#abandoned.add(this.#current);
    this.#current = undefined;
    const [oldest = ""] = this.#abandoned;
    if (this.#abandoned.size > abandonedMax) this.#abandoned.delete(oldest);
  }
}

function startAbandoned(startId: string): BerthError {
  return new BerthError("start_failed", `The start ${startId} was abandoned.`);
}
