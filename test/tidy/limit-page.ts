/** Makes docs/operate/limits.md from the file of limits, so that each number is there with its reason. */
import { limits } from "../../src/protocol/limits.ts";
import type { Source } from "./sources.ts";

export const limitsFile = "src/protocol/limits.ts";
export const limitsDoc = "docs/operate/limits.md";
export const limitsCommand = "npm run limits";

const head = `# Limits

Every wait, queue, buffer, body, name and count has a limit. A call that exceeds one gets an error that names
it, with its number or the field that was too large. They are the same for every tenant and are kept in one file,
\`${limitsFile}\`, from which \`${limitsCommand}\` writes this page.
`;

type Group = { words: string; names: string[] };
type Section = { title: string; groups: Group[] };

export function limitProblems(sources: Source[]): string[] {
  const text = (path: string) => sources.find((source) => source.path === path)?.text ?? "";
  const sections = sectionsOf(text(limitsFile));
  const listed = new Set(sections.flatMap(({ groups }) => groups).flatMap(({ names }) => names));
  const silent = Object.keys(limits).filter((name) => !listed.has(name));
  return [
    ...silent.map((name) => `${limitsFile}: ${name} has no reason above it`),
    ...(text(limitsDoc) === limitsPage(text(limitsFile))
      ? []
      : [`${limitsDoc} is not what ${limitsFile} says: ${limitsCommand} writes it`]),
  ];
}

export function limitsPage(source: string): string {
  const parts = sectionsOf(source).map(({ title, groups }) => {
    const rows = groups.map(({ words, names }) => {
      const numbers = names.map((name) => `${shown(name)} \`${name}\``);
      return `| ${words.replaceAll("|", "\\|")} | ${numbers.join("<br>")} |`;
    });
    return [`## ${title}`, "", "| | |", "|---|---|", ...rows].join("\n");
  });
  return `${[head.trimEnd(), ...parts].join("\n\n")}\n`;
}

/** `// Title` begins a section; the words of a comment are of all that follows it up to the next. */
function sectionsOf(source: string): Section[] {
  const sections: Section[] = [];
  let group: Group | undefined;
  for (const line of source.split("\n")) {
    const [, title] = /^ {2}\/\/ (.+)$/.exec(line) ?? [];
    const [, words] = /^ {2}\/\*\* (.+) \*\/$/.exec(line) ?? [];
    const [, name] = /^ {2}(\w+):/.exec(line) ?? [];
    if (title !== undefined) {
      sections.push({ title, groups: [] });
      group = undefined;
    }
    if (words !== undefined) {
      group = { words, names: [] };
      sections.at(-1)?.groups.push(group);
    }
    if (name !== undefined) group?.names.push(name);
  }
  return sections;
}

const units: [ending: RegExp, steps: [size: number, unit: string][]][] = [
  [
    /Ms(Max|Min)?$/,
    [
      [86_400_000, "days"],
      [3_600_000, "h"],
      [60_000, "min"],
      [1000, "s"],
      [1, "ms"],
    ],
  ],
  [
    /Bytes(Max|Min)?$/,
    [
      [1024 ** 3, "GiB"],
      [1024 ** 2, "MiB"],
      [1024, "KiB"],
      [1, "bytes"],
    ],
  ],
  [/Chars(Max)?$/, [[1, "characters"]]],
];

function shown(name: string): string {
  const value = limits[name as keyof typeof limits] ?? 0;
  const [, steps] = units.find(([ending]) => ending.test(name)) ?? [];
  const [size, unit] = steps?.find(([size]) => value >= size && value % size === 0) ?? [1, ""];
  const number = (value / size).toLocaleString("en-US");
  return unit === "" ? number : `${number} ${number === "1" && unit === "days" ? "day" : unit}`;
}
