/** The commands in the order of `berth --help`. Each is loaded when it is used: loading all takes longer than most run. */
import type { Command } from "./command.ts";

const loaders: Record<string, () => Promise<Command>> = {
  start: async () => (await import("./commands/start.ts")).startCommand,
  exec: async () => (await import("./commands/exec.ts")).execCommand,
  run: async () => (await import("./commands/run.ts")).runCommand,
  attach: async () => (await import("./commands/attach.ts")).attachCommand,
  terminal: async () => (await import("./commands/terminal.ts")).terminalCommand,
  lock: async () => (await import("./commands/lock.ts")).lockCommand,
  push: async () => (await import("./commands/push.ts")).pushCommand,
  pull: async () => (await import("./commands/pull.ts")).pullCommand,
  kept: async () => (await import("./commands/kept.ts")).keptCommand,
  ps: async () => (await import("./commands/ps.ts")).psCommand,
  logs: async () => (await import("./commands/logs.ts")).logsCommand,
  kill: async () => (await import("./commands/kill.ts")).killCommand,
  cp: async () => (await import("./commands/cp.ts")).cpCommand,
  open: async () => (await import("./commands/open.ts")).openCommand,
  port: async () => (await import("./commands/port.ts")).portCommand,
  list: async () => (await import("./commands/list.ts")).listCommand,
  top: async () => (await import("./commands/top.ts")).topCommand,
  status: async () => (await import("./commands/status.ts")).statusCommand,
  events: async () => (await import("./commands/events.ts")).eventsCommand,
  pause: async () => (await import("./commands/pause.ts")).pauseCommand,
  resume: async () => (await import("./commands/pause.ts")).resumeCommand,
  reset: async () => (await import("./commands/start.ts")).resetCommand,
  stop: async () => (await import("./commands/stop.ts")).stopCommand,
  rm: async () => (await import("./commands/rm.ts")).rmCommand,
  checkpoint: async () => (await import("./commands/checkpoint.ts")).checkpointCommand,
  fork: async () => (await import("./commands/fork.ts")).forkCommand,
  plan: async () => (await import("./commands/plan.ts")).planCommand,
  dashboard: async () => (await import("./commands/dashboard.ts")).dashboardCommand,
  mcp: async () => (await import("./commands/mcp.ts")).mcpCommand,
  image: async () => (await import("./commands/image.ts")).imageCommand,
  token: async () => (await import("./commands/token.ts")).tokenCommand,
  gc: async () => (await import("./commands/gc.ts")).gcCommand,
  login: async () => (await import("./commands/login.ts")).loginCommand,
  keys: async () => (await import("./commands/keys.ts")).keysCommand,
  serve: async () => (await import("./commands/serve.ts")).serveCommand,
  version: async () => (await import("./commands/version.ts")).versionCommand,
};

export const commandNames = Object.keys(loaders);

/** The command of this name, or all if there is none: then help, completion or a suggestion needs them. */
export async function loadCommands(name: string | undefined): Promise<Command[]> {
  const load = loaders[name ?? ""];
  const wanted = load === undefined ? Object.values(loaders) : [load];
  return await Promise.all(wanted.map((loader) => loader()));
}
