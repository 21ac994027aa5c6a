/**
 * Owns `berth version`: which one this is, and which server it talks to.
 */
import manifest from "../../../package.json" with { type: "json" };
import { command } from "../command.ts";

export const versionCommand = command({
  name: "version",
  summary: "print the version",
  examples: [["For a script", "berth version --json"]],
  async run({ output }) {
    if (output.json) output.document({ version: manifest.version });
    else output.line(manifest.version);
  },
});
