/** Images of registries and archives, as the root of real sandboxes. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Image } from "../../src/protocol/image.ts";
import * as engineImages from "../../src/runtime/engine-images.ts";
import { until } from "../until.ts";
import {
  digestOf,
  hasProgram,
  layerOf,
  startRegistry,
  TestRegistry,
  tarOf,
} from "./image-maker.ts";
import {
  exec,
  identities,
  newData,
  newId,
  newStart,
  startEngine,
  stopWithoutTraces,
  type TestEngine,
} from "./test-engine.ts";

const busybox = "/bin/busybox";
/** Linked statically, so that it runs in any root. */
const canRun =
  identities().includes("root") &&
  existsSync(busybox) &&
  spawnSync("ldd", [busybox]).stderr.toString().includes("not a dynamic");
const waitMs = 20_000;
const MiB = 1024 * 1024;

/** A pull may take longer than one call waits. */
async function pullFrom(engine: TestEngine, reference: string): Promise<Image> {
  for (;;) {
    const image = await engineImages.pullImage(engine, { reference, waitMs });
    if (image.state !== "pulling") return image;
  }
}

const base = () =>
  layerOf({
    "bin/busybox": { copy: busybox },
    "bin/sh": { link: "busybox" },
    "bin/cat": { link: "busybox" },
    "bin/ls": { link: "busybox" },
    "usr/share/from-base": "base\n",
    "data/kept": "kept\n",
    "data/deleted": "deleted\n",
    "data/hidden/below": "below\n",
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\napp:x:1500:1500::/:/bin/sh\n",
  });

// Needs root, and a busybox that is linked statically.
describe.skipIf(!canRun)("images", () => {
  const registry = new TestRegistry();
  let engine: TestEngine;

  beforeAll(async () => {
    await registry.listen();
    engine = await startEngine("root", {
      data: newData("root"),
      env: {
        BERTH_ENGINE_REGISTRIES: registry.host,
        BERTH_ENGINE_IMAGE_BYTES_MAX: String(16 * MiB),
      },
    });
  });
  afterAll(async () => {
    registry.close();
    await stopWithoutTraces(engine);
  });

  const nameOf = (tag: string) => `${registry.host}/${tag}`;
  const pull = (tag: string) => pullFrom(engine, nameOf(tag));
  const layers = () => readdirSync(`${engine.data}/images/layers`);
  const partial = () => readdirSync(`${engine.data}/images/partial`);

  async function start(imageDigest: string | undefined, id = newId(), more = {}) {
    const container = engine.container(id);
    const call = { ...newStart(), ...more, image: "any", imageDigest };
    const started = await container.start(call);
    const sh = async (command: string) =>
      (await exec(container, started, call.secret, { command, timeoutMs: 20_000 })).stdout;
    const argv = async (...words: string[]) =>
      exec(container, started, call.secret, { argv: words, timeoutMs: 20_000 } as never);
    return { id, container, started, sh, argv };
  }

  it("[IM1] are pulled once, layer by layer, packed in any way, and deletions of layers hold", async () => {
    const first = base();
    const second = layerOf(
      {
        "data/.wh.deleted": "",
        "data/hidden/.wh..wh..opq": "",
        "data/hidden/above": "above\n",
        "usr/share/from-second": "second\n",
      },
      "zstd",
    );
    const third = layerOf({ third: "third\n" }, "none");
    const config = { Env: ["FROM_IMAGE=yes"], WorkingDir: "/data", User: "app", Cmd: ["sh"] };
    registry.add("app:1", [first, second, third], { config });
    registry.add("app:2", [first], {});
    const image = await pull("app:1");
    expect(image).toMatchObject({
      state: "ready",
      layers: 3,
      facts: { env: { FROM_IMAGE: "yes" }, cwd: "/data", user: "app", cmd: ["sh"] },
    });
    expect(layers()).toHaveLength(3);
    const requests = registry.requests.length;
    await pull("app:2");
    expect(registry.requests.slice(requests).some((path) => path.includes(first.digest))).toBe(
      false,
    );
    expect(layers()).toHaveLength(3);
    expect(partial()).toEqual([]);
    const other = {
      digest: digestOf("other"),
      size: 1,
      platform: { os: "linux", architecture: "s390x" },
    };
    const own = {
      digest: image.digest,
      size: 1,
      platform: { os: "linux", architecture: process.arch === "x64" ? "amd64" : process.arch },
    };
    registry.addManifest("multi:1", { manifests: [other, own] });
    expect((await pull("multi:1")).digest).toBe(image.digest);
    const { sh } = await start(image.digest);
    expect(await sh("ls /data /data/hidden")).toBe(
      "/data:\nhidden\nkept\n\n/data/hidden:\nabove\n",
    );
    expect(await sh("cat /usr/share/from-base /usr/share/from-second /third")).toBe(
      "base\nsecond\nthird\n",
    );
    expect(await sh("cat /etc/passwd")).toMatch(/^root.*\napp:.*\nberth:x:10001:/);
    expect(await sh("echo own > /usr/share/own; echo mine > x; cat x")).toBe("mine\n");
  });

  it("[IM2] without a shell run programs by their arguments", async () => {
    registry.add("scratch:1", [layerOf({ busybox: { copy: busybox } })]);
    const { digest } = await pull("scratch:1");
    const { argv } = await start(digest);
    expect((await argv("/busybox", "echo", "hello")).stdout).toBe("hello\n");
    expect((await argv("/bin/sh", "-c", "true")).exitCode).toBe(127);
  });

  it("[IM3] a pull whose connection breaks continues where it ended", async () => {
    const layer = layerOf({ "bin/busybox": { copy: busybox }, other: "x" }, "none");
    registry.add("cut:1", [layer]);
    registry.stops.push(100_000, 200_000);
    const reference = nameOf("cut:1");
    const pulling = pullFrom(engine, reference);
    for (const bytes of [100_000, 300_000]) {
      await until(`${bytes} bytes have arrived`, async () => {
        const image = await engineImages.findImage(engine, reference).catch(() => undefined);
        return image?.bytes === bytes;
      });
      for (const cut of registry.stopped.splice(0)) cut();
    }
    expect((await pulling).state).toBe("ready");
    const ranges = registry.requests.filter(
      (path) => path.startsWith("/v2/cut/") && path.includes("bytes="),
    );
    expect(ranges.map((path) => path.split(" ")[1])).toEqual(["bytes=100000-", "bytes=300000-"]);
  });

  it("[IM4] that are not what they say are refused, and nothing of them is kept", async () => {
    const before = layers().sort();
    const good = layerOf({ file: "good" });
    const lied = layerOf({ file: "lied".repeat(5000) }, "none");
    registry.add("lie:1", [lied]);
    registry.blobs.set(lied.digest, Buffer.alloc(lied.bytes.length, 1));
    registry.add("diff:1", [{ ...good, diffId: digestOf("something else") }]);
    registry.add("bomb:1", [layerOf({ zeros: "\0".repeat(17 * MiB) })]);
    registry.add("arch:1", [good], { architecture: "riscv64" });
    registry.addManifest("odd:1", { schemaVersion: 1 });
    const refusals = [
      ["lie:1", "bad_archive"],
      ["diff:1", "bad_archive"],
      ["bomb:1", "too_large"],
      ["arch:1", "unsupported"],
      ["odd:1", "bad_archive"],
      ["missing:1", "not_found"],
      [`app@${digestOf("none")}`, "not_found"],
    ] as const;
    for (const [tag, code] of refusals) {
      await expect(pull(tag), tag).rejects.toMatchObject({ code });
      expect((await engineImages.findImage(engine, nameOf(tag))).state).toBe("failed");
      await engineImages.removeImage(engine, nameOf(tag));
    }
    const elsewhere = { reference: "127.0.0.1:9/a:1", waitMs };
    await expect(engineImages.pullImage(engine, elsewhere)).rejects.toMatchObject({
      code: "forbidden",
    });
    registry.needsLogin = true;
    await expect(pull("app:1")).rejects.toMatchObject({ code: "forbidden" });
    registry.needsLogin = false;
    expect(layers().sort()).toEqual(before);
    expect(partial()).toEqual([]);
  });

  it("[IM5] stay as long as a sandbox or a checkpoint stands on them", async () => {
    registry.add("used:1", [base(), layerOf({ "only-used": "here\n" })]);
    const { digest } = await pull("used:1");
    const count = layers().length;
    const { id, container } = await start(digest);
    await container.snapshot("s".padEnd(24, "1"));
    await engineImages.removeImage(engine, nameOf("used:1"));
    await container.destroy("keep");
    const restarted = await start(digest, id);
    expect(await restarted.sh("cat /only-used")).toBe("here\n");
    await restarted.container.destroy("remove");
    expect(layers()).toHaveLength(count);
    const fork = await start(digest, newId(), { base: "s".padEnd(24, "1") });
    expect(await fork.sh("cat /only-used")).toBe("here\n");
    await fork.container.destroy("remove");
    await fork.container.removeSnapshot("s".padEnd(24, "1"));
    await until("its own layer is gone", () => layers().length === count - 1);
    await expect(start(digest)).rejects.toMatchObject({ facts: { field: "image" } });
  });

  it("[IM6] are imported from a root file system, an OCI layout and what Docker saves", async () => {
    const importTar = async (name: string, bytes: Buffer) => {
      const response = await fetch(`${engine.baseUrl}/v1/images/import?name=${name}`, {
        method: "PUT",
        headers: { authorization: `Bearer ${engine.secret}` },
        body: new Uint8Array(bytes),
      });
      return (await response.json()) as Image & { error?: { code: string } };
    };
    const root = tarOf({
      "bin/busybox": { copy: busybox },
      "bin/sh": { link: "busybox" },
      a: "a\n",
    });
    const layer = { diffId: digestOf(root), digest: digestOf(root), bytes: root };
    const architecture = process.arch === "x64" ? "amd64" : process.arch;
    const rootfs = { type: "layers", diff_ids: [layer.diffId] };
    const configText = JSON.stringify({ architecture, os: "linux", rootfs, config: {} });
    const plain = await importTar("plain:1", root);
    const saved = await importTar(
      "saved:1",
      tarOf({
        "manifest.json": JSON.stringify([{ Config: "c.json", Layers: ["l/layer.tar"] }]),
        "c.json": configText,
        "l/layer.tar": { bytes: root },
      }),
    );
    const blob = (text: string) => `blobs/${digestOf(text).replace(":", "/")}`;
    const config = { digest: digestOf(configText), size: configText.length };
    const manifest = JSON.stringify({
      config,
      layers: [{ digest: layer.digest, size: root.length }],
    });
    const index = { manifests: [{ digest: digestOf(manifest), size: manifest.length }] };
    const layout = await importTar(
      "layout:1",
      tarOf({
        ...{ "oci-layout": "{}", "index.json": JSON.stringify(index) },
        ...{ [blob(manifest)]: manifest, [blob(configText)]: configText },
        [`blobs/${layer.digest.replace(":", "/")}`]: { bytes: root },
      }),
    );
    for (const image of [plain, saved, layout])
      expect(image).toMatchObject({ state: "ready", layers: 1 });
    const count = layers().length;
    await importTar("plain:2", root);
    expect(layers()).toHaveLength(count);
    const { argv } = await start(plain.digest);
    expect((await argv("/bin/busybox", "cat", "/a")).stdout).toBe("a\n");
    expect(await importTar("broken:1", Buffer.from("no archive"))).toMatchObject({
      error: { code: "bad_archive" },
    });
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(engine.data);
  });

  // Needs a real registry, and a program that pushes to it.
  it.skipIf(!hasProgram("docker-registry") || !hasProgram("skopeo"))(
    "[IM7] are pulled from a real registry, by tag and by digest",
    async () => {
      await using real = await startRegistry();
      const root = tarOf({ "bin/busybox": { copy: busybox }, "bin/sh": { link: "busybox" } });
      const diffId = digestOf(root);
      const architecture = process.arch === "x64" ? "amd64" : process.arch;
      const rootfs = { type: "layers", diff_ids: [diffId] };
      const config = JSON.stringify({ architecture, os: "linux", rootfs, config: {} });
      const saved = tarOf({
        "manifest.json": JSON.stringify([{ Config: "c.json", Layers: ["l/layer.tar"] }]),
        "c.json": config,
        "l/layer.tar": { bytes: root },
      });
      real.push(saved, "real:1");
      const second = await startEngine("root", {
        data: newData("root"),
        env: { BERTH_ENGINE_REGISTRIES: real.host },
      });
      const byTag = await pullFrom(second, `${real.host}/real:1`);
      expect(byTag).toMatchObject({ state: "ready", layers: 1 });
      const pinned = `${real.host}/real@${byTag.digest}`;
      const byDigest = await pullFrom(second, pinned);
      expect(byDigest.digest).toBe(byTag.digest);
      await stopWithoutTraces(second, { ranSandboxes: false });
    },
  );
});
