/**
 * Owns what a client with a key does: it asks again with the same key until it knows, at times by several at
 * once, and more when it knows. Does not own one call (clients.ts).
 */
import type { Outcome } from "./object.ts";
import type { Exec } from "./plan.ts";
import type { World } from "./world.ts";

const triesMax = 12;

/** The codes after which the same key may bring the answer. */
const unsure = new Set(["unavailable", "operation_interrupted"]);

export async function askUntilKnown(
  world: World,
  key: string,
  { repeats, atOnce }: NonNullable<Exec["key"]>,
  call: () => Promise<Outcome<string>>,
): Promise<Outcome<string>> {
  const once = async () => {
    const wasAcknowledged = world.observer.keys.isAcknowledged(key);
    const outcome = await call();
    judge(world, key, outcome, wasAcknowledged);
    return outcome;
  };
  const ask = async () => {
    const others = Array.from({ length: atOnce - 1 }, async () => {
      await world.sleep(world.random.between(0, 50), "the same key at once");
      await once();
    });
    const outcome = await once();
    await Promise.all(others);
    return outcome;
  };
  let left = repeats;
  let outcome = await ask();
  for (let tries = 1; tries < triesMax; tries++) {
    const isKnown = !("lost" in outcome) && !unsure.has(codeOf(outcome) ?? "");
    if (isKnown && left-- <= 0) break;
    await world.sleep(world.random.between(0, isKnown ? 20_000 : 4_000), `${key} is asked again`);
    world.count("outcome", isKnown ? "a known key was repeated" : "an unsure key was repeated");
    outcome = await ask();
  }
  return outcome;
}

function judge(
  world: World,
  key: string,
  outcome: Outcome<string>,
  wasAcknowledged: boolean,
): void {
  const code = codeOf(outcome);
  if (code !== undefined) world.count("answer", `keyed: ${code}`);
  const exitCode = exitCodeOf(outcome);
  if (exitCode !== undefined) world.observer.keys.told(key, exitCode);
  if (code === "operation_interrupted" && wasAcknowledged) {
    world.observer.keys.toldInterrupted(key);
  }
}

function codeOf(outcome: Outcome<string>): string | undefined {
  if ("refused" in outcome) return outcome.refused.code;
  return "ok" in outcome ? bodyOf(outcome.ok).error?.code : undefined;
}

/** Of an answer, and of one that is gone. */
function exitCodeOf(outcome: Outcome<string>): unknown {
  if ("refused" in outcome) return outcome.refused.facts.exitCode;
  if (!("ok" in outcome)) return undefined;
  const { exitCode, error } = bodyOf(outcome.ok);
  return exitCode ?? error?.exitCode;
}

type Body = { exitCode?: number; error?: { code: string; exitCode?: number } };

/** Nothing came where the caller went away. */
function bodyOf(json: string): Body {
  return json.trim() === "" ? {} : (JSON.parse(json) as Body);
}
