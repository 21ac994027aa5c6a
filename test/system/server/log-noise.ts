/**
 * Searches the logs and output of a server for its key, its secret and tokens, none of which may be there.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A token of one sandbox, with its signature. */
const token = /\bbt_[\w-]{20,}\.[\w-]{20,}/;

/** One line for each text that has one. A folder that a test has removed has none. */
export function secretsWritten(data: string, output: Record<string, string>): string[] {
  const secrets = ["key", "admin-key", "metrics-key", "secret"].flatMap((name) => {
    const text = readIfThere(join(data, name)).trim();
    return text === "" ? [] : [{ what: `the ${name}`, isIn: (all: string) => all.includes(text) }];
  });
  const wanted = [...secrets, { what: "a token", isIn: (all: string) => token.test(all) }];
  const texts = { ...output, ...logsOf(join(data, "logs")) };
  return Object.entries(texts).flatMap(([name, text]) =>
    wanted.filter(({ isIn }) => isIn(text)).map(({ what }) => `${what} is in ${name}`),
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
