/** `berth version`: prints the version of the command. */
import manifest from "../../../package.json" with { type: "json" };
import { command } from "../command.ts";

export const versionCommand = command({
  name: "version",
  summary: "Print the version",
  group: "Server",
  examples: [["For a script", "berth version --json"]],
  async run({ output }) {
    output.printResult({ version: manifest.version }, manifest.version);
  },
});
