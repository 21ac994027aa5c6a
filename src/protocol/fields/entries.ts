/** Parses variables such as `small:memoryMib=512,processes=256 large:…`: named entries, separated by white space. */
import type { z } from "zod";

type EntryForm = {
  /** What a name may be, and what it is called in errors. */
  name: RegExp;
  what: string;
  /** The names of the settings; their values are given as text. */
  names: readonly string[];
};

/** An error names the entry. */
export function parseEntries<Settings extends z.ZodType>(
  text: string,
  { name: pattern, what, names }: EntryForm,
  settings: Settings,
): Map<string, z.output<Settings>> {
  const entries = new Map<string, z.output<Settings>>();
  for (const entry of text.split(/\s+/).filter((part) => part !== "")) {
    const [, name = "", rest = ""] = /^([^:]*):(.*)$/.exec(entry) ?? [];
    if (!pattern.test(name) || entries.has(name)) {
      throw new Error(`${entry}: must begin with ${what} of its own and a colon`);
    }
    const pairs = rest.split(",").map((pair) => [...pair.split("=", 2), ""].slice(0, 2));
    const unknown = pairs.find(([setting = ""]) => setting !== "" && !names.includes(setting));
    if (unknown !== undefined) {
      throw new Error(`${name}: has no ${unknown[0]}, but ${names.join(", ")}`);
    }
    const read = settings.safeParse(Object.fromEntries(pairs));
    if (!read.success) {
      const [issue] = read.error.issues;
      const where = issue?.path.length ? `${issue.path.join(".")} ` : "";
      throw new Error(`${name}: ${where}${issue?.message ?? "is not valid"}`);
    }
    entries.set(name, read.data);
  }
  return entries;
}
