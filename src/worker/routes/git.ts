/**
 * Owns the route that clones a repository: what git tells is passed on as it comes.
 */
import { cloneCallSchema } from "../../protocol/git.ts";
import type { Handler } from "../app.ts";
import { workOnFiles } from "../files.ts";
import { readBody } from "../http/body.ts";

export const clone: Handler = (c) =>
  workOnFiles(c, async () => ({ do: "clone", call: await readBody(c.req.raw, cloneCallSchema) }));
