/**
 * `berth version`: prints the version of the command.
 */
import manifest from "../../../package.json" with { type: "json" };
import { command } from "../command.ts";

export const versionCommand = command({
  name: "version",
  summary: "Print the version",
  examples: [["For a script", "berth version --json"]],
  async run({ output }) {
    if (output.json) output.printJson({ version: manifest.version });
    else output.print(manifest.version);
  },
});
