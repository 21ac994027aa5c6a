/**
 * A client with a key: it repeats the call until it knows the result, sometimes several times at once, and more often
 * after that.
 */
import type { Outcome } from "../simulated-object.ts";
import type { Exec } from "./script.ts";
import type { World } from "./world.ts";

const triesMax = 12;

/** Errors after which the same key may still return the result. */
const unsure = new Set(["unavailable", "operation_interrupted"]);

export async function repeatUntilKnown(
  world: World,
  key: string,
  { repeats, atOnce }: NonNullable<Exec["key"]>,
  call: () => Promise<Outcome<string>>,
): Promise<Outcome<string>> {
  const once = async () => {
    const wasAcknowledged = world.observer.keys.isAcknowledged(key);
    const outcome = await call();
    recordResult(world, key, outcome, wasAcknowledged);
    return outcome;
  };
  const callAll = async () => {
    const others = Array.from({ length: atOnce - 1 }, async () => {
      await world.sleep(world.random.between(0, 50), "the same key at once");
      await once();
    });
    const outcome = await once();
    await Promise.all(others);
    return outcome;
  };
  let remainingRepeats = repeats;
  let outcome = await callAll();
  for (let tries = 1; tries < triesMax; tries++) {
    const isKnown = !("lost" in outcome) && !unsure.has(codeOf(outcome) ?? "");
    if (isKnown && remainingRepeats-- <= 0) break;
    await world.sleep(world.random.between(0, isKnown ? 20_000 : 4_000), `${key} is asked again`);
    world.count("outcome", isKnown ? "a known key was repeated" : "an unsure key was repeated");
    outcome = await callAll();
  }
  return outcome;
}

function recordResult(
  world: World,
  key: string,
  outcome: Outcome<string>,
  wasAcknowledged: boolean,
): void {
  const code = codeOf(outcome);
  if (code !== undefined) world.count("answer", `idempotent: ${code}`);
  const exitCode = exitCodeOf(outcome);
  if (exitCode !== undefined) world.observer.keys.recordExit(key, exitCode);
  if (code === "operation_interrupted" && wasAcknowledged) {
    world.observer.keys.recordInterrupted(key);
  }
}

function codeOf(outcome: Outcome<string>): string | undefined {
  if ("refused" in outcome) return outcome.refused.code;
  return "ok" in outcome ? bodyOf(outcome.ok).error?.code : undefined;
}

/** The exit code in a result, or in the error for a discarded one. */
function exitCodeOf(outcome: Outcome<string>): unknown {
  if ("refused" in outcome) return outcome.refused.facts.exitCode;
  if (!("ok" in outcome)) return undefined;
  const { exitCode, error } = bodyOf(outcome.ok);
  return exitCode ?? error?.exitCode;
}

type Body = { exitCode?: number; error?: { code: string; exitCode?: number } };

/** Empty if the caller disconnected. */
export function bodyOf(json: string): Body {
  return json.trim() === "" ? {} : (JSON.parse(json) as Body);
}
