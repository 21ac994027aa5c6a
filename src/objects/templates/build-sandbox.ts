/** Reaches the sandbox of a build by its verbs, as any caller of its tenant does. */
import type { Env } from "../../config.ts";
import type { ProcessEnd } from "../../core/template/build.ts";
import { BerthError, type ErrorBody, errors } from "../../protocol/errors.ts";
import { limits } from "../../protocol/limits.ts";
import type { Process } from "../../protocol/process.ts";
import { rights } from "../../protocol/rights.ts";
import type { VerbCalls } from "../sandbox/dispatch/verb-call.ts";
import { type Result, toBerthError, type WireResponse } from "../shared/result.ts";
import type { BuilderPort, ProcessOutput } from "./ports.ts";

const requestId = "template";

export function builderOf(
  env: Env,
  { tenant, sandbox }: { tenant: string; sandbox: string },
): BuilderPort {
  const object = env.SANDBOX.getByName(sandbox);
  const { callVerb } = bound(object as unknown as VerbCalls);
  const caller = { tenant, rights };
  return {
    async waitUntilStarted(waitMs) {
      return unwrap(await callVerb("waitUntilStarted", caller, { waitMs }, requestId));
    },
    async start({ label: _label, ...program }, key) {
      const body = {
        ...program,
        stdin: "none" as const,
        timeoutMs: limits.templateBuildMs,
        logBytesMax: limits.templateLogCharsMax,
        onFull: "drop" as const,
      };
      const args = { body, gated: { mayWake: false, key } };
      return (await read<Process>(await callVerb("startProcess", caller, args, requestId))).id;
    },
    async waitForExit(target, waitMs) {
      const args = { target, query: { for: "exit", timeoutMs: waitMs } };
      await read(await callVerb("waitForProcess", caller, args, requestId));
    },
    async readOutput(target, after) {
      const query = { after, follow: "0" as const };
      const args = { target, query, raw: false };
      return readEvents(await text(await callVerb("processLogs", caller, args, requestId)), after);
    },
    async save(handle) {
      return unwrap(await object.saveForTemplate({ tenant }, handle));
    },
    async end() {
      await object.end("template_build_ended");
    },
  };
}

/** A method of a stub that is taken off it loses the stub. */
function bound(object: VerbCalls): VerbCalls {
  return { callVerb: (...args) => object.callVerb(...args) };
}

function unwrap<T>(result: Result<T>): T {
  if ("ok" in result) return result.ok;
  throw toBerthError(result.refused);
}

async function text(response: WireResponse): Promise<string> {
  if (!(response instanceof Response)) {
    refuse(response.json);
    return response.json;
  }
  const body = await response.text();
  if (!response.ok) refuse(body);
  return body;
}

async function read<T>(response: WireResponse): Promise<T> {
  const body = await text(response);
  refuse(body);
  return JSON.parse(body) as T;
}

/** Throws if the body is an error. */
function refuse(body: string): void {
  if (!body.trimStart().startsWith("{")) return;
  const { error } = JSON.parse(body) as Partial<ErrorBody>;
  if (error === undefined) return;
  const { code, message, hint } = error;
  const known = Object.hasOwn(errors, code) ? code : "internal";
  throw new BerthError(known, message, hint === undefined ? {} : { hint });
}

/** What is left of a stream that was cut is read next time. */
function readEvents(stream: string, after: number): ProcessOutput {
  const output: ProcessOutput = { pieces: [], cursor: after };
  for (const block of stream.split("\n\n").slice(0, -1)) {
    const fields = new Map(
      block.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)] as const;
      }),
    );
    const data = fields.get("data") ?? "{}";
    switch (fields.get("event")) {
      case "output": {
        const { data: base64 } = JSON.parse(data) as { data: string };
        output.pieces.push(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
        output.cursor = Number(fields.get("id"));
        break;
      }
      case "truncated":
        output.pieces.push(new TextEncoder().encode("\n[output was lost]\n"));
        output.cursor = Number(fields.get("id"));
        break;
      case "exit":
        output.end = JSON.parse(data) as ProcessEnd;
        break;
    }
  }
  return output;
}
