/** The checked arguments with which the Worker calls a verb of the object, and what it gets back. */
import type { z } from "zod";
import type { Caller } from "../../../protocol/rights.ts";
import type { SandboxVerb } from "../../../protocol/verbs/derived.ts";
import type { VerbRows } from "../../../protocol/verbs/rows.ts";
import type { Params, Result as VerbResult } from "../../../protocol/verbs/types.ts";
import type { Result, WireResponse } from "../../shared/result.ts";
import type { Query } from "../agent/agent-client.ts";
import type { GatedCaller } from "../lease/gated-admission.ts";
import type { agentVerbs } from "./agent-verbs.ts";
import type { objectVerbs } from "./object-verbs.ts";

/** The arguments of any verb. `target`: the process, session, terminal, checkpoint or port that the path names. */
export type VerbArgs = {
  target?: string | number;
  query?: Query;
  body?: unknown;
  gated?: GatedCaller;
};

/** The arguments of the verb with this row. */
export type ArgsOf<Row> = (Row extends { path: infer Path }
  ? Params<Path> extends [infer Target]
    ? { target: Target }
    : unknown
  : never) &
  (Row extends { query: infer Schema extends z.ZodType } ? { query: z.output<Schema> } : unknown) &
  (Row extends { body: infer Schema }
    ? { body: Schema extends z.ZodType ? z.output<Schema> : Uint8Array<ArrayBuffer> }
    : unknown) &
  (Row extends { gated: true } ? { gated: GatedCaller } : unknown);

/** Verbs that the Worker completes: their arguments or results here differ from their rows. */
type CompletedByWorker =
  | "connectLease"
  | "connectTerminal"
  | "createToken"
  | "openPort"
  | "patchMetadata"
  | "releaseLease"
  | "renewLease"
  | "replaceMetadata";

/** Bytes of files do not go through `call`: see transfers.ts. */
type TransferVerb = "readFile" | "writeFile" | "downloadArchive" | "uploadArchive";

type RowOfAgent = { [Name in SandboxVerb]: VerbRows[Name] extends { agent: true } ? Name : never };

/** Verbs that run in the container. */
export type AgentVerb = Exclude<RowOfAgent[SandboxVerb], TransferVerb>;

/** Verbs that the object serves itself, as their rows describe them. */
export type ObjectVerb = Exclude<SandboxVerb, AgentVerb | TransferVerb | CompletedByWorker>;

export type ContentOf<Name extends SandboxVerb> = VerbResult<VerbRows[Name]>;

/** All that the Worker can call. */
export type CallableVerb = keyof typeof objectVerbs | AgentVerb;

type Served<Name> = Name extends keyof typeof objectVerbs
  ? (typeof objectVerbs)[Name]
  : Name extends keyof typeof agentVerbs
    ? (typeof agentVerbs)[Name]
    : never;

export type CallableArgs<Name extends CallableVerb> =
  Served<Name> extends (context: never, args: infer Args) => unknown
    ? Args
    : Name extends AgentVerb
      ? ArgsOf<VerbRows[Name]>
      : never;

/** A verb of the agent returns the agent's response; one of the object a value. */
export type Outcome<Name extends CallableVerb> = Name extends keyof typeof objectVerbs
  ? Result<Awaited<ReturnType<(typeof objectVerbs)[Name]>>>
  : WireResponse;

export type AnyOutcome = Result<unknown> | WireResponse;

export type VerbCaller = Pick<Caller, "tenant" | "token" | "rights" | "keyId">;

/** `SandboxObject.callVerb`, typed by the verb. The stub of an object loses these types. */
export interface VerbCalls {
  callVerb<Name extends CallableVerb>(
    name: Name,
    caller: VerbCaller,
    args: CallableArgs<Name>,
    requestId: string,
  ): Promise<Outcome<Name>>;
}
