/** Runs `npm run reference`: writes docs/guide/sdk-reference.md. See sdk-reference.ts for its content. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../container/launch/paths.js";
import { makeReference, referenceDoc } from "./sdk-reference.ts";

const names = readdirSync(join(root, "src/client"), { recursive: true, encoding: "utf8" });
const paths = names
  .filter((name) => name.endsWith(".ts"))
  .sort()
  .map((name) => `src/client/${name}`);
const sources = paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
const { page, undocumented } = makeReference(sources);
for (const what of undocumented) process.stderr.write(`${what} has no comment\n`);
writeFileSync(join(root, referenceDoc), page);
