import { existsSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import type { Process } from "../../../src/protocol/process.ts";
import { until } from "../../until.ts";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "./sessions.ts";

describe.each(kinds)(
  "a process that starts with a session's state, process trees in a %s",
  (tree) => {
    const agent = Agent.forBlock({ tree, env: { OF_CREATE: "sandbox" } });
    const sessions = new Sessions(agent);
    let id: string;
    let started = 0;
    beforeEach(async () => {
      id = await sessions.make();
    });

    type Call = { id?: string; command?: string; argv?: string[]; cwd?: string; env?: object };
    const post = (call: Call) => {
      started += 1;
      return sessions.request(`/${id}/processes`, "POST", { id: `process${started}`, ...call });
    };
    async function start(call: Call): Promise<Process> {
      const response = await post(call);
      expect(response.status, await response.clone().text()).toBe(201);
      return (await response.json()) as Process;
    }
    const getProcess = async (process: string) =>
      (await (await agent.request(`/v1/processes/${process}`)).json()) as Process;
    const output = async (process: string) => {
      await until("it has exited", async () => (await getProcess(process)).state === "exited");
      const logs = (stream: string) =>
        agent
          .request(`/v1/processes/${process}/logs?stream=${stream}`, {
            headers: { accept: "application/octet-stream" },
          })
          .then((response) => response.text());
      return {
        stdout: await logs("stdout"),
        stderr: await logs("stderr"),
        ...(await getProcess(process)),
      };
    };

    test("[L6] it has the folder, variables, functions, aliases, options and umask of the session, and does not change them", async () => {
      await sessions.exec(
        id,
        String.raw`mkdir -p deep; cd deep; plain='a
      "b" $c'; export outer=2; unset OF_CREATE; list=(x 'y z'); declare -A map=([k]=v); declare -r fixed=1
      declare -i number=7; ref=plain; declare -n name=ref; bytes=$'\xff\x01é'; alias ll='echo aliased'
      shopt -s extglob
      f() { case $1 in @(one|two)) echo "f $1";; esac; }; shopt -s extglob nullglob; umask 027; set -o pipefail
      declare() { echo shadowed; }; alias shopt=echo set=echo`,
      );
      const command = `pwd; echo "$plain"; sh -c 'echo $outer \${OF_CREATE-gone}'
      printf '<%s>' "\${list[@]}" "\${map[k]}" "$fixed" "$number" "$name"; echo
      printf %s "$bytes" | od -An -tx1; ll two; f one; umask; \\shopt -q nullglob && [[ -o pipefail ]] && echo on
      echo "[$#] [$1]"; cd /; plain=changed; f() { :; }; exit 5`;
      const process = await start({ command });
      expect(process).toMatchObject({
        ...{ sessionId: id, command, cwd: `${agent.workspace}/deep`, state: "running" },
      });
      const { stdout, stderr, exitCode } = await output(process.id);
      expect(stdout).toBe(
        `${agent.workspace}/deep\na\n      "b" $c\n2 gone\n<x><y z><v><1><7><plain>\n` +
          " ff 01 c3 a9\naliased two\nf one\n0027\non\n[0] []\n",
      );
      expect({ stderr, exitCode }).toEqual({ stderr: "", exitCode: 5 });
      const after = await sessions.exec(id, 'pwd; echo "$plain" | head -n 1; f two');
      expect(after.stdout).toBe(`${agent.workspace}/deep\na\nf two\n`);
    });

    test("[L6] arguments run without a shell, in the session's folder and with its exported variables", async () => {
      await sessions.exec(
        id,
        "mkdir -p bin; cd bin; printf '#!/bin/sh\\necho own \"$1\" $seen\\n' > own",
      );
      await sessions.exec(id, "chmod +x own; PATH=$PWD:$PATH; export seen=yes; unseen=yes");
      const { stdout } = await output((await start({ argv: ["own", "* '$x'"] })).id);
      expect(stdout).toBe("own * '$x' yes\n");
      const env = await output(
        (await start({ argv: ["env"], env: { seen: "é'1", more: "2" } })).id,
      );
      expect(env.stdout).toContain("seen=é'1\n");
      expect(env.stdout).toContain("more=2\n");
      expect(env.stdout).not.toContain("unseen");
    });

    test("[L6] its own folder is relative to the session's; with a missing one nothing starts", async () => {
      await sessions.exec(id, "mkdir -p one/two; cd one");
      const { stdout } = await output((await start({ command: "pwd; echo $PWD", cwd: "two" })).id);
      expect(stdout).toBe(`${agent.workspace}/one/two\n`.repeat(2));
      expect(await sessions.refused(post({ command: "pwd", cwd: "three" }))).toMatchObject({
        ...{ status: 400, code: "bad_cwd" },
      });
    });

    test("[L6] a state of megabytes is copied", async () => {
      await sessions.exec(id, "big=$(head -c 3000000 /dev/zero | tr '\\0' x)");
      const { stdout } = await output((await start({ command: `echo \${#big}` })).id);
      expect(stdout).toBe("3000000\n");
    });

    test("[L7] it keeps the session's turn only until it has started, and continues after the session", async () => {
      await sessions.exec(id, "false");
      const process = await start({ command: "sleep 1000" });
      expect((await sessions.exec(id, "echo $?; echo free")).stdout).toBe("1\nfree\n");
      await sessions.end(id);
      const { state, pid } = await getProcess(process.id);
      expect(state).toBe("running");
      expect(existsSync(`/proc/${pid}`)).toBe(true);
      await agent.request(`/v1/processes/${process.id}`, { method: "DELETE" });
      expect(existsSync(`/proc/${pid}`)).toBe(false);
    });

    test("[L7] it waits for its turn: what ran before it is part of its state", async () => {
      const before = sessions.exec(id, "sleep 0.3; early=yes");
      await until("it runs", async () => (await sessions.view(id)).state === "busy");
      const process = await start({ command: "echo $early" });
      expect((await before).exitCode).toBe(0);
      expect((await output(process.id)).stdout).toBe("yes\n");
    });

    test("[L7] two calls for the same process start one", async () => {
      const call = { id: "twice", command: "echo once >> counted; sleep 1000" };
      const [first, second] = await Promise.all([post(call), post(call)]);
      expect([first.status, second.status].sort()).toEqual([200, 201]);
      await until("it runs", async () => (await agent.sh("cat counted")).stdout !== "");
      expect((await agent.sh("cat counted")).stdout).toBe("once\n");
      expect((await getProcess("twice")).state).toBe("running");
      await agent.request("/v1/processes/twice", { method: "DELETE" });
    });
  },
);
