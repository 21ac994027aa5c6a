/**
 * Writes the type declarations of the package. Types that are inferred from schemas or derived from the table
 * of verbs are written out, so that the package needs no schema library. The compiler does the work; this module adds the results to the declarations.
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

const schemaStatement = /\bz\.|from "zod"|^import \{ \w+Schema(, \w+Schema)* \}/;
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
  const constants = protocolConstants();
  for (const [path, text] of files) {
    const own = types.get(relative(folder, path));
    const known = text.replace(schemaType, (_, side, schema) =>
      withFieldComments(own?.get(`${side}$${schema}`) ?? "", schema, constants),
    );
    writeFileSync(path, withJsExtensions(withoutSchemas(known)));
  }
  const methods = types.get(derived.path)?.get(`derived$${derived.name}`) ?? "";
  const text = `export type ${derived.name} = ${await withSummaries(methods)};\n`;
  writeFileSync(join(folder, derived.path), withJsExtensions(text));
  removeUnreachable(folder);
}

/**
 * The text of each constant of the protocol, by its name: schemas, and the fields that they share.
 * @returns {Map<string, string>}
 */
function protocolConstants() {
  const folder = join(root, "src/protocol");
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const modules = names
    .filter((name) => name.endsWith(".ts"))
    .map((name) => readFileSync(join(folder, name), "utf8"));
  const constant = /^(?:export )?const (\w+) = ([\s\S]*?);$/gm;
  return new Map(
    modules.flatMap((text) =>
      [...text.matchAll(constant)].map(([, name = "", value = ""]) => [name, value]),
    ),
  );
}

/**
 * Gives the fields of a resolved type the comments that they have in the schema, or in what it spreads.
 * @param {string} type
 * @param {string} schema
 * @param {Map<string, string>} constants
 */
function withFieldComments(type, schema, constants) {
  const comments = fieldComments(schema, constants);
  return type.replace(/^ {4}(?:readonly )?"?(\w+)"?\??: /gm, (line, field) => {
    const comment = comments.get(field);
    return comment === undefined ? line : `    ${comment}\n${line}`;
  });
}

/**
 * @param {string} name
 * @param {Map<string, string>} constants
 * @returns {Map<string, string>}
 */
function fieldComments(name, constants) {
  const text = constants.get(name) ?? "";
  const spreads = [...text.matchAll(/(?:\.\.\.|^)(\w+)(?:\.shape|[.,\s])/g)];
  const inherited = spreads.flatMap(([, other = ""]) =>
    other === name ? [] : [...fieldComments(other, constants)],
  );
  const own = [...text.matchAll(/(\/\*\*(?:(?!\*\/)[\s\S])*\*\/)\s+(\w+):/g)];
  const comments = own.map(
    ([, comment = "", field = ""]) => /** @type {const} */ ([field, comment]),
  );
  return new Map([...inherited, ...comments]);
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

/**
 * @param {string} folder
 * @returns {Map<string, string>}
 */
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
      const module = join(folder, relative(declared, path).replace(".d.ts", ".ts"));
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
    const module = join(folder, derived.path.replace(".d.ts", ".ts"));
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
 * Imports in a package end in `.js`.
 * @param {string} text
 */
function withJsExtensions(text) {
  return text.replace(/((?:from |import\()"\.[^"]*)\.ts"/g, '$1.js"');
}
