import { afterAll, describe, expect, it } from "vitest";
import { startSecondWorker } from "./second-worker.ts";

const worker = await startSecondWorker();
afterAll(() => worker[Symbol.asyncDispose]());

describe("a second Worker that binds Berth", () => {
  it("[W10] creates a sandbox, runs commands in it and destroys it, with the real agent", async () => {
    const made = await worker.call("BERTH", ["create", [{ env: { COLOUR: "blue" } }]]);
    const id = made.value?.id;
    expect(id).toMatch(/^[a-z][a-z0-9]{23}$/);
    const argv = ["printf", "%s|", "two\nlines", "", "😀 'quoted' \"twice\"", "$HOME"];
    const ran = await worker.call("BERTH", ["sandbox", [id]], ["exec", [{ argv }]]);
    const stdout = "two\nlines||😀 'quoted' \"twice\"|$HOME|";
    expect(ran.value).toMatchObject({ exitCode: 0, stdout });
    const call = { command: "echo $COLOUR; exit 3" };
    const env = await worker.call("BERTH", ["sandbox", [id]], ["exec", [call]]);
    expect(env.value).toMatchObject({ exitCode: 3, stdout: "blue\n" });
    const ended = await worker.call("BERTH", ["sandbox", [id]], ["destroy", []]);
    expect(ended.value).toMatchObject({ state: "destroyed" });
    const late = await worker.call("BERTH", ["sandbox", [id]], ["exec", [{ command: "true" }]]);
    expect(late.thrown).toMatchObject({ code: "sandbox_destroyed" });
  });

  it("[W10] refuses calls of a binding without a tenant, with an error code", async () => {
    const refused = await worker.call("NOBODY", ["create", [{}]]);
    expect(refused.thrown).toMatchObject({ code: "unauthenticated" });
  });
});
