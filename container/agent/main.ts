/**
 * Starts the program in one of its modes: an agent on the platform, an agent in a jail, a probe of what the machine can
 * do, the subreaper of one command, or a render worker of terminal screens. Each mode loads only its own code, because a subreaper starts often.
 */
import { hideFromOthers } from "./kernel/libc.ts";

// Before a secret is read.
hideFromOthers();
process.chdir("/");

switch (process.argv[2]) {
  case "serve":
    await (await import("./modes/serve.ts")).serve();
    break;
  case "jail":
    await (await import("./modes/jail.ts")).serveJail();
    break;
  case "probe":
    (await import("../engine/jail/probe.ts")).probeRange(process.argv.slice(3));
    process.exit(0);
    break;
  case "subreaper":
    await (await import("./supervision/subreaper.ts")).runSubreaper();
    process.exit(0);
    break;
  case "render":
    await (await import("./terminals/screen/render-worker.ts")).runRenderWorker();
    process.exit(0);
    break;
  default:
    console.error("usage: berth-agent serve|jail, with the boot document on descriptor 3");
    process.exit(2);
}
