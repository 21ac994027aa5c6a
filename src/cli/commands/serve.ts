/** `berth serve`: starts a server on this machine. It runs in this process, by the launcher next to the command. */
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { text } from "../args/option.ts";
import { command } from "../command.ts";

/** In the package, where this file is in its folder `command`, and in a checkout. */
const launchers = ["../serve.js", "../../../container/launch/start.js"];

export const serveCommand = command({
  name: "serve",
  summary: "Serve Berth on this machine",
  group: "Server",
  about:
    "Needs Linux. Commands of the same user find the server while it runs; Ctrl-C ends it and everything in its sandboxes, and files are kept.",
  options: {
    port: text("--port <number>", "Port to listen on (default: $BERTH_PORT or 8787)"),
    host: text("--host <address>", "Address to listen on (default: $BERTH_HOST or 127.0.0.1)"),
    data: text("--data <folder>", "Where all data is stored (default: $BERTH_DATA)"),
  },
  ownSignals: true,
  examples: [
    ["For yourself", "berth serve"],
    ["With another port and folder", "berth serve --port 9000 --data /var/lib/berth"],
  ],
  async run(_, { options: { port, host, data } }) {
    const flags = Object.entries({ port, host, data }).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}`, value],
    );
    const paths = launchers.map((name) => fileURLToPath(new URL(name, import.meta.url)));
    const launcher = paths.find((path) => existsSync(path)) ?? "";
    process.argv.splice(2, process.argv.length, ...flags);
    // It ends this process itself.
    await import(pathToFileURL(launcher).href);
    return 0;
  },
});
