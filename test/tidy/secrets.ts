/**
 * Owns how secrets are compared: in a time that does not tell where they differ, in each file that compares any.
 */
import { type Source, withoutComments } from "./sources.ts";

/** Each file with what it compares by. */
const comparers: Record<string, string> = {
  "src/worker/auth/auth.ts": "timingSafeEqual(",
  "src/worker/auth/ids.ts": "timingSafeEqual(",
  "src/worker/auth/tokens.ts": "timingSafeEqual(",
  "src/objects/sandbox/ports.ts": "timingSafeEqual(",
  "container/engine/server.ts": "timingSafeEqual(",
  // Its own, for node:crypto costs each agent 2 MB.
  "container/agent/server/auth.ts": "different |= byte ^",
};

const name = "(?:secret|bearer|signature|mac|digest|hash|key|authorization|told|given|expected)";
/** Either side of it; lengths, `undefined` and words in quotes are no secrets. */
const compared = new RegExp(
  [
    `\\b${name}(?:\\.toString\\([^)]*\\))?\\)?\\s*[!=]==?(?!=|\\s*(?:undefined|null|["'\`]))`,
    `[!=]==?\\s*(?:\\w+\\.)*#?${name}\\b(?!\\.length)`,
  ].join("|"),
  "i",
);
/** The secret of this process beside what it kept itself: nobody outside has a part in it. */
const kept = "foundRight.get(id) === secret";

export function secretProblems(sources: Source[]): string[] {
  return sources.flatMap(({ path, text }) => {
    const by = comparers[path];
    if (by === undefined) return comparesUnlisted(path, text);
    const code = withoutComments(text).replace(kept, "");
    const found = compared.exec(code)?.[0];
    return [
      ...(code.includes(by) ? [] : [`${path} compares secrets without ${by}`]),
      ...(found === undefined ? [] : [`${path} compares a secret by: ${found}`]),
    ];
  });
}

/** Whoever compares another one stands in the list. */
function comparesUnlisted(path: string, text: string): string[] {
  const isOurs = path.startsWith("src/") || path.startsWith("container/");
  return isOurs && text.includes("timingSafeEqual(") ? [`${path} is not in the list`] : [];
}
