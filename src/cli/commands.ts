/** Lists the commands in the order of `berth --help`. */
import type { Command } from "./command.ts";
import { attachCommand } from "./commands/attach.ts";
import { cpCommand } from "./commands/cp.ts";
import { dashboardCommand } from "./commands/dashboard.ts";
import { execCommand } from "./commands/exec.ts";
import { imageCommand } from "./commands/image.ts";
import { keysCommand } from "./commands/keys.ts";
import { killCommand } from "./commands/kill.ts";
import { listCommand } from "./commands/list.ts";
import { lockCommand } from "./commands/lock.ts";
import { loginCommand } from "./commands/login.ts";
import { logsCommand } from "./commands/logs.ts";
import { openCommand } from "./commands/open.ts";
import { pauseCommand, resumeCommand } from "./commands/pause.ts";
import { planCommand } from "./commands/plan.ts";
import { psCommand } from "./commands/ps.ts";
import { pushCommand } from "./commands/push.ts";
import { runCommand } from "./commands/run.ts";
import { serveCommand } from "./commands/serve.ts";
import { resetCommand, startCommand } from "./commands/start.ts";
import { stopCommand } from "./commands/stop.ts";
import { versionCommand } from "./commands/version.ts";

export const commands: Command[] = [
  startCommand,
  execCommand,
  runCommand,
  attachCommand,
  lockCommand,
  pushCommand,
  psCommand,
  logsCommand,
  killCommand,
  cpCommand,
  openCommand,
  listCommand,
  pauseCommand,
  resumeCommand,
  resetCommand,
  stopCommand,
  planCommand,
  dashboardCommand,
  imageCommand,
  loginCommand,
  keysCommand,
  serveCommand,
  versionCommand,
];
