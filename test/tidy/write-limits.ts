/** Runs `npm run limits`: writes docs/operate/limits.md. See limit-page.ts for its content. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../container/launch/paths.js";
import { limitsDoc, limitsFile, limitsPage } from "./limit-page.ts";

writeFileSync(join(root, limitsDoc), limitsPage(readFileSync(join(root, limitsFile), "utf8")));
