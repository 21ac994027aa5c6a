/** Runs the command from its sources with Node's compile cache, because reading them takes most of a short run. */
import { enableCompileCache } from "node:module";
import { join } from "node:path";

// A folder of the checkout: nobody else can put programs there.
enableCompileCache(join(import.meta.dirname, "../../dist/compile-cache"));
await import("./main.ts");
