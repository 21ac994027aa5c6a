/**
 * The methods of a sandbox over HTTP: one for each row of the table of verbs, derived from it, and those that a row
 * cannot describe (special.ts, files.ts).
 */
import type { DerivedMethod, SandboxApi } from "../protocol/api.ts";
import { derivedMethods, sandboxRows } from "./derived.ts";
import { type ClientFileApi, fileMethods } from "./files.ts";
import type { HttpClient } from "./http/request.ts";
import { specialMethods } from "./special.ts";

export interface SandboxVerbs extends Omit<SandboxApi, keyof ClientFileApi>, ClientFileApi {}

export function sandboxMethods(client: HttpClient, id: string): SandboxVerbs {
  const derived = derivedMethods(client, id, sandboxRows) as unknown;
  return {
    ...(derived as Pick<SandboxApi, DerivedMethod>),
    ...specialMethods(client, id),
    ...fileMethods(client, id),
  };
}
