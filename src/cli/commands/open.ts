/** `berth open`: prints an address by which others reach a server in the sandbox. */
import { badOption, flag, optionalRest } from "../args/option.ts";
import { sandboxOptions } from "../args/sandbox-options.ts";
import { command } from "../command.ts";
import { Failure } from "../failure.ts";
import { findExistingSandbox } from "../find-sandbox.ts";

export const openCommand = command({
  name: "open",
  summary: "Print an address for a port of the sandbox",
  about:
    "Everybody who has the address can use it. Opening a port again gives it a new address and ends the one that others may have; `berth port` shows what is open.",
  args: { ports: optionalRest("port", "Ports (default: `ports` of the configuration)") },
  options: {
    ...sandboxOptions,
    wake: flag("--wake", "Let requests wake the sandbox"),
    path: flag("--path", "Print the address as a path, for servers without wildcard hosts"),
  },
  examples: [
    ["A server on port 3000", "berth open 3000"],
    ["In a browser", 'xdg-open "$(berth open 3000)"'],
  ],
  async run(context, { args, options }) {
    const given = args.ports.map(parsePort);
    const { sandbox, config } = await findExistingSandbox(context, options);
    const ports = given.length > 0 ? given : (config?.content.ports ?? []);
    if (ports.length === 0) {
      throw new Failure("No port is given.", {
        hint: "Use `berth open 3000`, or set `ports` in the configuration.",
        code: "bad_usage",
      });
    }
    const opened = [];
    for (const port of ports) opened.push(await sandbox.ports.open({ port, wake: options.wake }));
    if (context.json) return void context.output.printJson({ ports: opened });
    for (const { url, pathUrl } of opened) context.output.print(options.path ? pathUrl : url);
  },
});

export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port >= 1 && port <= 65_535) return port;
  throw badOption("port", `must be a number from 1 to 65535, not '${text}'`);
}
