/**
 * Owns the look at what a server of the tests wrote and said: no key, secret or token may stand there.
 * Does not own the secrets that a test plants itself (test/security/secrets.test.ts).
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Of one sandbox, with its signature. */
const token = /\bbt_[\w-]{20,}\.[\w-]{20,}/;

/** One line for each place that holds one. A folder that a test has taken away holds nothing. */
export function toldSecrets(data: string, said: Record<string, string>): string[] {
  const secrets = ["key", "secret"].flatMap((name) => {
    const text = readIfThere(join(data, name)).trim();
    return text === "" ? [] : [{ what: `the ${name}`, isIn: (all: string) => all.includes(text) }];
  });
  const wanted = [...secrets, { what: "a token", isIn: (all: string) => token.test(all) }];
  const places = { ...said, ...logsOf(join(data, "logs")) };
  return Object.entries(places).flatMap(([place, text]) =>
    wanted.filter(({ isIn }) => isIn(text)).map(({ what }) => `${what} stands in ${place}`),
  );
}

function logsOf(folder: string): Record<string, string> {
  let names: string[] = [];
  try {
    names = readdirSync(folder);
  } catch {
    // It never got so far.
  }
  return Object.fromEntries(names.map((name) => [name, readIfThere(join(folder, name))]));
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}
