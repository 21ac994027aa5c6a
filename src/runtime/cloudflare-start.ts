/**
 * Starts a container of the platform and waits for its agent. The platform answers `start()` at once, whatever becomes of
 * it: a request before the agent listens may hang, and only `monitor()` says that no machine could be had.
 */
import { BerthError } from "../protocol/errors.ts";
import { type Size, sizeError } from "../protocol/fields/size.ts";
import type { Isolation } from "../protocol/health.ts";
import {
  agentHeaders,
  agentHealthSchema,
  agentPaths,
  agentPort,
  agentProtocol,
} from "../protocol/internal/agent.ts";
import { limits } from "../protocol/limits.ts";
import { parseJson, readBoundedText } from "./bodies.ts";
import { startAbandoned } from "./cloudflare-starts.ts";
import type { Egress } from "./egress.ts";
import type { Started, StartOptions } from "./runtime.ts";
import { type StartTimer, withTimeout } from "./timeout.ts";

export type Attached = NonNullable<DurableObjectState["container"]>;

type StartDeps = {
  attached: Attached;
  egress: Egress;
  startTimer: StartTimer;
  instance: Size["instance"];
};

const defaultImage = "default";
/** Between two questions whether the agent listens; the first ones follow each other faster. */
const firstPauseMs = 20;
const pauseMaxMs = 500;
/** The label by which a later instance of the object recognizes a container that still starts. */
const startLabel = "start";

export async function startContainer(
  deps: StartDeps,
  options: StartOptions,
  isCurrent: () => boolean,
): Promise<Started> {
  const { attached, egress } = deps;
  // A start that is abandoned while it waits must not run next to its successor.
  const requireCurrent = () => {
    if (!isCurrent()) throw startAbandoned(options.startId);
  };
  if (attached.running) {
    const joined = await joinRunning(deps, options, requireCurrent);
    if (joined !== undefined) return joined;
    if (attached.running) await attached.destroy();
    requireCurrent();
  }
  egress.forget();
  await egress.apply();
  requireCurrent();
  callStart(deps, options);
  const notes = await setTimeoutOf(attached);
  const started = await waitUntilReady(deps, options, requireCurrent);
  return { ...started, notes: [...started.notes, ...notes] };
}

/** An earlier instance of the object may have started this container, which may still come up. */
async function joinRunning(
  deps: StartDeps,
  options: StartOptions,
  requireCurrent: () => void,
): Promise<Started | undefined> {
  const { attached, egress } = deps;
  const info = await attached.inspect?.().catch(() => undefined);
  requireCurrent();
  const label = info?.labels?.[startLabel];
  if (label !== undefined && label !== options.startId) return undefined;
  await egress.apply();
  await setTimeoutOf(attached);
  requireCurrent();
  if (label !== undefined) return waitUntilReady(deps, options, requireCurrent);
  const joined = await probeAgent(attached, options.secret, deps.startTimer);
  requireCurrent();
  if (joined?.incarnation.startsWith(`${options.startId}.`) !== true) return undefined;
  await handOverEnvironment(deps, joined, options);
  return withSavedFiles(joined, options);
}

function callStart({ attached, egress, ...deps }: StartDeps, options: StartOptions): void {
  const { size, startId, secret } = options;
  const instance = size === undefined ? deps.instance : instanceOf(size);
  const saved = options.snapshot ?? options.base;
  // A saved tree includes its image.
  const files =
    saved === undefined
      ? { image: imageOf(attached, options.image) }
      : { containerSnapshot: { id: saved } };
  const env = saved === undefined ? {} : bootEnvironment(egress, options);
  const { callbackUrl } = egress;
  const boot = { startId, secret, env, ...(callbackUrl === undefined ? {} : { callbackUrl }) };
  try {
    attached.start({
      ...files,
      ...(instance === undefined ? {} : { instance }),
      enableInternet: egress.direct,
      env: { BERTH_BOOT: JSON.stringify(boot) },
      labels: { ...options.labels, [startLabel]: startId },
    });
  } catch (error) {
    throw new BerthError("start_failed", `The platform refused the start: ${wordsOf(error)}`, {
      hint: "Choose another size or image, or ask the operator of this installation.",
      facts: { reason: "start_refused" },
    });
  }
}

/** An agent in a saved tree may be too old to take its environment later, so it gets what one variable can hold. */
function bootEnvironment(egress: Egress, { env }: StartOptions): Record<string, string> {
  const all = { ...egress.env, ...env };
  return JSON.stringify(all).length <= limits.bootEnvBytesMax ? all : {};
}

/** A container without a timeout still starts; it ends soon after its object sleeps, which the note says. */
async function setTimeoutOf(attached: Attached): Promise<string[]> {
  try {
    await attached.setInactivityTimeout(limits.inactivityTimeoutMs);
    return [];
  } catch (error) {
    return [`The platform set no inactivity timeout: ${wordsOf(error)}`];
  }
}

function withSavedFiles(started: Started, { snapshot, base }: StartOptions): Started {
  return snapshot === undefined && base === undefined ? started : { ...started, files: "snapshot" };
}

/**
 * Asks again every half second, each time with a deadline of its own, because a request that was sent too early may never
 * be answered. The first answer wins.
 */
async function waitUntilReady(
  deps: StartDeps,
  options: StartOptions,
  requireCurrent: () => void,
): Promise<Started> {
  const { attached, startTimer } = deps;
  const { startId, secret } = options;
  const isSaved = options.snapshot !== undefined || options.base !== undefined;
  const ready = Promise.withResolvers<Started>();
  let cancelPause = () => {};
  const refuseEnded = (words?: string) => ready.reject(exitedEarly(isSaved, words));
  const ask = (pauseMs: number) => {
    void probeAgent(attached, secret, startTimer).then((started) => {
      if (started?.incarnation.startsWith(`${startId}.`) === true) ready.resolve(started);
      else if (!attached.running) refuseEnded();
    });
    cancelPause = startTimer(pauseMs, () => {
      try {
        requireCurrent();
        ask(Math.min(pauseMs * 2, pauseMaxMs));
      } catch (error) {
        ready.reject(error);
      }
    });
  };
  const limitMs = isSaved ? limits.snapshotTimeoutMs : limits.startTimeoutMs;
  const cancelLimit = startTimer(limitMs, () =>
    ready.reject(notStarted("The container did not respond in time.")),
  );
  // Held during a start only: it keeps the object in memory, which is in use now anyway.
  attached.monitor?.().then(
    () => refuseEnded("it exited"),
    (error: unknown) => refuseEnded(wordsOf(error)),
  );
  ask(firstPauseMs);
  try {
    const started = await ready.promise;
    requireCurrent();
    await handOverEnvironment(deps, started, options);
    requireCurrent();
    return withSavedFiles(started, options);
  } finally {
    cancelPause();
    cancelLimit();
  }
}

/** A start from an image is retried. Most likely a saved tree that does not start no longer exists. */
function exitedEarly(isSaved: boolean, words?: string): BerthError {
  const suffix = words === undefined ? "" : `: ${words}`;
  if (!isSaved) return notStarted(`The container ended before its agent responded${suffix}.`);
  return new BerthError(
    "start_failed",
    `The platform did not start from the saved files${suffix}.`,
    {
      hint: "They may no longer exist. Start from another checkpoint.",
      facts: { reason: "snapshot_missing" },
    },
  );
}

/** A lack of machines passes, so a later call may start it again. */
function notStarted(message: string): BerthError {
  return new BerthError("unavailable", message);
}

async function probeAgent(
  attached: Attached,
  secret: string,
  startTimer?: StartTimer,
): Promise<Started | undefined> {
  const result = await withTimeout(
    limits.agentHeadersMs,
    async (signal) => {
      const headers = { authorization: `Bearer ${secret}` };
      const init = { headers, redirect: "manual", signal } as const;
      const request = new Request(`http://agent${agentPaths.health}`, init);
      const response = await attached.getTcpPort(agentPort).fetch(request);
      const text = await readBoundedText(response, limits.agentJsonBytesMax);
      return { response, body: parseJson(text) };
    },
    startTimer,
  ).catch(() => undefined);
  if (result === undefined) return undefined;
  const { response, body } = result;
  const health = agentHealthSchema.safeParse(body);
  const incarnation = response.headers.get(agentHeaders.incarnation);
  if (!response.ok || !health.success || incarnation === null) return undefined;
  const isolation = isolationOf(health.data.tree);
  return { incarnation, address: "", files: "image", isolation, notes: [] };
}

/**
 * The first call to a new agent: its environment, of any size, which one variable of the platform could not hold. Repeated
 * calls are harmless. An agent of a saved tree that does not know the call has it from its boot document.
 */
async function handOverEnvironment(
  { attached, egress, startTimer }: StartDeps,
  { incarnation }: Started,
  { secret, env, envVersion, snapshot, base }: StartOptions,
): Promise<void> {
  const all = { ...egress.env, ...env };
  if (Object.keys(all).length === 0) return;
  const response = await withTimeout(
    limits.agentHeadersMs,
    (signal) =>
      attached.getTcpPort(agentPort).fetch(
        new Request(`http://agent${agentPaths.services}`, {
          method: "PUT",
          headers: {
            authorization: `Bearer ${secret}`,
            "content-type": "application/json",
            [agentHeaders.protocol]: String(agentProtocol),
            [agentHeaders.incarnation]: incarnation,
          },
          body: JSON.stringify({ version: envVersion ?? 0, env: all }),
          redirect: "manual",
          signal,
        }),
      ),
    startTimer,
  ).catch(() => undefined);
  await response?.body?.cancel().catch(() => undefined);
  if (response?.ok === true) return;
  const isOld = response?.status === 404 && (snapshot ?? base) !== undefined;
  if (!isOld) throw notStarted("The agent did not take its environment.");
  if (JSON.stringify(all).length <= limits.bootEnvBytesMax) return;
  const message = "The agent in the saved files is too old for so large an environment.";
  throw new BerthError("start_failed", message, { facts: { reason: "start_refused" } });
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

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
