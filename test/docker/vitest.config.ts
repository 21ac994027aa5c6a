/** Runs the tests of real containers, one file at a time; used only by `npm run test:docker`. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    alias: {
      "cloudflare:workers": new URL("../fakes/cloudflare-workers.ts", import.meta.url).pathname,
    },
  },
  test: {
    name: "docker",
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/docker/*.test.ts"],
    silent: "passed-only",
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
  },
});
