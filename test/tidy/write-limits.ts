/**
 * Owns `npm run limits`: docs/limits.md written anew. What stands in it: limit-page.ts.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../container/launch/places.js";
import { limitsDoc, limitsFile, limitsPage } from "./limit-page.ts";

writeFileSync(join(root, limitsDoc), limitsPage(readFileSync(join(root, limitsFile), "utf8")));
