/** Owns how tests of real containers run: one file at a time, by `npm run test:docker` alone. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    alias: {
      "cloudflare:workers": new URL("../fakes/workers.ts", import.meta.url).pathname,
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
