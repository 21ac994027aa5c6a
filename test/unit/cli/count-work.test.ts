/** Tests what counts as work that would be lost with a sandbox. */
import { expect, it } from "vitest";
import { countWorkScript } from "../../../src/cli/sync/count-script.ts";
import { runScript } from "../../../src/cli/sync/run-script.ts";
import { syncUp } from "../../../src/cli/sync/sync.ts";
import { Checkout } from "../../system/cli/sync/checkout.ts";
import { FolderSandbox } from "./folder-sandbox.ts";

const author = "git config user.name a; git config user.email a@b.c";

async function countWork(sandbox: FolderSandbox): Promise<string> {
  const target = { sandbox: sandbox.handle, options: {} };
  return (await runScript(target, countWorkScript, ["/workspace"])).toString().trim();
}

it("[CL8] stashes, commits of every branch, repositories and what was put aside count as work", async () => {
  using checkout = Checkout.begun();
  using sandbox = new FolderSandbox();
  const sync = () => syncUp(sandbox.handle, checkout.root);
  await sync();
  // A branch that was sent before the one of now is known here.
  checkout.git("checkout", "-q", "-b", "side");
  checkout.commit("on the side");
  await sync();
  checkout.git("checkout", "-q", "main");
  checkout.git("init", "-q", "lib");
  checkout.write("lib/x.txt", "x\n");
  await sync();
  expect(await countWork(sandbox)).toBe("0 0");
  sandbox.run(
    `${author}; git checkout -q -b mine; git commit -q --allow-empty -m mine; git checkout -q main`,
  );
  expect(await countWork(sandbox)).toBe("0 1");
  sandbox.run("echo edit > a.txt; git stash -q");
  expect(await countWork(sandbox)).toBe("0 3");
  sandbox.run("git init -q made; echo y > lib/y.txt");
  expect(await countWork(sandbox)).toBe("2 3");
  sandbox.run("mkdir -p .git/berth/aside/1/lib .git/berth/broken");
  expect(await countWork(sandbox)).toBe("4 3");
  sandbox.run(
    "git --git-dir=.git/berth update-ref refs/berth/kept/x HEAD || git --git-dir=.git/berth update-ref refs/berth/kept/x refs/berth/state",
  );
  expect(await countWork(sandbox)).toBe("5 3");
});
