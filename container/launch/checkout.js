/** What `npm start` and `npm run dev` have in common: they run what a checkout contains. */
import { join } from "node:path";
import { build } from "./build.js";
import { install } from "./install.js";
import { root } from "./paths.js";
import { shellQuote } from "./serve.js";

export const checkout = {
  data: join(root, ".berth"),
  berth: `npm run --silent --prefix ${shellQuote(root)} berth --`,
  async prepare() {
    await install();
    await build();
  },
};
