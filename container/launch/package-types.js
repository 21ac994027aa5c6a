/**
 * Writes the type declarations of the package. The compiler writes out the types that are inferred from schemas or
 * derived from the table of verbs, so that the package needs no schema library.
 */
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { runTool } from "./build.js";
import { paths, root, tools } from "./paths.js";
import { UserError } from "./program.js";

const schemaStatement =
  /\bz\.|from "zod"|^import \{ \w+Schema(, \w+Schema)* \}|\b(?:VerbRow|ResponseBody)\b/;
const schemaType = /\bz\.(infer|input|output)<typeof (\w+)>/g;

/** The type that is derived from the table of verbs. */
const derived = { path: "protocol/verbs/derived.d.ts", name: "DerivedSandboxApi" };

/** @param {string} folder  for the declarations; its entry is client/index.d.ts */
export async function writeTypes(folder) {
  const declare = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly"];
  const into = ["--rootDir", join(root, "src"), "--outDir", folder];
  runTool(tools.tsc, ["-p", join(root, "src/client"), ...declare, ...into]);
  const files = declarationsBelow(folder);
  const types = resolveSchemaTypes(folder, files);
  for (const [path, text] of files) {
    const name = relative(folder, path);
    const own = types.get(name);
    const schemas = own === undefined ? {} : await import(join(root, "src", sourceOf(name)));
    const known = text.replace(schemaType, (_, side, schema) =>
      withFieldComments(own?.get(`${side}$${schema}`) ?? "", schemas[schema], side),
    );
    writeFileSync(
      path,
      withJsExtensions(withoutUnusedImports(withoutInternals(withoutSchemas(known)))),
    );
  }
  addPlatform(folder);
  const methods = types.get(derived.path)?.get(`derived$${derived.name}`) ?? "";
  const text = `export type ${derived.name} = ${await withSummaries(methods)};\n`;
  writeFileSync(join(folder, derived.path), withJsExtensions(text));
  removeUnreachable(folder);
}

/**
 * Gives the fields of a resolved type the descriptions of their schemas as comments, with the default and the largest value.
 * @param {string} type
 * @param {any} schema  undefined if its module does not export it
 * @param {string} side  input or output
 */
function withFieldComments(type, schema, side) {
  const options = { io: side === "input" ? "input" : "output", unrepresentable: "any" };
  return type.replace(/^ {4}(?:readonly )?"?([\w.]+)"?\??: /gm, (line, name) => {
    const field = schema?.shape?.[name]?.toJSONSchema(options) ?? {};
    const { default: byDefault, maximum } = field;
    const description = field.description ?? schema?.shape?.[name]?.description;
    if (description === undefined) return line;
    const facts = [
      ["Default", JSON.stringify(byDefault)],
      ["At most", maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum],
    ];
    const given = facts.filter(([, value]) => value !== undefined);
    const text = [description, ...given.map(([what, value]) => `${what} ${value}.`)].join(" ");
    return `    /** ${text} */\n${line}`;
  });
}

/**
 * Keeps only what the entry refers to: the rows themselves are full of schemas.
 * @param {string} folder
 */
function removeUnreachable(folder) {
  const files = declarationsBelow(folder);
  const reachable = new Set([join(folder, "client/index.d.ts")]);
  for (const path of reachable) {
    const imports = (files.get(path) ?? "").matchAll(/(?:from |import\()"(\.[^"]*)\.js"/g);
    for (const [, name = ""] of imports) reachable.add(join(dirname(path), `${name}.d.ts`));
  }
  for (const path of files.keys()) if (!reachable.has(path)) rmSync(path);
}

/**
 * Gives each method the summary of its verb as a comment.
 * @param {string} methods
 */
async function withSummaries(methods) {
  const { verbRows } = await import("../../src/protocol/verbs/rows.ts");
  const rows = Object.entries(verbRows(/** @type {any} */ ({})));
  const summaries = new Map(
    rows.map(([name, row]) => ["call" in row ? row.call : name, row.summary]),
  );
  return methods.replace(/^ {4}(\w+): \(/gm, (line, name) => {
    const summary = summaries.get(name);
    return summary === undefined ? line : `    /** ${summary}. */\n${line}`;
  });
}

/** @param {string} declaration  its path */
function sourceOf(declaration) {
  return declaration.replace(".d.ts", ".ts");
}

/** @type {(folder: string) => Map<string, string>} */
function declarationsBelow(folder) {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const paths = names.filter((name) => name.endsWith(".d.ts")).map((name) => join(folder, name));
  return new Map(paths.map((path) => [path, readFileSync(path, "utf8")]));
}

/**
 * Resolves the input and output type of each schema. The compiler writes the type of an unannotated constant in full,
 * so such constants are added to a copy of the modules, which also reaches schemas that are not exported.
 * @param {string} declared  the folder of the files
 * @param {Map<string, string>} files
 */
function resolveSchemaTypes(declared, files) {
  mkdirSync(paths.dist, { recursive: true });
  const folder = mkdtempSync(join(paths.dist, "types-"));
  try {
    let count = 0;
    cpSync(join(root, "src/protocol"), join(folder, "protocol"), { recursive: true });
    for (const [path, text] of files) {
      const module = join(folder, sourceOf(relative(declared, path)));
      const used = new Map([...text.matchAll(schemaType)].map((found) => [found[0], found]));
      for (const [, side = "", schema = ""] of used.values()) {
        const direction = side === "input" ? "input" : "output";
        // Numbered, because a third module may export everything of two modules.
        const name = `type${count}$${side}$${schema}`;
        appendFileSync(module, `\nexport const ${name} = ${schema}._zod.${direction};`);
        count += 1;
      }
    }
    const declaration = "declare function expand<Api>(): { [Name in keyof Api]: Api[Name] };";
    const constant = `export const type${count}$derived$${derived.name} = expand<${derived.name}>();`;
    const module = join(folder, sourceOf(derived.path));
    appendFileSync(module, `\n${declaration}\n${constant}\n`);
    count += 1;
    return compileTypes(folder, count);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} folder
 * @param {number} count  the expected number of types
 */
function compileTypes(folder, count) {
  const compilerOptions = {
    ...{ noEmit: false, declaration: true, emitDeclarationOnly: true, noErrorTruncation: true },
    ...{ rootDir: ".", outDir: "out" },
  };
  const project = { extends: "../../tsconfig.json", compilerOptions, include: ["protocol"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project));
  runTool(tools.tsc, ["-p", folder]);
  const constant = /^export declare const type\d+\$(\w+\$\w+): ([\s\S]*?);\n(?=[a-z/]|$)/gm;
  /** @type {Map<string, Map<string, string>>} */
  const types = new Map();
  const out = join(folder, "out");
  for (const [path, text] of declarationsBelow(out)) {
    const found = text.matchAll(constant);
    const own = new Map([...found].map(([, name = "", type = ""]) => [name, type]));
    types.set(relative(out, path), own);
    count -= own.size;
  }
  if (count !== 0) throw new UserError(`The compiler left out ${count} types of the package.`);
  return types;
}

/**
 * Removes the schemas and the statements that refer to them, which are not part of the package.
 * @param {string} text
 */
function withoutSchemas(text) {
  const statements = text.split(/^(?=(?:\/\*\*|export |import |declare |type |interface ))/m);
  return statements.filter((statement) => !schemaStatement.test(statement)).join("");
}

/**
 * Users do not call constructors that are marked as internal.
 * @param {string} text
 */
function withoutInternals(text) {
  return text.replace(/\/\*\* @internal \*\/\s*constructor\([^;]*\);/g, "private constructor();");
}

/**
 * An import that is left over would keep its module in the package.
 * @param {string} text
 */
function withoutUnusedImports(text) {
  return text.replace(
    /^import (?:type )?\{([^}]*)\} from "[^"]*";\n/gm,
    (statement, list, position) => {
      const others = text.slice(0, position) + text.slice(position + statement.length);
      /** @param {string} item */
      const isUsed = (item) => {
        const name = item.trim().split(" ").at(-1) ?? "";
        return new RegExp(`\\b${name}\\b`).test(withoutComments(others));
      };
      const used = list.split(",").filter(isUsed);
      return used.length === 0 ? "" : statement.replace(`{${list}}`, `{${used.join(",")}}`);
    },
  );
}

/** @param {string} text */
function withoutComments(text) {
  return text.replace(/\/\*[\s\S]*?\*\//g, "");
}

const platformTypes = [
  "AbortSignal",
  "AsyncDisposable",
  "Blob",
  "BodyInit",
  "RequestInit",
  "Response",
];

/**
 * Takes the types of the platform from platform.d.ts, which does without the DOM and without any package.
 * @param {string} folder
 */
function addPlatform(folder) {
  const platform = join(folder, "client/platform.d.ts");
  for (const [path, text] of declarationsBelow(folder)) {
    const code = withoutComments(text);
    const used = platformTypes.filter((name) => new RegExp(`\\b${name}\\b`).test(code));
    if (path === platform || used.length === 0) continue;
    const from = relative(dirname(path), platform).replace(".d.ts", ".js");
    const module = from.startsWith(".") ? from : `./${from}`;
    writeFileSync(path, `import type { ${used.join(", ")} } from "${module}";\n${text}`);
  }
  // `Symbol.asyncDispose` is in no library before esnext.
  const index = join(folder, "client/index.d.ts");
  writeFileSync(index, `/// <reference lib="esnext.disposable" />\n${readFileSync(index, "utf8")}`);
}

/**
 * Imports in a package end in `.js`.
 * @param {string} text
 */
function withJsExtensions(text) {
  return text.replace(/((?:from |import\()"\.[^"]*)\.ts"/g, '$1.js"');
}
