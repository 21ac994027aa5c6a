/**
 * The platform in place of the engine: containers attached to the object, which forget as documented. Between calls the
 * object is evicted, so that everything that lived in its memory has to be found again.
 */
import { saveBeforeHostCloses } from "../../../src/objects/sandbox/lifecycle/lifecycle.ts";
import { cloudflareRuntime } from "../../../src/runtime/cloudflare.ts";
import type { Egress } from "../../../src/runtime/egress.ts";
import type { ContainerRuntime } from "../../../src/runtime/runtime.ts";
import type { PlatformContainer } from "../../fakes/platform/container.ts";
import { PlatformMachine } from "../../fakes/platform/machine.ts";
import { SimAgent } from "./agent.ts";
import type { SandboxHost } from "./sandbox.ts";
import { exchange } from "./wire.ts";
import type { World } from "./world.ts";

type Tree = Map<string, string>;

const noEgress: Egress = {
  direct: false,
  callbackUrl: undefined,
  env: {},
  apply: async () => undefined,
  forget: () => undefined,
};
/** How long the platform keeps an object without work. */
const evictAfterMs = 10_000;

export class SimPlatform {
  agent: SimAgent | undefined;
  readonly machine: PlatformMachine<Tree>;
  readonly #world: World;
  #isEvicting = false;
  #lastEnd = 0;

  constructor(world: World) {
    this.#world = world;
    this.machine = new PlatformMachine<Tree>({
      clock: { after: (ms, what, ring) => world.schedule.after(ms, what, ring) },
      newTree: () => new Map(),
      copyTree: (tree) => new Map(tree),
      mixTrees,
      boot: ({ env }) => {
        const { startId, secret } = JSON.parse(env.BERTH_BOOT ?? "{}");
        const agent = new SimAgent(world, startId, secret);
        this.agent = agent;
        return {
          fetch: () => Promise.reject(new TypeError("requests go over the wire")),
          // The agent says so; nobody waits for what the object answers.
          terminate: () => {
            const { incarnation } = agent;
            void world.object.call("the host closes", async (actor) => {
              if (actor.existing === undefined) return false;
              return saveBeforeHostCloses(actor, { incarnation, secret });
            });
          },
          end: () => {
            agent.end();
            if (this.agent === agent) this.agent = undefined;
          },
        };
      },
    });
  }

  get hasContainer(): boolean {
    return this.machine.run !== undefined;
  }

  /** Files end with their container. */
  get hasFiles(): boolean {
    return this.hasContainer;
  }

  get tree(): Tree {
    return this.machine.run?.tree ?? new Map();
  }

  get snapshots(): Map<string, Tree> {
    return this.machine.snapshots;
  }

  /** No machine can be had. */
  set isUnreachable(isUnreachable: boolean) {
    this.machine.refusal = isUnreachable ? "there is no container instance" : undefined;
  }

  get isUnreachable(): boolean {
    return this.machine.refusal !== undefined;
  }

  set refuses(refuses: boolean) {
    this.isUnreachable = refuses;
  }

  get refuses(): boolean {
    return this.isUnreachable;
  }

  /** A host goes without notice, or with one that leaves minutes to save. */
  exitContainer(reason: "exited" | "out_of_memory" = "exited"): void {
    if (reason === "exited") this.machine.loseHost();
    else if (this.hasContainer) {
      this.#world.count("outcome", "a host gave notice");
      this.machine.retireHost();
    }
  }

  /** On the platform nothing starts an agent again. */
  restartAgent(): void {
    this.machine.loseHost();
  }

  restart(): void {
    this.machine.loseHost();
  }

  /** What an instance of the object gets. */
  openRuntime(host: SandboxHost, attached: PlatformContainer<Tree>): ContainerRuntime {
    const world = this.#world;
    const { machine } = this;
    const wired = new Proxy(attached, {
      get(target, name) {
        if (name === "getTcpPort") {
          return () => ({
            fetch: (input: Request | string, init?: RequestInit) =>
              machine.run?.program === undefined
                ? target.getTcpPort(0).fetch(input, init)
                : exchange(world, host, new Request(input, init)),
          });
        }
        const value: unknown = Reflect.get(target, name, target);
        if (name !== "start") return typeof value === "function" ? value.bind(target) : value;
        return (options: { env: { BERTH_BOOT: string } }) => {
          world.observer.onContainerStarted(JSON.parse(options.env.BERTH_BOOT).startId);
          target.start(options);
        };
      },
    });
    const startTimer = (ms: number, ring: () => void) => host.setTimer(ms, ring);
    return cloudflareRuntime(wired as never, noEgress, startTimer);
  }

  /** Evicts an object without work, and checks that the platform ended no container that was to be kept. */
  onStep(): void {
    const { object, schedule, observer } = this.#world;
    const { ends } = this.machine;
    for (; this.#lastEnd < ends.length; this.#lastEnd++) {
      const isKept = observer.facts?.sandbox.state.name === "running";
      if (ends[this.#lastEnd] === "inactivity" && isKept) {
        this.#world.fail("a container outlives its object's sleep", "the platform ended it");
      }
    }
    if (this.#isEvicting || !isQuiet(this.#world)) return;
    this.#isEvicting = true;
    schedule.after(evictAfterMs, "the object may sleep", () => {
      this.#isEvicting = false;
      if (!isQuiet(this.#world)) return;
      this.#world.count("outcome", "the object slept");
      object.sleep();
    });
  }
}

function isQuiet({ object, database }: World): boolean {
  const { host } = object;
  if (host === undefined || host.state !== "live" || database.isDirty) return false;
  return object.open.size === 0 && host.timers + host.backgrounds === 0 && !database.isRinging;
}

/** Half of the paths as they were before the save, the others as they are after it. */
function mixTrees(before: Tree, after: Tree): Tree {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  const mixed: Tree = new Map();
  for (const [index, path] of paths.entries()) {
    const text = (index % 2 === 0 ? before : after).get(path);
    if (text !== undefined) mixed.set(path, text);
  }
  return mixed;
}
