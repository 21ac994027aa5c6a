/**
 * Owns running the command from its sources, as this repository does: what Node makes of them is kept between runs,
 * because reading them is most of a short one.
 * Does not own the command (main.ts), which the package has as one file.
 */
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// A folder of the checkout, not one that others could put programs of theirs into.
enableCompileCache(join(import.meta.dirname, "../../dist/compile-cache"));
await import("./main.ts");
