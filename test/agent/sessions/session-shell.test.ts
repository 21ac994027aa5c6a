import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { Agent, kinds } from "../agent.ts";
import { Sessions } from "./sessions.ts";

/** What a command may leave behind in its shell without an effect on the result of the next one. */
const afterwards: [string, string][] = [
  [
    "functions of the names of builtins",
    "eval() { :; }; printf() { :; }; exit() { :; }; exec() { :; }; read() { :; }; command() { :; }; trap() { :; }; set() { :; }",
  ],
  [
    "aliases of the names of builtins",
    "alias eval='echo bad' builtin='echo bad' printf='echo bad' exit=true '!=echo' '{=echo' if=echo",
  ],
  ["a function that passes builtin on", 'builtin() { command builtin "$@"; }'],
  [
    "traps of all kinds",
    "trap 'true' DEBUG; trap 'true' ERR; trap 'true' RETURN; trap 'true' EXIT; trap '' TERM INT HUP PIPE",
  ],
  ["set -x", "set -x"],
  ["set -v", "set -v"],
  ["set -u", "set -u"],
  ["set -e", "set -e"],
  ["set -euo pipefail", "set -euo pipefail"],
  ["set -f and noclobber", "set -f -C"],
  ["a changed IFS", "IFS=01234567890abcdefw"],
  ["an IFS that cannot be changed", "readonly IFS=x"],
  ["variables that cannot be changed", "readonly PWD REPLY PS4 LINENO 2>/dev/null"],
  ["variables that are gone", "unset PWD OLDPWD PATH HOME LINENO BASH_COMMAND; hash -r"],
  ["a PS4 that runs programs", "PS4='$(echo trace)'; set -x"],
  ["another PATH", "PATH=/nowhere"],
  ["posix mode", "set -o posix"],
  ["restored posix mode", "set -o posix; set +o posix; shopt -s expand_aliases"],
  ["another locale", "LC_ALL=C; LANG=xx_YY"],
  ["closed descriptors", "exec 0<&- 1>&- 2>&-"],
  ["other descriptors", "exec </dev/zero >/dev/full 2>/dev/full"],
  ["job control", "set -m"],
  ["an error handler that prints", "trap 'echo trap' ERR; true"],
  ["shell options", "shopt -s extdebug failglob nullglob dotglob globstar lastpipe compat31; true"],
  ["positional parameters", "set -- a b c"],
  ["a syntax error", "if; then"],
  ["an open quote", "echo 'open"],
  ["a here document without an end", "cat <<END\nopen"],
  ["a stray brace", "}"],
  ["a break, a continue and a return", "break; continue; return 7"],
  ["a failed substitution", "echo $(( 1 / 0 ))"],
  ["a background child", "sleep 100 &"],
  ["a stopped child", "(kill -STOP $BASHPID) & sleep 0.05"],
];

describe.each(kinds)(
  "what a session's shell remembers and survives, process trees in a %s",
  (tree) => {
    const agent = Agent.forBlock({ tree, env: { OF_CREATE: "sandbox" } });
    const sessions = new Sessions(agent);
    let id: string;
    beforeEach(async () => {
      id = await sessions.make();
    });

    test.each(afterwards)(
      "[B2] %s: the next command runs and returns its result",
      async (_, command) => {
        await sessions.exec(id, command);
        const next = { command: "echo out; echo err >&2; /bin/sh -c 'exit 3'" };
        const result = await sessions.run(id, next);
        const text = await result.text();
        if (/set -e/.test(command)) {
          expect(JSON.parse(text).error, text).toMatchObject({
            ...{ code: "session_terminated", exitCode: 3, stdout: "out\n", stderr: "err\n" },
          });
        } else {
          expect(JSON.parse(text), text).toMatchObject({ exitCode: 3, timedOut: false });
          const { stdout, stderr } = JSON.parse(text);
          expect([stdout, stderr].join("").match(/^out$/gm), text).toHaveLength(1);
          expect(stderr.match(/^err$/gm), text).toHaveLength(1);
          expect(stderr).not.toMatch(/w[0-9a-f]{32}/);
          await sessions.end(id);
        }
      },
    );

    test.each(['builtin() { echo "$@"; }', "enable -n eval", "enable -n printf"])(
      "[B2] %s: a session ends cleanly when its shell no longer runs our lines",
      async (command) => {
        const refused = await sessions.refused(sessions.run(id, `${command}; echo last`));
        expect(refused).toMatchObject({
          status: 410,
          code: "session_terminated",
          stdout: "last\n",
        });
        expect(refused.reason).toBe("ended");
      },
    );

    test("[B2] a syntax error is exit code 2 with the shell's own message", async () => {
      const result = await sessions.exec(id, "echo (");
      expect(result).toMatchObject({ exitCode: 2, stdout: "" });
      expect(result.stderr).toContain("syntax error");
    });

    test("[B2] a redirection by exec ends with its command", async () => {
      await sessions.exec(id, "exec > into; echo inside");
      expect(await sessions.exec(id, "echo outside; cat into")).toMatchObject({
        stdout: "outside\ninside\n",
      });
    });

    test("[B3] junk in every open descriptor neither ends a command nor counts as its end", async () => {
      const junk = String.raw`for fd in /proc/$$/fd/*; do
      printf '\0w00\0000\0/\0\n/w00.: junk\n' > $fd; done 2>/dev/null; (exit 5)`;
      expect((await sessions.exec(id, junk)).exitCode).toBe(5);
      expect(await sessions.exec(id, "echo after")).toMatchObject({
        exitCode: 0,
        stdout: "after\n",
      });
    });

    test("[B3] a command inherits none of the channels", async () => {
      const { stdout } = await sessions.exec(
        id,
        "exec 7</dev/null; ls -l /proc/self/fd | sed 's/.* -> //'",
      );
      const { length } = stdout.split("\n").filter((line) => line.includes("pipe:"));
      // The only pipe is its standard output, which leads to sed.
      expect(length, stdout).toBe(1);
      expect(
        stdout.split("\n").filter((line) => line.includes("/berth/sessions")),
        stdout,
      ).toHaveLength(1);
    });

    test.each([
      ["a command that reads the lines of its shell", "cat /proc/$$/fd/* 2>/dev/null", ""],
      ["a shell that stops reading", "echo before; set -n", "before\n"],
    ])("[B3] %s ends at the time limit", async (_, command, stdout) => {
      const running = sessions.run(id, { command, timeoutMs: 3000 });
      expect(await sessions.refused(running)).toMatchObject({
        ...{ code: "session_terminated", reason: "timed_out", timedOut: true },
        stdout: expect.stringContaining(stdout),
      });
    });

    test("[B3] a shell whose descriptors were all closed ends at the time limit or before", async () => {
      const command =
        'for fd in {3..255}; do builtin eval "exec $fd>&-"; done 2>/dev/null; echo closed';
      const refused = await sessions.refused(sessions.run(id, { command, timeoutMs: 3000 }));
      expect(refused).toMatchObject({ code: "session_terminated", stdout: "closed\n" });
    });

    const sh = (command: string) => sessions.exec(id, command);

    test("[L2] the folder, variables, functions, aliases, options and umask remain for the next command", async () => {
      await sh(
        "mkdir -p a/b; cd a/b; plain=1; export outer=2; list=(x 'y z'); declare -A map=([k]=v)",
      );
      await sh(
        "f() { echo \"f $1\"; }; alias ll='echo aliased'; shopt -s nullglob; umask 027; set -f",
      );
      expect((await sh("pwd; echo $plain; sh -c 'echo $outer'")).stdout).toBe(
        `${agent.workspace}/a/b\n1\n2\n`,
      );
      expect((await sh(`printf '<%s>' "\${list[@]}" "\${map[k]}"`)).stdout).toBe("<x><y z><v>");
      expect((await sh("f one; ll two; shopt -q nullglob && umask; echo *")).stdout).toBe(
        "f one\naliased two\n0027\n*\n",
      );
      expect(await sessions.view(id)).toMatchObject({ cwd: `${agent.workspace}/a/b` });
    });

    test("[L2] what a sourced file defines remains", async () => {
      await agent.sh("printf 'sourced=yes\\ng() { echo \"g $sourced\"; }\\n' > lib.sh");
      await sh(". ./lib.sh");
      expect((await sh("g")).stdout).toBe("g yes\n");
    });

    test("[L2] the exit code of a command is $? of the next one", async () => {
      for (const status of [0, 1, 2, 42, 127, 255]) {
        expect((await sh(`(exit ${status})`)).exitCode).toBe(status);
        expect((await sh("echo $?")).stdout).toBe(`${status}\n`);
      }
    });

    test("[B1] a session starts in its folder with its environment, and both remain", async () => {
      mkdirSync(join(agent.workspace, "in"), { recursive: true });
      id = await sessions.make({ cwd: "in", env: { OWN: "é '" } });
      expect((await sh('pwd; echo "$OWN $OF_CREATE $HOME"; env | grep -c OWN')).stdout).toBe(
        `${agent.workspace}/in\né ' sandbox ${agent.workspace}\n1\n`,
      );
    });

    test("[B1] two sessions share nothing, and neither does exec", async () => {
      const other = await sessions.make();
      await sh("only=mine; cd /");
      expect((await sessions.exec(other, 'echo "<$only>"; pwd')).stdout).toBe(
        `<>\n${agent.workspace}\n`,
      );
      expect((await agent.sh('echo "<$only>"; pwd')).stdout).toBe(`<>\n${agent.workspace}\n`);
    });
  },
);
