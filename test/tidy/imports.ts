/** Checks which folders import which. A zone is a folder; it may import the listed zones, and packages by name. */
import { posix } from "node:path";
import { isCode, type Source, withoutComments } from "./sources.ts";

type Zone = { folder: string; imports: string[]; types?: string[] };

/** The longest folder that holds a file is its zone. */
const zones: Zone[] = [
  { folder: "src/protocol/", imports: ["src/protocol/"] },
  { folder: "src/core/", imports: ["src/core/", "src/protocol/"] },
  { folder: "src/runtime/", imports: ["src/runtime/", "src/protocol/", "src/config.ts"] },
  {
    folder: "src/objects/",
    imports: ["src/objects/", "src/core/", "src/runtime/", "src/protocol/", "src/config.ts"],
  },
  {
    folder: "src/worker/",
    // The health of one machine is its engine's, asked through the seam.
    imports: [
      ...["src/worker/", "src/wires/", "src/runtime/", "src/protocol/"],
      ...["src/config.ts", "package.json"],
    ],
    types: ["src/objects/"],
  },
  // Wires reach verbs as requests, and import nothing of what serves them.
  { folder: "src/wires/", imports: ["src/wires/", "src/protocol/"] },
  { folder: "src/client/", imports: ["src/client/", "src/protocol/"] },
  { folder: "src/cli/", imports: ["src/cli/", "src/client/", "src/protocol/", "package.json"] },
  { folder: "src/index.ts", imports: ["src/worker/", "src/objects/"] },
  { folder: "src/config.ts", imports: ["src/protocol/"], types: ["src/objects/"] },
  {
    folder: "container/agent/",
    imports: ["container/agent/", "container/engine/jail/", "src/protocol/"],
  },
  { folder: "container/engine/jail/", imports: ["container/engine/jail/", "src/protocol/"] },
  {
    folder: "container/engine/",
    imports: ["container/engine/", "container/engine/jail/", "src/protocol/"],
  },
  {
    folder: "container/launch/",
    imports: ["container/launch/"],
    // The package is built when everything is installed: its types name the verbs.
    types: ["src/protocol/"],
  },
];

const statement =
  /(?:^|\n)\s*(?:import|export)\b([^"';]*?)from\s*"([^"]+)"|(?:\n\s*import\s*|\bimport\(\s*)"([^"]+)"/g;

export function importProblems(sources: Source[]): string[] {
  return sources.filter(isCode).flatMap((source) => {
    const zone = zoneOf(source.path);
    return zone === undefined ? [] : problemsOf(source, zone);
  });
}

function problemsOf({ path, text }: Source, zone: Zone): string[] {
  const problems: string[] = [];
  for (const [, clause = "", from, bare] of withoutComments(text).matchAll(statement)) {
    const target = from ?? bare ?? "";
    if (!target.startsWith(".")) {
      // It runs before anything is installed.
      if (zone.folder === "container/launch/" && !target.startsWith("node:")) {
        problems.push(`${path} imports the package ${target}`);
      }
      continue;
    }
    const file = posix.join(posix.dirname(path), target);
    const isType = /^\s*type\b/.test(clause) || bare !== undefined;
    const allowed = [...zone.imports, ...(isType ? (zone.types ?? []) : [])];
    const to = zoneOf(file)?.folder ?? file;
    if (!allowed.includes(to)) problems.push(`${path} imports ${file}`);
  }
  return problems;
}

function zoneOf(path: string): Zone | undefined {
  const holding = zones.filter(({ folder }) => path.startsWith(folder));
  return holding.sort((a, b) => b.folder.length - a.folder.length)[0];
}
