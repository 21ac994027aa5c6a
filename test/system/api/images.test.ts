/** Images by the public API: imported, named at create, kept for what stands on them. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { digestOf, tarOf } from "../../engine/image-maker.ts";
import { CliUser } from "../cli/cli-user.ts";
import { sharedServerOfFile } from "../shared-server.ts";

const busybox = "/bin/busybox";
const canRun =
  process.getuid?.() === 0 &&
  existsSync(busybox) &&
  spawnSync("ldd", [busybox]).stderr.toString().includes("not a dynamic");

const server = await sharedServerOfFile();

const adminKey = readFileSync(join(server.data, "admin-key"), "utf8").trim();
const asAdmin = { headers: { authorization: `Bearer ${adminKey}` } };
const removeImage = (reference: string) =>
  server.call("DELETE", `/v1/images/find?reference=${reference}`, undefined, asAdmin);

async function importImage(name: string, bytes: Buffer, key = adminKey) {
  const response = await fetch(`${server.url}/v1/images/import?name=${name}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/x-tar" },
    body: new Uint8Array(bytes),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

function savedImage(): Buffer {
  const root = tarOf({
    "bin/busybox": { copy: busybox },
    "bin/sh": { link: "busybox" },
    "srv/hello": "hello\n",
  });
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  const rootfs = { type: "layers", diff_ids: [digestOf(root)] };
  const config = { Env: ["FROM_IMAGE=yes", "BOTH=image"], WorkingDir: "/srv" };
  return tarOf({
    "manifest.json": JSON.stringify([{ Config: "c.json", Layers: ["layer.tar"] }]),
    "c.json": JSON.stringify({ architecture, os: "linux", rootfs, config }),
    "layer.tar": { bytes: root },
  });
}

// Needs root, and a busybox that is linked statically.
describe.skipIf(!canRun)("images by the API", () => {
  const run = async (id: string, command: string) =>
    (await server.call("POST", `/v1/sandboxes/${id}/exec`, { command })).body.stdout;
  const make = (body: object) => server.call("POST", "/v1/sandboxes", { waitMs: 20_000, ...body });

  it("[IM8] an image gives its sandboxes files, environment and folder, through every restart and fork", async () => {
    const image = `app:${server.tenant}`;
    const made = await importImage(image, savedImage());
    expect(made).toMatchObject({ status: 200, body: { state: "ready", layers: 1 } });
    const env = { BOTH: "call" };
    const { body: box } = await make({ image, env });
    expect(box).toMatchObject({ state: "running", image, cwd: "/srv" });
    expect(
      await run(String(box.id), "cat hello; echo $FROM_IMAGE $BOTH; echo mine > /workspace/own"),
    ).toBe("hello\nyes call\n");
    const { body: saved } = await server.call("POST", `/v1/sandboxes/${box.id}/checkpoints`);
    const { body: shown } = await server.call("GET", `/v1/images/find?reference=${image}`);
    expect(shown).toMatchObject({ inUse: 2, facts: { cwd: "/srv" } });
    expect((await removeImage(image)).status).toBe(200);
    await server.call("POST", `/v1/sandboxes/${box.id}/pause`);
    expect(await run(String(box.id), "cat hello /workspace/own")).toBe("hello\nmine\n");
    const { body: fork } = await make({ from: saved.id });
    expect(fork).toMatchObject({ state: "running", image });
    expect(await run(String(fork.id), "cat hello /workspace/own; echo $FROM_IMAGE")).toBe(
      "hello\nmine\nyes\n",
    );
    const mixed = await make({ from: saved.id, image });
    expect(mixed).toMatchObject({ status: 400, body: { error: { field: "image" } } });
  });

  it("[IM9] an image that is not there, and a name that cannot be one, are refused by name", async () => {
    const missing = await make({ image: "registry.test/none:1" });
    expect(missing).toMatchObject({ status: 404, body: { error: { field: "image" } } });
    expect(await make({ image: "Not A Name" })).toMatchObject({
      ...{ status: 400, body: { error: { field: "image" } } },
    });
    const odd = await server.call("POST", "/v1/images/pull", { reference: "no-host" }, asAdmin);
    expect(odd).toMatchObject({ status: 400, body: { error: { field: "reference" } } });
    const inside = { reference: "127.0.0.1:1/a:1", waitMs: 20_000 };
    const local = await server.call("POST", "/v1/images/pull", inside, asAdmin);
    expect(local).toMatchObject({ status: 403, body: { error: { field: "reference" } } });
    expect((await importImage("broken:1", Buffer.from("x"))).status).toBe(400);
    expect((await importImage("x:1", Buffer.from("x"), "wrong")).status).toBe(401);
    const { body } = await server.call("GET", "/v1/images");
    expect(
      (body.images as { reference: string }[]).map(({ reference }) => reference),
    ).not.toContain("broken:1");
  });

  it("[IM10] only an administrator's key pulls, imports and removes images; any key lists them", async () => {
    const image = `owned:${server.tenant}`;
    expect((await importImage(image, savedImage())).status).toBe(200);
    const forbidden = { status: 403, body: { error: { code: "forbidden" } } };
    expect(await importImage(image, savedImage(), server.key)).toMatchObject(forbidden);
    const pulled = await server.call("POST", "/v1/images/pull", { reference: "registry.test/a:1" });
    expect(pulled).toMatchObject(forbidden);
    const path = `/v1/images/find?reference=${image}`;
    expect(await server.call("DELETE", path)).toMatchObject(forbidden);
    expect(await server.call("GET", path)).toMatchObject({ status: 200, body: { state: "ready" } });
    using user = new CliUser(server);
    const env = { BERTH_ADMIN_KEY: adminKey };
    expect(await user.output(["image", "list"])).toContain(image);
    expect(await user.output(["image", "remove", image], { env })).toBe(`Removed ${image}.\n`);
    expect((await server.call("GET", path)).status).toBe(404);
  });
});
