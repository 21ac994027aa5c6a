/** Works on builds until they have ended, and then removes their sandboxes. Runs once for each build. */
import { type Build, isBuilding } from "../../core/template/build.ts";
import { errors } from "../../protocol/errors.ts";
import type { NewSandbox } from "../sandbox/lifecycle/lifecycle.ts";
import { BackgroundTasks } from "../shared/background.ts";
import type { ObjectHost } from "../shared/host.ts";
import { messageOf, toBerthError } from "../shared/result.ts";
import { type BuildChange, Builder } from "./builder.ts";
import type { TemplatePorts } from "./ports.ts";
import { findBuild, loadJob } from "./rows.ts";
import { removeTrees } from "./trees.ts";

type Commit = (build: Build, change: BuildChange) => void;

export class Driver {
  readonly #host: ObjectHost;
  readonly #ports: TemplatePorts;
  readonly #commit: Commit;
  readonly #tasks: BackgroundTasks;
  /** Trees that sandboxes may still need are asked about again only then. */
  #treesAt = 0;

  constructor(host: ObjectHost, ports: TemplatePorts, commit: Commit) {
    this.#host = host;
    this.#ports = ports;
    this.#commit = commit;
    this.#tasks = new BackgroundTasks(host);
  }

  /** Joins the work that runs already. Never rejects. */
  work(build: Build): Promise<void> {
    if (!isBuilding(build)) return this.#tasks.start(`clear ${build.id}`, () => this.#clear(build));
    return this.#tasks.start(`build ${build.id}`, () => this.#build(build));
  }

  removeTrees(checkAgainMs: number): void {
    if (this.#host.clock() < this.#treesAt) return;
    void this.#tasks.start("trees", async () => {
      const isAnyKept = await removeTrees(this.#host, this.#ports);
      this.#treesAt = isAnyKept ? this.#host.clock() + checkAgainMs : 0;
    });
  }

  settle(): Promise<void> {
    return this.#tasks.settle();
  }

  async #build(begun: Build): Promise<void> {
    const builder = new Builder(this.#host, this.#ports);
    const job = loadJob(this.#host, begun);
    try {
      for (let build = this.#newest(begun); build !== undefined; build = this.#newest(begun)) {
        // What an action rests on is on disk before it is done.
        await this.#host.flush();
        const change = await builder.act(build, job);
        if (change !== undefined) this.#commit(build, change);
        const late = this.#newest(begun);
        if (late !== undefined) this.#commit(late, { event: { type: "deadline" } });
      }
    } catch (error) {
      // The alarm tries again, in an instance that can.
      this.#host.log({ build: begun.id, failed: "build", message: messageOf(error) });
      return;
    }
    const ended = findBuild(this.#host, begun.name, begun.tag);
    if (ended?.id === begun.id && !ended.isCleared) void this.work(ended);
  }

  /** The build as it is now; undefined once it has ended. */
  #newest({ id, name, tag }: Build): Build | undefined {
    const build = findBuild(this.#host, name, tag);
    return build?.id === id && isBuilding(build) ? build : undefined;
  }

  /** False: it was refused for good. Throws where it may be made later all the same. */
  async #make(make: NewSandbox): Promise<boolean> {
    const made = await this.#ports.make(make);
    if ("ok" in made) return true;
    if (errors[made.refused.code].retryable) throw toBerthError(made.refused);
    return false;
  }

  async #clear(build: Build): Promise<void> {
    const { make } = loadJob(this.#host, build);
    const { tenant } = make.spec;
    try {
      // A create on its way would otherwise make the sandbox after its end.
      const isMade = build.hasSandbox || (await this.#make(make));
      if (isMade) await this.#ports.builderOf({ tenant, sandbox: build.sandbox }).end();
      this.#commit(build, { event: { type: "cleared" } });
    } catch (error) {
      this.#host.log({ build: build.id, failed: "clear", message: messageOf(error) });
    }
  }
}
