/**
 * Owns the clones of an agent in memory: scripted by the address. `…/missing` fails, `…/slow` goes on until it is
 * stopped, anything else is there at once.
 */
import { BerthError, errorBody } from "../../../src/protocol/errors.ts";
import type { CloneCall } from "../../../src/protocol/git.ts";
import type { FakeAgent } from "./agent.ts";
import { type Call, noRoute } from "./call.ts";
import { event } from "./files.ts";
import { bytesOf } from "./output.ts";
import { leaseLost, Stop } from "./stop.ts";

/** Then it tells a comment, by which it is noticed that nobody reads any more. */
const silenceMs = 50;

export async function answerGit(agent: FakeAgent, call: Call): Promise<Response> {
  if (`${call.method} ${call.rest.join("/")}` !== "POST clone") throw noRoute();
  const asked = await call.body<CloneCall>();
  const fence = call.pass();
  const stop = new Stop();
  const id = `clone ${crypto.randomUUID()}`;
  const idle = agent.begin();
  const over = () => {
    agent.running.delete(id);
    idle();
  };
  agent.running.set(id, { fence, stop });
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(event("progress", { phase: "Receiving objects", percent: 0 }));
      if (asked.url.endsWith("/slow")) return void goOn(controller, stop).finally(over);
      over();
      controller.enqueue(end(agent, asked));
      controller.close();
    },
    cancel: () => stop.now("left"),
  });
  return call.stream(body, { "content-type": "text/event-stream" });
}

async function goOn(
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
  const place = agent.files.place(dir ?? name, session);
  agent.tree.makeFolders(place);
  agent.tree.write(`${place}/README.md`, bytesOf(`# ${name}\n`), undefined);
  return event("done", { dir: place, commit: "0".repeat(40), branch });
}
