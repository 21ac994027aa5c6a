/** Checks that every file that compares secrets does so in constant time. */
import { type Source, withoutComments } from "./sources.ts";

/** Each file with how it compares. */
const comparers: Record<string, string> = {
  "src/worker/auth/auth.ts": "timingSafeEqual(",
  "src/worker/auth/ids.ts": "timingSafeEqual(",
  "src/worker/auth/keys.ts": "timingSafeEqual(",
  "src/worker/auth/tokens.ts": "timingSafeEqual(",
  "src/objects/sandbox/ports.ts": "timingSafeEqual(",
  "src/wires/e2b/signature.ts": "timingSafeEqual(",
  "container/engine/server.ts": "timingSafeEqual(",
  // Written by hand, because node:crypto costs each agent 2 MB.
  "container/agent/server/server.ts": "different |= byte ^",
};

const name =
  "(?:secret|bearer|signature|mac|digest|hash|key|authorization|received|given|expected)";
/** The name on either side of a comparison; lengths, `undefined` and quoted words are no secrets. */
const compared = new RegExp(
  [
    `\\b${name}(?:\\.toString\\([^)]*\\))?\\)?\\s*[!=]==?(?!=|\\s*(?:undefined|null|["'\`]))`,
    `[!=]==?\\s*(?:\\w+\\.)*#?${name}\\b(?!\\.length)`,
  ].join("|"),
  "i",
);
/** Compares the secret of this process with its own stored copy, so no caller can measure it. */
const kept = "verified.get(id) === secret";

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

/** A file that compares a secret must be in the list. */
function comparesUnlisted(path: string, text: string): string[] {
  const isOurs = path.startsWith("src/") || path.startsWith("container/");
  return isOurs && text.includes("timingSafeEqual(") ? [`${path} is not in the list`] : [];
}
