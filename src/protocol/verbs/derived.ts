/** The methods of one sandbox as the rows describe them. In the npm package this type is written out in full. */
import type { VerbName, VerbRows } from "./rows.ts";
import type { CallName, Verb } from "./types.ts";

/** The verbs on one sandbox. */
export type SandboxVerb = {
  [Name in VerbName]: VerbRows[Name]["path"] extends `/v1/sandboxes/:id${string}` ? Name : never;
}[VerbName];

/** The methods of one sandbox as the rows describe them. */
export type DerivedSandboxApi = {
  [Name in SandboxVerb as CallName<Name>]: Verb<VerbRows[Name]>;
};
