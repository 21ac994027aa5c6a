/**
 * Finds the configured size that a create names, and refuses a size that this installation cannot enforce, before an
 * object is addressed.
 */
import { type Env, readConfig } from "../../config.ts";
import { BerthError } from "../../protocol/errors.ts";
import { type Size, sizeError } from "../../protocol/fields/size.ts";
import { engineHealth } from "../../runtime/engine.ts";

export async function sizeOf(env: Env, name: string | undefined): Promise<Size | undefined> {
  if (name === undefined) return undefined;
  const { sizes, engine } = readConfig(env);
  const size = sizes.get(name);
  if (size === undefined) throw unknown(name, [...sizes.keys()]);
  const { instance, memoryBytes, processes } = size;
  if (engine === undefined) {
    if (instance !== undefined) return size;
    throw sizeError(name, "names no instance type of the platform (`instance=`)");
  }
  if (memoryBytes === undefined && processes === undefined) {
    throw sizeError(name, "sets no limit that the engine can enforce");
  }
  const { isolation } = await engineHealth({ baseUrl: engine.url, secret: engine.secret });
  if (memoryBytes !== undefined && !isolation.memoryLimit) {
    throw sizeError(name, "bounds memory, which this machine cannot");
  }
  if (processes !== undefined && !isolation.processLimit) {
    throw sizeError(name, "bounds the number of processes, which this machine cannot");
  }
  return size;
}

function unknown(name: string, configured: string[]): BerthError {
  return new BerthError("bad_request", `size: none named ${name} is configured.`, {
    hint: `Configured are: ${configured.join(", ") || "none; BERTH_SIZES configures them"}.`,
    facts: { field: "size" },
  });
}
