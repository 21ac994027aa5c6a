/**
 * Clones of an agent in memory, scripted by the address: `…/missing` fails, `…/slow` continues until it is stopped,
 * any other succeeds at once.
 */
import { BerthError, errorBody } from "../../../src/protocol/errors.ts";
import type { CloneCall } from "../../../src/protocol/file.ts";
import type { FakeAgent } from "./agent.ts";
import { type AgentCall, noRoute } from "./call.ts";
import { event } from "./files.ts";
import { bytesOf } from "./stdio.ts";
import { leaseLost, Stop } from "./waiting.ts";

/** The interval of comments, by which a disconnected reader is noticed. */
const silenceMs = 50;

export async function answerGit(agent: FakeAgent, call: AgentCall): Promise<Response> {
  if (`${call.method} ${call.rest.join("/")}` !== "POST clone") throw noRoute();
  const cloneCall = await call.body<CloneCall>();
  call.admitFence();
  const stop = new Stop();
  const onEnd = agent.beginGatedWork(`clone ${crypto.randomUUID()}`, stop);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(event("progress", { phase: "Receiving objects", percent: 0 }));
      if (cloneCall.url.endsWith("/slow"))
        return void runUntilStopped(controller, stop).finally(onEnd);
      onEnd();
      controller.enqueue(end(agent, cloneCall));
      controller.close();
    },
    cancel: () => stop.now("left"),
  });
  return call.stream(body, { "content-type": "text/event-stream" });
}

async function runUntilStopped(
  controller: ReadableStreamDefaultController<Uint8Array>,
  stop: Stop,
): Promise<void> {
  const silence = setInterval(() => controller.enqueue(bytesOf(":\n\n")), silenceMs);
  const why = await stop.wait(() => () => clearInterval(silence)).catch((error) => error.why);
  if (why === "cut") return controller.error(new TypeError("connection reset"));
  if (why === "left") return;
  controller.enqueue(event("error", errorBody(leaseLost(), "none")));
  controller.close();
}

function end(agent: FakeAgent, { url, dir, session, branch = "main" }: CloneCall): Uint8Array {
  if (url.endsWith("/missing")) {
    const refused = new BerthError("clone_failed", "There is no such repository.");
    return event("error", errorBody(refused, "none"));
  }
  const name = url.replace(/^.*[/:]/, "").replace(/\.git$/, "");
  const folder = agent.files.resolvePath(dir ?? name, session);
  agent.tree.makeFolders(folder);
  agent.tree.write(`${folder}/README.md`, bytesOf(`# ${name}\n`), undefined);
  return event("done", { dir: folder, commit: "0".repeat(40), branch });
}
