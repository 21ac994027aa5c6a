/** Makes docs/guide/sdk-reference.md from the comments of the SDK, so that each method and option is there. */
import type { ZodObject } from "zod";
import * as schemas from "../../src/protocol/verbs/schemas.ts";
import type { Source } from "./sources.ts";

/** Names that the entry of the SDK exports, types too. */
const exportsMax = 40;
export const referenceDoc = "docs/guide/sdk-reference.md";
export const referenceCommand = "npm run reference";

const head = `# SDK reference

Each method and option of the [SDK](sdk.md), from the comments of its sources: \`${referenceCommand}\` writes this page. Every
\`options\` also takes \`signal\`, which gives up, and \`answerWithinMs\`, the time for the response.
`;

/** How users reach an instance of each class, and where it is. */
const classes: [name: string, path: string, title: string][] = [
  ["Berth", "berth.ts", "berth"],
  ["Sandbox", "sandbox.ts", "sandbox"],
  ["Files", "sandbox/files.ts", "sandbox.files"],
  ["Git", "sandbox/git.ts", "sandbox.git"],
  ["Processes", "sandbox/processes.ts", "sandbox.processes"],
  ["Process", "sandbox/processes.ts", "process"],
  ["Sessions", "sandbox/sessions.ts", "sandbox.sessions"],
  ["Session", "sandbox/sessions.ts", "session"],
  ["Terminals", "sandbox/terminals.ts", "sandbox.terminals"],
  ["Terminal", "sandbox/terminals.ts", "terminal"],
  ["LiveTerminal", "terminal/terminal.ts", "live"],
  ["Ports", "sandbox/ports.ts", "sandbox.ports"],
  ["Checkpoints", "sandbox/checkpoints.ts", "sandbox.checkpoints"],
  ["Lease", "sandbox/lease.ts", "sandbox.lease"],
  ["HeldLease", "lease/lease.ts", "lease"],
  ["Metadata", "sandbox/metadata.ts", "sandbox.metadata"],
  ["Tokens", "sandbox/tokens.ts", "sandbox.tokens"],
  ["Plans", "plans.ts", "berth.plans"],
  ["Plan", "plans.ts", "plan"],
];

/** What calls take and return, by the schema that has its fields. */
const values: [title: string, schema: keyof typeof schemas][] = [
  ["CreateInput", "createCallSchema"],
  ["SandboxInfo", "sandboxSchema"],
  ["ExecInput", "execCallSchema"],
  ["ExecResult", "execResultSchema"],
  ["ProcessInput", "processCallSchema"],
  ["ProcessInfo", "processSchema"],
  ["SessionInput", "sessionCallSchema"],
  ["SessionInfo", "sessionSchema"],
  ["TerminalInput", "terminalCallSchema"],
  ["TerminalInfo", "terminalSchema"],
  ["Screen", "screenSchema"],
  ["FileInfo", "fileSchema"],
  ["CloneInput", "cloneCallSchema"],
  ["Port", "portSchema"],
  ["Checkpoint", "checkpointSchema"],
  ["LeaseInfo", "leaseStateSchema"],
  ["Token", "tokenSchema"],
  ["PlanInfo", "planSchema"],
  ["Commit", "commitSchema"],
  ["Counts", "countsSchema"],
];

/** Their options are not those of users. */
const internal = ["src/client/http/download.ts"];

const allSchemas: Record<string, unknown> = { ...schemas };

export function referenceProblems(sources: Source[]): string[] {
  const { page, undocumented } = makeReference(sources);
  const stored = sources.find(({ path }) => path === referenceDoc)?.text;
  const names = exportedNames(textOf(sources, "index.ts"));
  return [
    ...undocumented.map((what) => `${what} of the SDK has no comment`),
    ...(names.length > exportsMax ? [`the SDK has ${names.length} exports`] : []),
    ...(stored === page
      ? []
      : [`${referenceDoc} is not what the sources say: ${referenceCommand} writes it`]),
  ];
}

export function makeReference(sources: Source[]): { page: string; undocumented: string[] } {
  const undocumented: string[] = [];
  const noted = (what: string, comment: string | undefined) => {
    if (comment === undefined) undocumented.push(what);
    return comment ?? "";
  };
  const parts = classes.map(([name, path, title]) => {
    const { comment, body } = classIn(textOf(sources, path), name);
    const rows = membersOf(body, title).map(
      ({ call, returns, comment }) =>
        `| \`${call}\` | ${returns === "" ? "" : `\`${returns}\``} | ${noted(`${name}: ${call}`, comment)} |`,
    );
    return [
      `## ${title}`,
      noted(name, comment),
      ["| | gives | |", "|---|---|---|", ...rows].join("\n"),
    ];
  });
  const options = sources
    .filter(({ path }) => path.startsWith("src/client/") && !internal.includes(path))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .flatMap(({ text }) => optionsIn(text))
    .map(({ name, comment, fields }) => {
      const rows = fields.map(
        ({ field, comment }) => `| \`${field}\` | ${noted(`${name}.${field}`, comment)} |`,
      );
      return [`### ${name}`, noted(name, comment), ["| | |", "|---|---|", ...rows].join("\n")];
    });
  const fields = values.map(([title, schema]) => {
    const { shape } = allSchemas[schema] as ZodObject;
    const rows = Object.entries(shape).map(
      ([name, field]) => `| \`${name}\` | ${noted(`${title}.${name}`, describe(field))} |`,
    );
    return [`### ${title}`, ["| | |", "|---|---|", ...rows].join("\n")];
  });
  const all = [
    head.trimEnd(),
    ...parts.flat(),
    "## Options",
    ...options.flat(),
    "## Values",
    ...fields.flat(),
  ];
  return { page: `${all.join("\n\n")}\n`, undocumented };
}

function textOf(sources: Source[], path: string): string {
  return sources.find((source) => source.path === `src/client/${path}`)?.text ?? "";
}

function exportedNames(index: string): string[] {
  const lists = [...index.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = ""]) =>
    list.split(","),
  );
  const constants = [...index.matchAll(/^export const (\w+)/gm)].map(([, name = ""]) => name);
  return [...lists.map((name) => name.trim()).filter((name) => name !== ""), ...constants];
}

function classIn(text: string, name: string): { comment: string | undefined; body: string } {
  const start = text.search(new RegExp(`^export class ${name}\\b`, "m"));
  const body = text.slice(start, start + text.slice(start).search(/^\}/m));
  return { comment: commentBefore(text.slice(0, start)), body };
}

/** The text of the comment at the end, without its examples, as the cell of a table has it. */
function commentBefore(text: string): string | undefined {
  const [, comment] = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(text) ?? [];
  const lines = comment?.split("\n").map((line) => line.replace(/^\s*\* ?/, "").trim()) ?? [];
  const words = lines
    .join(" ")
    .replace(/@example[\s\S]*/, "")
    .trim()
    .replaceAll("|", "\\|");
  return words === "" ? undefined : words;
}

type Member = { call: string; returns: string; comment: string | undefined };

function membersOf(body: string, title: string): Member[] {
  const members: Member[] = [];
  const pattern = /^ {2}(?:(static|get|readonly|async) )?(\w+)(\(|: |\?: )/gm;
  for (const found of body.matchAll(pattern)) {
    const [, kind, name = "", mark] = found;
    const before = body.slice(0, found.index);
    if (name === "constructor" || /@internal \*\/\s*$/.test(before)) continue;
    const comment = commentBefore(before);
    const isMethod = mark === "(" && kind !== "get";
    if (!isMethod) {
      members.push({ call: `${title}.${name}`, returns: "", comment });
      continue;
    }
    const rest = body.slice(found.index + found[0].length);
    const end = closingOf(rest);
    const args = splitTopLevel(rest.slice(0, end)).map(argumentName).join(", ");
    const [, type = ""] = /^\): ([\s\S]*?) \{\n/.exec(rest.slice(end)) ?? [];
    const of = kind === "static" ? "Berth" : title;
    members.push({ call: `${of}.${name}(${args})`, returns: returned(type), comment });
  }
  return members;
}

function closingOf(text: string): number {
  let depth = 1;
  for (let index = 0; index < text.length; index += 1) {
    if ("([{".includes(text[index] ?? "")) depth += 1;
    if (")]}".includes(text[index] ?? "")) depth -= 1;
    if (depth === 0) return index;
  }
  return text.length;
}

function splitTopLevel(text: string): string[] {
  const parts = [""];
  let depth = 0;
  for (const letter of text.replace(/=>/g, "")) {
    if ("([{<".includes(letter)) depth += 1;
    if (")]}>".includes(letter)) depth -= 1;
    if (letter === "," && depth === 0) parts.push("");
    else parts[parts.length - 1] += letter;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}

function argumentName(parameter: string): string {
  const name = parameter.startsWith("{") ? "options" : (/^\w+/.exec(parameter)?.[0] ?? "");
  return / = |^\w+\?/.test(parameter) ? `${name}?` : name;
}

function returned(type: string): string {
  const flat = type
    .replace(/\s+/g, " ")
    .replace(/^Promise<(.*)>$/, "$1")
    .replaceAll("|", "\\|");
  return flat === "void"
    ? ""
    : flat.replace(/\["?\w+"?\]\[number\]/g, "").replace("<ArrayBuffer>", "");
}

type Options = {
  name: string;
  comment: string | undefined;
  fields: { field: string; comment: string | undefined }[];
};

function optionsIn(text: string): Options[] {
  return [...text.matchAll(/^export type (\w+Options) =[\s\S]*?;\n(?=\n|$)/gm)].map((found) => {
    const [whole, name = ""] = found;
    const fields = [...whole.matchAll(/^ +(\w+)\??: /gm)].map((field) => ({
      field: field[1] ?? "",
      comment: commentBefore(whole.slice(0, field.index)),
    }));
    return { name, comment: commentBefore(text.slice(0, found.index)), fields };
  });
}

function describe(field: unknown): string | undefined {
  const { description, toJSONSchema } = field as {
    description?: string;
    toJSONSchema(options: object): { default?: unknown; description?: string };
  };
  const json = toJSONSchema.call(field, { io: "input", unrepresentable: "any" });
  const text = (description ?? json.description)?.replaceAll("|", "\\|");
  if (text === undefined || json.default === undefined) return text;
  return `${text} Default \`${JSON.stringify(json.default)}\`.`;
}
