/** Tests commands that take over the user's terminal, in a real one (tmux): `berth attach` and `berth exec --tty`. */
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { until } from "../../../until.ts";
import { CutProxy } from "../../client/cut-proxy.ts";
import { useCliUser } from "../cli-user.ts";
import { hasTmux, TmuxScreen } from "./tmux-screen.ts";

const { server, user, sandboxOf } = await useCliUser();
const repo = user.repo("app");
const sandbox = await sandboxOf(repo);

describe.skipIf(!hasTmux)("a terminal of the sandbox in the user's own", () => {
  test("[LV16] attach opens a shell, follows the size, detaches by its key, and comes back", async () => {
    using screen = new TmuxScreen(user, repo);
    screen.type("berth attach", "Enter");
    await screen.shows("detaches");
    screen.type("cd /workspace; echo in-$((40+2)); stty size", "Enter");
    await screen.shows(/in-42\n24 90/);
    screen.tmux("resize-window", "-x", "70", "-y", "20");
    await until(
      "the size has changed",
      async () => (await sandbox.terminal("main").get()).cols === 70,
    );
    screen.type("C-\\");
    await screen.shows("terminal main continues");
    // Below the previous output, which is not overwritten.
    expect(screen.text.indexOf("terminal main continues")).toBeGreaterThan(
      screen.text.indexOf("in-42"),
    );
    await screen.isAsBefore();
    expect((await sandbox.terminal("main").get()).viewers).toBe(0);
    screen.type("clear; berth attach", "Enter");
    // What is typed earlier, while the screen still shows the prompt, would go to the shell that ends.
    await until("it is attached", async () => (await sandbox.terminal("main").get()).viewers === 1);
    await screen.shows("in-42");
    screen.type("exit 5", "Enter");
    await screen.shows("here>");
    await screen.hasEnded(5);
  });

  test("[LV16] a full-screen program works, and TERM restores the screen", async () => {
    using screen = new TmuxScreen(user, repo);
    screen.type("berth attach full", "Enter");
    await screen.shows("detaches");
    screen.type("seq 1 200 | less", "Enter");
    await screen.shows(/\n23\n:/);
    screen.type("G");
    await screen.shows("200\n(END)");
    const attached = screen.childPid;
    process.kill(attached, "SIGTERM");
    // Until then it may take what is typed.
    await until("attach has ended", () => !existsSync(`/proc/${attached}`));
    await screen.hasEnded(143);
    expect((await sandbox.terminals.list()).map(({ id }) => id)).toEqual(["full"]);
    await sandbox.terminal("full").delete();
  });

  test("[LV17] exec --tty gives a command a terminal, passes its exit code on, fetches changes, and leaves no terminal behind", async () => {
    using screen = new TmuxScreen(user, repo);
    const script = "tty && stty size; echo > made-by-tty; exit 9";
    screen.type(`berth exec --tty -- sh -c '${script}'`, "Enter");
    await screen.shows(/\/dev\/pts\/\d+\n24 90/);
    await screen.shows("Changed here: made-by-tty");
    await screen.hasEnded(9);
    expect(await sandbox.terminals.list()).toHaveLength(0);
    expect(await sandbox.lease.get()).toMatchObject({ state: "free" });
  });

  test("[LV17] exec --tty reports a lost server and restores the terminal", async () => {
    await using proxy = await CutProxy.to(server.url);
    using screen = new TmuxScreen(user, repo);
    screen.type(`export BERTH_URL=${proxy.url}; berth exec --tty -- sh -c 'echo on; cat'`, "Enter");
    await screen.shows(/^on$/m);
    proxy.stall();
    proxy.cut();
    await screen.shows("error: The lease has ended");
    await screen.hasEnded(125);
    const isGone = async () => (await sandbox.terminals.list()).length === 0;
    await until("its terminal is gone", isGone);
  });

  test("[LV17] the command of exec --tty ends when its client is killed, before the next run syncs", async () => {
    using screen = new TmuxScreen(user, repo);
    const writes = "while :; do date +%s%N > stamp; sleep 0.02; done";
    screen.type(`berth exec --tty -- sh -c "trap '' HUP TERM; ${writes}"`, "Enter");
    const size = async () => (await sandbox.files.stat("stamp")).size;
    await until("it writes", async () => (await size().catch(() => 0)) > 0);
    process.kill(screen.childPid, "SIGKILL");
    // The sync may have removed the file: then nothing may create it again.
    const readScript = "cat stamp 2> /dev/null";
    const quiet = `${readScript} > /tmp/before; sleep 0.5; ${readScript} | cmp - /tmp/before && echo quiet`;
    const ran = await user.berth(["exec", "--", "sh", "-c", quiet], { cwd: repo });
    expect(ran).toMatchObject({ code: 0, stdout: "quiet\n" });
    expect(await sandbox.terminals.list()).toHaveLength(0);
  });
});
