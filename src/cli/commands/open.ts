/**
 * Owns `berth open`: an address by which others reach a server in the sandbox.
 */
import { badOption, flag } from "../args/option.ts";
import { optionalRest } from "../args/positional.ts";
import { readSandbox, sandboxOptions } from "../args/sandbox.ts";
import { command } from "../command.ts";
import { Failure } from "../failure.ts";
import { findSandbox } from "../find-sandbox.ts";

export const openCommand = command({
  name: "open",
  summary: "print an address for a port of the sandbox",
  about:
    "Whoever has the address may visit. Opened again, the port gets a new one and the old one ends.",
  args: { ports: optionalRest("port", "those; the `ports` of the configuration unless given") },
  options: {
    ...sandboxOptions,
    wake: flag("--wake", "a visitor may wake the sandbox"),
    path: flag("--path", "print the address below a path, for where hosts cannot be had"),
  },
  examples: [
    ["A server on port 3000", "berth open 3000"],
    ["In a browser", 'xdg-open "$(berth open 3000)"'],
  ],
  async run(context, { args, options: { wake, path, ...which } }) {
    const { sandbox, config } = await findSandbox(context, {
      ...readSandbox(which),
      ...{ make: false, ready: false },
    });
    const ports = args.ports.length > 0 ? args.ports.map(readPort) : (config?.content.ports ?? []);
    if (ports.length === 0) {
      throw new Failure("no port is named", {
        hint: "`berth open 3000`, or `ports` in the configuration.",
        code: "bad_usage",
      });
    }
    const opened = [];
    for (const port of ports) opened.push(await sandbox.openPort({ port, wake }));
    if (context.json) return void context.output.document({ ports: opened });
    for (const { url, pathUrl } of opened) context.output.line(path ? pathUrl : url);
  },
});

function readPort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw badOption("port", `'${text}' must be a number from 1 to 65535`);
}
