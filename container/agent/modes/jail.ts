/**
 * Runs an agent in a jail of the engine, as the first process of its namespaces. It listens while it is still in the
 * machine's network, and enters its own network afterwards.
 */
import { enterJail } from "../../engine/jail/enter.ts";
import { defaultUser, logsFolder } from "../exec/sandbox-env.ts";
import { showOwnersInside } from "../kernel/openat.ts";
import { PipeReader } from "../kernel/pipe.ts";
import { MetadataCopy, metadataFolder } from "../metadata-copy.ts";
import { Sandbox } from "../sandbox.ts";
import { listen } from "../server/server.ts";
import { CgroupSupervisor } from "../supervision/cgroup.ts";
import { Reaper } from "../supervision/reaper.ts";
import { SubreaperSupervisor } from "../supervision/subreaper-client.ts";
import { generateIncarnation, readJailBoot, reportReady } from "./boot.ts";

const engineFd = 0;

export async function serveJail(): Promise<void> {
  const { boot, jail: spec } = readJailBoot();
  const jail = enterJail(spec);
  const incarnation = generateIncarnation(boot.startId);
  let sandbox: Sandbox | undefined;
  const server = listen(
    {
      hostname: "127.0.0.1",
      port: 0,
      secret: boot.secret,
      incarnation,
      sharesLoopback: spec.network === "host",
    },
    () => {
      if (sandbox === undefined) throw new Error("a request came before the sandbox was ready");
      return sandbox;
    },
  );
  jail.isolateNetwork();
  const namespaces = jail.openNamespaces();
  showOwnersInside(jail.ids);
  jail.dropPrivileges();
  // Before there is a reaper, which would take its exit from the runtime.
  await jail.alone;
  const supervisor =
    jail.cgroup === undefined
      ? new SubreaperSupervisor({ reaper: new Reaper("kill"), namespaces })
      : new CgroupSupervisor(jail.cgroup, { reaper: new Reaper("reap"), namespaces });
  const { user } = jail;
  const as = { user, lookup: user, groups: [], name: defaultUser };
  const sandboxEnv = { ...jail, ...as, env: boot.env, logs: logsFolder };
  const metadataCopy = new MetadataCopy(metadataFolder);
  const meters = { cgroup: jail.meters, hasOwnNetwork: spec.network !== "host" };
  sandbox = new Sandbox({ sandboxEnv, supervisor, metadataCopy, meters });
  // The end of the engine's pipe ends this process, and with it every process of the namespace.
  const engine = new PipeReader(engineFd, () => {});
  engine.ended.finally(() => process.exit(0));
  reportReady(server, incarnation, supervisor);
}
