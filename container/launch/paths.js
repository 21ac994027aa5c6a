/** Paths of a checkout: the root, the build results, and the installed tools. See options.js for the data folder. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

const bin = join(root, "node_modules/.bin");

export const paths = {
  root,
  dist: join(root, "dist"),
  agent: join(root, "dist/berth-agent"),
  /** The agent for the platform's machines, which are x86-64 whatever this one is. */
  imageAgent: join(root, "dist/image/berth-agent"),
  worker: join(root, "dist/worker/index.js"),
  dashboard: join(root, "dist/dashboard"),
  package: join(root, "dist/package"),
  engine: join(root, "container/engine/main.ts"),
};

export const tools = {
  /** The Node that wrangler and vitest need; the machine's own may be older. */
  node: join(bin, "node"),
  bun: join(bin, "bun"),
  wrangler: join(bin, "wrangler"),
  vitest: join(bin, "vitest"),
  tsc: join(bin, "tsc"),
  biome: join(bin, "biome"),
  workerd: join(bin, "workerd"),
};
