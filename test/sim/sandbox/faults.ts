/** What each fault of a plan does, and how it ends. See script.ts for when. */
import { loseMessages, once, type StartFault, setFlag } from "../steps.ts";
import type { FaultName } from "./script.ts";
import type { World } from "./world.ts";

export const startFault: Record<FaultName, StartFault<World>> = {
  crash: once((world) => world.object.crash("dead")),
  "forgotten instance": once((world) => world.object.crash("forgotten")),
  "crash after a commit": once((world, { size }) =>
    world.crashAfterCommits(1 + Math.floor(size * 12)),
  ),
  "crash with the container": once((world) => {
    world.object.crash("dead");
    world.engine.exitContainer();
  }),
  "container dies": once((world, { size }) =>
    world.engine.exitContainer(size < 0.5 ? "exited" : "out_of_memory"),
  ),
  "agent restarts": once((world) => world.engine.restartAgent()),
  "engine restarts": once((world) => world.engine.restart()),
  "clock steps": once((world, { ms }) => world.setClock(ms)),
  "clock steps back": once((world, { ms }) => world.setClock(-ms)),
  "agent is silent": (world) => {
    const { agent } = world.engine;
    agent?.setSilent(true);
    return () => agent?.setSilent(false);
  },
  "engine is away": ({ engine }) => setFlag(engine, "isUnreachable"),
  "engine refuses": ({ engine }) => setFlag(engine, "refuses"),
  "messages are lost": (world, { size }) => loseMessages(world, 0.05 + size * 0.4),
  "messages are slow": ({ weather }) => setFlag(weather, "isSlow"),
  "bodies are late": ({ weather }) => setFlag(weather, "hasLateBodies"),
  "alarms are late": ({ weather }) => setFlag(weather, "hasLateAlarms"),
};
