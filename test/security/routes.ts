/** Makes one valid call of each route, and lists what can be wrong with the types of its body. */
import { z } from "zod";
import { type VerbName, type VerbRow, verbs } from "../../src/protocol/verbs.ts";
import { archive } from "../agent/archive/tar-maker.ts";
import { sample, samplePath } from "../workerd/samples.ts";
import type { Sent } from "./attacked-server.ts";

const samples: Partial<Record<VerbName, unknown>> = {
  createSandbox: { start: false },
  makeCheckpoint: {},
  moveFile: { from: "sample", to: "moved", overwrite: true },
  openPort: { port: 8000 },
  uploadArchive: archive({ name: "sample", body: "sample" }),
  buildTemplate: { name: "sample" },
  putPlan: {},
  putMember: { create: { start: false } },
  commitPlan: {},
  rollbackPlan: {},
};

/** What else a path names; unless given, what nobody has made. */
export type CallParts = Partial<Record<"checkpoint" | "process" | "session" | "terminal", string>>;

export function goodCall(name: VerbName, id: string, plan: string, parts: CallParts = {}): Sent {
  const route: VerbRow = verbs[name];
  const { body, headers = {} } = sample(name);
  const json = samples[name] ?? body;
  const written = typeof json === "string" || Buffer.isBuffer(json) ? json : JSON.stringify(json);
  const known = Object.entries(parts).reduce(
    (path, [what, handle]) => path.replace(`:${what}`, handle),
    route.path,
  );
  const path = samplePath(id, { ...route, path: known })
    .replace(":plan", plan)
    .replace(":key", "nobodys")
    .replace(":n", "1");
  return {
    method: route.method,
    path,
    headers,
    ...(written === undefined ? {} : { body: written }),
  };
}

export function hasJsonBody({ body }: VerbRow): boolean {
  return body !== undefined && body !== "bytes";
}

/** For each field that its schema names values of types that it does not take. */
export function wrongTypes({ body }: VerbRow): [field: string, value: unknown][] {
  if (body === undefined || body === "bytes") return [];
  return Object.entries(fieldsOf(body)).flatMap(([field, schema]) =>
    [["a list"], { an: "object" }, true, "text", 7.5]
      .filter((value) => !schema.safeParse(value).success)
      .map((value): [string, unknown] => [field, value]),
  );
}

function fieldsOf(body: z.ZodType): Record<string, z.ZodType> {
  if (body instanceof z.ZodObject) return body.shape as Record<string, z.ZodType>;
  if (body instanceof z.ZodRecord) return { any: body.valueType as z.ZodType };
  if (!(body instanceof z.ZodUnion)) throw new Error("a body that is no object has no fields");
  return Object.assign({}, ...body.options.map((option) => fieldsOf(option as z.ZodType)));
}
