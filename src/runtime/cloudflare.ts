/**
 * Owns the way to a container that the platform attached to the object (`ctx.container`).
 * Does not trust `running` or the text of an error: only the agent's incarnation tells one life from another.
 */

import { BerthError } from "../protocol/errors.ts";
import type { Isolation } from "../protocol/fields/isolation.ts";
import { type Size, sizeUnsupported } from "../protocol/fields/size.ts";
import {
  agentHeaders,
  agentHealthSchema,
  agentPaths,
  agentPort,
} from "../protocol/internal/agent.ts";
import { limits } from "../protocol/limits.ts";
import { givenUp, PlatformStarts } from "./cloudflare-starts.ts";
import { whole } from "./early-response.ts";
import type { Egress } from "./egress.ts";
import type { Container, Saved, Started, StartOptions } from "./runtime.ts";
import { parsedJson, shortText } from "./short-response.ts";
import { within } from "./timeout.ts";

type Attached = NonNullable<DurableObjectState["container"]>;

/** An evicted object must not take its container along: the object's own deadlines end it. */
const inactivityMs = 24 * 60 * 60 * 1000;
const defaultImage = "default";
const firstPauseMs = 20;
const pauseMaxMs = 500;

export function platformContainer(attached: Attached, egress: Egress): Container {
  const starts = new PlatformStarts((options, isWanted) =>
    start(attached, egress, options, isWanted),
  );
  return {
    keepsFiles: false,
    savesFiles: typeof attached.snapshotContainer === "function",
    comparesTrees: false,
    filtersHosts: true,
    start: (options) => starts.start(options),
    destroy: async () => {
      starts.giveUp();
      if (attached.running) await attached.destroy();
    },
    signal: async (signal) => attached.signal(signal),
    // It tells an end only to who asked before that, which keeps the object awake, and never that memory was wanting.
    monitor: async () => ({ exitCode: null, signal: null, reason: "unknown" }),
    async agent(_address, request, init) {
      // Before the first word of an instance that found it running: what runs is held to its hosts again.
      await egress.apply();
      const hasBody = (typeof request === "string" ? init?.body : request.body) != null;
      const answer = await attached.getTcpPort(agentPort).fetch(request, init);
      return hasBody ? whole(answer) : answer;
    },
    snapshot: (snapshotId) => save(attached, snapshotId),
    // The platform has no such call: what nobody names any more ends with its time.
    removeSnapshot: async () => undefined,
    // A snapshot of the platform can be started from, and nothing else.
    changes: async () => undefined,
  };
}

async function start(
  attached: Attached,
  egress: Egress,
  options: StartOptions,
  isWanted: () => boolean,
): Promise<Started> {
  // One that is given up while this waits must not begin beside its successor.
  const stillWanted = () => {
    if (!isWanted()) throw givenUp(options.startId);
  };
  if (attached.running) {
    const joined = await ask(attached, options.secret);
    stillWanted();
    if (joined?.incarnation.startsWith(`${options.startId}.`)) return from(joined, options);
    if (attached.running) await attached.destroy();
    stillWanted();
  }
  const instance = options.size === undefined ? undefined : instanceOf(options.size);
  const saved = options.snapshot ?? options.base;
  // A saved tree brings its image along.
  const files =
    saved === undefined
      ? { image: imageOf(attached, options.image) }
      : { containerSnapshot: { id: saved } };
  await egress.apply();
  stillWanted();
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
  return firstAnswer(attached, options, stillWanted);
}

function from(started: Started, { snapshot, base }: StartOptions): Started {
  return snapshot === undefined && base === undefined ? started : { ...started, files: "snapshot" };
}

async function firstAnswer(
  attached: Attached,
  options: StartOptions,
  stillWanted: () => void,
): Promise<Started> {
  const isSaved = options.snapshot !== undefined || options.base !== undefined;
  const until = Date.now() + (isSaved ? limits.snapshotTimeoutMs : limits.startTimeoutMs);
  for (
    let pauseMs = firstPauseMs;
    Date.now() < until;
    pauseMs = Math.min(pauseMs * 2, pauseMaxMs)
  ) {
    const started = await ask(attached, options.secret);
    stillWanted();
    if (started?.incarnation.startsWith(`${options.startId}.`)) return from(started, options);
    // The platform has noticed that it did not begin, or that it has ended.
    if (!attached.running) throw neverUp(isSaved);
    await scheduler.wait(pauseMs);
    stillWanted();
  }
  throw notUp("The container did not answer in time.");
}

/** From an image it is tried again. Of a saved tree the platform does not say why: that it is gone is likeliest. */
function neverUp(isSaved: boolean): BerthError {
  if (!isSaved) return notUp("The container ended before it answered.");
  return new BerthError("start_failed", "The platform did not start from the saved files.", {
    hint: "They may be gone: start from another checkpoint.",
    facts: { reason: "snapshot_missing" },
  });
}

/** It was asked for and did not come: by that alone nobody knows that it ever would. */
function notUp(message: string): BerthError {
  return new BerthError("unavailable", message, { facts: { reason: "never_up" } });
}

async function save(attached: Attached, snapshotId: string): Promise<Saved> {
  if (!attached.running) throw new BerthError("not_running", "There is nothing to save.");
  const { id, size } = await attached.snapshotContainer({ name: snapshotId });
  return { handle: id, bytes: size };
}

async function ask(attached: Attached, secret: string): Promise<Started | undefined> {
  const answered = await within(limits.agentHeadersMs, async (signal) => {
    const request = new Request(`http://agent${agentPaths.health}`, {
      headers: { authorization: `Bearer ${secret}` },
      redirect: "manual",
      signal,
    });
    const response = await attached.getTcpPort(agentPort).fetch(request);
    return { response, told: parsedJson(await shortText(response, limits.agentJsonBytesMax)) };
  }).catch(() => undefined);
  if (answered === undefined) return undefined;
  const { response, told } = answered;
  const health = agentHealthSchema.safeParse(told);
  const incarnation = response.headers.get(agentHeaders.incarnation);
  if (!response.ok || !health.success || incarnation === null) return undefined;
  return {
    incarnation,
    address: "",
    files: "image",
    isolation: isolation(health.data.tree),
    notes: [],
  };
}

function imageOf(attached: Attached, name: string | undefined): string {
  const image = attached.images[name ?? defaultImage];
  if (image !== undefined) return image;
  throw new BerthError("bad_request", `No image named ${name ?? defaultImage} is configured.`, {
    hint: `Configured are: ${Object.keys(attached.images).join(", ") || "none"}.`,
    facts: { field: "image" },
  });
}

function instanceOf({ name, instance }: Size): NonNullable<Size["instance"]> {
  if (instance !== undefined) return instance;
  throw sizeUnsupported(name, "names no machine of the platform's (`instance=`)");
}

function isolation(tree: Isolation["tree"]): Isolation {
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
