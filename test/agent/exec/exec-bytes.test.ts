import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { Agent, kinds } from "../agent.ts";

describe.each(kinds)("what an exec carries, process trees in a %s", (tree) => {
  const agent = Agent.forBlock({ tree });

  const bytesOf = (text: string) => Buffer.from(text, "base64");

  test("[X1] a command runs in a shell and returns both streams and its exit code", async () => {
    expect(agent.tree).toBe(tree);
    const result = await agent.sh("echo out; echo err >&2; exit 3");
    expect(result).toEqual({
      ...{ execId: "exec1", exitCode: 3, signal: null, timedOut: false },
      ...{ stdout: "out\n", stderr: "err\n", truncated: false, leftovers: 0 },
      ...{ durationMs: expect.any(Number), incarnation: agent.incarnation },
    });
    expect(result.durationMs).toBeGreaterThan(0);
  });

  test("[X1] a command that begins with a dash is not an option of the shell", async () => {
    expect(await agent.sh("-x; echo here")).toMatchObject({ stdout: "here\n", exitCode: 0 });
    expect(await agent.sh("+x; echo here")).toMatchObject({ stdout: "here\n", exitCode: 0 });
  });

  test.each([0, 1, 2, 126, 127, 130, 255])("[F19] exit code %i passes through", async (code) => {
    expect(await agent.sh(`exit ${code}`)).toMatchObject({ exitCode: code, signal: null });
  });

  test("[F19] a command that a signal ended has the name of the signal and no exit code", async () => {
    expect(await agent.sh("kill -9 $$")).toMatchObject({ exitCode: null, signal: "SIGKILL" });
    expect(await agent.sh("kill -SEGV $$")).toMatchObject({ exitCode: null, signal: "SIGSEGV" });
  });

  test("[F19] a missing program gives 127, one that cannot be executed 126, each with a message", async () => {
    const missing = await agent.exec({ argv: ["no-such-program"] });
    const notFound = { exitCode: 127, stdout: "", stderr: "no-such-program: not found\n" };
    expect(missing).toMatchObject(notFound);
    const plain = await agent.exec({ argv: ["/etc/passwd"] });
    expect(plain).toMatchObject({ exitCode: 126, stderr: "/etc/passwd: permission denied\n" });
    const folder = await agent.exec({ argv: ["/etc"] });
    expect(folder).toMatchObject({ exitCode: 126, stderr: "/etc: permission denied\n" });
    await agent.sh("printf 'echo no line says by what' > odd; chmod +x odd");
    expect(await agent.exec({ argv: ["./odd"] })).toMatchObject({ exitCode: 126 });
    await agent.sh("printf '#!/no/such/interpreter\\n' > gone; chmod +x gone");
    expect(await agent.exec({ argv: ["./gone"] })).toMatchObject({ exitCode: 127 });
  });

  test("[F17] arguments arrive unchanged to the byte: quotes, newlines, emoji, empty ones", async () => {
    const odd = ["a b", "", "'\"`$(x)\\", "line\nbreak\r\n\ttab", "🚢ü"];
    const argv = [...odd, "*", "--", "-n", "%s", " "];
    const result = await agent.exec({ argv: ["printf", "%s\\0", ...argv] });
    expect(result.stdout.split("\0").slice(0, -1)).toEqual(argv);
  });

  test("[F17] a program is found along the call's own PATH and below its folder", async () => {
    await agent.sh("mkdir -p bin; printf '#!/bin/sh\\necho mine $0' > bin/tool; chmod +x bin/tool");
    const env = { PATH: `${agent.workspace}/bin:/usr/bin:/bin` };
    expect((await agent.exec({ argv: ["tool"], env })).stdout).toBe(
      `mine ${agent.workspace}/bin/tool\n`,
    );
    expect((await agent.exec({ argv: ["bin/tool"] })).stdout).toMatch(/^mine .*bin\/tool\n$/);
    expect((await agent.exec({ argv: ["./tool"], cwd: "bin" })).exitCode).toBe(0);
    expect((await agent.exec({ argv: ["tool"] })).exitCode).toBe(127);
  });

  test("[X3] a line without an end arrives entirely", async () => {
    const result = await agent.sh("printf 'no end'; printf half >&2");
    expect(result).toMatchObject({ stdout: "no end", stderr: "half" });
  });

  test("[X3] NULs, bytes that are not UTF-8 and a byte order mark survive", async () => {
    const command = "printf '\\357\\273\\277a\\0b\\377\\376\\r\\n\\0'";
    const exact = await agent.sh(command, { encoding: "base64" });
    expect([...bytesOf(exact.stdout)]).toEqual([0xef, 0xbb, 0xbf, 97, 0, 98, 255, 254, 13, 10, 0]);
    const text = await agent.sh(command);
    expect(text.stdout).toBe("\uFEFFa\0b\uFFFD\uFFFD\r\n\0");
  });

  test("[X4] 5 MB of random bytes on stdout arrive unchanged", async () => {
    const size = 5_000_000;
    const result = await agent.sh(
      `head -c ${size} /dev/urandom > random; sha256sum < random >&2; cat random`,
      { encoding: "base64", maxOutputBytes: 8 * 1024 * 1024 },
    );
    const bytes = bytesOf(result.stdout);
    expect(bytes.length).toBe(size);
    const sum = createHash("sha256").update(bytes).digest("hex");
    expect(bytesOf(result.stderr).toString()).toBe(`${sum}  -\n`);
    expect(result.truncated).toBe(false);
  });

  test("[X5] interleaved stdout and stderr are each in order", async () => {
    const lines = 3000;
    const result = await agent.sh(
      `i=0; while [ $i -lt ${lines} ]; do echo o$i; echo e$i >&2; i=$((i+1)); done`,
    );
    const expected = (letter: string) =>
      Array.from({ length: lines }, (_, i) => `${letter}${i}\n`).join("");
    expect(result.stdout).toBe(expected("o"));
    expect(result.stderr).toBe(expected("e"));
  });

  test("[X6] the first bytes of both streams together are retained, the rest is read and dropped", async () => {
    const cut = await agent.sh("printf 12345; sleep 1; printf abcdefgh >&2; echo end > done", {
      maxOutputBytes: 8,
    });
    expect(cut).toMatchObject({ stdout: "12345", stderr: "abc", truncated: true, exitCode: 0 });
    expect((await agent.sh("cat done")).stdout).toBe("end\n");
    const exact = await agent.sh("printf 12345678", { maxOutputBytes: 8 });
    expect(exact).toMatchObject({ stdout: "12345678", truncated: false });
    const none = await agent.sh("echo x", { maxOutputBytes: 0 });
    expect(none).toMatchObject({ stdout: "", truncated: true });
  });

  test("[X6] a command that writes without end costs bounded memory", async () => {
    await agent.sh("head -c 50000000 /dev/zero", { maxOutputBytes: 1000 });
    const before = agent.memoryKiB();
    const result = await agent.sh("head -c 2000000000 /dev/zero", { maxOutputBytes: 1000 });
    expect(result).toMatchObject({ exitCode: 0, truncated: true });
    expect(result.stdout.length).toBe(1000);
    await agent.keepsLessThan(32 * 1024, before);
  });

  test("[X6] many small writes cost no more than their bytes", async () => {
    const before = agent.memoryKiB();
    const result = await agent.sh("dd if=/dev/zero bs=1 count=200000 status=none | tr '\\0' x");
    expect(result.stdout).toBe("x".repeat(200_000));
    await agent.keepsLessThan(64 * 1024, before);
  });

  test("[X7] standard input is what the call gives, to the byte, or empty", async () => {
    const input = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 256));
    const echoed = await agent.sh("cat", { stdin: input.toString("base64"), encoding: "base64" });
    expect(bytesOf(echoed.stdout).equals(input)).toBe(true);
    expect((await agent.sh("cat", { stdin: "text ü" })).stdout).toBe("text ü");
    expect(await agent.sh("cat; echo read")).toMatchObject({ stdout: "read\n" });
    expect(await agent.sh("cat; echo read", { stdin: "" })).toMatchObject({ stdout: "read\n" });
    expect((await agent.sh("cat /dev/stdin", { stdin: "by name" })).stdout).toBe("by name");
  });

  test("[X7] input that the command does not read delays nothing", async () => {
    const stdin = "x".repeat(2 * 1024 * 1024);
    expect(await agent.sh("echo done", { stdin })).toMatchObject({ stdout: "done\n", exitCode: 0 });
  });

  test("[X8] output streams are pipes that a command can open by name", async () => {
    const result = await agent.sh(
      "echo out > /dev/stdout; echo err > /dev/stderr; readlink /proc/self/fd/1",
    );
    expect(result.stdout).toMatch(/^out\npipe:\[\d+\]\n$/);
    expect(result.stderr).toBe("err\n");
  });

  test("[X8] a command inherits three descriptors, no blocked and no ignored signals", async () => {
    const result = await agent.sh(
      "ls /proc/$$/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status; yes | head -1",
    );
    expect(result.stdout).toBe(
      "0\n1\n2\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\ny\n",
    );
  });
});
