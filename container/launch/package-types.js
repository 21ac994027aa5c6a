/**
 * Owns the types of the package: what the SDK declares, with every type that comes of a schema written out, so that
 * whoever installs it needs no library of schemas. The compiler writes them; this only puts them in their places.
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
import { basename, join } from "node:path";
import { call } from "./build.js";
import { places, root, tools } from "./places.js";
import { Refusal } from "./say.js";

const ofSchemas = /\bz\.|from "zod"|^import \{ \w+Schema(, \w+Schema)* \}/;
const ofSchema = /\bz\.(infer|input|output)<typeof (\w+)>/g;

/** @param {string} folder  where the declarations go: client/index.d.ts is the first */
export function writeTypes(folder) {
  const declare = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly"];
  const into = ["--rootDir", join(root, "src"), "--outDir", folder];
  call(tools.tsc, ["-p", join(root, "src/client"), ...declare, ...into]);
  const files = declarationsBelow(folder);
  const types = writtenOut(files);
  for (const [path, text] of files) {
    const own = types.get(basename(path));
    const known = text.replace(ofSchema, (_, side, schema) => own?.get(`${side}$${schema}`) ?? "");
    writeFileSync(path, fromHere(withoutSchemas(known)));
  }
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
 * What each schema takes and gives: of a constant without a type of its own the compiler writes the type in full.
 * The constants are added to a copy of the modules, where schemas that are not exported can be named too.
 * @param {Map<string, string>} files
 */
function writtenOut(files) {
  mkdirSync(places.dist, { recursive: true });
  const folder = mkdtempSync(join(places.dist, "types-"));
  try {
    let count = 0;
    cpSync(join(root, "src/protocol"), join(folder, "protocol"), { recursive: true });
    for (const [path, text] of files) {
      const module = join(folder, "protocol", basename(path).replace(".d.ts", ".ts"));
      const asked = new Map([...text.matchAll(ofSchema)].map((found) => [found[0], found]));
      for (const [, side = "", schema = ""] of asked.values()) {
        const gives = side === "input" ? "input" : "output";
        appendFileSync(module, `\nexport const ${side}$${schema} = ${schema}._zod.${gives};`);
        count += 1;
      }
    }
    return compiled(folder, count);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} folder
 * @param {number} count  how many there must be
 */
function compiled(folder, count) {
  const compilerOptions = {
    ...{ noEmit: false, declaration: true, emitDeclarationOnly: true, noErrorTruncation: true },
    ...{ rootDir: ".", outDir: "out" },
  };
  const project = { extends: "../../tsconfig.json", compilerOptions, include: ["protocol"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(project));
  call(tools.tsc, ["-p", folder]);
  const constant = /^export declare const (\w+\$\w+): ([\s\S]*?);\n(?=[a-z/]|$)/gm;
  /** @type {Map<string, Map<string, string>>} */
  const types = new Map();
  for (const [path, text] of declarationsBelow(join(folder, "out"))) {
    const found = text.matchAll(constant);
    const own = new Map([...found].map(([, name = "", type = ""]) => [name, type]));
    types.set(basename(path), own);
    count -= own.size;
  }
  if (count !== 0) throw new Refusal(`the compiler left out ${count} types of the package`);
  return types;
}

/**
 * The schemas themselves are not part of the package, nor is what speaks of them.
 * @param {string} text
 */
function withoutSchemas(text) {
  const statements = text.split(/^(?=(?:\/\*\*|export |import |declare |type |interface ))/m);
  return statements.filter((statement) => !ofSchemas.test(statement)).join("");
}

/**
 * As a package names its files.
 * @param {string} text
 */
function fromHere(text) {
  return text.replace(/((?:from |import\()"\.[^"]*)\.ts"/g, '$1.js"');
}
