/**
 * Runs the command from its sources, as this repository does, with Node's compile cache, because reading the sources
 * takes most of a short run. The package has the command as one file.
 */
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// A folder of the checkout: nobody else can put programs there.
enableCompileCache(join(import.meta.dirname, "../../dist/compile-cache"));
await import("./main.ts");
