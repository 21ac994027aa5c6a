/** Checks that every response in the suite has exactly the form that its row promises. */
import { z } from "zod";
import type { SandboxApi } from "../../../src/protocol/api.ts";
import { leaseReleasedSchema } from "../../../src/protocol/lease.ts";
import { isSandboxMethod } from "../../../src/protocol/verbs/row.ts";
import { type VerbRow, verbs } from "../../../src/protocol/verbs.ts";

const rows = Object.entries(verbs as Record<string, VerbRow>).filter(([, row]) =>
  isSandboxMethod(row),
);

const forms = new Map<string, z.ZodType>([
  ["breakLease", leaseReleasedSchema],
  ...rows.flatMap(([name, { call = name, responses }]): [string, z.ZodType][] => {
    const schemas = Object.values(responses).map(({ schema }) => schema);
    const known = schemas.filter((schema) => schema instanceof z.ZodType);
    return known.length === 0 ? [] : [[call, z.union(known)]];
  }),
]);

type Verb = (...args: unknown[]) => PromiseLike<unknown>;

export function checked(box: SandboxApi): SandboxApi {
  return new Proxy({} as SandboxApi, {
    get: (_target, verb: keyof SandboxApi) => {
      const form = forms.get(verb);
      return async (...args: unknown[]) => {
        const answer = await (box[verb] as Verb).apply(box, args);
        return form === undefined ? answer : demandForm(verb, form, answer);
      };
    },
  });
}

function demandForm(verb: string, form: z.ZodType, answer: unknown): unknown {
  const { success, error } = form.safeParse(answer);
  if (success) return answer;
  throw new Error(`${verb} answered ${JSON.stringify(answer)}: ${z.prettifyError(error)}`);
}
